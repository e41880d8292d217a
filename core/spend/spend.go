// Package spend is the money: what accrued, what is reserved, and what may still be started. It is pure.
package spend

import (
	"fmt"
	"slices"
	"time"

	"sluice/core/fleet"
)

// Worthwhile is how long a new machine must be affordable today, beside its end; starting one that
// would be drained at once helps nobody.
const Worthwhile = 15 * time.Minute

// Day returns the local day that holds now in an IANA zone, as its date and its bounds. A day has 23
// to 25 hours.
func Day(now time.Time, zone string) (name string, from, to time.Time, err error) {
	loc, err := time.LoadLocation(zone)
	if err != nil {
		return "", time.Time{}, time.Time{}, fmt.Errorf("load timezone %q: %w", zone, err)
	}
	y, m, d := now.In(loc).Date()
	from = time.Date(y, m, d, 0, 0, 0, 0, loc)
	return from.Format(time.DateOnly), from.UTC(), time.Date(y, m, d+1, 0, 0, 0, 0, loc).UTC(), nil
}

// Books are where the money stands. They grow as a plan adds to them, so that one pool cannot spend
// what another was just given.
type Books struct {
	fleet.Spend
	day    account
	period account // where the config has a limit for one
}

// Open adds up a snapshot's memory at its now.
func Open(s fleet.Snapshot) (Books, error) {
	now := s.Memory.Now
	day, from, to, err := Day(now, s.Config.Timezone)
	if err != nil {
		return Books{}, err
	}
	b := Books{day: newAccount(now, from, to, Tail(s.Config, s.Limit))}
	b.Day, b.Hourly, b.Daily = day, s.Config.Limits.Hourly, s.Config.Limits.Daily
	if s.Config.Limits.Period != "" {
		if err := b.openPeriod(s); err != nil {
			return Books{}, err
		}
	}
	for _, l := range Lines(s.Memory, now) {
		b.day.add(l, now)
		b.period.add(l, now)
	}
	b.day.spent += excess(s.Memory.Bills, from, to)
	b.period.spent += excess(s.Memory.Bills, b.period.from, b.period.to)
	b.Rate, b.Reserved = rates(s.Memory)
	b.tell()
	return b, nil
}

// tell writes down in Spend what the accounts say.
func (b *Books) tell() {
	rate := b.Rate + b.Reserved
	b.Today, b.Tail, b.DailyAt = b.day.spent, b.day.tail.cost(rate), b.day.reaches(b.Daily, rate)
	if b.limited() {
		b.Period.Spent, b.Period.Tail, b.Period.At = b.period.spent, b.period.tail.cost(rate), b.period.reaches(b.Period.Limit, rate)
	}
}

// Tail is how long a machine may go on costing after a breach was noticed at the latest possible
// moment: one tick until it is noticed, the drain, one tick until the force, one call, and one tick and
// a minute until the end is confirmed.
func Tail(c fleet.Config, limit fleet.Seconds) time.Duration {
	drain := fleet.DefaultDrainTimeout.Duration()
	for _, p := range c.Pools {
		drain = max(drain, p.DrainTimeout.Duration())
	}
	return drain + 3*c.Interval.Duration() + limit.Duration() + time.Minute
}

// Lines are all costs that memory knows of until now: the ledger, live workers, orphans, and machines
// asked for that may exist. Those that go on end now.
func Lines(m fleet.Memory, now time.Time) []fleet.Span {
	out := make([]fleet.Span, 0, len(m.Ended)+len(m.Workers)+len(m.Intents))
	out = append(out, m.Ended...)
	waking := resumes(m)
	for _, w := range m.Workers {
		if in, ok := waking[w.ID]; ok && w.Status == fleet.Suspended {
			out = append(out, wakes(w, in, now)...)
		} else if w.Cloud() {
			out = append(out, Since(w, now))
		}
	}
	for _, o := range m.Sightings {
		out = append(out, Orphan(o, now))
	}
	for _, in := range m.Intents {
		for range in.Unbound() {
			out = append(out, fleet.Span{
				Pool: in.Pool, Price: in.Reserve, From: in.Created, To: now, MinCharge: in.MinFor, Increment: in.Increment,
			})
		}
	}
	return out
}

// resumes are the calls to wake a machine that may have been heard, by worker.
func resumes(m fleet.Memory) map[string]fleet.Intent {
	var out map[string]fleet.Intent
	for _, in := range m.Intents {
		if in.Kind == fleet.KindResume && in.State == fleet.IntentOpen {
			if out == nil {
				out = map[string]fleet.Intent{}
			}
			out[in.Worker] = in
		}
	}
	return out
}

// wakes are the costs of a suspended machine that was asked to wake: it may run since the call, and may not yet.
func wakes(w fleet.Worker, in fleet.Intent, now time.Time) []fleet.Span {
	slept, runs := Since(w, now), Since(w, now)
	runs.From, runs.Price, runs.MinCharge, runs.Increment = in.Created, w.Price, in.MinFor, in.Increment
	return []fleet.Span{slept, runs}
}

// Since is the ledger line that a worker would leave if its present stretch ended now.
func Since(w fleet.Worker, now time.Time) fleet.Span {
	return fleet.Span{
		Worker: w.ID, Scope: w.Place.Scope, Machine: w.Machine, Pool: w.Pool, Provider: w.Place.Provider,
		Price: Rate(w), From: w.CostFrom, To: now, MinCharge: w.MinCharge, Increment: w.Increment,
	}
}

