package decide

import (
	"cmp"
	"slices"
	"time"

	"sluice/core/fleet"
	"sluice/core/spend"
)

// orphanGrace is how old the first sighting must be before an orphan is removed.
const orphanGrace = 5 * time.Minute

// orphans finds tagged machines that neither a row nor an unsettled intent explains. They cost from the
// first sighting, and go after a second one; unless there are so many that the database itself is wrong.
func (d *decision) orphans() {
	found, machines := d.unexplained()
	d.forget(found)
	tooMany := len(found) > 1 && len(found)*5 > machines
	if tooMany {
		why := fleet.OrphansTooMany{Orphans: len(found), Machines: machines}
		d.note(fleet.Critical, "", "", why)
		d.alert(fleet.Critical, d.hour(), why)
	}
	for _, o := range found {
		d.orphan = append(d.orphan, o)
		d.machines[o.Place.Provider]++
		if !tooMany {
			d.remove(o)
		}
	}
	slices.SortFunc(d.orphan, func(a, b fleet.Sighting) int {
		return cmp.Or(cmp.Compare(a.Place.String(), b.Place.String()), cmp.Compare(a.Machine.ID, b.Machine.ID))
	})
}

// unexplained lists orphans with their first sighting, and counts all machines that are not gone.
func (d *decision) unexplained() (found []fleet.Sighting, machines int) {
	rows := d.rows()
	expected := map[string]bool{}
	for id, in := range d.launches {
		expected[id] = in.State == fleet.IntentOpen || in.State == fleet.IntentAbandoned
	}
	for _, l := range d.s.Listings {
		for _, m := range l.Machines {
			if m.State == fleet.MachineGone {
				continue
			}
			machines++
			if rows[fleet.Ref{Place: l.Place, Machine: m.ID}] {
				continue
			}
			ours := m.Tags.Deployment == d.s.Memory.Deployment
			o := d.sight(l, m)
			if d.back(l, o) || ours && expected[m.Tags.Intent] || d.adoptRequested(o) {
				continue
			}
			found = append(found, o)
		}
	}
	return found, machines
}

// rows are the machines that have a row, those included that got theirs by this decision.
func (d *decision) rows() map[fleet.Ref]bool {
	out := map[fleet.Ref]bool{}
	for _, w := range d.workers {
		out[fleet.Ref{Place: w.Place, Machine: w.Machine}] = true
	}
	for _, w := range d.plan.Adopted {
		out[fleet.Ref{Place: w.Place, Machine: w.Machine}] = true
	}
	return out
}

func (d *decision) sight(l fleet.Listing, m fleet.Machine) fleet.Sighting {
	o := fleet.Sighting{Place: l.Place, Machine: m, First: l.Begun, Last: l.Begun, Price: d.priceOf(l.Place, m), Increment: d.s.Traits[l.Place.Provider].Increment}
	if old := d.sighting(l.Place, m.ID); old != nil {
		o.First = old.First
	}
	return o
}

func (d *decision) sighting(p fleet.Place, machine string) *fleet.Sighting {
	for i, o := range d.s.Memory.Sightings {
		if o.Place == p && o.Machine.ID == machine {
			return &d.s.Memory.Sightings[i]
		}
	}
	return nil
}

// back revives the row of a machine that is listed although its end was believed: it is live, and
// costs, also for the time in between. It drains.
func (d *decision) back(l fleet.Listing, o fleet.Sighting) bool {
	sp, ended := d.lastEnd(l.Place, o.Machine.ID)
	if !ended {
		return false
	}
	if !l.Begun.After(sp.To) {
		return true // the list is older than the end
	}
	w := d.machineRow(o, sp.Pool)
	w.ID, w.Price, w.CostFrom = sp.Worker, sp.Price, sp.To
	w.Status, w.DrainAt, w.DrainWhy = fleet.Draining, d.now, fleet.Back{}.Code()
	d.adopt(w, "back")
	d.note(fleet.Warning, w.Pool, w.ID, fleet.Back{Machine: w.Machine})
	return true
}

// lastEnd is the end of a machine that had a row; the latest, since it may have ended and come back before.
func (d *decision) lastEnd(p fleet.Place, machine string) (last fleet.Span, ended bool) {
	for _, s := range d.s.Memory.Ended {
		if s.Last && s.Worker != "" && s.Provider == p.Provider && s.Scope == p.Scope && s.Machine == machine && !s.To.Before(last.To) {
			last, ended = s, true
		}
	}
	return last, ended
}

