package spend_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"sluice/core/fleet"
	"sluice/core/spend"
)

// life is a machine of the simulated day.
type life struct {
	price    fleet.Money
	from, to time.Time // to is zero while it runs
	drain    time.Time
	terms    fleet.Terms
	asked    bool // the answer to its launch is still out
}

// Minute by minute, with the launch guard and the rule of the breach, no day ends above its limit, even if
// every drain has to be forced and every end is confirmed late.
func TestADayEndsAtOrUnderItsLimit(t *testing.T) {
	t.Parallel()
	breached := 0
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 3))
		s := snapshot(func(s *fleet.Snapshot) {
			s.Config.Timezone = []string{"UTC", "Europe/Paris", "America/New_York"}[r.IntN(3)]
			s.Config.Interval = fleet.Seconds(60 * (1 + r.IntN(3)))
			s.Config.Limits = fleet.Limits{Hourly: fleet.Money(1+r.IntN(40)) * fleet.Unit, Daily: fleet.Money(1+r.IntN(60)) * fleet.Unit}
		})
		if r.IntN(2) == 0 { // the week ends within the three days
			s.Config.Limits.Period, s.Config.Limits.PerPeriod = fleet.Week, s.Config.Limits.Daily+fleet.Money(r.IntN(20))*fleet.Unit
			s.Memory.Earlier = &fleet.Earlier{}
		}
		day := time.Date(2027, 10, 30, 0, 0, 0, 0, time.UTC)
		lives, overridden := simulate(t, r, &s, day)
		if overridden {
			breached++
		}
		for d := range 4 {
			noon, most := day.Add(time.Duration(d%3)*24*time.Hour+12*time.Hour), s.Config.Limits.Daily
			_, from, to, _ := spend.Day(noon, s.Config.Timezone)
			if d == 3 {
				if s.Config.Limits.Period == "" {
					continue
				}
				_, from, to, _ = spend.Period(noon, s.Config.Timezone, fleet.Week)
				most = s.Config.Limits.PerPeriod
			}
			total := fleet.Money(0)
			for _, l := range lives {
				total += fleet.Span{Price: l.price, From: l.from, To: l.to, MinCharge: l.terms.MinCharge, Increment: l.terms.Increment}.Between(from, to)
			}
			if total > most {
				t.Fatalf("seed %d: from %s to %s in %s it cost %s, the limit is %s", seed, from, to, s.Config.Timezone, total, most)
			}
		}
	}
	if breached < 8 {
		t.Errorf("the limit was reached in %d worlds only", breached)
	}
}

func simulate(t *testing.T, r *rand.Rand, s *fleet.Snapshot, day time.Time) (all []*life, overridden bool) {
	t.Helper()
	held := false
	end := day.Add(50 * time.Hour)
	terms := fleet.Terms{MinCharge: fleet.Seconds(r.IntN(2) * 600), Increment: []fleet.Seconds{0, 1, 60, 900, 3600}[r.IntN(5)]}
	for now := day; now.Before(end); now = now.Add(s.Config.Interval.Duration()) {
		remember(s, all, now)
		b := open(t, *s)
		if !held && b.Breached() {
			held, overridden = true, true
		}
		if left, _ := b.Left(); held && left > 10*fleet.Unit && r.IntN(30) == 0 {
			held = false // a person lifts it, the next day perhaps
		}
		for _, l := range all {
			step(l, now, held, s.Config.Interval.Duration(), s.Limit.Duration())
		}
		if !held {
			price := fleet.Money(1 + r.Int64N(int64(4*fleet.Unit)))
			n, _ := b.Afford(r.IntN(4), price, terms)
			for range n {
				b.Reserve(1, price, terms)
				all = append(all, &life{price: price, from: now, terms: terms, asked: r.IntN(2) == 0})
			}
		}
	}
	for _, l := range all {
		if l.to.IsZero() {
			l.to = end
		}
	}
	return all, overridden
}

// step moves a machine on: while the mode is held it drains, is forced after five minutes on the next tick, and its
// end is confirmed a tick and a minute after the call.
func step(l *life, now time.Time, held bool, interval, limit time.Duration) {
	l.asked = false
	switch {
	case !l.to.IsZero():
	case held && l.drain.IsZero():
		l.drain = now
	case !l.drain.IsZero() && now.Sub(l.drain) >= 5*time.Minute:
		l.to = now.Add(limit + interval + time.Minute)
	}
}

func remember(s *fleet.Snapshot, all []*life, now time.Time) {
	s.Memory.Now = now
	s.Memory.Workers, s.Memory.Ended, s.Memory.Intents = nil, nil, nil
	for i, l := range all {
		switch {
		case l.asked:
			s.Memory.Intents = append(s.Memory.Intents, fleet.Intent{Kind: fleet.KindLaunch, State: fleet.IntentOpen, Count: 1, Reserve: l.price, Created: l.from, MinFor: l.terms.MinCharge, Increment: l.terms.Increment})
		case !l.to.IsZero() && !l.to.After(now):
			s.Memory.Ended = append(s.Memory.Ended, fleet.Span{Price: l.price, From: l.from, To: l.to, MinCharge: l.terms.MinCharge, Increment: l.terms.Increment, Provider: "aws"})
		default:
			s.Memory.Workers = append(s.Memory.Workers, fleet.Worker{
				ID: fmt.Sprint(i), Place: fleet.Place{Provider: "aws"}, Status: fleet.Ready, Price: l.price, CostFrom: l.from, MinCharge: l.terms.MinCharge, Increment: l.terms.Increment,
			})
		}
	}
}
