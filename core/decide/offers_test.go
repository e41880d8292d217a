package decide_test

import (
	"slices"
	"testing"
	"time"

	"sluice/core/decide"
	"sluice/core/fleet"
)

// market is an offer of the place under a type of its own.
func market(typ string, m fleet.Market) fleet.Offer {
	return fleet.Offer{Place: aws, Type: typ, Market: m}
}

// offering replaces the pool's offers; each costs what it says, or has no price where that is zero.
func offering(prices map[string]fleet.Money, offers ...fleet.Offer) change {
	return func(s *fleet.Snapshot) {
		s.Config.Pools[0].Offers, s.Config.Prices = offers, nil
		for _, o := range offers {
			if p := prices[o.Type]; p > 0 {
				s.Quotes = append(s.Quotes, fleet.Quote{Offer: o.Key(), Price: p, At: noon})
			}
		}
	}
}

func fallback(after fleet.Seconds) change {
	return pool(func(p *fleet.Pool) { p.FallbackAfter = &after })
}

var (
	small  = market("small", fleet.OnDemand)
	large  = market("large", fleet.OnDemand)
	spot   = market("spot", fleet.Spot)
	prices = map[string]fleet.Money{"small": dime, "large": 2 * dime, "spot": dime / 2}
)

func TestOffers(t *testing.T) {
	t.Parallel()
	cool := func(o fleet.Offer, until time.Duration) change {
		return func(s *fleet.Snapshot) {
			s.Memory.CoolOffs = append(s.Memory.CoolOffs, fleet.CoolOff{Offer: o.Key(), Until: noon.Add(until), Count: 1, Code: "no_capacity"})
		}
	}
	refusedFor := func(d time.Duration) change {
		return past(func(m *fleet.PoolMemory) { m.SpotRefusedSince = ago(d) })
	}
	capped := spot
	capped.MaxPrice = dime / 2
	never := pool(func(p *fleet.Pool) { p.FallbackAfter = nil })
	for _, c := range []struct {
		name     string
		given    change
		tried    []string // types in order
		rejected map[string]string
	}{
		{"the cheapest first, the dearer one after a refusal", offering(prices, large, small), []string{"small", "large"}, map[string]string{large.Key(): "offer.dearer"}},
		{"in their own order where the config says so", all(offering(prices, large, small), pool(func(p *fleet.Pool) { p.Cheapest = false })), []string{"large", "small"}, nil},
		{"one without a price is not tried: unknown is not free", offering(map[string]fleet.Money{"large": dime}, small, large), []string{"large"}, map[string]string{small.Key(): "offer.no_price"}},
		{"nor one of a provider that is not enabled", all(offering(prices, small), func(s *fleet.Snapshot) { s.Config.Providers = nil }), nil, map[string]string{small.Key(): "offer.no_price"}},
		{"one at its cap is tried", offering(prices, capped), []string{"spot"}, nil},
		{"one above its cap is not", offering(map[string]fleet.Money{"spot": dime/2 + 1}, capped), nil, map[string]string{spot.Key(): "offer.above_cap"}},
		{"extras are no part of the price that is capped", all(offering(prices, capped), func(s *fleet.Snapshot) { s.Config.Limits.Extras = dime }), []string{"spot"}, nil},
		{"one that cools off is not tried", all(offering(prices, small, large), cool(small, time.Second)), []string{"large"}, map[string]string{small.Key(): "offer.cooling_off"}},
		{"one whose cool-off is over is", all(offering(prices, small), cool(small, 0)), []string{"small"}, nil},
		{"a cool-off of one market leaves the other", all(offering(map[string]fleet.Money{"x": dime}, market("x", fleet.OnDemand), market("x", fleet.Spot)), cool(market("x", fleet.Spot), time.Hour)), []string{"x"}, map[string]string{market("x", fleet.Spot).Key(): "offer.cooling_off"}},
		{"nothing is launched where the place cannot be listed", all(offering(prices, small), placeUnknown), nil, map[string]string{small.Key(): "offer.place_unknown"}},
		{"nor where it was not listed at all", all(offering(prices, small), func(s *fleet.Snapshot) { s.Listings = nil }), nil, map[string]string{small.Key(): "offer.place_unknown"}},
		{"on-demand at once after spot, where the fallback is 0", all(offering(prices, spot, small), fallback(0)), []string{"spot", "small"}, map[string]string{small.Key(): "offer.dearer"}},
		{"on-demand never, where it is null", all(offering(prices, spot, small), never, refusedFor(time.Hour)), []string{"spot"}, map[string]string{small.Key(): "offer.waits_for_spot"}},
		{"on-demand waits while spot was not refused", all(offering(prices, spot, small), fallback(600)), []string{"spot"}, map[string]string{small.Key(): "offer.waits_for_spot"}},
		{"on-demand waits a second before its time", all(offering(prices, spot, small), fallback(600), refusedFor(599*time.Second)), []string{"spot"}, map[string]string{small.Key(): "offer.waits_for_spot"}},
		{"on-demand is tried at its time", all(offering(prices, spot, small), fallback(600), refusedFor(600*time.Second)), []string{"spot", "small"}, map[string]string{small.Key(): "offer.dearer"}},
		{"a pool without spot waits for nothing", all(offering(prices, small), never), []string{"small"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := decide.Decide(world(waiting(5, minute), c.given))
			var tried []string
			for _, in := range p.Intents {
				for _, o := range in.Offers {
					tried = append(tried, o.Type)
				}
			}
			same(t, "tried", tried, c.tried)
			if c.rejected != nil || len(rejected(first(t, p))) > 0 {
				same(t, "rejected", rejected(first(t, p)), c.rejected)
			}
			if len(c.tried) == 0 && !slices.Contains(codes(first(t, p)), "limit.offers") {
				t.Errorf("no step says that no offer can be had: %v", codes(first(t, p)))
			}
		})
	}
}

