package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sluice/core/fleet"
)

// object is the config as it lies in its storage, and what it was before.
type object struct {
	now, before *fleet.Object
	serial      int
}

// SetConfig replaces the config object.
func (w *World) SetConfig(bytes []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.object.serial++
	w.object.before = w.object.now
	w.object.now = &fleet.Object{Name: "memory:scheduler.json", Bytes: bytes, ETag: itoa(w.object.serial), Modified: w.clock()}
}

// RemoveConfig leaves the storage empty.
func (w *World) RemoveConfig() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.object.before, w.object.now = w.object.now, nil
}

// RevertConfig shows what was there before, with its old time: a stale replica.
func (w *World) RevertConfig() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.object.before != nil {
		w.object.now, w.object.before = w.object.before, w.object.now
	}
}

type objects struct{ p *Process }

var _ fleet.Objects = objects{}

// Get implements fleet.Objects.
func (o objects) Get(ctx context.Context, etag string) (fleet.Object, error) {
	if v := o.p.pass(ctx, OpGet, ""); v.Err != nil {
		return fleet.Object{}, fmt.Errorf("get config: %w", v.Err)
	}
	o.p.w.mu.Lock()
	defer o.p.w.mu.Unlock()
	switch now := o.p.w.object.now; {
	case now == nil:
		return fleet.Object{}, fmt.Errorf("get config memory:scheduler.json: %w", fleet.ErrNotFound)
	case etag != "" && etag == now.ETag:
		return fleet.Object{}, fmt.Errorf("get config: %w", fleet.ErrNotModified)
	default:
		out := *now
		out.Bytes = slices.Clone(now.Bytes)
		return out, nil
	}
}

type queues struct {
	p    *Process
	kind fleet.SourceKind
}

var _ fleet.Queues = queues{}

// Read implements fleet.Queues. A fault on one queue's name makes that one unknown.
func (q queues) Read(ctx context.Context, want []fleet.Queue) ([]fleet.QueueState, error) {
	if v := q.p.pass(ctx, OpRead, string(q.kind)); v.Err != nil {
		return nil, fmt.Errorf("read queues: %w", v.Err)
	}
	q.p.w.mu.Lock()
	defer q.p.w.mu.Unlock()
	out := make([]fleet.QueueState, 0, len(want))
	for _, one := range want {
		out = append(out, q.p.w.read(one))
	}
	return out, nil
}

// Poison makes one queue unreadable, with a cause; an empty cause mends it.
func (w *World) Poison(queue, cause string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.truth.poisoned == nil {
		w.truth.poisoned = map[string]string{}
	}
	w.truth.poisoned[queue] = cause
}

func (w *World) read(q fleet.Queue) fleet.QueueState {
	s := fleet.QueueState{Name: q.Name}
	if cause := w.truth.poisoned[q.Name]; cause != "" {
		s.Unknown = cause
		return s
	}
	listed := len(w.lists[listKey(q.Name)])
	if !q.Source.Rows {
		s.Depth, s.NoAge = listed, true
		return s
	}
	w.countRows(q.Name, &s)
	if q.Source.Kind == fleet.SourceRedis {
		s.Depth = min(s.Depth, listed)
	}
	return s
}

func (w *World) countRows(queue string, s *fleet.QueueState) {
	now := w.clock()
	for _, id := range w.db.waiting {
		j := w.db.jobs[id]
		switch {
		case j.Queue != queue:
		case j.Status == jobProcessing:
			s.Running++
		case j.claimable(now):
			age := fleet.Seconds(now.Sub(j.available()) / time.Second)
			s.Depth++
			s.Oldest = max(s.Oldest, age)
			s.Priorities = countPriority(s.Priorities, j.Priority, age)
		}
	}
}

func countPriority(ps []fleet.PriorityState, priority int, age fleet.Seconds) []fleet.PriorityState {
	i, found := slices.BinarySearchFunc(ps, priority, func(p fleet.PriorityState, want int) int { return p.Priority - want })
	if !found {
		ps = slices.Insert(ps, i, fleet.PriorityState{Priority: priority})
	}
	ps[i].Depth++
	ps[i].Oldest = max(ps[i].Oldest, age)
	return ps
}

type alerter struct{ p *Process }

var _ fleet.Alerter = alerter{}

// Send implements fleet.Alerter.
func (a alerter) Send(ctx context.Context, m fleet.Message) (string, error) {
	v := a.p.pass(ctx, OpSend, m.Key)
	if v.Effect {
		a.p.w.mu.Lock()
		defer a.p.w.mu.Unlock()
		a.p.w.inbox = append(a.p.w.inbox, m.Alert)
	}
	if v.Err != nil {
		return "", fmt.Errorf("send alert: %w", v.Err)
	}
	return "in the inbox", nil
}

type billing struct {
	p *Process
	a *account
}

var _ fleet.Billing = billing{}

// Bills makes charges late, and higher than the prices say by so many percent.
func (w *World) Bills(late time.Duration, percentMore int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.truth.late, w.truth.more = late, percentMore
}

// Charges implements fleet.Billing.
func (b billing) Charges(ctx context.Context, from, to time.Time) ([]fleet.Bill, error) {
	if v := b.p.pass(ctx, OpCharges, b.a.Provider); v.Err != nil {
		return nil, fmt.Errorf("read charges of %s: %w", b.a.Provider, v.Err)
	}
	w := b.p.w
	w.mu.Lock()
	defer w.mu.Unlock()
	w.settleMachines()
	var out []fleet.Bill
	for day := from.UTC().Truncate(24 * time.Hour); day.Before(to); day = day.Add(24 * time.Hour) {
		until := earliest(day.Add(24*time.Hour), w.now().Add(-w.truth.late))
		amount := b.a.spent(day, until, w.now())
		amount += amount * fleet.Money(w.truth.more) / 100
		out = append(out, fleet.Bill{Provider: b.a.Provider, Day: day.Format(time.DateOnly), Amount: amount, SeenAt: w.clock()})
	}
	return out, nil
}

// Outside launches a machine that no process of this world asked for.
func (w *World) Outside(provider string, l fleet.Launch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, _ = w.launch(w.clouds[provider], l) // a full account has no room for strangers either
}

// Ask puts a person's wish into the database.
func (w *World) Ask(r fleet.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r.At = w.clock()
	w.db.requests = append(slices.Clone(w.db.requests), r)
}
