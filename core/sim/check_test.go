package sim_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"sluice/core/decide"
	"sluice/core/explain"
	"sluice/core/fleet"
	"sluice/core/sim"
	"sluice/core/spend"
)

// checks hold what truly happened against the ten invariants of the design.
type checks struct {
	x           *trial
	plans       map[string]sim.Event // commits by process
	dues        map[fleet.Function]time.Time
	interrupted map[string]bool
	amnesia     bool // the database forgot something, or a stranger came: what it cannot know it cannot count
	lied        bool // a list that claimed to be complete did not show a machine
	commits     int
	looked      time.Time // at the money of the day
}

func newChecks(x *trial) checks {
	return checks{x: x, plans: map[string]sim.Event{}, dues: map[fleet.Function]time.Time{}, interrupted: map[string]bool{}}
}

func (c *checks) event(e sim.Event) {
	switch e.Kind {
	case sim.EventCommit:
		c.plans[e.Process] = e
		c.commit(e)
	case sim.EventLaunch:
		if e.Err == nil {
			c.launch(e)
		}
	case sim.EventResume:
		c.resume(e)
	case sim.EventEnding:
		c.ending(e)
	}
}

// allowed says that the tick whose call this is may add capacity (invariant 1).
func (c *checks) allowed(e sim.Event, intent, pool string) {
	p, ok := c.plans[e.Process]
	if !ok || p.Snapshot == nil || !slices.ContainsFunc(p.Plan.Calls, func(call fleet.Call) bool { return call.Intent == intent }) {
		c.x.fail("invariant 3: %s made a call for intent %s that it never wrote down", e.Process, intent)
		return
	}
	s := *p.Snapshot
	po, known := s.Config.Pool(pool)
	switch {
	case s.Config.Mode == fleet.VPSOnly || !known || !po.Enabled:
		c.x.fail("invariant 1: capacity was added in mode %s, pool %s known %v, enabled %v", s.Config.Mode, pool, known, po.Enabled)
	case s.ConfigBroken != "" || s.ConfigAt.Before(s.Memory.ConfigAt):
		c.x.fail("invariant 1: capacity was added with a config of %v, %v is known (broken: %q)", s.ConfigAt, s.Memory.ConfigAt, s.ConfigBroken)
	case p.Plan.Override != nil || s.Memory.Override != nil && !p.Plan.Lifted:
		c.x.fail("invariant 2: capacity was added while the override stands")
	}
}

func (c *checks) launch(e sim.Event) {
	c.allowed(e, e.Intent, e.Launch.Tags.Pool)
	made, alive := 0, 0
	for _, m := range c.x.w.Machines() {
		if m.Tags.Intent == e.Intent && !m.Gone() {
			made++
		}
		if m.Tags.Pool == e.Launch.Tags.Pool && !m.Gone() {
			alive++
		}
	}
	if made > c.asked(e) && !c.lied {
		c.x.fail("invariant 3: %d machines for an intent that asked for %d, the last call was %s", made, c.asked(e), text(e.Launch))
	}
	if c.amnesia {
		return
	}
	if po, ok := c.x.s.config.Pool(e.Launch.Tags.Pool); ok && alive > po.MaxWorkers {
		c.x.fail("invariant 3: %d machines of pool %s, at most %d workers are allowed", alive, po.Name, po.MaxWorkers)
	}
	c.money(e)
}

// asked is for how many machines an intent was written.
func (c *checks) asked(e sim.Event) int {
	if c.plans[e.Process].Plan == nil {
		return 0
	}
	for _, in := range c.plans[e.Process].Plan.Intents {
		if in.ID == e.Intent {
			return in.Count
		}
	}
	return 0
}

