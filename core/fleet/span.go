package fleet

import "time"

// Terms are how a provider counts the time of a machine.
type Terms struct {
	MinCharge Seconds // billed even for a shorter life
	Increment Seconds // time is billed in whole ones of these, a begun one included; zero: as it passes
}

// Charged is the time that is billed where a machine ran for d.
func (t Terms) Charged(d time.Duration) time.Duration {
	return max(t.rounded(d), t.MinCharge.Duration())
}

func (t Terms) rounded(d time.Duration) time.Duration {
	if step := t.Increment.Duration(); step > 0 && d%step > 0 {
		return d + step - d%step
	}
	return d
}

// More is the time that is billed beyond what is billed already where a machine that has run for d goes on for h, as far
// as it lies within a whole. What is not used up yet of a minimum charge is not taken off: that errs towards too much.
func (t Terms) More(d, h, whole time.Duration) time.Duration {
	return min(t.rounded(d+h), whole) - min(t.rounded(d), whole)
}

// Terms of the provider.
func (t Traits) Terms() Terms { return Terms{MinCharge: t.MinCharge, Increment: t.Increment} }

// Span is a price over a time: as a line of the ledger, over one that has ended. A worker has one for each stretch of
// running or being suspended that ended; what it costs since Worker.CostFrom is not in it yet.
type Span struct {
	Worker  string `json:"worker"` // empty for an orphan
	Scope   string `json:"scope,omitempty"`
	Machine string `json:"machine"`
	// Last says that the machine ended; a machine listed later is back.
	Last      bool      `json:"last,omitempty"`
	Pool      string    `json:"pool"`
	Provider  string    `json:"provider"`
	Price     Money     `json:"price"` // per hour
	From      time.Time `json:"from,omitzero"`
	To        time.Time `json:"to,omitzero"`
	MinCharge Seconds   `json:"min_charge_seconds"`
	Increment Seconds   `json:"increment_seconds,omitempty"`
}

// Terms on which the time of the span is counted.
func (s Span) Terms() Terms { return Terms{MinCharge: s.MinCharge, Increment: s.Increment} }

// Cost is what the whole span costs.
func (s Span) Cost() Money { return s.Price.For(s.Terms().Charged(s.To.Sub(s.From))) }

// Between is the part of the cost that falls into [from, to). What is charged beyond the end counts as time, and a part
// is the difference of two amounts since the span began, so the parts of a span add up whatever the days, to the last
// millionth.
func (s Span) Between(from, to time.Time) Money {
	if s.From.IsZero() { // it is not known since when: all the time that is asked for
		s.From = from
	}
	end := s.From.Add(s.Terms().Charged(s.To.Sub(s.From)))
	start := s.From
	if start.Before(from) {
		start = from
	}
	if end.After(to) {
		end = to
	}
	if !end.After(start) {
		return 0
	}
	return s.Price.For(end.Sub(s.From)) - s.Price.For(start.Sub(s.From))
}