// Orphan is the ledger line of a machine that no row knows.
func Orphan(o fleet.Sighting, now time.Time) fleet.Span {
	return fleet.Span{
		Scope: o.Place.Scope, Machine: o.Machine.ID, Pool: o.Machine.Tags.Pool, Provider: o.Place.Provider,
		Price: o.Price, From: o.First, To: now, Increment: o.Increment,
	}
}

// Rate is what a worker costs per hour in its present state.
func Rate(w fleet.Worker) fleet.Money {
	switch {
	case !w.Cloud():
		return 0
	case w.Status == fleet.Suspended:
		return w.Idle
	}
	return w.Price
}

func rates(m fleet.Memory) (rate, reserved fleet.Money) {
	price := make(map[string]fleet.Money, len(m.Workers))
	for _, w := range m.Workers {
		rate += Rate(w)
		price[w.ID] = w.Price - Rate(w)
	}
	for _, o := range m.Sightings {
		rate += o.Price
	}
	for _, in := range m.Intents {
		reserved += in.Reserve * fleet.Money(in.Unbound())
		if in.Kind == fleet.KindResume && in.State == fleet.IntentOpen {
			reserved += price[in.Worker]
		}
	}
	return rate, reserved
}

// excess is what bills added, on the days on which it was learnt, to what own books say.
func excess(bills []fleet.Bill, from, to time.Time) (sum fleet.Money) {
	for _, b := range bills {
		if !b.SeenAt.Before(from) && b.SeenAt.Before(to) {
			sum += b.Excess
		}
	}
	return sum
}

// Breached says that the day or the period would end above its limit if draining began any later than now.
func (b *Books) Breached() bool { return b.BreachedDay() || b.breachedPeriod() }

// BreachedDay says that it is the day.
func (b *Books) BreachedDay() bool { return b.Today+b.Tail > b.Daily }

// Near says that the alert threshold is reached; a threshold of zero is none.
func (b *Books) Near(threshold fleet.Money) bool { return threshold > 0 && b.Today >= threshold }

// Afford is how many machines of a price per hour may be started, at most n, and the limit that
// stops the next one, nil where all n may.
func (b *Books) Afford(n int, price fleet.Money, t fleet.Terms) (int, fleet.Reason) {
	for k := range n {
		if why := b.stops(k+1, price, t); why != nil {
			return k, why
		}
	}
	return n, nil
}

// stops is the limit that n machines more would pass.
func (b *Books) stops(n int, price fleet.Money, t fleet.Terms) fleet.Reason {
	add := price * fleet.Money(n)
	if over := b.Rate + b.Reserved + add - b.Hourly; over > 0 {
		return fleet.LimitHourly{Running: b.Rate, Reserved: b.Reserved, Next: price, Limit: b.Hourly, Over: over}
	}
	tail, next := b.day.project(b.Rate+b.Reserved, price, t)
	if over := b.Today + tail + next*fleet.Money(n) - b.Daily; over > 0 {
		return fleet.LimitDaily{Accrued: b.Today, Tail: tail, Next: next, Limit: b.Daily, Over: over}
	}
	if b.limited() {
		return b.stopsPeriod(n, price, t)
	}
	return nil
}

// Reserve books machines that are about to be asked for.
func (b *Books) Reserve(n int, price fleet.Money, t fleet.Terms) {
	b.Reserved += price * fleet.Money(n)
	b.day.reserve(n, price, t)
	b.period.reserve(n, price, t)
	b.tell()
}

// Left is what may still be spent today if everything were drained now; never negative. Where it is the period that
// leaves no more, its name is there as well.
func (b *Books) Left() (left fleet.Money, period string) {
	left = max(0, b.Daily-b.Today-b.Tail)
	if p := b.Period; b.limited() && (p.Unknown || p.Limit-p.Spent-p.Tail < left) {
		return b.leftOfPeriod(), p.Name
	}
	return left, ""
}

// Reconcile turns the charges that a provider tells into bills to keep: each that differs from the
// last one seen, with the excess over own accrual of that UTC day and over what earlier bills added.
func Reconcile(m fleet.Memory, charges []fleet.Bill) []fleet.Bill {
	var out []fleet.Bill
	m.Bills = slices.Clone(m.Bills)
	for _, c := range charges {
		if b, news := reconcile(m, c); news {
			out, m.Bills = append(out, b), append(m.Bills, b)
		}
	}
	return out
}

func reconcile(m fleet.Memory, c fleet.Bill) (fleet.Bill, bool) {
	booked, last, seen := fleet.Money(0), fleet.Money(0), false
	var at time.Time
	for _, b := range m.Bills {
		if b.Provider == c.Provider && b.Day == c.Day {
			booked += b.Excess
			if seen = true; !b.SeenAt.Before(at) {
				last, at = b.Amount, b.SeenAt
			}
		}
	}
	if seen && last == c.Amount {
		return fleet.Bill{}, false
	}
	c.SeenAt = m.Now
	if from, err := time.Parse(time.DateOnly, c.Day); err == nil && m.Now.Sub(from) <= ledgerReach {
		c.Excess = max(0, c.Amount-own(m, c.Provider, from)-booked)
	}
	return c, true
}

// ledgerReach is how far back memory's ledger reaches completely; older days cannot be compared.
const ledgerReach = 50 * time.Hour

// own is what the books say that a provider's UTC day cost.
func own(m fleet.Memory, provider string, from time.Time) (sum fleet.Money) {
	for _, l := range Lines(m, m.Now) {
		if l.Provider == provider {
			sum += l.Between(from, from.AddDate(0, 0, 1))
		}
	}
	return sum
}

// OrphanCost is what an orphan cost so far, for people.
func OrphanCost(o fleet.Sighting, now time.Time) fleet.Money { return o.Price.For(now.Sub(o.First)) }
