// Package decide turns a snapshot into a plan. It is pure: the same snapshot gives the same plan, byte for byte.
package decide

import (
	"cmp"
	"slices"
	"time"

	"sluice/core/fleet"
	"sluice/core/spend"
)

// Decide is one decision. It first brings what is remembered in line with what was seen (machines
// that ended, turned up, or cannot be explained; calls without an answer), then judges the money,
// then each pool, the most urgent first, and last the workers that drain.
func Decide(s fleet.Snapshot) fleet.Plan {
	d := open(s)
	if d.plan.Skipped = d.admit(); d.plan.Skipped != nil {
		return d.plan
	}
	if s.Function == fleet.Reconcile {
		return d.reconcile()
	}
	d.inventory()
	d.adoptions()
	d.count()
	d.orphans()
	d.judge()
	d.requests()
	d.health()
	for _, p := range d.pools {
		d.decide(p)
	}
	d.recover()
	d.drains()
	for _, p := range d.pools {
		d.keep(p.fold)
	}
	return d.close()
}

// decision is a plan in the making, with working copies of what it may change.
type decision struct {
	s        fleet.Snapshot
	now      time.Time
	plan     fleet.Plan
	books    spend.Books
	rates    map[string]fleet.Money // by pool; see running
	spent    map[string]fleet.Money // by pool; see spentToday
	workers  []*worker              // sorted by id
	byID     map[string]*worker     // the same
	vps      []*worker              // those that are not ours to start, and are heard of
	intents  []*intent              // sorted by id
	launches map[string]*intent     // those of them that launch, by id
	pools    []*pool                // in order of urgency
	poolBy   map[string]*pool       // the same
	queues   map[string]fleet.QueueState
	lists    map[fleet.Place]fleet.Listing
	orphan   []fleet.Sighting // those that remain
	machines map[string]int   // not gone, by provider: rows, asked-for ones and orphans
	prices   map[string]fleet.Money
	coolOffs map[string]fleet.CoolOff // by key
	shield   fleet.Reason             // why silent workers are kept
}

// worker is a row in the making.
type worker struct {
	fleet.Worker
	was      fleet.Status
	why      string // code of what changed it
	dirty    bool
	ended    bool
	silent   bool // ready, and not heard of for too long
	ending   *intent
	resuming *intent
	listed   *fleet.Machine
}

// intent is an intent in the making.
type intent struct {
	fleet.Intent
	was   fleet.IntentState
	dirty bool
	fresh bool // made by this decision
	about *worker

	lost   bool // launch: unclaimed, unanswered and nothing seen; to be repeated or given up
	absent bool // lost: two complete lists that were begun late enough showed nothing
}

func open(s fleet.Snapshot) *decision {
	now := s.Memory.Now
	d := &decision{
		s: s, now: now,
		plan:     fleet.Plan{Function: s.Function, Due: s.Due, Now: now},
		byID:     map[string]*worker{},
		launches: map[string]*intent{},
		lists:    map[fleet.Place]fleet.Listing{},
		queues:   map[string]fleet.QueueState{},
		machines: map[string]int{},
		coolOffs: map[string]fleet.CoolOff{},
		prices:   prices(s),
	}
	if d.plan.Due.After(now) {
		d.plan.Due = now
	}
	for _, l := range s.Listings {
		d.lists[l.Place] = l
	}
	for _, w := range s.Memory.Workers {
		c := &worker{Worker: w, was: w.Status}
		d.workers, d.byID[w.ID] = append(d.workers, c), c
	}
	slices.SortFunc(d.workers, func(a, b *worker) int { return cmp.Compare(a.ID, b.ID) })
	for _, in := range s.Memory.Intents {
		in.Attempts = slices.Clone(in.Attempts)
		c := &intent{Intent: in, was: in.State}
		d.intents = append(d.intents, c)
		if in.Kind == fleet.KindLaunch {
			d.launches[in.ID] = c
		}
	}
	slices.SortFunc(d.intents, func(a, b *intent) int { return cmp.Compare(a.ID, b.ID) })
	for _, q := range s.Queues {
		d.queues[q.Name] = q
	}
	for _, c := range s.Memory.CoolOffs {
		d.coolOffs[c.Offer] = c
	}
	d.openPools()
	return d
}

// close collects what changed, in a stable order.
func (d *decision) close() fleet.Plan {
	for _, w := range d.workers {
		if w.dirty {
			d.plan.Workers = append(d.plan.Workers, fleet.WorkerChange{From: w.was, Worker: w.Worker, Why: w.why})
		}
	}
	slices.SortFunc(d.intents, func(a, b *intent) int { return cmp.Compare(a.ID, b.ID) })
	for _, in := range d.intents {
		if in.dirty {
			d.plan.Intents = append(d.plan.Intents, in.Intent)
		}
	}
	for _, p := range d.pools {
		d.plan.Pools = append(d.plan.Pools, *p.plan)
	}
	d.plan.Sightings = d.orphan
	d.plan.Spend = d.books.Spend
	return d.plan
}

func (d *decision) note(level fleet.Level, pool, worker string, why fleet.Reason) {
	d.plan.Notes = append(d.plan.Notes, fleet.Note{Level: level, Pool: pool, Worker: worker, Why: why})
}