// machineRow is a row from what a machine's tags say.
func (d *decision) machineRow(o fleet.Sighting, pool string) fleet.Worker {
	m := o.Machine
	w := fleet.Worker{
		ID: fleet.ID(d.s.Memory.Deployment, o.Place.String(), m.ID), Pool: pool, Place: o.Place, Zone: m.Zone,
		Machine: m.ID, Type: m.Type, Market: m.Market, Intent: m.Tags.Intent, Spec: m.Tags.Spec, Expires: m.Tags.Expires,
		Price: o.Price, Increment: o.Increment, CostFrom: o.First, BootAt: o.First, Status: fleet.Provisioning, Slots: 1,
	}
	if p, ok := d.s.Config.Pool(pool); ok {
		for _, q := range p.Queues {
			w.Queues = append(w.Queues, q.Name)
		}
	}
	return w
}

func (d *decision) adoptRequested(o fleet.Sighting) bool {
	if d.unfinished(fleet.Ref{Place: o.Place, Machine: o.Machine.ID}) != nil {
		return false // its end was asked for: there is no way back
	}
	for _, r := range d.s.Memory.Requests {
		if r.Kind == fleet.RequestAdopt && (r.Target == "all" || r.Target == o.Machine.ID) {
			d.adopt(d.machineRow(o, o.Machine.Tags.Pool), "requested")
			return true
		}
	}
	return false
}

// remove ends an orphan that was seen before, long enough ago.
func (d *decision) remove(o fleet.Sighting) {
	foreign := o.Machine.Tags.Deployment != d.s.Memory.Deployment
	ref := fleet.Ref{Place: o.Place, Zone: o.Machine.Zone, Machine: o.Machine.ID}
	if d.unfinished(ref) != nil {
		return
	}
	if o.Last.Sub(o.First) < orphanGrace {
		if d.sighting(o.Place, o.Machine.ID) == nil {
			why := fleet.OrphanSeen{Provider: o.Place.Provider, Machine: o.Machine.ID, Foreign: foreign, First: o.First}
			d.note(fleet.Warning, o.Machine.Tags.Pool, "", why)
			d.alert(fleet.Warning, o.Place.String()+"/"+o.Machine.ID, why)
		}
		return
	}
	why := fleet.OrphanRemoved{
		Provider: o.Place.Provider, Machine: o.Machine.ID, Intent: o.Machine.Tags.Intent, First: o.First,
		Cost: spend.OrphanCost(o, d.now),
	}
	d.act(fleet.KindTerminate, "", ref, o.Machine.Tags.Pool, why.Code())
	d.note(fleet.Warning, o.Machine.Tags.Pool, "", why)
	d.alert(fleet.Warning, o.Place.String()+"/"+o.Machine.ID, why)
}

// unfinished is the open intent about a machine.
func (d *decision) unfinished(ref fleet.Ref) *intent {
	for _, in := range d.intents {
		if in.State == fleet.IntentOpen && in.Kind != fleet.KindLaunch && in.Ref.Place == ref.Place && in.Ref.Machine == ref.Machine {
			return in
		}
	}
	return nil
}

// forget closes the sightings of machines that ended, or that a row explains now; those whose place
// cannot be listed stay.
func (d *decision) forget(found []fleet.Sighting) {
	listed := d.machinesByRef()
	for _, old := range d.s.Memory.Sightings {
		l, ok := d.lists[old.Place]
		still := slices.ContainsFunc(found, func(o fleet.Sighting) bool {
			return o.Place == old.Place && o.Machine.ID == old.Machine.ID
		})
		m := listed[fleet.Ref{Place: old.Place, Machine: old.Machine.ID}]
		absent := m == nil && ok && l.Complete() && l.Begun.Sub(old.Last) >= 2*goneApart // the second list, or a late one
		gone := m != nil && m.State == fleet.MachineGone
		explained := m != nil && !gone && !still
		switch {
		case still || explained:
		case gone || absent:
			sp := spend.Orphan(old, d.now)
			sp.Last = true
			d.plan.Spans = append(d.plan.Spans, sp)
			if in := d.unfinished(fleet.Ref{Place: old.Place, Machine: old.Machine.ID}); in != nil {
				d.settle(in, fleet.IntentDone)
			}
		default:
			d.orphan = append(d.orphan, old)
			d.machines[old.Place.Provider]++
		}
	}
}
