package decide_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"sluice/core/decide"
	"sluice/core/fleet"
)

func absent(since time.Duration) tweak {
	return func(w *fleet.Worker) { w.AbsentSince = ago(since) }
}

func TestGone(t *testing.T) {
	t.Parallel()
	quiet := silent(90 * time.Second)
	for _, c := range []struct {
		name   string
		given  change
		status fleet.Status // of the changed row, or "" for none
	}{
		{"listed as ended: it is gone", all(has("a", quiet), inState("i-a", fleet.MachineGone)), fleet.Failed},
		{"ended as asked", all(has("a", drains("drain.idle", minute), acked), doing(fleet.KindTerminate, "a", minute), inState("i-a", fleet.MachineGone)), fleet.Terminated},
		{"absent for the first time: it is noted", all(has("a", quiet), unlisted("i-a")), fleet.Ready},
		{"absent from a second list less than a minute later", all(has("a", quiet, absent(59*time.Second)), unlisted("i-a")), ""},
		{"absent from a second list a minute later: it is gone", all(has("a", quiet, absent(60*time.Second)), unlisted("i-a")), fleet.Failed},
		{"but not one younger than five minutes", all(has("a", booting(299*time.Second), absent(2*minute)), unlisted("i-a")), ""},
		{"one that is five minutes old is", all(has("a", booting(300*time.Second), absent(2*minute)), unlisted("i-a")), fleet.Failed},
		{"where machines take longer to show, it waits for that", all(has("a", booting(310*time.Second), absent(2*minute)), unlisted("i-a"),
			past(func(m *fleet.PoolMemory) { m.SlowestBoot = 600 }), func(s *fleet.Snapshot) { s.Traits["aws"] = fleet.Traits{Visibility: 600} }), ""},
		{"a partial list is never believed", all(has("a", quiet, absent(time.Hour)), placeUnknown), ""},
		{"a list begun before the row changed says nothing", all(has("a", quiet, absent(time.Hour), func(w *fleet.Worker) { w.Changed = ago(10 * time.Second) }), unlisted("i-a"), begun(20*time.Second)), ""},
		{"absence before the row changed says nothing either", all(has("a", quiet, absent(2*minute), func(w *fleet.Worker) { w.Changed = ago(minute) }), unlisted("i-a")), fleet.Ready},
		{"a heartbeat since then starts the count again", all(has("a", absent(2*minute)), unlisted("i-a")), fleet.Ready},
		{"listed again: the count is forgotten", has("a", quiet, absent(2*minute)), fleet.Ready},
		{"an end that was asked for needs the same proof", all(has("a", quiet, drains("drain.idle", 4*minute), acked), doing(fleet.KindTerminate, "a", 3*minute), unlisted("i-a")), fleet.Draining},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := decide.Decide(world(c.given))
			if w := row(p, "a"); w.Status != c.status {
				t.Errorf("the row becomes %q, want %q: %s", w.Status, c.status, text(p))
			}
			ended := c.status == fleet.Failed || c.status == fleet.Terminated
			if ended != (len(p.Spans) == 1 && p.Spans[0].Last && p.Spans[0].Worker == "a" && p.Spans[0].To.Equal(noon)) {
				t.Errorf("the ledger gets %s", text(p.Spans))
			}
			if ended != slices.Contains(notes(p), "gone") {
				t.Errorf("notes %v", notes(p))
			}
		})
	}
}

func TestATerminateThatDoesNotFindItsMachineIsNoProof(t *testing.T) {
	t.Parallel()
	missed := func(s *fleet.Snapshot) {
		a := &s.Memory.Intents[0].Attempts[0]
		a.Outcome, a.Code = fleet.OutcomeUnknown, "not_found"
	}
	p := decide.Decide(world(has("a", drains("drain.idle", 4*minute), acked), doing(fleet.KindTerminate, "a", 2*minute), missed))
	if row(p, "a").Status != "" {
		t.Errorf("it is listed and lives: %s", text(row(p, "a")))
	}
	same(t, "calls", calls(p), []string{"terminate i-a again"})
}

func TestTheEndOfAMachineClosesWhatWasAskedOfIt(t *testing.T) {
	t.Parallel()
	p := decide.Decide(world(has("a", drains("drain.idle", minute), acked), doing(fleet.KindTerminate, "a", 2*minute), inState("i-a", fleet.MachineGone)))
	if in := intentOf(p, "do-a"); in.State != fleet.IntentDone {
		t.Errorf("intent %s", text(in))
	}
	if p.Spend.Rate != 0 || p.Spend.Today != dime {
		t.Errorf("it costs no more, and cost its hour: %s", text(p.Spend))
	}
}

