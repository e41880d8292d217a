package decide

import (
	"cmp"

	"sluice/core/fleet"
)

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

// floor is a least count with its reason.
type floor struct {
	to  int
	why fleet.Reason
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
