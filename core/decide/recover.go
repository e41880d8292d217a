package decide

import (
	"slices"
	"time"

	"sluice/core/fleet"
	"sluice/core/spend"
)

// repeatFor is how long after its first storing a request may still be on the wire: providers keep
// idempotency tokens for longer than this.
const repeatFor = 15 * time.Minute

// adoptions binds machines to the launches that asked for them. Launches on which another tick may
// be acting are left alone.
func (d *decision) adoptions() {
	tagged := d.taggedWithoutRow()
	for _, in := range d.intents {
		if in.Kind != fleet.KindLaunch || in.State == fleet.IntentOpen && d.now.Before(in.ClaimedUntil) {
			continue
		}
		if in.State == fleet.IntentOpen && d.risky(in) && !d.settled(in) {
			d.note(fleet.Info, in.Pool, "", fleet.Waiting{Intent: in.ID, Until: d.quiet(in)})
			continue
		}
		for _, o := range tagged[in.ID] {
			d.bind(in, o)
		}
		d.conclude(in)
	}
}

// risky says that more machines may come than were asked for: a repeated call without idempotency.
func (d *decision) risky(in *intent) bool { return !in.Idempotent && in.Calls() > 1 }

// taggedWithoutRow are the machines that have no row and never had one, by the intent that they are tagged with.
func (d *decision) taggedWithoutRow() map[string][]fleet.Sighting {
	rows := d.rows()
	for _, s := range d.s.Memory.Ended {
		if s.Last {
			rows[fleet.Ref{Place: fleet.Place{Provider: s.Provider, Scope: s.Scope}, Machine: s.Machine}] = true
		}
	}
	out := map[string][]fleet.Sighting{}
	for _, l := range d.s.Listings {
		for _, m := range l.Machines {
			if m.Tags.Deployment == d.s.Memory.Deployment && !rows[fleet.Ref{Place: l.Place, Machine: m.ID}] {
				out[m.Tags.Intent] = append(out[m.Tags.Intent], fleet.Sighting{Place: l.Place, Machine: m})
			}
		}
	}
	return out
}

// bind makes the row of a machine that answers a launch; more than asked for, or come too late, it drains.
func (d *decision) bind(in *intent, o fleet.Sighting) {
	o.First = in.Created // it costs since it was asked for
	w := d.machineRow(o, in.Pool)
	w.Price, w.MinCharge, w.Increment = in.Reserve, in.MinFor, in.Increment
	if in.Changed.After(w.BootAt) && in.State == fleet.IntentOpen { // it may be the last call's, and its boot begins then
		w.BootAt = in.Changed
	}
	for i, offer := range in.Offers {
		if offer.Place == o.Place && offer.Type == w.Type && offer.Market == w.Market {
			w.Price = in.Prices[i]
		}
	}
	gone, why := o.Machine.State == fleet.MachineGone, unwanted(in)
	switch {
	case gone:
		w.Status = fleet.Failed
		sp := spend.Since(w, d.now)
		sp.Last = true
		d.plan.Spans = append(d.plan.Spans, sp)
	case why != nil:
		w.Status, w.DrainAt, w.DrainWhy = fleet.Draining, d.now, why.Code()
	}
	d.adopt(w, "listed")
	if !gone && why != nil {
		d.note(fleet.Warning, w.Pool, w.ID, why)
	}
	in.Bound++
}

// unwanted says why the next machine that answers a launch drains at once; nil: it was waited for.
func unwanted(in *intent) fleet.Reason {
	switch {
	case in.State == fleet.IntentAbandoned:
		return fleet.DrainAbandoned{Intent: in.ID}
	case in.Bound >= in.Count:
		return fleet.DrainSurplus{Max: in.Count}
	}
	return nil
}

// conclude closes a launch that is answered, and finds those of which nothing was seen.
func (d *decision) conclude(in *intent) {
	late, twice := d.empty(in)
	switch last := in.Last(); {
	case last == nil: // no call was ever written down, so none was made
		d.settle(in, fleet.IntentRefused)
	case in.State == fleet.IntentAbandoned:
		switch {
		case in.Idempotent && in.Bound >= in.Count:
			d.settle(in, fleet.IntentClosed)
		case twice:
			d.settle(in, fleet.IntentClosed)
			d.note(fleet.Info, in.Pool, "", fleet.Released{Intent: in.ID})
		}
	case in.Bound >= in.Count || in.Bound > 0 && late:
		d.settle(in, fleet.IntentDone)
	case in.Bound > 0: // the others may still turn up
	case last.Outcome == fleet.OutcomeRefused:
		d.settle(in, fleet.IntentRefused)
	default:
		in.lost, in.absent = true, twice
	}
}

// empty counts complete lists, begun late enough to count, in which nothing (more) of a launch was
// seen: whether this is one, and whether it is the second.
func (d *decision) empty(in *intent) (late, twice bool) {
	if !d.settled(in) {
		return false, false
	}
	begun := d.begun(in)
	if in.EmptySince.IsZero() || !in.EmptySince.After(d.quiet(in)) {
		in.EmptySince, in.dirty = begun, true
		return true, false
	}
	return true, begun.After(in.EmptySince)
}