func TestAMachineThatTurnsUpUnderAnEndedRowIsLiveAndCosts(t *testing.T) {
	t.Parallel()
	ended := func(to time.Duration) change {
		return func(s *fleet.Snapshot) {
			s.Memory.Ended = append(s.Memory.Ended, fleet.Span{
				Worker: "a", Machine: "i-a", Last: true, Pool: "ocr", Provider: "aws", Scope: "eu", Price: dime, From: ago(2 * time.Hour), To: ago(to),
			})
		}
	}
	p := decide.Decide(world(ended(time.Hour), listed("i-a")))
	w := row(p, "i-a")
	if w.ID != "a" || w.Status != fleet.Draining || w.DrainWhy != "back" || !w.CostFrom.Equal(ago(time.Hour)) || w.Price != dime {
		t.Errorf("the row is %s", text(w))
	}
	if p.Spend.Rate != dime || p.Spend.Today != 2*dime || len(p.Sightings) != 0 {
		t.Errorf("it costs, also in between: %s, sightings %s", text(p.Spend), text(p.Sightings))
	}
	if p := decide.Decide(world(ended(0), listed("i-a"))); len(p.Adopted)+len(p.Sightings) != 0 {
		t.Errorf("a list begun before the end says nothing: %s", text(p))
	}
	if p := decide.Decide(world(ended(time.Hour), ended(0), listed("i-a"))); len(p.Adopted) != 0 {
		t.Errorf("its latest end counts: %s", text(p.Adopted))
	}
	open := decide.Decide(world(ended(time.Hour), listed("i-a", tagged("in")), asked("in", minute, claimed, count(2), bound(1))))
	if row(open, "i-a").ID != "a" {
		t.Errorf("also while its launch is open: %s", text(open.Adopted))
	}
	if p := decide.Decide(world(ended(time.Hour), listed("i-a"), waiting(50, 0), func(s *fleet.Snapshot) { s.Config.Providers[0].MaxInstances = 1 })); len(calls(p)) != 0 {
		t.Errorf("it counts against max_instances at once: %v", calls(p))
	}
}

func TestSuspending(t *testing.T) {
	t.Parallel()
	going := all(has("a", drains("drain.idle", 2*minute), acked), doing(fleet.KindSuspend, "a", minute+30*time.Second))
	keeps := pool(func(p *fleet.Pool) { p.OnIdle, p.MaxSuspended = fleet.SuspendIdle, 1 })
	t.Run("it is suspended when the list says so", func(t *testing.T) {
		t.Parallel()
		p := decide.Decide(world(keeps, going, inState("i-a", fleet.MachineSuspended)))
		if w := row(p, "a"); w.Status != fleet.Suspended || !w.CostFrom.Equal(ago(minute+30*time.Second)) || w.Idle != dime/10 || len(p.Spans) != 1 || p.Spans[0].Price != dime || p.Spans[0].Last {
			t.Errorf("row %s, spans %s", text(w), text(p.Spans))
		}
		if intentOf(p, "do-a").State != fleet.IntentDone || p.Spend.Rate != dime/10 {
			t.Errorf("intent %s, rate %s", text(intentOf(p, "do-a")), p.Spend.Rate)
		}
	})
	for _, c := range []struct {
		name  string
		given change
		calls []string
	}{
		{"a list begun before the call proves nothing", all(keeps, has("a", drains("drain.idle", 4*minute), acked), doing(fleet.KindSuspend, "a", 95*time.Second), inState("i-a", fleet.MachineSuspended), begun(100*time.Second)), []string{"suspend i-a again"}},
		{"on its way: it is waited for", all(keeps, going, inState("i-a", fleet.MachineStopping)), nil},
		{"no effect: it is asked again", all(keeps, going), []string{"suspend i-a again"}},
		{"no effect for a whole boot's time: it is ended", all(keeps, has("a", drains("drain.idle", 6*minute), acked), doing(fleet.KindSuspend, "a", 5*minute)), []string{"terminate i-a"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			same(t, "calls", calls(decide.Decide(world(c.given))), c.calls)
		})
	}
}

