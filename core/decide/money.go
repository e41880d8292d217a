package decide

import (
	"strings"
	"time"

	"sluice/core/fleet"
	"sluice/core/spend"
)

// judge opens the books and applies the daily rule. A breach is a level, not an edge: while the override stands,
// every tick drains every cloud worker, and it stands until a person lifts it.
func (d *decision) judge() {
	d.books, _ = spend.Open(d.remembered()) // the zone was checked when the config was parsed
	if d.books.Near(d.s.Config.Limits.Alert) {
		why := fleet.NearDailyLimit{Accrued: d.books.Today, Threshold: d.s.Config.Limits.Alert, Limit: d.books.Daily, At: d.books.DailyAt}
		d.alert(fleet.Warning, d.books.Day, why)
	}
	if d.s.Memory.Override == nil && d.books.Breached() {
		d.breach()
	}
}

// reconcile holds the books against the bills and applies the same daily rule. Machines are evaluate's alone.
func (d *decision) reconcile() fleet.Plan {
	d.plan.Bills = spend.Reconcile(d.s.Memory, d.s.Charges)
	d.s.Memory.Bills = append(d.s.Memory.Bills[:len(d.s.Memory.Bills):len(d.s.Memory.Bills)], d.plan.Bills...)
	d.orphan, d.pools = d.s.Memory.Sightings, nil
	d.judge()
	return d.close()
}

// remembered is the snapshot with memory brought in line with what was seen.
func (d *decision) remembered() fleet.Snapshot {
	s := d.s
	s.Memory.Workers, s.Memory.Intents = nil, nil
	for _, w := range d.workers {
		if !w.ended {
			s.Memory.Workers = append(s.Memory.Workers, w.Worker)
		}
	}
	for _, w := range d.plan.Adopted {
		if w.Status != fleet.Failed { // one that ended already is in the ledger
			s.Memory.Workers = append(s.Memory.Workers, w)
		}
	}
	for _, in := range d.intents {
		s.Memory.Intents = append(s.Memory.Intents, in.Intent)
	}
	s.Memory.Ended = append(s.Memory.Ended[:len(s.Memory.Ended):len(s.Memory.Ended)], d.plan.Spans...)
	s.Memory.Sightings = d.orphan
	return s
}

func (d *decision) breach() {
	why, cause := d.breached()
	id := fleet.ID(d.s.Memory.Deployment, "override", d.now.UTC().Format(time.RFC3339Nano))
	d.plan.Override = &fleet.Override{ID: id, At: d.now, Who: string(d.s.Function), Why: cause}
	d.note(fleet.Critical, "", "", why)
	d.alert(fleet.Critical, id, why)
}

// breached is the limit that is breached, the day's first, with a sentence that stays with the override.
func (d *decision) breached() (why fleet.Reason, cause string) {
	sentence := func(limit string, most, accrued, tail fleet.Money) string {
		return limit + " limit " + most.String() + ": accrued " + accrued.String() + ", to the end of a forced drain " + tail.String()
	}
	draining, jobs := d.working()
	b, p := d.books.Spend, d.books.Period
	if d.books.BreachedDay() {
		why := fleet.DailyLimit{Accrued: b.Today, Tail: b.Tail, Reserved: b.Reserved, Limit: b.Daily, Source: d.source(), Draining: draining, Jobs: jobs}
		return why, sentence("daily", b.Daily, b.Today, b.Tail)
	}
	over := fleet.PeriodLimit{Period: p.Name, Accrued: p.Spent, Tail: p.Tail, Reserved: b.Reserved, Limit: p.Limit, Draining: draining, Jobs: jobs}
	return over, p.Name + " " + sentence("period", p.Limit, p.Spent, p.Tail)
}

// source says whose books a breach of the day is by.
func (d *decision) source() string {
	for _, b := range d.s.Memory.Bills {
		if b.Excess > 0 && d.now.Sub(b.SeenAt) < 24*time.Hour {
			return "bill"
		}
	}
	return "accrual"
}

// working are the machines that a breach drains, and their jobs.
func (d *decision) working() (machines, jobs int) {
	for _, w := range d.workers {
		if w.Cloud() && !w.ended && w.Status != fleet.Suspended {
			machines++
			jobs += w.Jobs
		}
	}
	return machines, jobs
}

// override is the one in force, if any.
func (d *decision) override() *fleet.Override {
	switch {
	case d.plan.Override != nil:
		return d.plan.Override
	case d.plan.Lifted:
		return nil
	}
	return d.s.Memory.Override
}

// vpsOnly says that no pool may have a cloud worker.
func (d *decision) vpsOnly() bool { return d.override() != nil || d.s.Config.Mode == fleet.VPSOnly }

// off says that a pool may have no cloud worker; nil is a pool that nothing remembers.
func (d *decision) off(p *pool) bool { return d.vpsOnly() || p == nil || !p.known || !p.Enabled }

