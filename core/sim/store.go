package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"sluice/core/fleet"
)

// Store is the database as one process reaches it.
type Store struct{ p *Process }

var (
	_ fleet.Store    = (*Store)(nil)
	_ fleet.History  = (*Store)(nil)
	_ fleet.Requests = (*Store)(nil)
)

// Recall implements fleet.Store.
func (s *Store) Recall(ctx context.Context) (fleet.Memory, error) {
	if v := s.p.pass(ctx, OpRecall, ""); v.Err != nil || !v.Effect {
		return fleet.Memory{}, fmt.Errorf("recall: %w", v.Err)
	}
	s.p.w.mu.Lock()
	defer s.p.w.mu.Unlock()
	return s.p.w.db.memory(s.p.w.clock()), nil
}

// Transact implements fleet.Store.
func (s *Store) Transact(ctx context.Context, decide func(fleet.Memory) (fleet.Plan, fleet.Record)) error {
	if v := s.p.pass(ctx, OpTransact, ""); v.Err != nil {
		return fmt.Errorf("begin transaction: %w", v.Err)
	}
	w := s.p.w
	t, err := w.open(ctx, s.p)
	if err != nil {
		return fmt.Errorf("begin transaction: %w", err)
	}
	defer w.rollback(t)
	w.mu.Lock()
	now := latest(w.clock(), w.db.lastNow)
	m := w.db.memory(now)
	w.mu.Unlock()
	p, r := decide(m)
	if p.Skipped != nil {
		return nil
	}
	return w.finish(t, p, r, s.p.pass(ctx, OpCommit, string(p.Function)))
}

func (w *World) rollback(t *txn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lock.holder == t {
		w.lock.drop()
	}
}

// finish commits, as far as the verdict lets it.
func (w *World) finish(t *txn, p fleet.Plan, r fleet.Record, v Verdict) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case v.Effect && !w.holds(t):
		return fmt.Errorf("commit: %w: the transaction idled for too long", fleet.ErrUnavailable)
	case v.Effect:
		next := w.db.fork()
		if err := next.apply(p, r); err != nil {
			return fmt.Errorf("write plan: %w", err)
		}
		w.db = next
		w.note(Event{Kind: EventCommit, Process: t.p.name, Plan: &p, Snapshot: r.Snapshot})
	}
	if v.Err == nil {
		return nil
	}
	return fmt.Errorf("commit: %w", v.Err)
}

var errDueUsed = errors.New("this due time was used already")

// apply writes a plan, all or nothing: d is a copy that is thrown away on an error.
func (d *database) apply(p fleet.Plan, r fleet.Record) error {
	for _, t := range d.ticks {
		if t.Function == p.Function && t.Due.Equal(p.Due) {
			return errDueUsed
		}
	}
	d.lastNow = latest(d.lastNow, p.Now)
	if err := d.applyIntents(p.Intents); err != nil {
		return err
	}
	for _, c := range p.Workers {
		d.applyChange(c, p.Now)
	}
	for _, w := range p.Adopted {
		d.applyAdopted(w, p.Now)
	}
	d.spans = append(slices.Clone(d.spans), p.Spans...)
	d.sightings = slices.Clone(p.Sightings)
	d.bills = append(slices.Clone(d.bills), p.Bills...)
	if p.Lifted {
		d.override = nil
	}
	if p.Override != nil {
		d.override = p.Override
	}
	d.requests = slices.DeleteFunc(slices.Clone(d.requests), func(q fleet.Request) bool { return slices.Contains(p.Taken, q.ID) })
	d.applyAlerts(p.Alerts)
	d.applyRecord(p, r)
	return nil
}

func (d *database) applyIntents(intents []fleet.Intent) error {
	for _, in := range intents {
		in.Attempts = slices.Clone(in.Attempts)
		d.intents[in.ID] = intentRow{in, d.intents[in.ID].answered}
	}
	open := map[string]string{}
	for id, in := range d.intents {
		if in.State != fleet.IntentOpen || in.Worker == "" {
			continue
		}
		if other, taken := open[in.Worker]; taken {
			return fmt.Errorf("worker %s has two open intents, %s and %s", in.Worker, other, id)
		}
		open[in.Worker] = id
	}
	return nil
}