func TestResuming(t *testing.T) {
	t.Parallel()
	keeps := pool(func(p *fleet.Pool) { p.OnIdle, p.MaxSuspended = fleet.SuspendIdle, 1 })
	waking := func(d time.Duration) change {
		return all(keeps, waiting(5, 0), has("a", suspended(30*minute), func(w *fleet.Worker) { w.CostFrom = ago(30 * minute) }), doing(fleet.KindResume, "a", d))
	}
	t.Run("it boots when the list says that it runs, and costs since the call", func(t *testing.T) {
		t.Parallel()
		p := decide.Decide(world(waking(2*minute), inState("i-a", fleet.MachineRunning)))
		w := row(p, "a")
		if w.Status != fleet.Provisioning || !w.BootAt.Equal(noon) || !w.Registered.IsZero() || !w.CostFrom.Equal(ago(2*minute)) || w.MinCharge != 60 {
			t.Errorf("row %s", text(w))
		}
		if len(p.Spans) != 1 || !p.Spans[0].To.Equal(noon) || p.Spans[0].Price != dime/10 || len(calls(p)) != 0 {
			t.Errorf("spans %s, calls %v", text(p.Spans), calls(p))
		}
		if want := (dime / 10).For(30*minute) + dime.For(2*minute); p.Spend.Today != want {
			t.Errorf("today %s, want %s", p.Spend.Today, want)
		}
	})
	t.Run("until then it is reserved and accrues as if it ran", func(t *testing.T) {
		t.Parallel()
		p := decide.Decide(world(waking(minute)))
		if p.Spend.Rate != dime/10 || p.Spend.Reserved != dime-dime/10 || p.Spend.Today != (dime/10).For(30*minute)+dime.For(minute) {
			t.Errorf("spend %s", text(p.Spend))
		}
	})
	same(t, "no effect: it is asked again", calls(decide.Decide(world(waking(2*minute)))), []string{"resume i-a again"})
	same(t, "no effect for a whole boot's time: it is ended", calls(decide.Decide(world(waking(5*minute)))), []string{"terminate i-a"})
	same(t, "not asked again on a broken config", calls(decide.Decide(world(waking(2*minute), brokenConfig))), []string{})
	off := decide.Decide(world(waking(2*minute), mode(fleet.VPSOnly)))
	if intentOf(off, "do-a").State != fleet.IntentClosed {
		t.Errorf("with the mode it is over: %s", text(off.Intents))
	}
	by := decide.Decide(world(keeps, has("a", suspended(30*minute)), inState("i-a", fleet.MachineRunning)))
	if w := row(by, "a"); w.Status != fleet.Draining || w.DrainWhy != "back" {
		t.Errorf("woken by somebody else it drains: %s", text(w))
	}
}

func TestAnUnknownPlaceRemovesAndLaunchesNothingThereAndStopsNoOther(t *testing.T) {
	t.Parallel()
	other := fleet.Place{Provider: "local"}
	p := decide.Decide(world(waiting(5, 0), placeUnknown, has("a", drains("drain.stale", time.Hour), acked), func(s *fleet.Snapshot) {
		s.Config.Providers = append(s.Config.Providers, fleet.Provider{Name: "local", MaxInstances: 3})
		s.Config.Prices = append(s.Config.Prices, fleet.Price{Provider: "local", Type: "box", Market: fleet.OnDemand, Price: dime})
		s.Config.Pools[0].Offers = append(s.Config.Pools[0].Offers, fleet.Offer{Place: other, Type: "box", Market: fleet.OnDemand})
		s.Listings = append(s.Listings, fleet.Listing{Place: other, Begun: noon})
		s.Listings[0].Machines = nil
	}))
	same(t, "calls", calls(p), []string{"launch 1"})
	if p.Intents[0].Offers[0].Provider != "local" || len(p.Intents[0].Offers) != 1 || !slices.Contains(notes(p), "place.unknown") {
		t.Errorf("only where it can be seen: %s %v", text(p.Intents), notes(p))
	}
}

