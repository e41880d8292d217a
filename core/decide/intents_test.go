package decide_test

import (
	"slices"
	"testing"
	"time"

	"sluice/core/decide"
	"sluice/core/fleet"
)

// In these tests the claim of an unanswered launch lasts for 90 s, and machines may take 60 s to show: a
// list counts as late when it was begun more than 150 s after the call.
func TestUnansweredLaunches(t *testing.T) {
	t.Parallel()
	wanted := waiting(5, minute)
	ionos := notIdempotent
	for _, c := range []struct {
		name  string
		given change
		state fleet.IntentState // of the changed intent, or "" for untouched
		calls []string
		note  string
	}{
		{"while another tick may act it is left alone", all(wanted, asked("in", minute, claimed)), "", nil, ""},
		{"even where its machine shows", all(wanted, asked("in", minute, claimed), listed("i-x", tagged("in"))), "", nil, ""},
		{"its machine is adopted", all(wanted, asked("in", 2*minute), listed("i-x", tagged("in"))), fleet.IntentDone, nil, "intent.adopted"},
		{"nothing shows and it is wanted: the same request again", all(wanted, asked("in", 2*minute)), fleet.IntentOpen, []string{"launch 1 again"}, "intent.repeated"},
		{"nothing shows and it is not wanted any more: given up", asked("in", 2*minute), fleet.IntentAbandoned, nil, "intent.abandoned"},
		{"nothing shows and the mode allows none: given up", all(wanted, asked("in", 2*minute), mode(fleet.VPSOnly)), fleet.IntentAbandoned, nil, "intent.abandoned"},
		{"nothing shows and the override stands: given up", all(wanted, asked("in", 2*minute), overridden), fleet.IntentAbandoned, nil, "intent.abandoned"},
		{"nothing shows and the pool may not grow by itself: given up", all(wanted, asked("in", 2*minute), pool(func(p *fleet.Pool) { p.Automatic = false })), fleet.IntentAbandoned, nil, "intent.abandoned"},
		{"nothing shows and the limit was lowered: given up", all(wanted, asked("in", 2*minute), limits(dime-1, 50*fleet.Unit)), fleet.IntentAbandoned, nil, "intent.abandoned"},
		{"nothing shows and the provider was disabled: given up", all(wanted, asked("in", 2*minute), func(s *fleet.Snapshot) { s.Config.Providers = nil }), fleet.IntentAbandoned, nil, "intent.abandoned"},
		{"fourteen minutes after it was first stored it is repeated", all(wanted, asked("in", 14*minute)), fleet.IntentOpen, []string{"launch 1 again"}, ""},
		{"a second later the call could leave after fifteen: given up", all(wanted, asked("in", 14*minute+time.Second)), fleet.IntentAbandoned, nil, "intent.abandoned"},
		{"on a broken config nothing is repeated", all(wanted, asked("in", 2*minute), brokenConfig), "", nil, "intent.waiting"},
		{"nor on one older than one seen", all(wanted, asked("in", 2*minute), staleConfig), "", nil, "intent.waiting"},
		{"nor while the queue cannot be read", all(wanted, unreadable("refused"), asked("in", 2*minute)), "", nil, "intent.waiting"},
		{"nor where the place cannot be listed", all(wanted, asked("in", 2*minute), placeUnknown), "", nil, "intent.waiting"},
		{"its last offer was refused and no next one was begun: nothing exists", all(wanted, asked("in", 2*minute, func(in *fleet.Intent) {
			in.Attempts = []fleet.Attempt{{Ordinal: 1, First: in.Created, Calls: 1, Outcome: fleet.OutcomeRefused, Launch: &fleet.Launch{Offer: offer()}}}
		})), fleet.IntentRefused, nil, ""},
		{"no call was ever written down: nothing exists", all(wanted, asked("in", 2*minute, func(in *fleet.Intent) { in.Attempts = []fleet.Attempt{} })), fleet.IntentRefused, nil, ""},
		{"one machine of two: the other is waited for", all(wanted, asked("in", 2*minute, count(2)), listed("i-x", tagged("in"))), "", nil, "intent.adopted"},
		{"one of two in a late list: it was one", all(wanted, asked("in", 151*time.Second, count(2)), listed("i-x", tagged("in"))), fleet.IntentDone, nil, "intent.adopted"},
		{"a machine that was bound before is waited beside", all(wanted, asked("in", 2*minute, count(2), bound(1))), "", nil, ""},

		{"without idempotency: not repeated after one early list", all(wanted, asked("in", 2*minute, ionos)), "", nil, "intent.waiting"},
		{"without idempotency: not repeated after one late list", all(wanted, asked("in", 151*time.Second, ionos)), fleet.IntentOpen, nil, "intent.waiting"},
		{"without idempotency: a list at the very end of the delay is early", all(wanted, asked("in", 150*time.Second, ionos)), "", nil, "intent.waiting"},
		{"without idempotency: repeated after a second late list", all(wanted, asked("in", 4*minute, ionos, emptySince(minute))), fleet.IntentOpen, []string{"launch 1 again"}, "intent.repeated"},
		{"without idempotency: the same late list twice is one", all(wanted, asked("in", 4*minute, ionos, emptySince(0))), "", nil, "intent.waiting"},
		{"without idempotency: an empty list before the last call counts for nothing", all(wanted, asked("in", 4*minute, ionos, emptySince(200*time.Second))), fleet.IntentOpen, nil, "intent.waiting"},
		{"without idempotency: called once, its machine is adopted at once", all(wanted, asked("in", 2*minute, ionos), listed("i-x", tagged("in"))), fleet.IntentDone, nil, "intent.adopted"},
		{"without idempotency: called twice, not from an early list", all(wanted, asked("in", 2*minute, ionos, times(2)), listed("i-x", tagged("in"))), "", nil, "intent.waiting"},
		{"without idempotency: called twice, from a late one", all(wanted, asked("in", 151*time.Second, ionos, times(2)), listed("i-x", tagged("in"))), fleet.IntentDone, nil, "intent.adopted"},

		{"given up: still reserved after one late list", asked("in", 151*time.Second, abandoned), fleet.IntentAbandoned, nil, ""},
		{"given up: the same late list twice is one", asked("in", 4*minute, abandoned, emptySince(0)), "", nil, ""},
		{"given up: an early list counts for nothing", asked("in", 2*minute, abandoned), "", nil, ""},
		{"given up: free after two", asked("in", 4*minute, abandoned, emptySince(minute)), fleet.IntentClosed, nil, "intent.released"},
		{"given up: a list that is not complete counts for nothing", all(asked("in", 4*minute, abandoned, emptySince(minute)), placeUnknown), "", nil, ""},
		{"given up: its machine turns up and drains", all(asked("in", 2*minute, abandoned), listed("i-x", tagged("in"))), fleet.IntentClosed, nil, "intent.adopted"},
		{"given up without idempotency: another may turn up", all(asked("in", 2*minute, abandoned, ionos, times(2)), listed("i-x", tagged("in"))), "", nil, "intent.adopted"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := decide.Decide(world(c.given))
			if in := intentOf(p, "in"); in.State != c.state {
				t.Errorf("the intent becomes %q, want %q: %s, notes %v", in.State, c.state, text(in), notes(p))
			}
			var repeats []string
			for _, call := range calls(p) {
				if call == "launch 1 again" || c.calls != nil {
					repeats = append(repeats, call)
				}
			}
			same(t, "calls", repeats, c.calls)
			if c.note != "" && !slices.Contains(notes(p), c.note) {
				t.Errorf("notes %v lack %s", notes(p), c.note)
			}
		})
	}
}

