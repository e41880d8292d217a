package spend

import (
	"time"

	"sluice/core/fleet"
)

// account is what a stretch of time that has a limit costs: a day, a week or a month.
type account struct {
	from, to time.Time
	left     time.Duration // of it
	spent    fleet.Money
	tail     outlook // until everything has ended, if it were drained now
	worth    outlook // until a launch was worth it as well
}

// newAccount opens the account of a stretch that holds now.
func newAccount(now, from, to time.Time, tail time.Duration) account {
	left := to.Sub(now)
	return account{from: from, to: to, left: left, tail: outlook{ahead: min(tail, left)}, worth: outlook{ahead: min(tail+Worthwhile, left)}}
}

// add books a line, and what it would go on to cost if it has not ended.
func (a *account) add(l fleet.Span, now time.Time) {
	if a.to.IsZero() {
		return
	}
	a.spent += l.Between(a.from, a.to)
	if l.Increment == 0 || !l.To.Equal(now) {
		return
	}
	if l.From.IsZero() {
		l.From = a.from
	}
	ran := now.Sub(l.From)
	a.tail.add(l, ran, ran+a.left)
	a.worth.add(l, ran, ran+a.left)
}

// project is what all that runs or is reserved at a rate would still cost until one machine more was worth it, and what
// that one would cost.
func (a *account) project(rate, price fleet.Money, t fleet.Terms) (tail, next fleet.Money) {
	return a.worth.cost(rate), price.For(t.Charged(a.worth.ahead))
}

// reserve books n machines that are about to be asked for.
func (a *account) reserve(n int, price fleet.Money, t fleet.Terms) {
	a.spent += price.For(t.MinCharge.Duration()) * fleet.Money(n)
	l := fleet.Span{Price: price * fleet.Money(n), Increment: t.Increment}
	for _, o := range []*outlook{&a.tail, &a.worth} {
		o.add(l, 0, a.left)
	}
}

// outlook is what goes on to cost over a time.
type outlook struct {
	ahead time.Duration
	// Machines whose begun increment makes it more or less than the time itself: their rate, and what they cost.
	odd, oddCost fleet.Money
}

// add looks ahead for a machine that has run for a time, in an account that ends when it has run for another.
func (o *outlook) add(l fleet.Span, ran, whole time.Duration) {
	more := l.Terms().More(ran, o.ahead, whole)
	if more == o.ahead {
		return
	}
	o.odd += l.Price
	o.oddCost += l.Price.For(more)
}

// cost is what all that runs at a rate goes on to cost.
func (o *outlook) cost(rate fleet.Money) fleet.Money { return (rate - o.odd).For(o.ahead) + o.oddCost }