func TestOrphans(t *testing.T) {
	t.Parallel()
	seen := func(id string, first time.Duration) change {
		return func(s *fleet.Snapshot) {
			m := fleet.Machine{ID: id, State: fleet.MachineRunning, Type: "c6i", Market: fleet.OnDemand, Tags: fleet.Tags{Name: "prod", Deployment: "dep", Pool: "ocr"}}
			s.Memory.Sightings = append(s.Memory.Sightings, fleet.Sighting{Place: aws, Machine: m, First: ago(first), Last: ago(minute), Price: dime})
		}
	}
	foreign := func(m *fleet.Machine) { m.Tags.Deployment = "other" }
	crowd := all(hasMany(10, busy1), pool(func(p *fleet.Pool) { p.MaxWorkers = 20 }))
	for _, c := range []struct {
		name      string
		given     change
		calls     []string
		sightings []string
		note      string
	}{
		{"at first sight it counts and is told of", listed("i-x"), nil, []string{"i-x"}, "orphan.seen"},
		{"a second before the grace it stays", all(listed("i-x"), seen("i-x", 299*time.Second)), nil, []string{"i-x"}, ""},
		{"after the grace, seen again, it goes", all(listed("i-x"), seen("i-x", 300*time.Second)), []string{"terminate i-x"}, []string{"i-x"}, "orphan.removed"},
		{"one of our name and another deployment goes as well", all(listed("i-x", foreign), seen("i-x", 300*time.Second)), []string{"terminate i-x"}, []string{"i-x"}, "orphan.removed"},
		{"another deployment's tag of our intent makes it none of ours", all(listed("i-x", foreign, tagged("in")), asked("in", minute, claimed)), nil, []string{"i-x"}, "orphan.seen"},
		{"a machine with a row is none", has("a"), nil, nil, ""},
		{"a machine of an open launch is none", all(listed("i-x", tagged("in")), asked("in", minute, claimed)), nil, nil, ""},
		{"one that is adopted by this decision is none", all(listed("i-x", tagged("in")), asked("in", 2*minute)), nil, nil, "intent.adopted"},
		{"one that has ended is none", listed("i-x", func(m *fleet.Machine) { m.State = fleet.MachineGone }), nil, nil, ""},
		{"its end is asked for once", all(listed("i-x"), seen("i-x", time.Hour), func(s *fleet.Snapshot) {
			s.Memory.Intents = []fleet.Intent{{ID: "do", Kind: fleet.KindTerminate, State: fleet.IntentOpen, Ref: fleet.Ref{Place: aws, Machine: "i-x"}, Created: ago(minute), ClaimedUntil: noon.Add(30 * time.Second)}}
		}), nil, []string{"i-x"}, ""},
		{"two of twelve go", all(crowd, listed("i-x"), listed("i-y"), seen("i-x", time.Hour), seen("i-y", time.Hour)), []string{"terminate i-x", "terminate i-y"}, []string{"i-x", "i-y"}, ""},
		{"three of thirteen are too many: the database is wrong", all(crowd, listed("i-x"), listed("i-y"), listed("i-z"), seen("i-x", time.Hour), seen("i-y", time.Hour), seen("i-z", time.Hour)), nil, []string{"i-x", "i-y", "i-z"}, "orphan.too_many"},
		{"exactly a fifth is not", all(hasMany(8, busy1), pool(func(p *fleet.Pool) { p.MaxWorkers = 20 }), listed("i-x"), listed("i-y"), seen("i-x", time.Hour), seen("i-y", time.Hour)), []string{"terminate i-x", "terminate i-y"}, []string{"i-x", "i-y"}, ""},
		{"a single one is never too many", all(listed("i-x"), seen("i-x", time.Hour)), []string{"terminate i-x"}, []string{"i-x"}, ""},
		{"one that is no longer listed is not forgotten at once", seen("i-x", time.Hour), nil, []string{"i-x"}, ""},
		{"one in a place that cannot be listed stays", all(seen("i-x", time.Hour), placeUnknown), nil, []string{"i-x"}, ""},
		{"a person adopts it", all(listed("i-x"), seen("i-x", time.Hour), requested(fleet.RequestAdopt, "i-x")), nil, nil, "intent.adopted"},
		{"a person adopts all", all(listed("i-x"), listed("i-y", foreign), requested(fleet.RequestAdopt, "all")), nil, nil, "intent.adopted"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := decide.Decide(world(c.given))
			var got []string
			for _, s := range p.Sightings {
				got = append(got, s.Machine.ID)
			}
			same(t, "sightings", got, c.sightings)
			same(t, "calls", calls(p), c.calls)
			if c.note != "" && !slices.Contains(notes(p), c.note) {
				t.Errorf("notes %v lack %s", notes(p), c.note)
			}
		})
	}
	t.Run("it costs from first sight", func(t *testing.T) {
		t.Parallel()
		p := decide.Decide(world(listed("i-x"), seen("i-x", time.Hour)))
		if p.Spend.Rate != dime || p.Spend.Today != dime {
			t.Errorf("spend %s", text(p.Spend))
		}
	})
	t.Run("one of an unknown price costs what is known to be dearest", func(t *testing.T) {
		t.Parallel()
		p := decide.Decide(world(listed("i-x"), func(s *fleet.Snapshot) {
			s.Config.Prices, s.Config.Pools = nil, nil
			s.Memory.Quotes = []fleet.Quote{{Offer: "aws/eu//x/spot", Price: 7 * dime, At: ago(24 * time.Hour)}}
		}))
		if p.Spend.Rate != 7*dime {
			t.Errorf("rate %s", p.Spend.Rate)
		}
	})
	t.Run("its end is a line of the ledger and closes what was asked", func(t *testing.T) {
		t.Parallel()
		p := decide.Decide(world(listed("i-x", func(m *fleet.Machine) { m.State = fleet.MachineGone }), seen("i-x", time.Hour), func(s *fleet.Snapshot) {
			s.Memory.Intents = []fleet.Intent{{ID: "do", Kind: fleet.KindTerminate, State: fleet.IntentOpen, Ref: fleet.Ref{Place: aws, Machine: "i-x"}, Created: ago(minute)}}
		}))
		if len(p.Spans) != 1 || !p.Spans[0].Last || intentOf(p, "do").State != fleet.IntentDone || len(p.Sightings) != 0 {
			t.Errorf("spans %s, intents %s, sightings %s", text(p.Spans), text(p.Intents), text(p.Sightings))
		}
	})
	t.Run("two lists without it, two minutes apart, are its end", func(t *testing.T) {
		t.Parallel()
		p := decide.Decide(world(seen("i-x", time.Hour), func(s *fleet.Snapshot) { s.Memory.Sightings[0].Last = ago(2 * minute) }))
		if len(p.Spans) != 1 || len(p.Sightings) != 0 {
			t.Errorf("spans %s", text(p.Spans))
		}
	})
	t.Run("its end, asked for, goes on when its worker registers after all", func(t *testing.T) {
		t.Parallel()
		do := func(s *fleet.Snapshot) {
			s.Memory.Intents = []fleet.Intent{{ID: "do", Kind: fleet.KindTerminate, State: fleet.IntentOpen, Ref: fleet.Ref{Place: aws, Machine: "i-a"}, Created: ago(3 * minute), ClaimedUntil: ago(minute),
				Attempts: []fleet.Attempt{{Ordinal: 1, First: ago(3 * minute), Calls: 1, Outcome: fleet.OutcomeDone}}}}
		}
		p := decide.Decide(world(has("a", drains("drain.stale", minute), acked), do))
		same(t, "one call about one machine", calls(p), []string{"terminate i-a again"})
		p = decide.Decide(world(has("a"), do, inState("i-a", fleet.MachineGone)))
		if intentOf(p, "do").State != fleet.IntentDone {
			t.Errorf("and ends with it: %s", text(p.Intents))
		}
		p = decide.Decide(world(do))
		if intentOf(p, "do").State != fleet.IntentDone || len(calls(p)) != 0 {
			t.Errorf("and where nothing is left of it: %s", text(p.Intents))
		}
	})
}

func TestMany(t *testing.T) {
	t.Parallel()
	// One worker whose place cannot be seen stops none of the others.
	changes := []change{pool(func(p *fleet.Pool) { p.MaxWorkers = 100 }), placeUnknown}
	for i := range 49 {
		changes = append(changes, has(fmt.Sprintf("w%02d", i), drains("drain.stale", minute), acked, func(w *fleet.Worker) { w.Place = fleet.Place{Provider: "local"} }))
	}
	changes = append(changes, has("lost", drains("drain.stale", minute), acked), func(s *fleet.Snapshot) {
		s.Listings = append(s.Listings, fleet.Listing{Place: fleet.Place{Provider: "local"}, Begun: noon, Machines: s.Listings[0].Machines})
		s.Listings[0].Machines = nil
	})
	if got := calls(decide.Decide(world(changes...))); len(got) != 49 || slices.Contains(got, "terminate i-lost") {
		t.Errorf("%d calls, want the 49 whose place can be seen: %v", len(got), got)
	}
}