func TestARepeatIsTheSameRequestUnderTheSameToken(t *testing.T) {
	t.Parallel()
	s := world(waiting(5, minute), asked("in", 2*minute, emptySince(minute)))
	p := decide.Decide(s)
	before, after := s.Memory.Intents[0], intentOf(p, "in")
	same(t, "request", after.Attempts[0].Launch, before.Attempts[0].Launch)
	if len(after.Attempts) != 1 || after.Attempts[0].Calls != 2 || !after.Attempts[0].First.Equal(before.Attempts[0].First) {
		t.Errorf("one attempt, called twice: %s", text(after.Attempts))
	}
	if after.Claim == before.Claim || !after.ClaimedUntil.Equal(noon.Add(90*time.Second)) || !after.EmptySince.IsZero() {
		t.Errorf("claimed anew, and the count of empty lists starts again: %s", text(after))
	}
	if before.Attempts[0].Calls != 1 {
		t.Error("the snapshot was changed")
	}
}

func TestAnUnansweredLaunchIsNotLaunchedBeside(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		given change
	}{
		{"while it is claimed", asked("in", minute, claimed)},
		{"when it is repeated", asked("in", 2*minute)},
		{"while lists are waited for", asked("in", 2*minute, notIdempotent)},
	} {
		if p := first(t, decide.Decide(world(waiting(5, minute), c.given))); p.Have != 1 || p.Launch != 0 {
			t.Errorf("%s: have %d, launch %d", c.name, p.Have, p.Launch)
		}
	}
}