func TestTheReservationIsForTheDearestOfferThatMayBeTried(t *testing.T) {
	t.Parallel()
	p := decide.Decide(world(waiting(5, minute), offering(prices, small, large)))
	if in := p.Intents[0]; in.Reserve != 2*dime || p.Spend.Reserved != 2*dime {
		t.Errorf("reserved %s and %s, want %s", in.Reserve, p.Spend.Reserved, 2*dime)
	}
	p = decide.Decide(world(waiting(5, minute), offering(prices, small, large), limits(2*dime-1, 50*fleet.Unit)))
	if in := p.Intents[0]; in.Reserve != dime || len(in.Offers) != 1 || in.Offers[0].Type != "small" {
		t.Errorf("an offer that the limit does not cover is not tried: %s", text(in))
	}
}

func TestADearerOfferTakesNoMoneyFromTheMachinesBesideIt(t *testing.T) {
	t.Parallel()
	three := queue(func(q *fleet.PoolQueue) { q.Steps = []fleet.Tier{{Depth: 1, Workers: 3}} })
	single := func(s *fleet.Snapshot) { tr := s.Traits["aws"]; tr.MaxBatch = 1; s.Traits["aws"] = tr }
	wide := map[string]fleet.Money{"small": dime, "large": 5 * dime}
	p := decide.Decide(world(waiting(5, minute), three, single, offering(wide, small, large), limits(10*dime, 50*fleet.Unit)))
	if pp := first(t, p); pp.Launch != 3 || p.Spend.Reserved > 10*dime {
		t.Errorf("three small ones are covered by the limit: launch %d, reserved %s", pp.Launch, p.Spend.Reserved)
	}
	for _, in := range p.Intents {
		if len(in.Offers) == 0 || in.Offers[0].Type != "small" {
			t.Errorf("each launch tries the small one first: %s", text(in.Offers))
		}
	}
}

func TestTheFirstOfferThatTheLimitCoversIsTried(t *testing.T) {
	t.Parallel()
	p := decide.Decide(world(waiting(5, minute), offering(prices, large, small), limits(dime, 50*fleet.Unit), pool(func(p *fleet.Pool) { p.Cheapest = false })))
	if pp := first(t, p); pp.Launch != 1 || pp.Offer.Type != "small" || rejected(pp)[large.Key()] != "offer.over_budget" {
		t.Errorf("the large one is over budget, the small one is not: %s", text(pp))
	}
}

