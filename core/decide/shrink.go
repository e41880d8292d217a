package decide

import (
	"cmp"
	"slices"
	"time"

	"sluice/core/fleet"
)

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