// applyChange writes what a tick may write of a row, where its status has not moved on. What the
// worker itself writes (heartbeat, jobs, acknowledgement, registration) is kept.
func (d *database) applyChange(c fleet.WorkerChange, now time.Time) {
	old, ok := d.workers[c.Worker.ID]
	if !ok || old.Status != c.From {
		return
	}
	row := old
	row.Worker = c.Worker
	row.Heartbeat, row.Jobs, row.IdleSince, row.DrainAck = old.Heartbeat, old.Jobs, old.IdleSince, old.DrainAck
	row.Slots, row.Queues = old.Slots, old.Queues
	moved := old.Status != row.Status || !old.DrainAt.Equal(row.DrainAt) || old.Machine != row.Machine
	if moved {
		row.DrainAck = c.Worker.DrainAck
		row.Changed = now
	} else {
		row.Registered, row.Changed = old.Registered, old.Changed
	}
	d.put(row)
	if ended(row.Status) {
		d.closeWorker(row, now, c.Why)
	}
}

// applyAdopted makes the row of a machine, or brings an ended one back. A live one was quicker.
func (d *database) applyAdopted(w fleet.Worker, now time.Time) {
	row, known := d.byMachine(w.Place, w.Machine)
	switch {
	case known && !ended(row.Status):
		if row.Intent == "" {
			row.Intent = w.Intent
			d.put(row)
		}
		return
	case known:
		w.ID = row.ID
	}
	row = workerRow{Worker: w}
	row.Changed = now
	d.put(row)
	if ended(w.Status) {
		d.closeWorker(row, now, "gone")
	}
}

func (d *database) applyAlerts(alerts []fleet.Alert) {
	d.alerts = slices.Clone(d.alerts)
	for _, a := range alerts {
		if !slices.ContainsFunc(d.alerts, func(o alertRow) bool { return o.Key == a.Key }) {
			d.alerts = append(d.alerts, alertRow{Alert: a})
		}
	}
	slices.SortStableFunc(d.alerts, func(a, b alertRow) int { return a.At.Compare(b.At) })
}

func (d *database) applyRecord(p fleet.Plan, r fleet.Record) {
	if r.Config != nil && !r.Config.Modified.Before(d.configAt) {
		d.configAt, d.lastGood = r.Config.Modified, slices.Clone(r.Config.Bytes)
	}
	for pool, a := range r.Assignments {
		d.assigned[pool] = a
	}
	for _, q := range r.Quotes {
		if old, ok := d.quotes[q.Offer]; !ok || q.At.After(old.At) {
			d.quotes[q.Offer] = q
		}
	}
	id := fleet.ID(d.deployment, string(p.Function), p.Due.Format(time.RFC3339Nano))
	t := tickRow{snapshot: r.Snapshot, TickRecord: fleet.TickRecord{
		ID: id, Function: p.Function, Due: p.Due, At: p.Now, Changed: r.Snapshot != nil, Spend: p.Spend,
	}}
	if r.Snapshot != nil {
		t.plan = p
	}
	for _, l := range r.Lines {
		d.lines = append(d.lines, fleet.LineRecord{Line: l, Tick: id, At: p.Now})
		if l.Event == "tick" {
			t.Message = l.Message
		}
	}
	d.ticks = append(d.ticks, t)
	if r.Samples != nil {
		d.samples = append(d.samples, fleet.Sample{At: p.Now, Queues: r.Samples})
	}
}

// Begin implements fleet.Store.
func (s *Store) Begin(ctx context.Context, c fleet.Claim, a fleet.Attempt) error {
	v := s.p.pass(ctx, OpBegin, c.Intent+" "+itoa(a.Ordinal))
	if v.Effect {
		if err := s.p.w.write(ctx, s.p, func() error { return s.p.w.begin(c, a) }); err != nil && !v.Crash {
			return fmt.Errorf("begin attempt: %w", err)
		}
	}
	if v.Err != nil {
		return fmt.Errorf("begin attempt: %w", v.Err)
	}
	return nil
}