// money: no launch takes the true run rate or the true day over its limit (invariant 2).
func (c *checks) money(e sim.Event) {
	l := c.x.s.config.Limits
	if rate := c.x.w.Rate(); rate > l.Hourly {
		c.x.fail("invariant 2: %s an hour run after a launch, the limit is %s", rate, l.Hourly)
	}
	if e.Kind != sim.EventLaunch {
		return
	}
	c.within("after a launch", time.Now().Add(time.Minute))
}

// within: neither the day nor the period has truly cost more than it may.
func (c *checks) within(when string, until time.Time) {
	l := c.x.s.config.Limits
	from, _ := c.day()
	if spent := c.x.w.Spent(from, until); spent > l.Daily {
		c.x.fail("invariant 2: %s are spent today %s, the limit is %s", spent, when, l.Daily)
	}
	if l.Period == "" {
		return
	}
	name, from, _, err := spend.Period(c.x.w.DatabaseNow(), c.x.s.config.Timezone, l.Period)
	if spent := c.x.w.Spent(from.Add(-c.x.s.databaseAhead), until); err != nil || spent > l.PerPeriod {
		c.x.fail("invariant 2: %s are spent in %s %s, the limit is %s (%v)", spent, name, when, l.PerPeriod, err)
	}
}

// day is the local day of the database's clock, in the world's time.
func (c *checks) day() (from, to time.Time) {
	_, from, to, err := spend.Day(c.x.w.DatabaseNow(), c.x.s.config.Timezone)
	if err != nil {
		c.x.fail("%v", err)
	}
	return from.Add(-c.x.s.databaseAhead), to.Add(-c.x.s.databaseAhead)
}

func (c *checks) resume(e sim.Event) {
	p := c.plans[e.Process]
	if p.Plan == nil {
		c.x.fail("invariant 3: %s resumed %s without having written it down", e.Process, e.Machine)
		return
	}
	for _, in := range p.Plan.Intents {
		if in.Ref.Machine == e.Machine && in.Kind == fleet.KindResume {
			c.allowed(e, in.ID, in.Pool)
			c.fresh(e, in, *p.Snapshot)
			c.x.seen.outcome("resume had")
		}
	}
	if !c.amnesia {
		c.money(e)
	}
}

// fresh: what is resumed is what would be launched.
func (c *checks) fresh(e sim.Event, in fleet.Intent, s fleet.Snapshot) {
	pool, _ := s.Config.Pool(in.Pool)
	for _, m := range c.x.w.Machines() {
		same := func(o fleet.Offer) bool {
			prov, _ := s.Config.Provider(o.Provider)
			return decide.Spec(o, prov.Settings) == m.Tags.Spec
		}
		if m.ID == e.Machine && !slices.ContainsFunc(pool.Offers, same) {
			c.x.fail("launch spec: %s was resumed with spec %s, which no offer of pool %s has", m.ID, m.Tags.Spec, in.Pool)
		}
	}
}

// ending: nobody who works is ended, but by force after the whole drain, or by its expiry (invariant 5).
func (c *checks) ending(e sim.Event) {
	if e.Busy == 0 {
		return
	}
	now := c.x.w.DatabaseNow()
	if c.expired(e.Machine) {
		c.x.seen.outcome("busy worker ended by its expiry")
		return
	}
	timeout := 5 * time.Minute
	if e.Row != nil {
		if p, ok := c.x.s.config.Pool(e.Row.Pool); ok {
			timeout = p.DrainTimeout.Duration()
		}
	}
	if !e.Forced || e.Row == nil || e.Row.Status != fleet.Draining || now.Sub(e.Row.DrainAt) < timeout {
		c.x.fail("invariant 5: %s with %d jobs in hand was ended (forced %v, row %s)", e.Machine, e.Busy, e.Forced, text(e.Row))
	}
	c.x.seen.outcome("busy worker ended by force")
}

