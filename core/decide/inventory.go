package decide

import (
	"cmp"
	"slices"
	"time"

	"sluice/core/fleet"
)

// How absence becomes an end: two complete lists this far apart, of a machine at least this old.
const (
	goneApart  = 60 * time.Second
	goneMinAge = 5 * time.Minute
)

// inventory holds rows against lists, both ways but for machines without a row (see recover.go and orphans.go).
func (d *decision) inventory() {
	for _, l := range d.s.Listings {
		if !l.Complete() {
			why := fleet.PlaceUnknown{Place: l.Place.String(), Cause: l.Unknown}
			d.note(fleet.Warning, "", "", why)
			d.alert(fleet.Warning, why.Place+"/"+d.hour(), why)
		}
	}
	d.assign()
	listed := d.machinesByRef()
	for _, w := range d.workers {
		if w.Cloud() {
			d.price(w)
			d.compare(w, listed)
		}
	}
}

// price brings what a row costs up to date: one that was made by a machine that registered, without its launch, gets
// its provider's increment, and a suspended one what suspended machines cost now.
func (d *decision) price(w *worker) {
	if t := d.s.Traits[w.Place.Provider]; w.Increment == 0 && t.Increment > 0 && w.Status != fleet.Suspended {
		w.Increment, w.dirty = t.Increment, true
	}
	if w.Status != fleet.Suspended || w.resuming != nil {
		return
	}
	if stored := d.stored(w); w.Idle != stored {
		d.span(w, w.Idle, d.now)
		w.Idle, w.dirty = stored, true
	}
}

// stored is what a machine costs per hour while it is suspended: where nobody knows, as much as if it ran.
func (d *decision) stored(w *worker) fleet.Money {
	if price, ok := d.s.Config.SuspendedPrice(w.Place.Provider, w.Type); ok {
		return price
	}
	return w.Price
}

// assign gives each open intent about a machine to its worker. One about an orphan belongs to the row that
// its machine has got since: a machine has one open intent.
func (d *decision) assign() {
	byRef := map[fleet.Ref]*worker{}
	for _, w := range d.workers {
		byRef[fleet.Ref{Place: w.Place, Machine: w.Machine}] = w
	}
	for _, in := range d.intents {
		w := d.byID[in.Worker]
		if w == nil {
			w = byRef[fleet.Ref{Place: in.Ref.Place, Machine: in.Ref.Machine}]
		}
		if w != nil && in.Kind != fleet.KindLaunch && in.State == fleet.IntentOpen {
			in.about = w
			switch in.Kind {
			case fleet.KindTerminate, fleet.KindSuspend:
				w.ending = in
			case fleet.KindResume:
				w.resuming = in
			case fleet.KindLaunch:
			}
		}
	}
}

func (d *decision) machinesByRef() map[fleet.Ref]*fleet.Machine {
	out := map[fleet.Ref]*fleet.Machine{}
	for i := range d.s.Listings {
		l := &d.s.Listings[i]
		for j := range l.Machines {
			out[fleet.Ref{Place: l.Place, Machine: l.Machines[j].ID}] = &l.Machines[j]
		}
	}
	return out
}

// compare brings one row in line with what its place lists. A list says nothing about a row that
// changed after the list was begun.
func (d *decision) compare(w *worker, listed map[fleet.Ref]*fleet.Machine) {
	l, ok := d.lists[w.Place]
	if !ok || !l.Complete() {
		return
	}
	w.listed = listed[fleet.Ref{Place: w.Place, Machine: w.Machine}]
	switch {
	case w.listed == nil:
		d.absent(w, l.Begun)
	case w.listed.State == fleet.MachineGone:
		d.end(w, true)
	default:
		d.present(w, l.Begun)
	}
}

