package fleettest

import (
	"context"
	"testing"
	"time"

	"sluice/core/fleet"
)

// QueuesHarness is a fresh and empty source of queues with the handles that the suite needs.
type QueuesHarness struct {
	Queues fleet.Queues
	Source fleet.SourceKind
	// Put adds one job. NewJob.After and Priority matter only where the source knows them.
	Put func(j NewJob)
	// Take claims one job of a queue, which then runs; nil where the source does not know what runs.
	Take func(queue string)
	// Advance moves the source's clock; nil where it does not tell ages.
	Advance func(d time.Duration)
	// Spoil makes one queue unreadable; nil where queues cannot fail one by one.
	Spoil func(queue string)
	// Stop makes the whole source unreachable.
	Stop func()
}

// Queues runs the conformance suite of fleet.Queues.
func Queues(t *testing.T, open func(t *testing.T) QueuesHarness) {
	t.Helper()
	for _, c := range []struct {
		name string
		run  func(q *queueBench)
	}{
		{"the answer has one state for each queue, in the order asked", queuesInOrder},
		{"a queue that nobody has used is empty, not unknown", queueMissing},
		{"nothing asked is nothing answered", queuesNone},
		{"waiting jobs are counted", queueDepth},
		{"many queues are read together", queuesMany},
		{"jobs that run do not wait", queueRunning},
		{"a job that is not due is no demand", queueNotDue},
		{"the age is that of the oldest job that waits", queueAge},
		{"priorities add up to the depth", queuePriorities},
		{"a queue that cannot be read is unknown, the others are not", queueSpoiled},
		{"a source that cannot be reached is an error, never zero", queuesDown},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			c.run(&queueBench{T: t, QueuesHarness: open(t), ctx: ctx})
		})
	}
}

type queueBench struct {
	*testing.T
	QueuesHarness
	ctx context.Context
}

func (q *queueBench) read(names ...string) []fleet.QueueState {
	q.Helper()
	var ask []fleet.Queue
	for _, n := range names {
		ask = append(ask, fleet.Queue{Name: n, Source: fleet.Source{Kind: q.Source, Rows: true}})
	}
	got, err := q.Queues.Read(q.ctx, ask)
	if err != nil {
		q.Fatalf("read %v: %v", names, err)
	}
	if len(got) != len(names) {
		q.Fatalf("read %v: %d states, want %d", names, len(got), len(names))
	}
	for i, n := range names {
		if got[i].Name != n {
			q.Fatalf("read %v: state %d is of %q", names, i, got[i].Name)
		}
	}
	return got
}

func (q *queueBench) put(queue string, n int) {
	for range n {
		q.Put(NewJob{Queue: queue})
	}
}

func queuesInOrder(q *queueBench) {
	q.put("a", 1)
	q.put("c", 3)
	got := q.read("c", "b", "a")
	if got[0].Depth != 3 || got[1].Depth != 0 || got[2].Depth != 1 {
		q.Errorf("depths %s, want 3, 0 and 1", text(q.T, got))
	}
}

func queueMissing(q *queueBench) {
	if s := q.read("nobody")[0]; s.Unknown != "" || s.Depth != 0 || s.Running != 0 || s.Oldest != 0 {
		q.Errorf("state %s, want an empty queue", text(q.T, s))
	}
}

func queuesNone(q *queueBench) {
	if got := q.read(); len(got) != 0 {
		q.Errorf("states %s of no queue", text(q.T, got))
	}
}

func queueDepth(q *queueBench) {
	for n := range 5 {
		if s := q.read("ocr")[0]; s.Depth != n || s.Unknown != "" {
			q.Errorf("state %s, want depth %d", text(q.T, s), n)
		}
		q.put("ocr", 1)
	}
}

