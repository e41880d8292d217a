package decide

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"sluice/core/fleet"
	"sluice/core/spend"
)

// grow walks the ladder, cheapest and fastest first: take back a worker that drains, resume a
// suspended machine, launch an offer. (An open slot on a running worker needs no decision: its agent fills it.)
func (d *decision) grow(f *fold) {
	need := f.want - f.have()
	if need <= 0 {
		return
	}
	for _, w := range first(d.undrainable(f), need) {
		d.undrain(w)
		f.plan.Undrain = append(f.plan.Undrain, w.ID)
		need--
	}
	need -= d.resume(f, need)
	if need > 0 {
		d.launch(f, need)
	}
}

func first[T any](s []T, n int) []T { return s[:min(n, len(s))] }

// undrainable are draining workers that may claim again, the youngest drain first. Once a terminate
// or suspend intent exists there is no way back.
func (d *decision) undrainable(f *fold) []*worker {
	var out []*worker
	for _, w := range f.draining {
		if w.was == fleet.Draining && w.ending == nil && d.heard(w) && reversible(w.DrainWhy) && !d.stale(w, f.pool) && f.known {
			out = append(out, w)
		}
	}
	slices.SortFunc(out, func(a, b *worker) int {
		return cmp.Or(b.DrainAt.Compare(a.DrainAt), cmp.Compare(a.ID, b.ID))
	})
	return out
}

// reversible says that a drain was for want of work or of permission, not for a fault of the worker.
func reversible(why string) bool {
	switch why {
	case fleet.DrainIdle{}.Code(), fleet.DrainDry{}.Code(), fleet.DrainSurplus{}.Code(), fleet.DrainMode{}.Code(),
		fleet.DrainNotEnabled{}.Code(), fleet.Back{}.Code():
		return true
	}
	return false
}

// resumable are suspended machines of the right spec in places that can be seen.
func (d *decision) resumable(f *fold) []*worker {
	if !f.known || !f.Enabled {
		return nil
	}
	var out []*worker
	for _, w := range f.suspended {
		l, ok := d.lists[w.Place]
		listed := ok && l.Complete() && w.listed != nil && w.listed.State == fleet.MachineSuspended
		expiring := d.expiresWithin(w, f.DrainTimeout.Duration())
		if w.ending == nil && listed && !expiring && !d.stale(w, f.pool) && !d.coolingOff(ResumeKey(w.ID)) {
			out = append(out, w)
		}
	}
	return out
}

// ResumeKey is what a refused resume cools off under.
func ResumeKey(worker string) string { return "resume/" + worker }

func (d *decision) coolingOff(key string) bool { return d.now.Before(d.coolOffs[key].Until) }

// resume wakes up to n suspended machines as far as the limits allow.
func (d *decision) resume(f *fold, n int) int {
	done := 0
	for _, w := range first(d.resumable(f), n) {
		t, more := d.s.Traits[w.Place.Provider].Terms(), max(0, w.Price-w.Idle)
		if k, why := d.books.Afford(1, more, t); k == 0 {
			f.step(f.want-(n-done), d.heldBy(why))
			return n // nothing else is cheaper
		}
		d.books.Reserve(1, more, t)
		w.resuming = d.order(fleet.KindResume, w, "")
		w.resuming.MinFor, w.resuming.Increment = t.MinCharge, t.Increment
		f.plan.Resume = append(f.plan.Resume, w.ID)
		done++
	}
	return done
}

// candidate is an offer that may be tried.
type candidate struct {
	fleet.Offer
	price fleet.Money // per hour, extras included
}

// launch asks for n machines, as far as offers, providers and money allow: one intent for each call.
func (d *decision) launch(f *fold, n int) {
	offers := d.offers(f)
	if len(offers) == 0 {
		f.step(f.want-n, fleet.LimitOffers{Offers: len(f.Offers)})
		return
	}
	for left := n; left > 0; {
		open, why := d.affordable(f, offers)
		if len(open) == 0 {
			f.step(f.want-left, d.heldBy(why))
			return
		}
		left -= d.ask(f, min(left, d.batch(open)), left, open)
	}
}

