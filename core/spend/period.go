package spend

import (
	"fmt"
	"math/bits"
	"time"

	"sluice/core/fleet"
)

// Period returns the local week or month that holds now, as its name and its bounds: midnights in an IANA zone, so that
// a month has the days and the hours that the calendar gives it.
func Period(now time.Time, zone string, p fleet.Period) (name string, from, to time.Time, err error) {
	loc, err := time.LoadLocation(zone)
	if err != nil {
		return "", time.Time{}, time.Time{}, fmt.Errorf("load timezone %q: %w", zone, err)
	}
	local := now.In(loc)
	y, m, d := local.Date()
	if p == fleet.Month {
		from = time.Date(y, m, 1, 0, 0, 0, 0, loc)
		return from.Format("2006-01"), from.UTC(), time.Date(y, m+1, 1, 0, 0, 0, 0, loc).UTC(), nil
	}
	monday := d - (int(local.Weekday())+6)%7
	from = time.Date(y, m, monday, 0, 0, 0, 0, loc)
	year, week := local.ISOWeek()
	return fmt.Sprintf("%d-W%02d", year, week), from.UTC(), time.Date(y, m, monday+7, 0, 0, 0, 0, loc).UTC(), nil
}

// openPeriod opens the account of the week or month. What ended before memory's ledger reaches is unknown where the last
// tick stood in another period, or in none; then nothing more may be spent until the next tick, which knows it.
func (b *Books) openPeriod(s fleet.Snapshot) error {
	now, l := s.Memory.Now, s.Config.Limits
	name, from, to, err := Period(now, s.Config.Timezone, l.Period)
	if err != nil {
		return err
	}
	b.period = newAccount(now, from, to, Tail(s.Config, s.Limit))
	b.Period = fleet.PeriodSpend{Name: name, From: from, To: to, Limit: l.PerPeriod}
	switch e := s.Memory.Earlier; {
	case e != nil && (e.From.IsZero() || e.From.Equal(from)):
		b.period.spent = e.Spent
	default:
		b.Period.Unknown = now.Sub(from) > ledgerReach
	}
	return nil
}

func (b *Books) limited() bool { return b.Period.Name != "" }

// stopsPeriod is the period's limit, where n machines more would pass it.
func (b *Books) stopsPeriod(n int, price fleet.Money, t fleet.Terms) fleet.Reason {
	p := b.Period
	tail, next := b.period.project(b.Rate+b.Reserved, price, t)
	over := p.Spent + tail + next*fleet.Money(n) - p.Limit
	if over <= 0 && !p.Unknown {
		return nil
	}
	return fleet.LimitPeriod{Period: p.Name, Accrued: p.Spent, Tail: tail, Next: next, Limit: p.Limit, Over: max(0, over), Unknown: p.Unknown}
}

func (b *Books) breachedPeriod() bool {
	return b.limited() && b.Period.Spent+b.Period.Tail > b.Period.Limit
}

func (b *Books) leftOfPeriod() fleet.Money {
	if b.Period.Unknown {
		return 0
	}
	return max(0, b.Period.Limit-b.Period.Spent-b.Period.Tail)
}

// reaches is when a limit is reached if all that runs or is reserved goes on at a rate, to the second; zero where it is not
// reached before the account ends.
func (a *account) reaches(limit, rate fleet.Money) time.Time {
	now := a.to.Add(-a.left)
	switch {
	case rate <= 0:
		return time.Time{}
	case a.spent >= limit:
		return now
	}
	hi, lo := bits.Mul64(uint64(limit-a.spent), uint64(time.Hour)) //nolint:gosec // above zero here
	if hi >= uint64(rate) {
		return time.Time{}
	}
	in, _ := bits.Div64(hi, lo, uint64(rate))
	if in >= uint64(a.left) { //nolint:gosec // now is before the end
		return time.Time{}
	}
	at := now.Add(time.Duration(in)) //nolint:gosec // less than left
	if up := at.Truncate(time.Second); up.Before(at) {
		at = up.Add(time.Second)
	}
	return at
}
