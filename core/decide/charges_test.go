package decide_test

import (
	"testing"
	"time"

	"sluice/core/decide"
	"sluice/core/fleet"
)

// counts gives the provider of the first pool its way of counting time.
func counts(t fleet.Terms) change {
	return func(s *fleet.Snapshot) {
		traits := s.Traits["aws"]
		traits.MinCharge, traits.Increment = t.MinCharge, t.Increment
		s.Traits["aws"] = traits
	}
}

func TestIncrements(t *testing.T) {
	t.Parallel()
	hourly := counts(fleet.Terms{MinCharge: 60, Increment: 3600})
	t.Run("a launch carries its provider's", func(t *testing.T) {
		t.Parallel()
		p := decide.Decide(world(hourly, waiting(50, 0)))
		if len(p.Intents) != 1 || p.Intents[0].Increment != 3600 || p.Intents[0].MinFor != 60 {
			t.Errorf("intents %s", text(p.Intents))
		}
	})
	t.Run("offers of providers that count differently are reserved for what is a whole number of both", func(t *testing.T) {
		t.Parallel()
		p := decide.Decide(world(counts(fleet.Terms{Increment: 90}), waiting(50, 0), func(s *fleet.Snapshot) {
			local := fleet.Place{Provider: "local"}
			s.Config.Providers = append(s.Config.Providers, fleet.Provider{Name: "local", MaxInstances: 5})
			s.Config.Prices = append(s.Config.Prices, fleet.Price{Provider: "local", Type: "box", Market: fleet.OnDemand, Price: dime})
			s.Config.Pools[0].Offers = append(s.Config.Pools[0].Offers, fleet.Offer{Place: local, Type: "box", Market: fleet.OnDemand})
			s.Listings = append(s.Listings, fleet.Listing{Place: local, Begun: s.Listings[0].Begun})
			s.Traits["local"] = fleet.Traits{Idempotent: true, Increment: 60, MaxBatch: 10}
		}))
		if len(p.Intents) != 1 || len(p.Intents[0].Offers) != 2 || p.Intents[0].Increment != 180 {
			t.Errorf("intents %s", text(p.Intents))
		}
	})
	t.Run("a machine whose begun hour would end above the daily limit is not launched", func(t *testing.T) {
		t.Parallel()
		for daily, want := range map[fleet.Money]int{dime: 1, dime - 1: 0} {
			p := decide.Decide(world(hourly, waiting(50, 0), limits(5*fleet.Unit, daily)))
			if launched := len(p.Intents); launched != want {
				t.Errorf("%d launches at a limit of %s, want %d", launched, daily, want)
			}
		}
	})
	t.Run("an hour that is about to be begun trips the daily limit", func(t *testing.T) {
		t.Parallel()
		old := func(d time.Duration) change {
			return has("a", func(w *fleet.Worker) { w.CostFrom, w.Increment = ago(d), 3600 })
		}
		if p := decide.Decide(world(hourly, old(40*minute), limits(5*fleet.Unit, 2*dime-1))); p.Override != nil {
			t.Errorf("20 minutes of the hour are left, and it was held: %s", text(p.Spend))
		}
		if p := decide.Decide(world(hourly, old(51*minute), limits(5*fleet.Unit, 2*dime-1))); p.Override == nil || p.Spend.Today != dime || p.Spend.Tail != dime {
			t.Errorf("it would end in the next hour: %s", text(p.Spend))
		}
	})
	t.Run("a row that a registration made gets it", func(t *testing.T) {
		t.Parallel()
		if w := row(decide.Decide(world(hourly, has("a", busy1))), "a"); w.Increment != 3600 {
			t.Errorf("row %s", text(w))
		}
	})
}

func TestSuspendedMachinesCostTheirStorage(t *testing.T) {
	t.Parallel()
	rests := has("a", suspended(time.Hour))
	costs := func(prices ...fleet.SuspendedPrice) change {
		return func(s *fleet.Snapshot) { s.Config.Suspended = prices }
	}
	t.Run("at the price of its type", func(t *testing.T) {
		t.Parallel()
		if p := decide.Decide(world(rests)); p.Spend.Rate != dime/10 || len(p.Spans) != 0 {
			t.Errorf("spend %s, spans %s", text(p.Spend), text(p.Spans))
		}
	})
	t.Run("one that nobody knows the price of costs as if it ran: unknown is not free", func(t *testing.T) {
		t.Parallel()
		p := decide.Decide(world(rests, costs()))
		if w := row(p, "a"); w.Idle != dime || p.Spend.Rate != dime {
			t.Errorf("row %s, spend %s", text(w), text(p.Spend))
		}
	})
	t.Run("a new price ends a line of the ledger at the old one", func(t *testing.T) {
		t.Parallel()
		p := decide.Decide(world(rests, costs(fleet.SuspendedPrice{Provider: "aws", Type: "c6i", Price: dime / 2})))
		if w := row(p, "a"); w.Idle != dime/2 || !w.CostFrom.Equal(noon) {
			t.Errorf("row %s", text(w))
		}
		if len(p.Spans) != 1 || p.Spans[0].Price != dime/10 || p.Spans[0].Last || !p.Spans[0].To.Equal(noon) {
			t.Errorf("spans %s", text(p.Spans))
		}
	})
}