// quiet is when no call of an intent can have an effect that a complete list does not show.
func (d *decision) quiet(in *intent) time.Time {
	visibility := fleet.Seconds(0)
	for _, a := range in.Attempts {
		if a.Launch != nil {
			visibility = max(visibility, d.s.Traits[a.Launch.Offer.Provider].Visibility)
		}
	}
	return in.ClaimedUntil.Add(visibility.Duration())
}

// settled says that every place an intent tried has a complete list begun after quiet.
func (d *decision) settled(in *intent) bool {
	begun := d.begun(in)
	return !begun.IsZero() && begun.After(d.quiet(in))
}

// begun is when the earliest of the lists began that cover an intent's attempts; zero where one is missing.
func (d *decision) begun(in *intent) time.Time {
	var out time.Time
	for _, a := range in.Attempts {
		if a.Launch == nil {
			continue
		}
		l, ok := d.lists[a.Launch.Offer.Place]
		if !ok || !l.Complete() {
			return time.Time{}
		}
		if out.IsZero() || l.Begun.Before(out) {
			out = l.Begun
		}
	}
	return out
}

// recover repeats or gives up the launches of which nothing was seen.
func (d *decision) recover() {
	for _, in := range d.intents {
		if in.lost {
			d.recoverLaunch(in)
		}
		if in.Kind != fleet.KindLaunch && in.State == fleet.IntentOpen && !in.fresh && !d.now.Before(in.ClaimedUntil) {
			d.repeatAct(in)
		}
	}
}

func (d *decision) recoverLaunch(in *intent) {
	p := d.poolBy[in.Pool]
	switch {
	case d.now.Add(d.s.Limit.Duration()).Sub(in.Last().First) > repeatFor:
		d.abandon(in, "too_old")
	case d.frozen() != "" || p.hold != nil || d.begun(in).IsZero() || !in.Idempotent && !in.absent:
		d.note(fleet.Info, in.Pool, "", fleet.Waiting{Intent: in.ID, Until: d.quiet(in)})
	case p.lostWanted <= 0 || !d.offered(in):
		d.abandon(in, "not_wanted")
	default:
		p.lostWanted -= in.Unbound()
		d.take(in, true)
		d.note(fleet.Warning, in.Pool, "", fleet.Repeated{Intent: in.ID, Kind: in.Kind, Calls: in.Calls()})
	}
}

// offered says that the config still has the provider that a launch was last asked of.
func (d *decision) offered(in *intent) bool {
	_, ok := d.s.Config.Provider(in.Last().Launch.Offer.Provider)
	return ok
}

// abandon gives a launch up. Its reservation stays until two late lists show nothing.
func (d *decision) abandon(in *intent, cause string) {
	d.settle(in, fleet.IntentAbandoned)
	d.note(fleet.Warning, in.Pool, "", fleet.Abandoned{Intent: in.ID, Cause: cause})
}

// repeatAct repeats a terminate, suspend or resume whose effect does not show. Such calls may be repeated.
func (d *decision) repeatAct(in *intent) {
	w := d.about(in)
	if w == nil && !d.stillOrphan(in.Ref) { // its row, or its sighting, ended
		d.settle(in, fleet.IntentDone)
		return
	}
	if w != nil && w.listed != nil && w.listed.State == fleet.MachineStopping {
		return
	}
	if in.Kind == fleet.KindResume && (d.frozen() != "" || d.off(d.poolBy[in.Pool]) || w != nil && d.stale(w, d.poolBy[w.Pool])) {
		d.settle(in, fleet.IntentClosed) // if it runs all the same, it drains
		return
	}
	if why := d.hopeless(in, w); why != nil {
		d.settle(in, fleet.IntentClosed)
		w.resuming, w.ending = nil, d.order(fleet.KindTerminate, w, why.Code())
		d.note(fleet.Warning, in.Pool, in.Worker, why)
		return
	}
	d.take(in, true)
	d.note(fleet.Info, in.Pool, in.Worker, fleet.Repeated{Intent: in.ID, Kind: in.Kind, Calls: in.Calls()})
}

// hopeless says why a machine is ended that has been seen neither to suspend nor to wake for as long as a boot may
// take: until it is, it costs, or counts as capacity that never comes. Nil: it may still.
func (d *decision) hopeless(in *intent, w *worker) fleet.Reason {
	if w == nil || w.listed == nil || in.Kind == fleet.KindTerminate {
		return nil
	}
	limit, age := bootLimit(d.s.Config, d.poolBy[w.Pool].memory), d.now.Sub(in.Created)
	switch {
	case age < limit:
		return nil
	case in.Kind == fleet.KindSuspend:
		return fleet.DrainForced{Why: w.DrainWhy, Jobs: w.Jobs, ForS: seconds(d.now.Sub(w.DrainAt))}
	}
	return fleet.DrainBoot{AfterS: seconds(age), Limit: seconds(limit)}
}

// about is the row of the machine that an intent is about.
func (d *decision) about(in *intent) *worker {
	if in.about == nil || in.about.ended {
		return nil
	}
	return in.about
}

func (d *decision) stillOrphan(ref fleet.Ref) bool {
	return slices.ContainsFunc(d.orphan, func(o fleet.Sighting) bool {
		return o.Place == ref.Place && o.Machine.ID == ref.Machine
	})
}
