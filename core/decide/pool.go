package decide

import (
	"cmp"
	"slices"

	"sluice/core/fleet"
)

// pool is a pool of the config, or one that only its workers remember.
type pool struct {
	fleet.Pool
	known      bool // it is in the config
	workers    []*worker
	memory     fleet.PoolMemory
	specs      map[string]bool
	plan       *fleet.PoolPlan
	fold       *fold
	launches   []*intent    // open or abandoned
	ordinal    int          // of the next launch intent
	hold       fleet.Reason // a queue could not be read
	lostWanted int          // machines of unanswered launches that are still wanted
}

// openPools gathers what each pool has. One that the config no longer has stays as long as something of it is left.
func (d *decision) openPools() {
	byName := map[string]*pool{}
	d.poolBy = byName
	for _, p := range d.s.Config.Pools {
		byName[p.Name] = &pool{Pool: p, known: true, specs: specs(d.s.Config, p), plan: &fleet.PoolPlan{Pool: p.Name}}
	}
	get := func(name string) *pool {
		if byName[name] == nil {
			byName[name] = &pool{Pool: forgotten(name), plan: &fleet.PoolPlan{Pool: name}}
		}
		return byName[name]
	}
	for _, w := range d.workers {
		if w.Cloud() {
			get(w.Pool).workers = append(get(w.Pool).workers, w)
		} else if d.quietFor(w) < d.silence() {
			d.vps = append(d.vps, w)
		}
	}
	for _, in := range d.intents {
		if in.Kind == fleet.KindLaunch {
			get(in.Pool).launches = append(get(in.Pool).launches, in)
		}
	}
	for _, m := range d.s.Memory.Pools {
		if p := byName[m.Pool]; p != nil {
			p.memory = m
		}
	}
	for _, p := range byName {
		d.pools = append(d.pools, p)
	}
	slices.SortFunc(d.pools, func(a, b *pool) int {
		return cmp.Or(cmp.Compare(a.Urgency, b.Urgency), cmp.Compare(a.Name, b.Name))
	})
}

// forgotten is a pool that the config no longer has: what is left of it is drained.
func forgotten(name string) fleet.Pool {
	return fleet.Pool{Name: name, DrainTimeout: fleet.DefaultDrainTimeout, OnIdle: fleet.TerminateIdle}
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

// stillWanted is how many machines of unanswered launches the rules would ask for again.
func (d *decision) stillWanted(f *fold) int {
	without := f.have() - f.lost
	if f.lost == 0 || !f.Automatic || d.books.Rate+d.books.Reserved > d.books.Hourly {
		return 0
	}
	return min(f.want, d.policy(f, without, f.boots()-f.lost)) - without
}