func TestSurplusMachinesOfALaunchDrain(t *testing.T) {
	t.Parallel()
	p := decide.Decide(world(waiting(5, minute), asked("in", 3*minute, notIdempotent, times(2)), listed("i-x", tagged("in")), listed("i-y", tagged("in"))))
	if x, y := row(p, "i-x"), row(p, "i-y"); x.Status != fleet.Provisioning || y.Status != fleet.Draining || y.DrainWhy != "drain.surplus" {
		t.Errorf("one was asked for: %s %s", text(x), text(y))
	}
	if p.Spend.Rate != 2*dime || len(p.Sightings) != 0 {
		t.Errorf("both cost, none is an orphan: %s", text(p.Spend))
	}
}

func TestAdoptedMachines(t *testing.T) {
	t.Parallel()
	two := func(in *fleet.Intent) {
		dear := offer()
		dear.Type = "large"
		in.Offers, in.Prices, in.Reserve = append(in.Offers, dear), append(in.Prices, 3*dime), 3*dime
	}
	large := func(m *fleet.Machine) { m.Type = "large" }
	p := decide.Decide(world(waiting(5, minute), asked("in", 2*minute, two), listed("i-x", tagged("in"), large)))
	w := row(p, "i-x")
	if w.Price != 3*dime || w.Intent != "in" || w.Pool != "ocr" || w.MinCharge != 60 || !w.CostFrom.Equal(ago(2*minute)) || !slices.Equal(w.Queues, []string{"ocr"}) {
		t.Errorf("it takes the price of its own offer, and costs since it was asked for: %s", text(w))
	}
	if p.Spend.Rate != 3*dime || p.Spend.Reserved != 0 {
		t.Errorf("what was reserved now runs: %s", text(p.Spend))
	}
	odd := func(m *fleet.Machine) { m.Type = "unheard" }
	if w := row(decide.Decide(world(asked("in", 2*minute, two), listed("i-x", tagged("in"), odd))), "i-x"); w.Price != 3*dime {
		t.Errorf("a type that was not asked for costs the dearest: %s", w.Price)
	}
	p = decide.Decide(world(waiting(5, minute), asked("in", 2*minute), listed("i-x", tagged("in"), func(m *fleet.Machine) { m.State = fleet.MachineGone })))
	if w := row(p, "i-x"); w.Status != fleet.Failed || len(p.Spans) != 1 || p.Spend.Rate != 0 || p.Spend.Today != dime.For(2*minute)+dime.For(minute) {
		t.Errorf("one that has ended already cost its time once, beside the least for its replacement: %s %s %s", text(w), text(p.Spans), text(p.Spend))
	}
	if pp := first(t, p); pp.Launch != 1 {
		t.Errorf("and it takes no place: %s", text(pp))
	}
	late := decide.Decide(world(waiting(5, minute), asked("in", 10*minute, func(in *fleet.Intent) { in.Changed = ago(2 * minute) }), listed("i-x", tagged("in"))))
	if w := row(late, "i-x"); !w.BootAt.Equal(ago(2*minute)) || !w.CostFrom.Equal(ago(10*minute)) {
		t.Errorf("its boot begins with the last call, its cost with the first: %s", text(w))
	}
}