// requests takes up what people asked for.
func (d *decision) requests() {
	for _, r := range d.s.Memory.Requests {
		d.plan.Taken = append(d.plan.Taken, r.ID)
		switch r.Kind {
		case fleet.RequestResume:
			d.resumeCloud(r)
		case fleet.RequestDrain:
			d.drainRequested(r)
		case fleet.RequestAdopt: // see adoptRequested
		}
	}
}

// drainRequested drains a worker because a person asked. One that drains already does not come back, and a
// suspended one has nothing to drain.
func (d *decision) drainRequested(r fleet.Request) {
	w, why := d.byID[r.Target], fleet.DrainRequested{Who: r.Who, Why: r.Why}
	switch {
	case w == nil || !w.Cloud() || w.ended || w.ending != nil || w.resuming != nil:
	case w.Accepting():
		d.drain(w, why)
	case w.Status == fleet.Draining:
		w.DrainWhy, w.why, w.dirty = why.Code(), why.Code(), true
	case w.Status == fleet.Suspended:
		w.ending = d.order(fleet.KindTerminate, w, why.Code())
		d.note(fleet.Info, w.Pool, w.ID, why)
	}
}

func (d *decision) resumeCloud(r fleet.Request) {
	if d.s.Memory.Override == nil || d.plan.Override != nil {
		return
	}
	if refused := d.resumeRefused(); refused != nil {
		d.note(fleet.Warning, "", "", refused)
		return
	}
	d.plan.Lifted = true
	why := fleet.ResumedCloud{Who: r.Who, Why: r.Why}
	d.note(fleet.Warning, "", "", why)
	d.alert(fleet.Warning, r.ID, why)
}

// resumeRefused says why the override may not be lifted now: what is left of the day does not cover the
// cheapest pool for an hour. Nil: it may.
func (d *decision) resumeRefused() fleet.Reason {
	cheapest := fleet.Money(0)
	for _, p := range d.s.Config.Pools {
		for _, o := range p.Offers {
			if price, ok := d.prices[o.Key()]; ok && p.Enabled && (cheapest == 0 || price < cheapest) {
				cheapest = price
			}
		}
	}
	left, period := d.books.Left()
	if !d.books.Breached() && left >= cheapest {
		return nil
	}
	return fleet.ResumeRefused{Left: left, Cheapest: cheapest, Period: period}
}

// prices are the known prices per hour of all offers of a snapshot's config, extras included, by
// Offer.Key: a fresh quote first, else the config's own.
func prices(s fleet.Snapshot) map[string]fleet.Money {
	quoted := map[string]fleet.Money{}
	for _, q := range s.Quotes {
		quoted[q.Offer] = q.Price
	}
	out := map[string]fleet.Money{}
	for _, p := range s.Config.Pools {
		for _, o := range p.Offers {
			price, ok := quoted[o.Key()]
			ok = ok && price > 0 // nobody gives machines away: such a quote is a fault
			if !ok {
				price, ok = s.Config.Price(o)
			}
			if ok {
				out[o.Key()] = price + s.Config.Limits.Extras
			}
		}
	}
	return out
}

// foreign is the currency that an offer is quoted in, where the config has no rate for it.
func (d *decision) foreign(o fleet.Offer) string {
	for _, q := range d.s.Quotes {
		if q.Offer == o.Key() {
			return q.Currency
		}
	}
	return ""
}

// priceOf is what a machine found without a row costs per hour: the price of its type, else the
// dearest known of its provider, because too much is noticed and too little is not.
func (d *decision) priceOf(p fleet.Place, m fleet.Machine) fleet.Money {
	exact, dearest := fleet.Money(0), fleet.Money(0)
	for _, pl := range d.s.Config.Pools {
		for _, o := range pl.Offers {
			price := d.prices[o.Key()]
			if o.Provider == p.Provider {
				dearest = max(dearest, price)
				if o.Type == m.Type && o.Market == m.Market {
					exact = max(exact, price)
				}
			}
		}
	}
	switch {
	case exact > 0:
		return exact
	case dearest > 0:
		return dearest
	}
	return d.dearestEver(p.Provider)
}

// dearestEver is the dearest price of a provider that is remembered, however old: unknown is not free.
func (d *decision) dearestEver(provider string) fleet.Money {
	out := fleet.Money(0)
	for _, q := range d.s.Memory.Quotes {
		if strings.HasPrefix(q.Offer, provider+"/") && q.Price > 0 {
			out = max(out, q.Price+d.s.Config.Limits.Extras)
		}
	}
	for _, w := range d.workers {
		if w.Place.Provider == provider {
			out = max(out, w.Price)
		}
	}
	for _, s := range d.s.Memory.Ended {
		if s.Provider == provider {
			out = max(out, s.Price)
		}
	}
	return out
}