func (d *decision) absent(w *worker, begun time.Time) {
	if !begun.After(w.Changed) {
		return
	}
	since := w.AbsentSince
	if since.IsZero() || !since.After(w.Changed) || w.Heartbeat.After(since) {
		w.AbsentSince, w.dirty = begun, true
		d.note(fleet.Info, w.Pool, w.ID, fleet.NotListed{Since: begun})
		return
	}
	old := max(goneMinAge, d.s.Traits[w.Place.Provider].Visibility.Duration())
	if begun.Sub(since) >= goneApart && begun.Sub(w.BootAt) >= old {
		d.end(w, false)
	}
}

func (d *decision) present(w *worker, begun time.Time) {
	if !w.AbsentSince.IsZero() {
		w.AbsentSince, w.dirty = time.Time{}, true
	}
	if !begun.After(w.Changed) {
		return
	}
	suspended := w.listed.State == fleet.MachineSuspended
	switch {
	case suspended && w.ending != nil && w.ending.Kind == fleet.KindSuspend && begun.After(w.ending.Changed):
		d.span(w, w.Price, d.now)
		// It may have been suspended since the call (see wake).
		w.CostFrom, w.Idle, w.Increment = w.ending.Created, d.stored(w), 0
		d.set(w, fleet.Suspended, w.DrainWhy)
		d.settle(w.ending, fleet.IntentDone)
		w.ending = nil
	case !suspended && w.listed.State == fleet.MachineRunning && w.Status == fleet.Suspended:
		d.awake(w, begun)
	}
}

// awake is a suspended machine that runs: resumed by us, or by somebody else, who must pay for it all the same.
func (d *decision) awake(w *worker, begun time.Time) {
	if w.resuming != nil && !begun.After(w.resuming.Changed) {
		return
	}
	w.BootAt, w.Registered = d.now, time.Time{}
	if w.resuming == nil {
		d.wake(w, d.now)
		d.drain(w, fleet.Back{Machine: w.Machine})
		return
	}
	d.wake(w, w.resuming.Created) // it costs since the call
	w.DrainAt, w.DrainAck, w.DrainWhy = time.Time{}, time.Time{}, ""
	d.set(w, fleet.Provisioning, "resumed")
	d.settle(w.resuming, fleet.IntentDone)
	w.resuming = nil
}

// wake ends the stretch in which a machine was suspended, and begins one in which it runs, since a time. In between it
// may have been either; where a begun increment is charged whole, that both are booked is the only upper bound.
func (d *decision) wake(w *worker, since time.Time) {
	d.span(w, w.Idle, d.now)
	t := d.s.Traits[w.Place.Provider]
	w.CostFrom, w.MinCharge, w.Increment = since, t.MinCharge, t.Increment
}

// count adds rows and asked-for machines to what counts against a provider's max_instances; adopted ones
// and orphans are added where they are found.
func (d *decision) count() {
	for _, w := range d.workers {
		if w.Cloud() && !w.ended {
			d.machines[w.Place.Provider]++
		}
	}
	for _, in := range d.intents {
		if n := in.Unbound(); n > 0 {
			for _, p := range providersOf(in.Offers) {
				d.machines[p] += n
			}
		}
	}
}

func providersOf(offers []fleet.Offer) []string {
	var out []string
	for _, o := range offers {
		if !slices.Contains(out, o.Provider) {
			out = append(out, o.Provider)
		}
	}
	return out
}

// adopt makes a row for a machine that has none.
func (d *decision) adopt(w fleet.Worker, cause string) {
	w.Changed = d.now
	if w.BootAt.IsZero() {
		w.BootAt = d.now
	}
	if w.Status != fleet.Failed {
		d.machines[w.Place.Provider]++
	}
	d.plan.Adopted = append(d.plan.Adopted, w)
	slices.SortFunc(d.plan.Adopted, func(a, b fleet.Worker) int { return cmp.Compare(a.ID, b.ID) })
	d.note(fleet.Info, w.Pool, w.ID, fleet.Adopted{Intent: w.Intent, Machine: w.Machine, Cause: cause})
}
