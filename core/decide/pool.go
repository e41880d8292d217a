package decide

import (
	"cmp"
	"slices"
	"time"

	"sluice/core/fleet"
)

// census is what a pool has, counted once per decision.
type census struct {
	ready     []*worker // registered and claiming, heard of
	silent    []*worker // registered, not heard of, and not drained because the fault may be elsewhere
	booting   []*worker // asked for or resumed, not registered
	asked     int       // machines of open launches without a row
	lost      int       // of asked: launches without an answer that nobody acts on now
	resuming  []*worker // suspended, with an open resume
	draining  []*worker
	suspended []*worker
	doomed    int // machines of abandoned launches that may exist, and orphans of this pool
	vps       int
}

// have is the capacity that is there or on its way.
func (c census) have() int {
	return len(c.ready) + len(c.silent) + len(c.booting) + c.asked + len(c.resuming)
}

// boots is how much of it is on its way.
func (c census) boots() int { return len(c.booting) + c.asked + len(c.resuming) }

// total is what counts against max_workers.
func (c census) total() int {
	return c.have() + len(c.draining) + len(c.suspended) + c.doomed + c.vps
}

func (d *decision) census(p *pool) census {
	var c census
	for _, w := range p.workers {
		switch {
		case w.ended:
		case w.Status == fleet.Provisioning:
			c.booting = append(c.booting, w)
		case w.Status == fleet.Ready && w.silent:
			c.silent = append(c.silent, w)
		case w.Status == fleet.Ready:
			c.ready = append(c.ready, w)
		case w.Status == fleet.Draining:
			c.draining = append(c.draining, w)
		case w.Status == fleet.Suspended && w.resuming != nil:
			c.resuming = append(c.resuming, w)
		case w.Status == fleet.Suspended:
			c.suspended = append(c.suspended, w)
		}
	}
	for _, w := range d.plan.Adopted {
		if w.Pool == p.Name && w.Accepting() {
			c.booting = append(c.booting, &worker{Worker: w, was: w.Status})
		} else if w.Pool == p.Name && w.Status != fleet.Failed {
			c.doomed++
		}
	}
	d.countAsked(p, &c)
	c.vps = d.vpsServing(p)
	return c
}

func (d *decision) countAsked(p *pool, c *census) {
	for _, in := range p.launches {
		switch {
		case in.State == fleet.IntentAbandoned:
			c.doomed += in.Unbound()
		case in.lost:
			c.lost += in.Unbound()
			c.asked += in.Unbound()
		default:
			c.asked += in.Unbound()
		}
	}
	for _, o := range d.orphan {
		if o.Machine.Tags.Pool == p.Name {
			c.doomed++
		}
	}
}

// vpsServing counts the workers that are not ours to start and that serve a queue of the pool.
func (d *decision) vpsServing(p *pool) int {
	n := 0
	for _, w := range d.vps {
		if slices.ContainsFunc(p.Queues, func(q fleet.PoolQueue) bool { return slices.Contains(w.Queues, q.Name) }) {
			n++
		}
	}
	return n
}

// fold is one pool's decision: rules raise and lower want, each leaving a step.
type fold struct {
	*pool
	census
	want  int
	floor int  // removal may not go below
	dry   bool // nothing waits, nothing runs, all have been idle long enough
}

func (f *fold) step(to int, why fleet.Reason) {
	f.plan.Steps = append(f.plan.Steps, fleet.Step{From: f.want, To: to, Why: why})
	f.want = to
}

// decide is the whole decision about one pool: what is wanted, what limits it, and how to get there.
func (d *decision) decide(p *pool) {
	f := &fold{pool: p, census: d.census(p)}
	f.want = f.have()
	p.plan.Have = f.want
	d.demand(f)
	idle := d.removable(f)
	p.plan.Hybrid = d.hybrid(f)
	d.limit(f)
	p.lostWanted = d.stillWanted(f)
	d.grow(f)
	d.shrink(f, idle)
	p.plan.Want, p.fold = f.want, f
}

// hybrid is what would be wanted if nothing but the mode and the override were lifted.
func (d *decision) hybrid(f *fold) int {
	switch {
	case !f.known || !f.Enabled:
		return 0
	case !f.Automatic || d.frozen() != "":
		return min(f.want, f.have())
	}
	return min(f.want, max(0, f.MaxWorkers-f.vps))
}