func TestPricesAreNoPartOfTheLaunchSpec(t *testing.T) {
	t.Parallel()
	o := fleet.Offer{Place: fleet.Place{Provider: "ionos"}, Type: "s"}
	spec := func(settings string) string { return decide.Spec(o, []byte(settings)) }
	plain := spec(`{"image": "i", "server_types": {"s": {"cores": 2}}}`)
	if got := spec(`{"currency": "EUR", "image": "i", "server_types": {"s": {"cores": 2, "price_per_hour": "0.1", "suspended_price_per_hour": "0.01"}}}`); got != plain {
		t.Errorf("a price makes the spec %s, without it is %s", got, plain)
	}
	if got := spec(`{"image": "i", "server_types": {"s": {"cores": 4}}}`); got == plain {
		t.Error("a size does not change the spec")
	}
}

func TestALimitOfAPeriod(t *testing.T) {
	t.Parallel()
	monthly := func(most fleet.Money, earlier *fleet.Earlier) change {
		return func(s *fleet.Snapshot) {
			s.Config.Limits.Period, s.Config.Limits.PerPeriod, s.Memory.Earlier = fleet.Month, most, earlier
		}
	}
	first := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	spent := &fleet.Earlier{From: first, Spent: 9 * dime}
	t.Run("what would pass it is not launched", func(t *testing.T) {
		t.Parallel()
		worth := dime.For(10*minute + 15*minute)
		for most, want := range map[fleet.Money]int{9*dime + worth: 1, 9*dime + worth - 1: 0} {
			p := decide.Decide(world(waiting(50, 0), monthly(most, spent)))
			if p.Pools[0].Launch != want || want == 0 && p.Pools[0].Steps[len(p.Pools[0].Steps)-1].Why.Code() != "limit.period" {
				t.Errorf("%d launches at %s, want %d: %s", p.Pools[0].Launch, most, want, text(p.Pools[0]))
			}
		}
	})
	t.Run("a breach of it is a breach", func(t *testing.T) {
		t.Parallel()
		p := decide.Decide(world(has("a"), monthly(10*dime, spent)))
		if p.Override == nil || row(p, "a").Status != fleet.Draining || len(p.Alerts) != 1 || p.Alerts[0].Why.Code() != "period_limit" || p.Alerts[0].Level != fleet.Critical {
			t.Errorf("override %s, alerts %s", text(p.Override), text(p.Alerts))
		}
		if q := decide.Decide(world(has("a"), monthly(11*dime, spent))); q.Override != nil {
			t.Errorf("below it: %s", text(q.Spend))
		}
	})
	t.Run("reconcile applies it too", func(t *testing.T) {
		t.Parallel()
		p := decide.Decide(world(has("a"), monthly(10*dime, spent), func(s *fleet.Snapshot) { s.Function = fleet.Reconcile }))
		if p.Override == nil || len(p.Calls) != 0 {
			t.Errorf("override %s, calls %v", text(p.Override), calls(p))
		}
	})
	t.Run("what it cost is unknown: nothing grows, nothing ends", func(t *testing.T) {
		t.Parallel()
		p := decide.Decide(world(has("a", busy1), waiting(50, 0), monthly(10*fleet.Unit, nil)))
		if p.Pools[0].Launch != 0 || p.Override != nil || len(p.Pools[0].Drain) != 0 || !p.Spend.Period.Unknown {
			t.Errorf("pool %s, spend %s", text(p.Pools[0]), text(p.Spend))
		}
	})
	t.Run("the override stays while the period's rest is too small", func(t *testing.T) {
		t.Parallel()
		lift := all(requested(fleet.RequestResume, ""), func(s *fleet.Snapshot) { s.Memory.Override = &fleet.Override{ID: "o", At: ago(time.Hour)} })
		for most, want := range map[fleet.Money]bool{10 * dime: true, 10*dime - 1: false} {
			if p := decide.Decide(world(lift, monthly(most, spent))); p.Lifted != want {
				t.Errorf("lifted %t at %s, want %t: %s", p.Lifted, most, want, text(p.Notes))
			}
		}
	})
}

// With money for one machine, the pool of the lower number gets it, whatever their names and their backlogs.
func TestTheLastMoneyGoesToTheMostUrgentPool(t *testing.T) {
	t.Parallel()
	for _, urgent := range []string{"ocr", "zzz"} {
		p := decide.Decide(world(waiting(50, 0), limits(5*fleet.Unit, dime.For(25*minute)), func(s *fleet.Snapshot) {
			other := s.Config.Pools[0]
			other.Name = "zzz"
			other.Queues = []fleet.PoolQueue{other.Queues[0]}
			other.Queues[0].Name = "other"
			s.Config.Queues = append(s.Config.Queues, fleet.Queue{Name: "other", Source: s.Config.Queues[0].Source})
			s.Config.Pools = append(s.Config.Pools, other)
			s.Queues = append(s.Queues, fleet.QueueState{Name: "other", Depth: 5000})
			for i := range s.Config.Pools {
				s.Config.Pools[i].Urgency = 50
				if s.Config.Pools[i].Name == urgent {
					s.Config.Pools[i].Urgency = 10
				}
			}
		}))
		for _, pool := range p.Pools {
			if want := pool.Pool == urgent; (pool.Launch == 1) != want {
				t.Errorf("%s is urgent, and %s launched %d", urgent, pool.Pool, pool.Launch)
			}
		}
	}
}