func TestMixedProvidersAreIdempotentOnlyIfAllAre(t *testing.T) {
	t.Parallel()
	other := fleet.Offer{Place: fleet.Place{Provider: "ionos"}, Type: "box", Market: fleet.OnDemand}
	p := decide.Decide(world(waiting(5, minute), offering(map[string]fleet.Money{"small": dime, "box": 2 * dime}, small, other), func(s *fleet.Snapshot) {
		s.Config.Providers = append(s.Config.Providers, fleet.Provider{Name: "ionos", MaxInstances: 3})
		s.Listings = append(s.Listings, fleet.Listing{Place: other.Place, Begun: noon})
		s.Traits["ionos"] = fleet.Traits{MaxBatch: 1, MinCharge: 3600}
	}))
	if in := p.Intents[0]; in.Idempotent || in.MinFor != 3600 || len(in.Offers) != 2 {
		t.Errorf("the least that both promise holds: %s", text(in))
	}
}

func TestCoolOffsDoubleAndAreSpread(t *testing.T) {
	t.Parallel()
	var c fleet.CoolOff
	now := noon
	for i, least := range []time.Duration{minute, 2 * minute, 4 * minute, 8 * minute, 16 * minute, 32 * minute, time.Hour, time.Hour} {
		c = decide.NextCoolOff(c, "k", "quota", now)
		if wait := c.Until.Sub(now); wait < least || wait > least*6/5 || c.Count != i+1 || c.Code != "quota" || c.Offer != "k" {
			t.Errorf("refusal %d waits %s, want %s to a fifth more: %+v", i+1, wait, least, c)
		}
		now = c.Until
	}
	if c = decide.NextCoolOff(c, "k", "quota", c.Until.Add(time.Hour+time.Second)); c.Count != 1 {
		t.Errorf("after an hour of quiet it starts again: %+v", c)
	}
	spread := map[time.Time]bool{}
	for _, k := range []string{"a", "b", "c", "d", "e", "f"} {
		spread[decide.NextCoolOff(fleet.CoolOff{}, k, "quota", noon).Until] = true
	}
	if len(spread) < 3 {
		t.Errorf("different offers come back at different times: %v", spread)
	}
}

func TestBudget(t *testing.T) {
	t.Parallel()
	deep := waiting(50, minute)
	tail := 5*minute + 3*minute + minute + minute // drain, three ticks, a call, a minute
	short := dime.For(tail + 15*minute)           // what one machine must be worth
	four := queue(func(q *fleet.PoolQueue) { q.Steps = []fleet.Tier{{Depth: 1, Workers: 4}} })
	for _, g := range []growth{
		{"at the hourly limit exactly it is launched", all(deep, limits(dime, 50*fleet.Unit)), 1, 1, ""},
		{"a millionth above it is not", all(deep, limits(dime-1, 50*fleet.Unit)), 0, 0, "limit.hourly"},
		{"what runs counts", all(deep, has("a", busy1), limits(2*dime-1, 50*fleet.Unit)), 1, 0, "limit.hourly"},
		{"what drains counts", all(deep, has("a", drains("drain.stale", minute)), limits(2*dime-1, 50*fleet.Unit)), 0, 0, "limit.hourly"},
		{"what is reserved counts", all(deep, asked("in", minute, claimed), limits(2*dime-1, 50*fleet.Unit)), 1, 0, "limit.hourly"},
		{"a launch that was given up counts", all(deep, asked("in", minute, abandoned), limits(2*dime-1, 50*fleet.Unit)), 0, 0, "limit.hourly"},
		{"an orphan counts", all(deep, listed("i-x", func(m *fleet.Machine) { m.Tags.Pool = "gone" }), limits(2*dime-1, 50*fleet.Unit)), 0, 0, "limit.hourly"},
		{"a suspended machine counts with what it costs then", all(deep, has("a", suspended(time.Hour), specced("old")), limits(dime+dime/10-1, 50*fleet.Unit)), 0, 0, "limit.hourly"},
		{"the limit covers three of four", all(deep, four, limits(3*dime, 50*fleet.Unit)), 3, 3, "limit.hourly"},
		{"zero limits launch nothing", all(deep, limits(0, 0)), 0, 0, "limit.hourly"},
		{"at the daily limit exactly it is launched", all(deep, limits(5*fleet.Unit, short)), 1, 1, ""},
		{"a millionth above it is not", all(deep, limits(5*fleet.Unit, short-1)), 0, 0, "limit.daily"},
		{"what was spent counts", all(deep, spent(dime), limits(5*fleet.Unit, dime+short-1)), 0, 0, "limit.daily"},
		{"resuming costs what it costs more than being suspended", all(deep, has("a", suspended(time.Hour)), pool(func(p *fleet.Pool) { p.OnIdle = fleet.SuspendIdle }), limits(dime, 50*fleet.Unit)), 1, 0, ""},
		{"and not a millionth less", all(deep, has("a", suspended(time.Hour)), pool(func(p *fleet.Pool) { p.OnIdle = fleet.SuspendIdle }), limits(dime-1, 50*fleet.Unit)), 0, 0, "limit.hourly"},
	} {
		g.test(t)
	}
}