// affordable are the offers of which at least one machine more may be asked for; where there is none, the
// limit that stops the first.
func (d *decision) affordable(f *fold, offers []candidate) (open []candidate, why fleet.Reason) {
	var dear []candidate
	for _, o := range offers {
		k, over := d.books.Afford(1, o.price, d.s.Traits[o.Provider].Terms())
		switch {
		case d.room(o.Provider) <= 0:
			why = cmp.Or(why, d.full(o.Provider))
		case k == 0:
			dear, why = append(dear, o), cmp.Or(why, over)
		default:
			open = append(open, o)
		}
	}
	if len(open) > 0 {
		for _, o := range dear {
			f.reject(o.Key(), fleet.OfferOverBudget{Price: o.price})
		}
	}
	return open, why
}

// batch is the most machines that one call can ask any of the offers for.
func (d *decision) batch(offers []candidate) int {
	n := max(1, d.s.Traits[offers[0].Provider].MaxBatch)
	for _, o := range offers {
		n = min(n, max(1, d.s.Traits[o.Provider].MaxBatch))
	}
	return n
}

func (d *decision) full(provider string) fleet.Reason {
	prov, _ := d.s.Config.Provider(provider)
	return fleet.LimitProvider{Provider: provider, Max: prov.MaxInstances, Running: d.machines[provider]}
}

// ask writes one launch intent for at most n of the machines that are left to ask for, and says for how many. It
// reserves for the dearest offer that may be tried.
func (d *decision) ask(f *fold, n, left int, offers []candidate) int {
	best := offers[0]
	charge := d.s.Traits[best.Provider].Terms()
	n = min(n, d.room(best.Provider))
	n, _ = d.books.Afford(n, best.price, charge)
	others, _ := d.books.Afford(left, best.price, charge)
	rest := d.books // what is left once the other machines are reserved for as well
	rest.Reserve(max(0, others-n), best.price, charge)
	in := &intent{fresh: true, Intent: fleet.Intent{
		ID: d.id(f.Name, strconv.Itoa(f.ordinal)), Kind: fleet.KindLaunch, State: fleet.IntentOpen, Pool: f.Name, Count: n, Created: d.now,
		Idempotent: true,
	}}
	f.ordinal++
	d.shortlist(f, in, rest, offers)
	for _, p := range providersOf(in.Offers) {
		d.machines[p] += n
	}
	d.books.Reserve(n, in.Reserve, in.Terms())
	in.Attempts = []fleet.Attempt{Attempt(d.s.Config, d.s.Memory.Deployment, in.Intent, 1)}
	d.take(in, false)
	d.intents = append(d.intents, in)
	if f.plan.Launch == 0 {
		f.plan.Offer, f.plan.Price = &in.Offers[0], best.price
	}
	f.plan.Launch += n
	return n
}

// shortlist gives a launch the offers that it may try: the first, and each other one that has room and takes no money
// from the machines beside it.
func (d *decision) shortlist(f *fold, in *intent, rest spend.Books, offers []candidate) {
	for _, o := range offers {
		t := d.s.Traits[o.Provider]
		switch k, _ := rest.Afford(in.Count, o.price, t.Terms()); {
		case in.Count > d.room(o.Provider):
			f.reject(o.Key(), d.offerFull(o.Provider))
			continue
		case k < in.Count && len(in.Offers) > 0:
			f.reject(o.Key(), fleet.OfferOverBudget{Price: o.price})
			continue
		}
		in.Offers, in.Prices = append(in.Offers, o.Offer), append(in.Prices, o.price)
		in.Reserve, in.MinFor = max(in.Reserve, o.price), max(in.MinFor, t.MinCharge)
		in.Increment = common(in.Increment, t.Increment)
		in.Idempotent = in.Idempotent && t.Idempotent
	}
}

// common is an increment that charges for no less time than either does: their least common multiple. Zero is none.
func common(a, b fleet.Seconds) fleet.Seconds {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	x, y := a, b
	for y != 0 {
		x, y = y, x%y
	}
	return a / x * b
}