// demand raises want by the rules of the pool.
func (d *decision) demand(f *fold) {
	for _, q := range f.Queues {
		if st, ok := d.queues[q.Name]; !ok || st.Unknown != "" {
			f.hold = fleet.Unobserved{Queue: q.Name, Cause: cmp.Or(st.Unknown, "not read")}
			f.step(f.want, f.hold)
			d.alert(fleet.Warning, q.Name+"/"+d.hour(), f.hold)
			if why := d.aged(f, q, st); why != nil {
				f.step(max(f.want, f.have()+1), why)
			}
			continue
		}
		to, why := d.backlog(f, q, f.have(), f.boots())
		f.step(max(f.want, to), why)
		d.topTier(q, why)
	}
	for _, fl := range d.floors(f.pool, f.have()) {
		if fl.to > f.want {
			f.step(fl.to, fl.why)
		}
	}
}

// aged says that the oldest job of a queue has waited for too long. Where a list cannot be read, the job
// table still tells that; what nobody tells is zero.
func (d *decision) aged(f *fold, q fleet.PoolQueue, st fleet.QueueState) fleet.Reason {
	if len(q.Steps) > 0 || q.Age == 0 || st.NoAge || st.Depth == 0 || st.Oldest < q.Age || f.boots() > 0 {
		return nil
	}
	return fleet.BacklogAge{Queue: q.Name, Depth: st.Depth, Oldest: st.Oldest, Threshold: q.Age}
}

// stillWanted is how many machines of unanswered launches the rules would ask for again.
func (d *decision) stillWanted(f *fold) int {
	without := f.have() - f.lost
	if f.lost == 0 || !f.Automatic || d.books.Rate+d.books.Reserved > d.books.Hourly {
		return 0
	}
	return min(f.want, d.policy(f, without, f.boots()-f.lost)) - without
}

type floor struct {
	to  int
	why fleet.Reason
}

// backlog is how many workers a queue asks for where have are there or on their way, boots of
// them not yet working; never less than have.
func (d *decision) backlog(f *fold, q fleet.PoolQueue, have, boots int) (int, fleet.Reason) {
	st := d.queues[q.Name]
	if len(q.Steps) > 0 {
		return d.tier(f, q, st, have)
	}
	deep := q.Depth > 0 && st.Depth >= q.Depth
	old := q.Age > 0 && !st.NoAge && st.Depth > 0 && st.Oldest >= q.Age
	switch {
	case deep && st.Depth >= q.Depth*(boots+1):
		return have + 1, fleet.BacklogDepth{Queue: q.Name, Depth: st.Depth, Oldest: st.Oldest, Threshold: q.Depth}
	case old && boots == 0:
		return have + 1, fleet.BacklogAge{Queue: q.Name, Depth: st.Depth, Oldest: st.Oldest, Threshold: q.Age}
	case deep || old:
		return have, d.awaiting(f, q, st, boots)
	}
	return have, fleet.BelowThreshold{Queue: q.Name, Depth: st.Depth, Oldest: st.Oldest}
}

func (d *decision) tier(f *fold, q fleet.PoolQueue, st fleet.QueueState, have int) (int, fleet.Reason) {
	for i := len(q.Steps) - 1; i >= 0; i-- {
		t := q.Steps[i]
		if !reached(t, st) {
			continue
		}
		n := t.Workers
		if t.Max {
			n = max(0, f.MaxWorkers-f.vps)
		}
		return max(have, n), fleet.BacklogStep{Queue: q.Name, Depth: st.Depth, Oldest: st.Oldest, Tier: i + 1, Workers: n}
	}
	return have, fleet.BelowThreshold{Queue: q.Name, Depth: st.Depth, Oldest: st.Oldest}
}

// topTier tells the operator that the policy has nothing above this.
func (d *decision) topTier(q fleet.PoolQueue, why fleet.Reason) {
	b, ok := why.(fleet.BacklogStep)
	if !ok || b.Tier < len(q.Steps) {
		return
	}
	level := cmp.Or(q.Steps[b.Tier-1].Alert, fleet.Warning)
	d.alert(level, q.Name+"/"+d.hour(), fleet.TopTier{Queue: q.Name, Depth: b.Depth, Oldest: b.Oldest})
}

func reached(t fleet.Tier, st fleet.QueueState) bool {
	return t.Depth > 0 && st.Depth >= t.Depth || t.Age > 0 && !st.NoAge && st.Depth > 0 && st.Oldest >= t.Age
}