func queuesMany(q *queueBench) {
	var names []string
	for n := range 300 {
		names = append(names, "queue-"+string(rune('a'+n%26))+string(rune('a'+n/26)))
	}
	q.put(names[7], 2)
	for i, s := range q.read(names...) {
		if want := map[int]int{7: 2}[i]; s.Depth != want || s.Unknown != "" {
			q.Errorf("state %s, want depth %d", text(q.T, s), want)
		}
	}
}

func queueRunning(q *queueBench) {
	if q.Take == nil {
		q.Skip("the source does not know what runs")
	}
	q.put("ocr", 3)
	q.Take("ocr")
	if s := q.read("ocr")[0]; s.Depth != 2 || s.Running != 1 {
		q.Errorf("state %s, want 2 that wait and 1 that runs", text(q.T, s))
	}
}

func queueNotDue(q *queueBench) {
	if q.Advance == nil {
		q.Skip("the source knows no time")
	}
	q.Put(NewJob{Queue: "ocr", After: time.Hour})
	if s := q.read("ocr")[0]; s.Depth != 0 || s.Oldest != 0 {
		q.Errorf("state %s an hour early", text(q.T, s))
	}
	q.Advance(time.Hour)
	if s := q.read("ocr")[0]; s.Depth != 1 || s.Oldest != 0 {
		q.Errorf("state %s when it is due, want depth 1 and no age", text(q.T, s))
	}
	q.Advance(10 * time.Second)
	if s := q.read("ocr")[0]; s.Oldest != 10 {
		q.Errorf("age %d s ten seconds after it was due: it has waited since then", s.Oldest)
	}
}

func queueAge(q *queueBench) {
	if q.Advance == nil {
		if s := q.read("ocr")[0]; !s.NoAge {
			q.Errorf("state %s: a source that does not tell ages must say so", text(q.T, s))
		}
		return
	}
	q.put("ocr", 1)
	q.Advance(5 * time.Minute)
	q.put("ocr", 1)
	if s := q.read("ocr")[0]; s.Oldest != 300 || s.NoAge {
		q.Errorf("state %s, want an age of 300 s", text(q.T, s))
	}
	q.Take("ocr")
	if s := q.read("ocr")[0]; s.Oldest != 0 || s.Depth != 1 {
		q.Errorf("state %s, want the age of the job that is left", text(q.T, s))
	}
}

func queuePriorities(q *queueBench) {
	q.Put(NewJob{Queue: "ocr", Priority: 9})
	q.Put(NewJob{Queue: "ocr", Priority: 2})
	q.Put(NewJob{Queue: "ocr", Priority: 2})
	s := q.read("ocr")[0]
	if s.Priorities == nil {
		return // the source does not know them
	}
	sum, last := 0, 0
	for _, p := range s.Priorities {
		if p.Priority <= last {
			q.Errorf("priorities %s do not ascend", text(q.T, s))
		}
		sum, last = sum+p.Depth, p.Priority
	}
	if sum != s.Depth || s.Depth != 3 || s.Priorities[0].Priority != 2 || s.Priorities[0].Depth != 2 {
		q.Errorf("state %s, want 2 of priority 2 and 1 of priority 9", text(q.T, s))
	}
}

func queueSpoiled(q *queueBench) {
	if q.Spoil == nil {
		q.Skip("queues of this source cannot fail one by one")
	}
	q.put("good", 2)
	q.Spoil("bad")
	got := q.read("bad", "good")
	if got[0].Unknown == "" || got[1].Unknown != "" || got[1].Depth != 2 {
		q.Errorf("states %s, want the first unknown with its cause and 2 in the second", text(q.T, got))
	}
}

func queuesDown(q *queueBench) {
	q.put("ocr", 1)
	q.Stop()
	got, err := q.Queues.Read(q.ctx, []fleet.Queue{{Name: "ocr", Source: fleet.Source{Kind: q.Source, Rows: true}}})
	if err == nil {
		q.Errorf("read %s from a source that is down", text(q.T, got))
	}
}
