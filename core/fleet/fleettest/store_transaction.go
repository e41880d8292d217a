package fleettest

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"sluice/core/fleet"
)

func transactionCases() []storeCase {
	return []storeCase{
		{"a fresh database has an identity and no past", freshDatabase},
		{"now is the database's clock and never goes back", nowNeverGoesBack},
		{"transactions run one after the other and see each other", oneAtATime},
		{"the callback runs once", callbackOnce},
		{"a skipped plan writes nothing", skippedWritesNothing},
		{"a due time is used once for each function", dueOnce},
		{"a cancelled transaction writes nothing", cancelledWritesNothing},
		{"a plan that breaks a rule is not written at all", allOrNothing},
		{"a worker has one open intent", oneIntentPerWorker},
		{"a commit without an answer is unknown, and was applied", lostCommitApplied},
		{"a commit without an answer is unknown, and was not applied", lostCommitDropped},
		{"the newest config is kept, an older one never replaces it", newestConfig},
	}
}

func freshDatabase(b *bench) {
	m := b.recall()
	if m.Deployment == "" || m.Deployment != b.recall().Deployment {
		b.Errorf("deployment id %q is empty or changes", m.Deployment)
	}
	if len(m.Workers)+len(m.Intents)+len(m.Ended)+len(m.Pools)+len(m.LastDue) != 0 || m.Override != nil || !m.ConfigAt.IsZero() || m.LastGood != nil {
		b.Errorf("remembers something: %s", text(b.T, m))
	}
	b.near("now", m.Now, m.Now)
}

func nowNeverGoesBack(b *bench) {
	var first, second time.Time
	b.commit(func(m fleet.Memory, _ *fleet.Plan, _ *fleet.Record) { first = m.Now })
	b.Advance(-time.Hour)
	err := b.Store.Transact(b.ctx, func(m fleet.Memory) (fleet.Plan, fleet.Record) {
		second = m.Now
		return fleet.Plan{Skipped: fleet.SkipRepeated{}}, fleet.Record{}
	})
	if err != nil || second.Before(first) {
		b.Errorf("now went from %v back to %v (%v)", first, second, err)
	}
	b.Advance(3 * time.Hour)
	b.commit(func(m fleet.Memory, _ *fleet.Plan, _ *fleet.Record) { second = m.Now })
	b.near("two hours later", second, first.Add(2*time.Hour))
}

func oneAtATime(b *bench) {
	var inside, most atomic.Int32
	var seen sync.Map
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			err := b.Store.Transact(b.ctx, func(m fleet.Memory) (fleet.Plan, fleet.Record) {
				most.Store(max(most.Load(), inside.Add(1)))
				defer inside.Add(-1)
				seen.Store(len(m.Intents), true)
				// Due times rise whatever the order in which the lock is had.
				due := m.Now.Add(time.Duration(len(m.Intents)) * time.Minute)
				in := launch(strconv.Itoa(i), 1, m.Now)
				return fleet.Plan{Function: fleet.Evaluate, Due: due, Now: m.Now, Intents: []fleet.Intent{in}}, fleet.Record{}
			})
			if err != nil {
				b.Errorf("transact: %v", err)
			}
		})
	}
	wg.Wait()
	if most.Load() != 1 {
		b.Errorf("%d callbacks ran at once", most.Load())
	}
	for n := range 8 {
		if _, ok := seen.Load(n); !ok {
			b.Errorf("no transaction saw exactly %d intents: they do not see each other's writes", n)
		}
	}
}

func callbackOnce(b *bench) {
	calls := 0
	_ = b.try(func(_ fleet.Memory, _ *fleet.Plan, _ *fleet.Record) { calls++ })
	if calls != 1 {
		b.Errorf("callback ran %d times", calls)
	}
}

func skippedWritesNothing(b *bench) {
	b.commit(func(m fleet.Memory, p *fleet.Plan, r *fleet.Record) {
		p.Skipped = fleet.SkipRepeated{}
		p.Intents = []fleet.Intent{launch("skipped", 1, m.Now)}
		p.Alerts = []fleet.Alert{{Key: "skipped", Level: fleet.Info, Title: "x", At: m.Now}}
		r.Config = &fleet.Object{Bytes: []byte("{}"), Modified: m.Now}
	})
	m := b.recall()
	alerts, err := b.Store.Outbox(b.ctx, everywhere(), 10)
	if err != nil || len(m.Intents)+len(m.LastDue)+len(alerts) != 0 || m.LastGood != nil {
		b.Errorf("something was written: %s, %v, %v", text(b.T, m), alerts, err)
	}
}

func dueOnce(b *bench) {
	var due time.Time
	b.commit(func(_ fleet.Memory, p *fleet.Plan, _ *fleet.Record) { due = p.Due })
	b.near("last due", b.recall().LastDue[fleet.Evaluate], due)
	err := b.try(func(m fleet.Memory, p *fleet.Plan, _ *fleet.Record) {
		p.Due = due
		p.Intents = []fleet.Intent{launch("again", 1, m.Now)}
	})
	if err == nil || find(b.recall(), id("again")) != nil {
		b.Errorf("a second tick of the same due time was written (%v)", err)
	}
	b.commit(func(_ fleet.Memory, p *fleet.Plan, _ *fleet.Record) { p.Function, p.Due = fleet.Reconcile, due })
	m := b.recall()
	if !m.LastDue[fleet.Evaluate].Equal(due) || !m.LastDue[fleet.Reconcile].Equal(due) {
		b.Errorf("last due times are %v, want %v for both functions", m.LastDue, due)
	}
}