// awaiting names the machines that are on their way and how long the first has left.
func (d *decision) awaiting(f *fold, q fleet.PoolQueue, st fleet.QueueState, boots int) fleet.Reason {
	a := fleet.Awaiting{Queue: q.Name, Depth: st.Depth, Oldest: st.Oldest, Booting: boots}
	left := bootLimit(d.s.Config, f.memory)
	for _, w := range f.booting {
		a.Workers = append(a.Workers, w.ID)
		left = min(left, bootLimit(d.s.Config, f.memory)-d.now.Sub(w.BootAt))
	}
	a.LeftS = seconds(max(0, left))
	return a
}

// floors are what is wanted whatever waits.
func (d *decision) floors(p *pool, have int) []floor {
	var out []floor
	if p.MinReady > 0 {
		out = append(out, floor{p.MinReady, fleet.FloorMinReady{MinReady: p.MinReady}})
	}
	if d.s.Config.Mode != fleet.CloudFirst {
		return out
	}
	for _, q := range p.Queues {
		if q.Baseline > 0 {
			out = append(out, floor{q.Baseline, fleet.FloorBaseline{Queue: q.Name, Baseline: q.Baseline}})
		}
		if st := d.queues[q.Name]; have == 0 && st.Unknown == "" && st.Depth > 0 {
			out = append(out, floor{1, fleet.FloorWork{Queue: q.Name, Depth: st.Depth, Running: st.Running}})
		}
	}
	return out
}

// policy is what all rules but the limits would want if have were there; removal must not go where
// the policy would launch again at once.
func (d *decision) policy(f *fold, have, boots int) int {
	want := have
	for _, q := range f.Queues {
		if st := d.queues[q.Name]; st.Unknown == "" {
			to, _ := d.backlog(f, q, have, boots)
			want = max(want, to)
		}
	}
	for _, fl := range d.floors(f.pool, have) {
		want = max(want, fl.to)
	}
	return want
}

// removable lowers want by the workers that may go, and returns them. One goes per cooldown; all go
// together when the queues are empty and everything has been idle for the whole time.
func (d *decision) removable(f *fold) []*worker {
	f.floor = f.want
	if f.hold != nil || f.want > f.have() {
		return nil
	}
	var idle []*worker
	for _, w := range f.ready {
		if d.keptFor(f, w) == nil {
			idle = append(idle, w)
		}
	}
	slices.SortFunc(idle, func(a, b *worker) int {
		return cmp.Or(a.IdleSince.Compare(b.IdleSince), cmp.Compare(a.ID, b.ID))
	})
	n := 0
	for n < len(idle) && d.policy(f, f.want-n-1, f.boots()) <= f.want-n-1 {
		n++
	}
	f.floor = f.want - n
	f.dry = d.dry(f) && len(idle) == len(f.ready)
	if !f.dry && n > 0 {
		n = 1
		if left := d.coolingDown(f); left > 0 {
			f.step(f.want, fleet.LimitCooldown{Direction: "down", Last: f.memory.LastDown, LeftS: left})
			n = 0
		}
	}
	if n > 0 {
		f.step(f.want-n, fleet.Idle{Workers: n})
	}
	return idle[:n]
}

// dry says that nothing waits and nothing runs in any queue of the pool.
func (d *decision) dry(f *fold) bool {
	return !slices.ContainsFunc(f.Queues, func(q fleet.PoolQueue) bool {
		st := d.queues[q.Name]
		return st.Depth > 0 || st.Running > 0
	})
}

func (d *decision) coolingDown(f *fold) fleet.Seconds {
	if f.memory.LastDown.IsZero() {
		return 0
	}
	return ceilSeconds(f.memory.LastDown.Add(f.DownCooldown.Duration()).Sub(d.now))
}

func ceilSeconds(t time.Duration) fleet.Seconds {
	return fleet.Seconds(max(0, (t+time.Second-1)/time.Second))
}

// keptFor says why a ready worker may not go for idleness; nil: it may.
func (d *decision) keptFor(f *fold, w *worker) fleet.Reason {
	if w.Busy() {
		return fleet.KeptBusy{Jobs: w.Jobs}
	}
	for _, q := range f.Queues {
		st, ok := d.queues[q.Name]
		if !ok || st.Unknown != "" {
			return fleet.KeptUnknown{Queue: q.Name, Cause: cmp.Or(st.Unknown, "not read")}
		}
		if st.Depth >= q.DepthBelow {
			return fleet.KeptDepth{Queue: q.Name, Depth: st.Depth, Below: q.DepthBelow}
		}
	}
	if idle := d.idleFor(w); idle < time.Duration(f.IdleMinutes)*time.Minute {
		return fleet.KeptIdle{Minutes: int(idle / time.Minute), Limit: f.IdleMinutes}
	}
	if left := w.CostFrom.Add(w.MinCharge.Duration()).Sub(d.now); left > 0 {
		return fleet.KeptMinCharge{LeftS: ceilSeconds(left)}
	}
	return nil
}

