package decide

import (
	"time"

	"sluice/core/fleet"
)

// drains moves the workers that drain towards their end. The drain and the end are written by
// different transactions, because only a worker that has been seen to claim nothing more may end.
func (d *decision) drains() {
	for _, w := range d.workers {
		if !w.Cloud() || w.ended || w.ending != nil || w.resuming != nil {
			continue
		}
		switch {
		case w.Status == fleet.Draining && w.was == fleet.Draining && w.DrainAt.Before(d.now):
			d.drained(w)
		case w.Status == fleet.Suspended && w.was == fleet.Suspended:
			d.suspended(w)
		}
	}
}

func (d *decision) drained(w *worker) {
	p, age := d.poolBy[w.Pool], d.now.Sub(w.DrainAt)
	expired := d.expiresWithin(w, 0)
	done := w.Jobs == 0 && (!w.DrainAck.IsZero() || w.Registered.IsZero())
	forced := age >= p.DrainTimeout.Duration() || expired
	switch {
	case done && d.doubtful(p, w) && !expired:
	case done && d.suspends(p, w):
		w.ending = d.order(fleet.KindSuspend, w, w.DrainWhy)
		d.note(fleet.Info, w.Pool, w.ID, fleet.DrainDone{Why: w.DrainWhy, ForS: seconds(age)})
	case done:
		w.ending = d.order(fleet.KindTerminate, w, w.DrainWhy)
		d.note(fleet.Info, w.Pool, w.ID, fleet.DrainDone{Why: w.DrainWhy, ForS: seconds(age)})
	case forced && !d.doubtful(p, w) || expired:
		w.ending = d.order(fleet.KindTerminate, w, w.DrainWhy)
		w.ending.Forced = true
		d.note(fleet.Warning, w.Pool, w.ID, fleet.DrainForced{Why: w.DrainWhy, Jobs: w.Jobs, ForS: seconds(age)})
	}
}

// doubtful says that this is no time to end a worker that drains for want of work: its place, or a
// queue that it serves, cannot be seen. The mode, the limits and its own faults end it all the same.
func (d *decision) doubtful(p *pool, w *worker) bool {
	if d.vpsOnly() {
		return false
	}
	if l, ok := d.lists[w.Place]; !ok || !l.Complete() {
		return true
	}
	return p.hold != nil && forIdleness(w.DrainWhy)
}

// forIdleness says that a drain's reason is that the worker had nothing to do.
func forIdleness(why string) bool {
	return why == fleet.DrainIdle{}.Code() || why == fleet.DrainDry{}.Code()
}

// suspends says that a worker that has nothing to do is kept suspended.
func (d *decision) suspends(p *pool, w *worker) bool {
	if p.OnIdle != fleet.SuspendIdle || !forIdleness(w.DrainWhy) || w.Registered.IsZero() || !d.s.Traits[w.Place.Provider].Suspends {
		return false
	}
	if d.off(p) || d.stale(w, p) {
		return false
	}
	kept := 0
	for _, o := range p.workers {
		if !o.ended && (o.Status == fleet.Suspended || o.ending != nil && o.ending.Kind == fleet.KindSuspend) {
			kept++
		}
	}
	return kept < p.MaxSuspended
}

// suspended ends a machine that waited for its whole allowance, or that may never be resumed.
func (d *decision) suspended(w *worker) {
	p, age := d.poolBy[w.Pool], d.now.Sub(w.Changed)
	off := d.off(p) || p.OnIdle != fleet.SuspendIdle
	long := p.MaxSuspendedFor > 0 && age >= p.MaxSuspendedFor.Duration()
	expired := d.expiresWithin(w, time.Minute)
	if stale := d.stale(w, p); off || long || expired || stale {
		if !expired && (d.doubtful(p, w) || d.frozen() != "" && d.override() == nil) {
			return
		}
		w.ending = d.order(fleet.KindTerminate, w, fleet.SuspendedLong{}.Code())
		d.note(fleet.Info, w.Pool, w.ID, fleet.SuspendedLong{Stale: stale, ForS: seconds(age)})
	}
}