func TestWhenMoneyIsShortTheMoreUrgentPoolGetsIt(t *testing.T) {
	t.Parallel()
	for _, urgency := range []int{10, 90} {
		s := world(waiting(50, minute), limits(dime, 50*fleet.Unit), func(s *fleet.Snapshot) {
			p := s.Config.Pools[0]
			p.Name, p.Urgency = "media", urgency
			p.Queues = []fleet.PoolQueue{{Name: "media", Depth: 5, DepthBelow: 2}}
			s.Config.Pools = append([]fleet.Pool{p}, s.Config.Pools...)
			s.Queues = append(s.Queues, fleet.QueueState{Name: "media", Depth: 50})
		})
		p := decide.Decide(s)
		if p.Pools[0].Launch != 1 || p.Pools[1].Launch != 0 || (p.Pools[0].Pool == "media") != (urgency < 50) {
			t.Errorf("media at urgency %d: %s", urgency, text(p.Pools))
		}
	}
}

func TestBreachOfTheDailyLimit(t *testing.T) {
	t.Parallel()
	tail := dime.For(10 * minute)
	hour := dime + dime // the worker's hour, and what was spent
	near := all(has("a", busy1), spent(dime))
	t.Run("up to the limit nothing happens", func(t *testing.T) {
		t.Parallel()
		p := decide.Decide(world(near, limits(5*fleet.Unit, hour+tail)))
		if p.Override != nil || p.Spend.Today != hour || p.Spend.Tail != tail {
			t.Errorf("today %s, tail %s, override %v", p.Spend.Today, p.Spend.Tail, p.Override)
		}
	})
	t.Run("a millionth above it the mode is held and every cloud worker drains", func(t *testing.T) {
		t.Parallel()
		p := decide.Decide(world(near, has("b", booting(minute)), limits(5*fleet.Unit, hour+tail-1)))
		if p.Override == nil || p.Override.Who != "evaluate" || p.Override.ID == "" {
			t.Fatalf("override %v", p.Override)
		}
		same(t, "drained", drained(p), map[string]string{"a": "drain.mode", "b": "drain.mode"})
		same(t, "alerts", alerts(p), []string{"daily_limit"})
		if p.Alerts[0].Level != fleet.Critical {
			t.Errorf("level %s", p.Alerts[0].Level)
		}
	})
	t.Run("while it stands it is not imposed again, and drains by level", func(t *testing.T) {
		t.Parallel()
		p := decide.Decide(world(near, overridden, limits(5*fleet.Unit, 1)))
		if p.Override != nil || len(alerts(p)) > 0 {
			t.Errorf("override %v, alerts %v", p.Override, alerts(p))
		}
		same(t, "drained", drained(p), map[string]string{"a": "drain.mode"})
	})
	t.Run("it stands although the money would do again", func(t *testing.T) {
		t.Parallel()
		p := decide.Decide(world(waiting(50, minute), overridden))
		if p.Lifted || len(p.Calls) > 0 {
			t.Errorf("lifted %t, calls %v", p.Lifted, calls(p))
		}
	})
	t.Run("reconcile imposes it as well, by a bill", func(t *testing.T) {
		t.Parallel()
		p := decide.Decide(world(near, limits(5*fleet.Unit, 3*dime), func(s *fleet.Snapshot) {
			s.Function = fleet.Reconcile
			s.Charges = []fleet.Bill{{Provider: "aws", Day: "2027-01-14", Amount: 5 * dime}}
		}))
		if p.Override == nil || len(p.Bills) != 1 || p.Bills[0].Excess != 3*dime || len(p.Workers) > 0 || len(p.Pools) > 0 {
			t.Errorf("override %v, bills %s", p.Override, text(p.Bills))
		}
	})
	t.Run("the alert threshold alerts and changes nothing", func(t *testing.T) {
		t.Parallel()
		p := decide.Decide(world(near, func(s *fleet.Snapshot) { s.Config.Limits.Alert = hour }))
		same(t, "alerts", alerts(p), []string{"daily_limit.near"})
		if p.Override != nil {
			t.Error("overridden")
		}
		same(t, "below it", alerts(decide.Decide(world(near, func(s *fleet.Snapshot) { s.Config.Limits.Alert = hour + 1 }))), []string{})
	})
}

