package sim

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"sluice/core/fleet"
)

// remember is for how long ended machines count in a decision.
const remember = 50 * time.Hour

// memory is what the database remembers at a time.
func (d *database) memory(now time.Time) fleet.Memory {
	m := fleet.Memory{
		Deployment: d.deployment, Now: now, ConfigAt: d.configAt, LastGood: slices.Clone(d.lastGood),
		Sightings: slices.Clone(d.sightings), Requests: slices.Clone(d.requests), Bills: slices.Clone(d.bills),
		Pools: d.pools(),
	}
	for _, t := range d.ticks {
		if m.LastDue == nil {
			m.LastDue = map[fleet.Function]time.Time{}
		}
		if t.Due.After(m.LastDue[t.Function]) {
			m.LastDue[t.Function] = t.Due
		}
	}
	for _, id := range sortedKeys(d.workers) {
		if w := d.workers[id]; !ended(w.Status) {
			m.Workers = append(m.Workers, w.Worker)
		}
	}
	m.Ended, m.Earlier = d.ledger()
	for _, id := range sortedKeys(d.intents) {
		if in := d.intents[id]; in.State == fleet.IntentOpen || in.State == fleet.IntentAbandoned {
			in.Attempts = slices.Clone(in.Attempts)
			in.Bound = d.bound(id)
			m.Intents = append(m.Intents, in.Intent)
		}
	}
	for _, k := range sortedKeys(d.coolOffs) {
		m.CoolOffs = append(m.CoolOffs, d.coolOffs[k])
	}
	for _, k := range sortedKeys(d.quotes) {
		m.Quotes = append(m.Quotes, d.quotes[k])
	}
	if d.override != nil {
		o := *d.override
		m.Override = &o
	}
	return m
}

// ledger is what ended lately, line by line, and what ended before.
func (d *database) ledger() (ended []fleet.Span, earlier *fleet.Earlier) {
	earlier = &fleet.Earlier{}
	if len(d.ticks) == 0 {
		return slices.Clone(d.spans), earlier
	}
	last, older := d.ticks[len(d.ticks)-1], false
	for _, t := range d.ticks {
		if t.At.After(last.At) {
			last = t
		}
	}
	period := last.Spend.Period
	earlier.From = period.From
	for _, s := range d.spans {
		switch {
		case s.To.After(last.At.Add(-remember)):
			ended = append(ended, s)
		default:
			older = true
			earlier.Spent += s.Between(period.From, s.To.AddDate(1, 0, 0))
		}
	}
	if period.From.IsZero() && older {
		return ended, nil
	}
	return ended, earlier
}

// pools derives from the rows what they say about each pool's past.
func (d *database) pools() []fleet.PoolMemory {
	past := map[string]*fleet.PoolMemory{}
	of := func(name string) *fleet.PoolMemory {
		if past[name] == nil {
			past[name] = &fleet.PoolMemory{Pool: name}
		}
		return past[name]
	}
	for _, in := range d.intents {
		if in.Kind == fleet.KindLaunch || in.Kind == fleet.KindResume {
			p := of(in.Pool)
			if in.State != fleet.IntentRefused {
				p.LastUp = latest(p.LastUp, in.Created)
			}
		}
	}
	for _, w := range d.workers {
		if w.Cloud() && (w.DrainWhy == "drain.idle" || w.DrainWhy == "drain.dry") {
			p := of(w.Pool)
			p.LastDown = latest(p.LastDown, w.DrainAt)
		}
	}
	for _, w := range d.workers {
		if p := of(w.Pool); w.Cloud() && w.Status == fleet.Failed && w.DrainAt.IsZero() && w.Ended.After(p.LastUp) {
			p.Lost++
		}
	}
	for _, p := range past {
		d.boots(p)
		p.SpotRefusedSince = d.spotRefused(p.Pool)
	}
	delete(past, fleet.VPS)
	return slices.SortedFunc(maps.Values(deref(past)), func(a, b fleet.PoolMemory) int { return cmp.Compare(a.Pool, b.Pool) })
}

func deref[K comparable, V any](m map[K]*V) map[K]V {
	out := map[K]V{}
	for k, v := range m {
		out[k] = *v
	}
	return out
}

// boots tells how slow the last ten were and how many failed since one succeeded.
func (d *database) boots(p *fleet.PoolMemory) {
	var good []workerRow
	var last time.Time
	for _, w := range d.workers {
		if w.Pool == p.Pool && w.Cloud() && !w.Registered.IsZero() {
			good = append(good, w)
			last = latest(last, w.Registered)
		}
	}
	slices.SortFunc(good, func(a, b workerRow) int {
		return cmp.Or(b.Registered.Compare(a.Registered), cmp.Compare(a.ID, b.ID))
	})
	for _, w := range good[:min(10, len(good))] {
		p.SlowestBoot = max(p.SlowestBoot, fleet.Seconds(w.Registered.Sub(w.BootAt)/time.Second))
	}
	for _, w := range d.workers {
		at, failed := w.bootFailure()
		if w.Pool == p.Pool && failed && at.After(last) {
			p.BootFailures++
			p.LastFailure = latest(p.LastFailure, at)
		}
	}
}

// bootFailure says when a machine that never registered was given up.
func (w workerRow) bootFailure() (time.Time, bool) {
	switch {
	case !w.Cloud() || !w.Registered.IsZero():
		return time.Time{}, false
	case w.DrainWhy == "drain.boot_timeout":
		return w.DrainAt, true
	case w.Status == fleet.Failed && w.DrainAt.IsZero():
		return w.Ended, true
	}
	return time.Time{}, false
}

// spotRefused is when spot began to be refused without a success since.
func (d *database) spotRefused(pool string) time.Time {
	type answer struct {
		at time.Time
		ok bool
	}
	var all []answer
	for _, in := range d.intents {
		for _, a := range in.Attempts {
			if in.Pool != pool || a.Launch == nil || a.Launch.Offer.Market != fleet.Spot || in.answered[a.Ordinal].IsZero() {
				continue
			}
			switch {
			case a.Outcome == fleet.OutcomeDone:
				all = append(all, answer{in.answered[a.Ordinal], true})
			case a.Outcome == fleet.OutcomeRefused && (a.Code == "no_capacity" || a.Code == "quota"):
				all = append(all, answer{in.answered[a.Ordinal], false})
			}
		}
	}
	slices.SortFunc(all, func(a, b answer) int { return a.at.Compare(b.at) })
	var since time.Time
	for _, a := range all {
		switch {
		case a.ok:
			since = time.Time{}
		case since.IsZero():
			since = a.at
		}
	}
	return since
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