func (w *World) begin(c fleet.Claim, a fleet.Attempt) error {
	in, ok := w.db.intents[c.Intent]
	if !ok || in.Claim != c.Token || in.State != fleet.IntentOpen {
		return fleet.ErrClaimLost
	}
	if slices.ContainsFunc(in.Attempts, func(o fleet.Attempt) bool { return o.Ordinal == a.Ordinal }) {
		return nil
	}
	if a.First.IsZero() {
		a.First = w.clock()
	}
	in.Attempts = append(slices.Clone(in.Attempts), a)
	w.db.intents[c.Intent] = in
	return nil
}

// Settle implements fleet.Store.
func (s *Store) Settle(ctx context.Context, c fleet.Claim, r fleet.Result) error {
	v := s.p.pass(ctx, OpSettle, c.Intent+" "+itoa(r.Attempt))
	if v.Effect {
		if err := s.p.w.write(ctx, s.p, func() error { return s.p.w.settle(c, r) }); err != nil && !v.Crash {
			return fmt.Errorf("settle attempt: %w", err)
		}
	}
	if v.Err != nil {
		return fmt.Errorf("settle attempt: %w", v.Err)
	}
	return nil
}

func (w *World) settle(c fleet.Claim, r fleet.Result) error {
	in, ok := w.db.intents[c.Intent]
	if !ok {
		return fleet.ErrClaimLost
	}
	for _, m := range r.Machines {
		w.db.insertLaunched(in.Intent, m, w.clock())
	}
	if in.Claim != c.Token || in.State != fleet.IntentOpen {
		return fleet.ErrClaimLost
	}
	now := w.clock()
	in.Attempts = slices.Clone(in.Attempts)
	answered := map[int]time.Time{r.Attempt: now}
	for k, v := range in.answered {
		answered[k] = v
	}
	in.answered = answered
	for i, a := range in.Attempts {
		if a.Ordinal == r.Attempt {
			in.Attempts[i].Outcome, in.Attempts[i].Code = r.Outcome, r.Code
			if a.Launch != nil && r.Outcome == fleet.OutcomeDone {
				delete(w.db.coolOffs, a.Launch.Offer.Key())
			}
		}
	}
	in.State = r.State
	if r.CoolOff != nil {
		w.db.coolOffs[r.CoolOff.Offer] = *r.CoolOff
	}
	w.db.intents[c.Intent] = in
	return nil
}

// insertLaunched makes the row of a machine that a launch was answered with. A row that is there stays.
func (d *database) insertLaunched(in fleet.Intent, m fleet.Machine, now time.Time) {
	if len(in.Attempts) == 0 {
		return
	}
	a := answering(in, m.Type, m.Market)
	place := a.Launch.Offer.Place
	if _, known := d.byMachine(place, m.ID); known {
		return
	}
	d.put(workerRow{Worker: launchedWorker(d.deployment, in, a, place, m, now)})
}

// answering is the attempt that a machine answers: the last of its kind that was not refused.
func answering(in fleet.Intent, kind string, market fleet.Market) fleet.Attempt {
	best := in.Attempts[len(in.Attempts)-1]
	for _, a := range in.Attempts {
		if o := a.Launch.Offer; a.Outcome != fleet.OutcomeRefused && o.Type == kind && o.Market == market {
			best = a
		}
	}
	return best
}

// launchedWorker is the row of a machine that answers a launch. It costs since the first call; what it
// answers may be the last one, and its boot begins then.
func launchedWorker(deployment string, in fleet.Intent, a fleet.Attempt, place fleet.Place, m fleet.Machine, now time.Time) fleet.Worker {
	price := in.Reserve
	for i, o := range in.Offers {
		if o == a.Launch.Offer {
			price = in.Prices[i]
		}
	}
	return fleet.Worker{
		ID: fleet.ID(deployment, place.String(), m.ID), Pool: in.Pool, Place: place, Zone: m.Zone, Machine: m.ID,
		Type: m.Type, Market: m.Market, Intent: in.ID, Spec: m.Tags.Spec, Price: price, MinCharge: in.MinFor, Increment: in.Increment,
		Status: fleet.Provisioning, Slots: 1, CostFrom: a.First, BootAt: latest(a.First, in.Changed), Expires: m.Tags.Expires, Changed: now,
	}
}
