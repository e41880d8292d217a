package spend_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"sluice/core/fleet"
	"sluice/core/spend"
)

func date(y int, m time.Month, d, h int) time.Time { return time.Date(y, m, d, h, 0, 0, 0, time.UTC) }

func TestPeriods(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		zone   string
		period fleet.Period
		at     time.Time
		hours  int
	}{
		{"2027-01", "UTC", fleet.Month, date(2027, 1, 31, 23), 31 * 24},
		{"2027-02", "UTC", fleet.Month, date(2027, 2, 1, 0), 28 * 24},
		{"2028-02", "UTC", fleet.Month, date(2028, 2, 29, 23), 29 * 24}, // a leap day
		{"2028-03", "UTC", fleet.Month, date(2028, 3, 1, 0), 31 * 24},
		{"2027-03", "Europe/Paris", fleet.Month, date(2027, 3, 28, 12), 31*24 - 1}, // clocks go forward
		{"2027-10", "Europe/Paris", fleet.Month, date(2027, 10, 1, 0), 31*24 + 1},  // and back
		{"2027-11", "Europe/Paris", fleet.Month, date(2027, 10, 31, 23), 30 * 24},  // midnight there is earlier
		{"2026-12", "America/New_York", fleet.Month, date(2027, 1, 1, 4), 31 * 24},
		{"2027-W02", "UTC", fleet.Week, date(2027, 1, 14, 12), 7 * 24},
		{"2027-W02", "UTC", fleet.Week, date(2027, 1, 17, 23), 7 * 24}, // Sunday ends it
		{"2027-W03", "UTC", fleet.Week, date(2027, 1, 18, 0), 7 * 24},
		{"2026-W53", "UTC", fleet.Week, date(2027, 1, 1, 0), 7 * 24}, // weeks know no year
		{"2027-W12", "Europe/Paris", fleet.Week, date(2027, 3, 28, 12), 7*24 - 1},
		{"2027-W43", "Europe/Paris", fleet.Week, date(2027, 10, 31, 12), 7*24 + 1},
	} {
		t.Run(c.name+" in "+c.zone, func(t *testing.T) {
			t.Parallel()
			name, from, to, err := spend.Period(c.at, c.zone, c.period)
			if err != nil || name != c.name || to.Sub(from) != time.Duration(c.hours)*time.Hour || c.at.Before(from) || !c.at.Before(to) {
				t.Errorf("%s from %s to %s (%s), %v", name, from, to, to.Sub(from), err)
			}
			if next, _, _, _ := spend.Period(to, c.zone, c.period); next == name {
				t.Errorf("its end belongs to it")
			}
		})
	}
	if _, _, _, err := spend.Period(noon, "nowhere", fleet.Month); err == nil {
		t.Error("an unknown zone is no error")
	}
}

// Whatever runs, the days of a period add up to the period, to the last millionth.
func TestDaysOfAPeriodAddUpToIt(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 4))
		zone := []string{"UTC", "Europe/Paris", "America/New_York"}[r.IntN(3)]
		period := []fleet.Period{fleet.Week, fleet.Month}[r.IntN(2)]
		_, from, to, _ := spend.Period(date(2028, time.Month(1+r.IntN(12)), 1+r.IntN(28), r.IntN(24)), zone, period)
		begun := from.Add(time.Duration(r.Int64N(int64(40*24*time.Hour))) - 5*24*time.Hour)
		l := fleet.Span{
			Price: fleet.Money(r.Int64N(3_000_000)), From: begun, To: begun.Add(time.Duration(r.Int64N(int64(100 * time.Hour)))),
			MinCharge: fleet.Seconds(r.IntN(2) * 60), Increment: []fleet.Seconds{0, 1, 60, 3600}[r.IntN(4)],
		}
		sum := fleet.Money(0)
		for at := from; at.Before(to); {
			_, day, end, _ := spend.Day(at, zone)
			sum, at = sum+l.Between(day, end), end
		}
		if want := l.Between(from, to); sum != want {
			t.Fatalf("seed %d: the days add up to %d, the period is %d", seed, sum, want)
		}
	}
}

// monthly limits a month; the fourteenth of January is in it.
func monthly(most fleet.Money, earlier *fleet.Earlier) func(*fleet.Snapshot) {
	return func(s *fleet.Snapshot) {
		s.Config.Limits.Period, s.Config.Limits.PerPeriod, s.Memory.Earlier = fleet.Month, most, earlier
	}
}

func TestThePeriodsLimitActsAsTheDays(t *testing.T) {
	t.Parallel()
	first := date(2027, 1, 1, 0)
	known := &fleet.Earlier{From: first, Spent: 50 * hour}
	runs := worker(func(w *fleet.Worker) { w.CostFrom = ago(20 * time.Hour) }) // 8 hours of them yesterday
	open := func(most fleet.Money, e *fleet.Earlier) *spend.Books {
		b := open(t, snapshot(runs, monthly(most, e)))
		return &b
	}
	b := open(200*hour, known)
	if p := b.Period; p.Name != "2027-01" || p.Spent != 70*hour || p.Tail != hour/6 || p.Limit != 200*hour || !p.From.Equal(first) || b.Today != 12*hour {
		t.Errorf("the period stands at %+v, the day at %s", p, b.Today)
	}
	edge := 70*hour + hour/6
	if open(edge, known).Breached() || !open(edge-1, known).Breached() || open(edge-1, known).BreachedDay() {
		t.Error("exactly at its limit it is no breach, one millionth above is, and not of the day")
	}
	if left, period := open(edge+5, known).Left(); left != 5 || period != "2027-01" {
		t.Errorf("%s is left of %q", left, period)
	}
	if left, period := open(500*hour, known).Left(); left != 88*hour-hour/6 || period != "" {
		t.Errorf("%s is left of %q, want what the day leaves", left, period)
	}
	room := 70*hour + 2*hour.For(25*time.Minute)
	for most, want := range map[fleet.Money]int{room: 1, room - 1: 0} {
		n, why := open(most, known).Afford(1, hour, fleet.Terms{})
		if n != want || n == 0 && why.Code() != "limit.period" {
			t.Errorf("%d machines more at %s, want %d: %+v", n, most, want, why)
		}
	}
	more := open(room, known)
	more.Reserve(1, hour, fleet.Terms{})
	if n, _ := more.Afford(1, hour, fleet.Terms{}); n != 0 {
		t.Error("what is reserved is there for another")
	}
}

