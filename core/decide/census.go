package decide

import (
	"slices"

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