// alert is stored once per key; a period in the key makes it come again.
func (d *decision) alert(level fleet.Level, key string, why fleet.Reason) {
	d.plan.Alerts = append(d.plan.Alerts, fleet.Alert{Key: why.Code() + "/" + key, Level: level, At: d.now, Why: why})
}

// hour is the period of alerts that come again while their cause lasts.
func (d *decision) hour() string { return d.now.UTC().Format("2006-01-02T15") }

// set changes a worker's status and remembers why.
func (d *decision) set(w *worker, to fleet.Status, why string) {
	w.Status, w.Changed, w.why, w.dirty = to, d.now, why, true
}

// drain makes a worker claim nothing more.
func (d *decision) drain(w *worker, why fleet.Reason) {
	w.DrainAt, w.DrainAck, w.DrainWhy = d.now, time.Time{}, why.Code()
	d.set(w, fleet.Draining, why.Code())
	p := d.poolBy[w.Pool]
	p.plan.Drain = append(p.plan.Drain, fleet.Drained{Worker: w.ID, Why: why})
}

// undrain lets a worker claim again. Never after a terminate or suspend intent was written.
func (d *decision) undrain(w *worker) {
	d.note(fleet.Info, w.Pool, w.ID, fleet.Undrained{Was: w.DrainWhy})
	w.DrainAt, w.DrainAck, w.DrainWhy = time.Time{}, time.Time{}, ""
	to := fleet.Ready
	if w.Registered.IsZero() {
		to = fleet.Provisioning
	}
	d.set(w, to, fleet.Undrained{}.Code())
}

// span moves what a worker cost until a time to the ledger and starts a new stretch there.
func (d *decision) span(w *worker, price fleet.Money, until time.Time) *fleet.Span {
	if until.Before(w.CostFrom) {
		until = w.CostFrom
	}
	sp := spend.Since(w.Worker, until)
	sp.Price = price
	d.plan.Spans = append(d.plan.Spans, sp)
	w.CostFrom, w.MinCharge = until, 0 // the increment goes on to hold: where its clock stood is not known
	return &d.plan.Spans[len(d.plan.Spans)-1]
}

// end is the confirmed end of a machine.
func (d *decision) end(w *worker, terminal bool) {
	asked := w.ending != nil || w.Status == fleet.Draining
	price := spend.Rate(w.Worker)
	if w.resuming != nil && w.Status == fleet.Suspended { // it may have run since the call
		d.wake(w, w.resuming.Created)
		price = w.Price
	}
	d.span(w, price, d.now).Last = true
	to := fleet.Failed
	if asked {
		to = fleet.Terminated
	}
	why := fleet.Gone{Asked: asked, Terminal: terminal}
	if w.DrainWhy == "" {
		d.set(w, to, why.Code())
	} else {
		d.set(w, to, w.DrainWhy)
	}
	w.ended = true
	for _, in := range []*intent{w.ending, w.resuming} {
		if in != nil {
			d.settle(in, fleet.IntentDone)
		}
	}
	level := fleet.Info
	if !asked {
		level = fleet.Warning
	}
	d.note(level, w.Pool, w.ID, why)
}

func (d *decision) settle(in *intent, to fleet.IntentState) {
	in.State, in.Changed, in.dirty = to, d.now, true
}

// id is what this tick calls something of its own: the same when the tick is repeated, new for each due time.
func (d *decision) id(parts ...string) string {
	tick := []string{d.s.Memory.Deployment, string(d.s.Function), d.plan.Due.UTC().Format(time.RFC3339Nano)}
	return fleet.ID(append(tick, parts...)...)
}

// take claims an intent for this tick until well after the function's time limit.
func (d *decision) take(in *intent, repeat bool) {
	in.Claim, in.ClaimedUntil = d.id("claim"), d.now.Add(d.s.Limit.Duration()+claimMargin)
	in.Changed, in.dirty, in.EmptySince = d.now, true, time.Time{}
	if a := in.Last(); a != nil && repeat {
		a.Calls++
	}
	d.plan.Calls = append(d.plan.Calls, fleet.Call{Intent: in.ID, Repeat: repeat})
}

// claimMargin is by how much a claim outlasts the function's time limit.
const claimMargin = 30 * time.Second

// order is act for the machine of a row.
func (d *decision) order(kind fleet.IntentKind, w *worker, why string) *intent {
	return d.act(kind, w.ID, w.Ref(), w.Pool, why)
}

// act writes an intent about one machine and claims it; an orphan has no worker.
func (d *decision) act(kind fleet.IntentKind, worker string, ref fleet.Ref, pool, why string) *intent {
	target := ref.Place.String() + "/" + ref.Machine
	in := &intent{fresh: true, Intent: fleet.Intent{
		ID: d.id(string(kind), target), Kind: kind, State: fleet.IntentOpen, Pool: pool, Worker: worker, Ref: ref, Why: why, Count: 1, Created: d.now,
		Attempts: []fleet.Attempt{{Ordinal: 1, First: d.now, Calls: 1, Outcome: fleet.OutcomePending}},
	}}
	d.take(in, false)
	d.intents = append(d.intents, in)
	return in
}