func TestLiftingTheOverride(t *testing.T) {
	t.Parallel()
	ask := all(overridden, requested(fleet.RequestResume, ""))
	for _, c := range []struct {
		name   string
		given  change
		lifted bool
		note   string
	}{
		{"a person lifts it", ask, true, "cloud.resumed"},
		{"exactly an hour of the cheapest pool is enough", all(ask, limits(5*fleet.Unit, dime)), true, "cloud.resumed"},
		{"a millionth less is not", all(ask, limits(5*fleet.Unit, dime-1)), false, "cloud.resume_refused"},
		{"what was spent is not left", all(ask, spent(dime), limits(5*fleet.Unit, 2*dime-1)), false, "cloud.resume_refused"},
		{"without any price it is refused while the day is over its limit", all(ask, spent(dime), limits(5*fleet.Unit, dime-1), func(s *fleet.Snapshot) { s.Config.Prices = nil }), false, "cloud.resume_refused"},
		{"without an override there is nothing to lift", requested(fleet.RequestResume, ""), false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := decide.Decide(world(c.given))
			if p.Lifted != c.lifted || c.note != "" && !slices.Contains(notes(p), c.note) {
				t.Errorf("lifted %t, notes %v", p.Lifted, notes(p))
			}
			same(t, "taken", p.Taken, []string{"r"})
		})
	}
	p := decide.Decide(world(ask, waiting(5, minute), has("a", busy1, drains("drain.mode", minute))))
	same(t, "workers that drained for it come back in the same tick", first(t, p).Undrain, []string{"a"})
}

func TestAMachineThatCostsNothingByTheConfigIsLaunched(t *testing.T) {
	t.Parallel()
	free := func(s *fleet.Snapshot) {
		s.Config.Pools[0].Offers = []fleet.Offer{small}
		s.Config.Prices = []fleet.Price{{Provider: aws.Provider, Type: "small", Market: fleet.OnDemand}}
	}
	if p := decide.Decide(world(waiting(5, minute), free)); p.Pools[0].Launch != 1 {
		t.Errorf("a price of zero passes for an unknown one: %+v", p.Pools[0].Rejected)
	}
	quoted := func(s *fleet.Snapshot) {
		s.Config.Prices, s.Quotes = nil, []fleet.Quote{{Offer: small.Key(), At: noon}}
	}
	if p := decide.Decide(world(waiting(5, minute), free, quoted)); p.Pools[0].Launch != 0 {
		t.Error("a provider's quote of zero is believed")
	}
}