func TestWhatAPeriodCostBeforeTheLedgersReachIsUnknownUntilItIsRead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		now     time.Time
		earlier *fleet.Earlier
		unknown bool
	}{
		{"nobody has read it", noon, nil, true},
		{"it was read for another period", noon, &fleet.Earlier{From: date(2026, 12, 1, 0), Spent: hour}, true},
		{"it was read", noon, &fleet.Earlier{From: date(2027, 1, 1, 0), Spent: hour}, false},
		{"there is nothing", noon, &fleet.Earlier{}, false},
		{"the period is so young that all of it is in memory", date(2027, 1, 3, 2), nil, false},
		{"a second later it is not", date(2027, 1, 3, 2).Add(time.Second), nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := open(t, snapshot(monthly(1000*hour, c.earlier), func(s *fleet.Snapshot) { s.Memory.Now = c.now }))
			n, why := b.Afford(1, hour, fleet.Terms{})
			if b.Period.Unknown != c.unknown || (n == 0) != c.unknown || b.Breached() {
				t.Errorf("unknown %t, %d may be started (%+v)", b.Period.Unknown, n, why)
			}
			if left, _ := b.Left(); (left == 0) != c.unknown {
				t.Errorf("%s is left", left)
			}
		})
	}
}

func TestForecast(t *testing.T) {
	t.Parallel()
	one := worker(func(*fleet.Worker) {}) // an hour of it is spent
	for _, c := range []struct {
		name          string
		given         func(*fleet.Snapshot)
		daily         fleet.Money
		day, inPeriod time.Time
	}{
		{"nothing runs: never", func(*fleet.Snapshot) {}, hour, time.Time{}, time.Time{}},
		{"nothing runs, whatever is spent", span(9*hour, ago(time.Hour), noon, 0), hour, time.Time{}, time.Time{}},
		{"in as many hours as are left of the money", one, 5*hour + 2*hour/3, noon.Add(4*time.Hour + 40*time.Minute), time.Time{}},
		{"a begun second is a whole one", one, 5*hour + 1, noon.Add(4*time.Hour + time.Second), time.Time{}},
		{"it is reached already", one, hour, noon, time.Time{}},
		{"just before midnight", one, 13*hour - 1000, noon.Add(12*time.Hour - time.Second), time.Time{}},
		{"at midnight another day begins", one, 13 * hour, time.Time{}, time.Time{}},
		{"what is reserved counts", func(s *fleet.Snapshot) { one(s); intent(func(in *fleet.Intent) { in.Created = noon })(s) }, 5 * hour, noon.Add(2 * time.Hour), time.Time{}},
		{"the month's as well", func(s *fleet.Snapshot) { one(s); monthly(49*hour, &fleet.Earlier{})(s) }, 100 * hour, time.Time{}, noon.Add(48 * time.Hour)},
		{"an amount without end is not reached", func(s *fleet.Snapshot) { worker(func(w *fleet.Worker) { w.Price = 1 })(s) }, 1 << 62, time.Time{}, time.Time{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := open(t, snapshot(c.given, func(s *fleet.Snapshot) { s.Config.Limits.Daily = c.daily }))
			if !b.DailyAt.Equal(c.day) || !b.Period.At.Equal(c.inPeriod) {
				t.Errorf("the day's limit at %s, the period's at %s; want %s and %s", b.DailyAt, b.Period.At, c.day, c.inPeriod)
			}
		})
	}
}

// The forecast is right: at its second the limit is reached, and a second before it is not.
func TestForecastsComeTrue(t *testing.T) {
	t.Parallel()
	told := 0
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 5))
		s := snapshot()
		for range 1 + r.IntN(4) {
			worker(func(w *fleet.Worker) {
				w.Price, w.CostFrom = fleet.Money(1+r.Int64N(2_000_000)), ago(time.Duration(r.IntN(20_000))*time.Second)
			})(&s)
		}
		s.Config.Limits.Daily = open(t, s).Today + fleet.Money(1+r.Int64N(20_000_000))
		at := open(t, s).DailyAt
		if at.IsZero() {
			continue
		}
		told++
		spentAt := func(at time.Time) fleet.Money {
			s.Memory.Now = at
			return open(t, s).Today
		}
		if spentAt(at) < s.Config.Limits.Daily || spentAt(at.Add(-2*time.Second)) >= s.Config.Limits.Daily {
			t.Fatalf("seed %d: %s at %s, %s two seconds before; the limit is %s", seed, spentAt(at), at, spentAt(at.Add(-2*time.Second)), s.Config.Limits.Daily)
		}
	}
	if told < 100 {
		t.Errorf("%d of the worlds had a forecast", told)
	}
}