func (d *decision) idleFor(w *worker) time.Duration {
	since := w.IdleSince
	if w.Registered.After(since) {
		since = w.Registered
	}
	return d.now.Sub(since)
}

// shrink drains what is no longer wanted: first what the idle rule chose, then, where a limit asks
// for more, those that lose least.
func (d *decision) shrink(f *fold, idle []*worker) {
	if f.want >= f.plan.Have {
		return
	}
	surplus := f.plan.Have - f.want
	for _, w := range d.leastLoss(f, idle) {
		if surplus <= 0 {
			return
		}
		surplus--
		if w.Status == fleet.Suspended { // its resume is a call already made; it drains when it runs
			continue
		}
		d.drain(w, d.whyDrain(f, w, idle))
	}
}

// leastLoss orders what could be drained: idle by rule, booting, idle, then busy by the number of jobs.
func (d *decision) leastLoss(f *fold, idle []*worker) []*worker {
	rank := func(w *worker) int {
		switch {
		case slices.Contains(idle, w):
			return 0
		case w.Status == fleet.Provisioning:
			return 1
		}
		return 2 + w.Jobs
	}
	all := slices.Concat(f.booting, f.ready, f.silent)
	all = slices.DeleteFunc(all, func(w *worker) bool { return d.byID[w.ID] != w }) // adopted by this very plan
	slices.SortStableFunc(all, func(a, b *worker) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.ID, b.ID))
	})
	return all
}

func (d *decision) whyDrain(f *fold, w *worker, idle []*worker) fleet.Reason {
	switch o := d.override(); {
	case o != nil:
		return fleet.DrainMode{Mode: fleet.VPSOnly, Override: o.ID}
	case d.s.Config.Mode == fleet.VPSOnly:
		return fleet.DrainMode{Mode: fleet.VPSOnly}
	case !f.known || !f.Enabled:
		return fleet.DrainNotEnabled{}
	case !slices.Contains(idle, w):
		return fleet.DrainSurplus{Max: f.MaxWorkers}
	case f.dry:
		return fleet.DrainDry{Minutes: int(d.idleFor(w) / time.Minute)}
	}
	return fleet.DrainIdle{Minutes: int(d.idleFor(w) / time.Minute)}
}

// keep gives each worker that stays its reason.
func (d *decision) keep(f *fold) {
	for _, w := range f.workers {
		if w.ended || w.was != w.Status && w.Status == fleet.Draining {
			continue
		}
		f.plan.Kept = append(f.plan.Kept, fleet.Kept{Worker: w.ID, Why: d.whyKept(f, w)})
	}
}

func (d *decision) whyKept(f *fold, w *worker) fleet.Reason {
	switch {
	case w.ending != nil:
		return fleet.KeptEnding{Intent: w.ending.ID}
	case w.resuming != nil:
		gone := d.now.Sub(w.resuming.Created)
		return fleet.KeptBooting{ForS: seconds(gone), LeftS: ceilSeconds(bootLimit(d.s.Config, f.memory) - gone)}
	case w.Status == fleet.Suspended:
		return fleet.KeptSuspended{ForS: seconds(d.now.Sub(w.Changed))}
	case w.Status == fleet.Draining:
		left := w.DrainAt.Add(f.DrainTimeout.Duration()).Sub(d.now)
		return fleet.KeptDraining{Jobs: w.Jobs, Acked: !w.DrainAck.IsZero(), LeftS: ceilSeconds(left)}
	case w.Status == fleet.Provisioning:
		gone := d.now.Sub(w.BootAt)
		return fleet.KeptBooting{ForS: seconds(gone), LeftS: ceilSeconds(bootLimit(d.s.Config, f.memory) - gone)}
	}
	if w.silent && d.shield != nil {
		return d.shield
	}
	if why := d.keptFor(f, w); why != nil {
		return why
	}
	if f.floor < f.want {
		return fleet.KeptCooldown{LeftS: cmp.Or(d.coolingDown(f), f.DownCooldown)} // it may go, but one goes at a time
	}
	return fleet.KeptWanted{Want: f.want}
}