// expired goes by the provider's clock or the database's, whichever is ahead.
func (c *checks) expired(machine string) bool {
	for _, m := range c.x.w.Machines() {
		if m.ID != machine {
			continue
		}
		for _, cl := range c.x.s.clouds {
			if cl.Provider == m.Place.Provider && !time.Now().Add(cl.Ahead).Before(m.Tags.Expires) {
				return true
			}
		}
		return !c.x.w.DatabaseNow().Before(m.Tags.Expires)
	}
	return false
}

func text(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

func (c *checks) commit(e sim.Event) {
	p := *e.Plan
	if last := c.dues[p.Function]; !p.Due.After(last) && !c.amnesia {
		c.x.fail("invariant 3: a tick due %v was written after one due %v", p.Due, last)
	}
	c.dues[p.Function] = p.Due
	c.explained(p)
	c.seen(p)
	if e.Snapshot == nil {
		return
	}
	c.unknown(p, *e.Snapshot)
	if c.commits++; c.commits%8 == 0 {
		c.repeatable(*e.Snapshot)
	}
	c.jobs()
}

// explained: steps chain from have to want, and every reason has words (invariant 8).
func (c *checks) explained(p fleet.Plan) {
	for _, po := range p.Pools {
		at := po.Have
		for _, s := range po.Steps {
			if s.From != at {
				c.x.fail("invariant 8: a step of pool %s begins at %d, the last ended at %d: %s", po.Pool, s.From, at, text(po))
			}
			at = s.To
		}
		if at != po.Want {
			c.x.fail("invariant 8: the steps of pool %s end at %d, want is %d: %s", po.Pool, at, po.Want, text(po))
		}
		if po.Want < 0 {
			c.x.fail("invariant 8: pool %s wants %d", po.Pool, po.Want)
		}
	}
	for _, r := range reasons(p) {
		if explain.Reason(r) == "" {
			c.x.fail("invariant 8: no words for %s", r.Code())
		}
	}
	for _, a := range p.Alerts {
		if a.Title == "" {
			c.x.fail("invariant 8: alert %s has no title", a.Key)
		}
	}
}

// reasons are all that a plan gives.
func reasons(p fleet.Plan) (out []fleet.Reason) {
	if p.Skipped != nil {
		out = append(out, p.Skipped)
	}
	for _, po := range p.Pools {
		for _, s := range po.Steps {
			out = append(out, s.Why)
		}
		for _, k := range po.Kept {
			out = append(out, k.Why)
		}
		for _, r := range po.Rejected {
			out = append(out, r.Why)
		}
		for _, d := range po.Drain {
			out = append(out, d.Why)
		}
	}
	for _, n := range p.Notes {
		out = append(out, n.Why)
	}
	for _, a := range p.Alerts {
		if a.Why != nil {
			out = append(out, a.Why)
		}
	}
	return out
}

func (c *checks) seen(p fleet.Plan) {
	for _, r := range reasons(p) {
		c.x.seen.reason(r.Code())
	}
	for _, w := range p.Adopted {
		c.x.seen.reason(cmp.Or(w.DrainWhy, fleet.Adopted{}.Code()))
	}
}

// unknown is never zero: what cannot be seen removes nothing (invariant 6).
func (c *checks) unknown(p fleet.Plan, s fleet.Snapshot) {
	dark := map[string]bool{}
	for _, q := range s.Queues {
		dark[q.Name] = q.Unknown != ""
	}
	for _, po := range p.Pools {
		pool, _ := s.Config.Pool(po.Pool)
		if !slices.ContainsFunc(pool.Queues, func(q fleet.PoolQueue) bool { return dark[q.Name] }) {
			continue
		}
		for _, d := range po.Drain {
			if why := d.Why.Code(); why == "drain.idle" || why == "drain.dry" {
				c.x.fail("invariant 6: %s drains for %s while a queue of %s is unknown", d.Worker, why, po.Pool)
			}
		}
	}
	for _, w := range p.Workers {
		if l := listing(s, w.Worker.Place); !l && (w.Worker.Status == fleet.Terminated || w.Worker.Status == fleet.Failed) {
			c.x.fail("invariant 6: %s ended while %s was not listed", w.Worker.ID, w.Worker.Place)
		}
	}
	for _, old := range s.Memory.Sightings {
		kept := slices.ContainsFunc(p.Sightings, func(o fleet.Sighting) bool { return o.Machine.ID == old.Machine.ID })
		if !kept && !listing(s, old.Place) && p.Function == fleet.Evaluate {
			c.x.fail("invariant 6: orphan %s was forgotten while %s was not listed", old.Machine.ID, old.Place)
		}
	}
}

// listing says that a place has a complete list in a snapshot.
func listing(s fleet.Snapshot, p fleet.Place) bool {
	return slices.ContainsFunc(s.Listings, func(l fleet.Listing) bool { return l.Place == p && l.Complete() })
}

// repeatable: the same snapshot gives the same plan, also when it was stored in between (invariant 10).
func (c *checks) repeatable(s fleet.Snapshot) {
	stored, err := json.Marshal(s)
	if err != nil {
		c.x.fail("invariant 10: %v", err)
		return
	}
	var back fleet.Snapshot
	if err := json.Unmarshal(stored, &back); err != nil {
		c.x.fail("invariant 10: %v", err)
		return
	}
	first, second, third := planBytes(s), planBytes(s), planBytes(back)
	if !bytes.Equal(first, second) {
		c.x.fail("invariant 10: decided twice:\n%s\n%s", first, second)
	}
	if !bytes.Equal(first, third) {
		c.x.fail("invariant 10: decided from what was stored:\n%s\n%s", first, third)
	}
}

func planBytes(s fleet.Snapshot) []byte {
	b, err := json.Marshal(decide.Decide(s))
	if err != nil {
		return []byte(err.Error())
	}
	return b
}

// jobs are never completed twice, and never lost (invariant 7).
func (c *checks) jobs() {
	if c.amnesia {
		return
	}
	live := map[string]bool{}
	for _, w := range c.x.w.Database().Workers {
		live[w.ID] = true
	}
	for _, j := range c.x.w.Jobs() {
		if n := c.x.w.Completed(j.ID); n > 1 || n == 1 && j.Status != "completed" {
			c.x.fail("invariant 7: job %s completed %d times and is %s", j.ID, n, j.Status)
		}
		if j.Status == "processing" && !live[j.ClaimedBy] {
			c.x.fail("invariant 7: job %s is in the hands of %s, which has ended", j.ID, j.ClaimedBy)
		}
	}
}

// returned: a tick explains itself, or fails visibly (invariant 8).
func (c *checks) returned(e ended) {
	if e.err != nil {
		c.x.seen.outcome("tick failed visibly")
		return
	}
	p := e.report.Plan
	if p.Skipped != nil {
		c.x.seen.outcome("tick skipped")
		c.x.seen.reason(p.Skipped.Code())
		if explain.Reason(p.Skipped) == "" {
			c.x.fail("invariant 8: no words for %s", p.Skipped.Code())
		}
		return
	}
	c.x.seen.outcome("tick done")
	if len(e.report.Lines) == 0 {
		c.x.fail("invariant 8: %s said nothing", e.name)
	}
	if p.Function == fleet.Reconcile {
		return
	}
	for _, po := range e.report.Snapshot.Config.Pools {
		if !slices.ContainsFunc(p.Pools, func(d fleet.PoolPlan) bool { return d.Pool == po.Name && len(d.Steps)+len(d.Kept)+len(d.Rejected) > 0 }) {
			c.x.fail("invariant 8: %s says nothing of pool %s", e.name, po.Name)
		}
	}
}

// always: where nothing disturbs, no day ends above its limit at any time (invariant 2).
func (c *checks) always() {
	if c.x.s.disturbed() || c.amnesia || !time.Now().After(c.looked.Add(20*time.Second)) {
		return
	}
	c.looked = time.Now()
	c.within("by now", time.Now())
}