func TestCallsAboutMachines(t *testing.T) {
	t.Parallel()
	ending := func(d time.Duration) change {
		return all(has("a", drains("drain.idle", 4*minute), acked), doing(fleet.KindTerminate, "a", d))
	}
	for _, c := range []struct {
		name  string
		given change
		calls []string
	}{
		{"while another tick may act it is left alone", ending(89 * time.Second), nil},
		{"when the claim has run out and the machine runs it is asked again", ending(90 * time.Second), []string{"terminate i-a again"}},
		{"while the machine stops it is waited for", all(ending(time.Hour), inState("i-a", fleet.MachineStopping)), nil},
		{"an end is asked again on a broken config", all(ending(2*minute), brokenConfig), []string{"terminate i-a again"}},
		{"and while its pool wants more", all(ending(2*minute), waiting(50, 0), scaledUp(time.Second)), []string{"terminate i-a again"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := decide.Decide(world(c.given))
			same(t, "calls", calls(p), c.calls)
			same(t, "un-drained", drainedBack(p), []string{})
		})
	}
}

func TestAdmission(t *testing.T) {
	t.Parallel()
	last := func(d time.Duration) change {
		return func(s *fleet.Snapshot) { s.Memory.LastDue = map[fleet.Function]time.Time{fleet.Evaluate: ago(d)} }
	}
	due := func(d time.Duration) change { return func(s *fleet.Snapshot) { s.Due = ago(d) } }
	every := func(n fleet.Seconds) change { return func(s *fleet.Snapshot) { s.Config.Interval = n } }
	for _, c := range []struct {
		name  string
		given change
		skip  string
	}{
		{"the first tick is admitted", all(), ""},
		{"the next minute is", last(minute), ""},
		{"the same due time again is not", last(0), "skip.repeated"},
		{"an older one is not", all(last(minute), due(2*minute)), "skip.repeated"},
		{"one in the future counts as now", all(last(0), due(-time.Hour)), "skip.repeated"},
		{"a minute of a five-minute interval is not due", all(every(300), last(minute)), "skip.not_due"},
		{"nor four", all(every(300), last(4*minute)), "skip.not_due"},
		{"five are", all(every(300), last(5*minute)), ""},
		{"a schedule that fires half a minute early is no minute late", all(every(300), last(4*minute+30*time.Second)), ""},
		{"the first tick of a long interval is due", every(300), ""},
		{"the other function's ticks do not count", func(s *fleet.Snapshot) { s.Memory.LastDue = map[fleet.Function]time.Time{fleet.Reconcile: noon} }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := decide.Decide(world(waiting(50, 0), c.given))
			got := ""
			if p.Skipped != nil {
				got = p.Skipped.Code()
			}
			if got != c.skip {
				t.Errorf("skipped for %q, want %q", got, c.skip)
			}
			if c.skip != "" && len(p.Intents)+len(p.Calls)+len(p.Pools) > 0 {
				t.Errorf("a skipped tick plans nothing: %s", text(p))
			}
			if p.Due.After(p.Now) {
				t.Errorf("due %s after now %s", p.Due, p.Now)
			}
		})
	}
}