// reject notes once why an offer, by its key, is not among those that a launch may try.
func (f *fold) reject(offer string, why fleet.Reason) {
	if !slices.ContainsFunc(f.plan.Rejected, func(r fleet.Rejected) bool { return r.Offer == offer }) {
		f.plan.Rejected = append(f.plan.Rejected, fleet.Rejected{Offer: offer, Why: why})
	}
}

func (d *decision) offerFull(provider string) fleet.Reason {
	prov, _ := d.s.Config.Provider(provider)
	return fleet.OfferFull{Max: prov.MaxInstances, Running: d.machines[provider]}
}

func (d *decision) room(provider string) int {
	prov, _ := d.s.Config.Provider(provider)
	return prov.MaxInstances - d.machines[provider]
}

// offers are the pool's offers that may be tried, best first; the others leave their reason.
func (d *decision) offers(f *fold) []candidate {
	var out []candidate
	for _, o := range f.Offers {
		price, ok := d.prices[o.Key()]
		if why := d.barred(f, o, price, ok); why != nil {
			f.reject(o.Key(), why)
			continue
		}
		out = append(out, candidate{o, price})
	}
	if f.Cheapest {
		slices.SortStableFunc(out, func(a, b candidate) int { return cmp.Compare(a.price, b.price) })
	}
	for _, c := range out[min(1, len(out)):] {
		if c.price > out[0].price {
			f.reject(c.Key(), fleet.OfferDearer{Price: c.price, Best: out[0].price})
		}
	}
	return out
}

// barred says why an offer may not be tried at all; nil: it may.
func (d *decision) barred(f *fold, o fleet.Offer, price fleet.Money, known bool) fleet.Reason {
	_, enabled := d.s.Config.Provider(o.Provider)
	l, listed := d.lists[o.Place]
	switch cool := d.coolOffs[o.Key()]; {
	case !enabled || !known:
		return fleet.OfferNoPrice{Currency: d.foreign(o)}
	case o.MaxPrice > 0 && price-d.s.Config.Limits.Extras > o.MaxPrice:
		return fleet.OfferAboveCap{Price: price - d.s.Config.Limits.Extras, Cap: o.MaxPrice}
	case !listed || !l.Complete():
		return fleet.OfferPlaceUnknown{Cause: cmp.Or(l.Unknown, "not listed")}
	case d.now.Before(cool.Until):
		return fleet.OfferCoolingOff{Until: cool.Until, Refused: cool.Code}
	case d.room(o.Provider) <= 0:
		return d.offerFull(o.Provider)
	}
	return d.waitsForSpot(f, o)
}

// waitsForSpot holds on-demand back, in a pool that prefers spot, until spot was refused for long enough.
func (d *decision) waitsForSpot(f *fold, o fleet.Offer) fleet.Reason {
	prefersSpot := slices.ContainsFunc(f.Offers, func(o fleet.Offer) bool { return o.Market == fleet.Spot })
	if o.Market == fleet.Spot || !prefersSpot {
		return nil
	}
	if f.FallbackAfter == nil {
		return fleet.OfferWaitsForSpot{Never: true}
	}
	wait := f.FallbackAfter.Duration()
	if wait == 0 {
		return nil
	}
	since := f.memory.SpotRefusedSince
	if since.IsZero() {
		return fleet.OfferWaitsForSpot{LeftS: *f.FallbackAfter}
	}
	if left := ceilSeconds(since.Add(wait).Sub(d.now)); left > 0 {
		return fleet.OfferWaitsForSpot{LeftS: left}
	}
	return nil
}

// NextCoolOff is how long an offer is left alone after another refusal: doubling from one minute to
// an hour, spread by up to a fifth, by the key, so that installations do not come back together.
func NextCoolOff(old fleet.CoolOff, key, code string, now time.Time) fleet.CoolOff {
	n := old.Count
	if now.Sub(old.Until) > time.Hour {
		n = 0
	}
	wait := backoff(time.Minute, time.Hour, n)
	r, _ := strconv.ParseUint(fleet.ID(key, now.UTC().Format(time.RFC3339))[:2], 16, 8)
	spread := time.Duration(r) * wait / (5 * 256)
	return fleet.CoolOff{Offer: key, Until: now.Add(wait + spread), Count: n + 1, Code: code}
}