func cancelledWritesNothing(b *bench) {
	ctx, cancel := context.WithCancel(b.ctx)
	b.Advance(time.Second)
	err := b.Store.Transact(ctx, func(m fleet.Memory) (fleet.Plan, fleet.Record) {
		cancel()
		return fleet.Plan{Function: fleet.Evaluate, Due: m.Now, Now: m.Now, Intents: []fleet.Intent{launch("cancelled", 1, m.Now)}}, fleet.Record{}
	})
	if err == nil || find(b.recall(), id("cancelled")) != nil {
		b.Errorf("written although its context had ended (%v)", err)
	}
	b.open("next", 1) // the lock is free
}

func allOrNothing(b *bench) {
	b.assign()
	worker := b.running("one")
	err := b.try(func(m fleet.Memory, p *fleet.Plan, _ *fleet.Record) {
		p.Intents = []fleet.Intent{launch("first", 1, m.Now), ending("end-1", worker, m.Now), ending("end-2", worker, m.Now)}
		p.Alerts = []fleet.Alert{{Key: "half", Level: fleet.Info, Title: "x", At: m.Now}}
	})
	alerts, _ := b.Store.Outbox(b.ctx, everywhere(), 10)
	if m := b.recall(); err == nil || len(m.Intents)+len(alerts) != 0 {
		b.Errorf("half a plan was written (%v): %s %v", err, text(b.T, m.Intents), alerts)
	}
}

// ending is a terminate intent.
func ending(word, worker string, now time.Time) fleet.Intent {
	return fleet.Intent{
		ID: id(word), Kind: fleet.KindTerminate, State: fleet.IntentOpen, Pool: poolA, Worker: worker, Count: 1,
		Ref:     fleet.Ref{Place: place(), Machine: "i-one"},
		Created: now, Changed: now, ClaimedUntil: now.Add(2 * time.Minute), Claim: "claim-" + word,
	}
}

func oneIntentPerWorker(b *bench) {
	b.assign()
	worker := b.running("one")
	store := func(word string, kind fleet.IntentKind) error {
		return b.try(func(m fleet.Memory, p *fleet.Plan, _ *fleet.Record) {
			in := ending(word, worker, m.Now)
			in.Kind = kind
			p.Intents = []fleet.Intent{in}
		})
	}
	if err := store("terminate", fleet.KindTerminate); err != nil {
		b.Fatalf("first intent: %v", err)
	}
	if store("suspend", fleet.KindSuspend) == nil {
		b.Error("a second open intent of one worker was stored")
	}
	b.commit(func(m fleet.Memory, p *fleet.Plan, _ *fleet.Record) {
		in := *find(m, id("terminate"))
		in.State = fleet.IntentDone
		p.Intents = []fleet.Intent{in}
	})
	if err := store("resume", fleet.KindResume); err != nil {
		b.Errorf("the next intent, after the first was closed: %v", err)
	}
}

func lostCommitApplied(b *bench) { lostCommit(b, true) }
func lostCommitDropped(b *bench) { lostCommit(b, false) }

func lostCommit(b *bench, applied bool) {
	b.LoseCommit(applied)
	err := b.try(func(m fleet.Memory, p *fleet.Plan, _ *fleet.Record) {
		p.Intents = []fleet.Intent{launch("lost", 1, m.Now)}
	})
	if !errors.Is(err, fleet.ErrCommitUnknown) {
		b.Errorf("got %v, want ErrCommitUnknown", err)
	}
	if got := find(b.recall(), id("lost")) != nil; got != applied {
		b.Errorf("written: %v, want %v", got, applied)
	}
	b.open("next", 1)
}

func newestConfig(b *bench) {
	var at time.Time
	keep := func(bytes string, age time.Duration) {
		b.commit(func(m fleet.Memory, _ *fleet.Plan, r *fleet.Record) {
			if at.IsZero() {
				at = m.Now
			}
			r.Config = &fleet.Object{Name: "file", Bytes: []byte(bytes), ETag: bytes, Modified: at.Add(-age)}
		})
	}
	expect := func(bytes string, age time.Duration) {
		b.Helper()
		if m := b.recall(); string(m.LastGood) != bytes || !m.ConfigAt.Equal(at.Add(-age)) {
			b.Errorf("kept %q of %v, want %q of %v", m.LastGood, m.ConfigAt, bytes, at.Add(-age))
		}
	}
	keep(`{"name":"one"}`, time.Hour)
	expect(`{"name":"one"}`, time.Hour)
	keep(`{"name":"older"}`, 2*time.Hour)
	expect(`{"name":"one"}`, time.Hour)
	keep(`{"name":"two"}`, 0)
	expect(`{"name":"two"}`, 0)
	b.commit(func(_ fleet.Memory, _ *fleet.Plan, _ *fleet.Record) {})
	expect(`{"name":"two"}`, 0)
}
