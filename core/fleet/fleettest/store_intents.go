package fleettest

import (
	"errors"
	"time"

	"sluice/core/fleet"
)

func intentCases() []storeCase {
	return []storeCase{
		{"an intent comes back as it was written", intentRoundTrip},
		{"only open and abandoned intents are recalled", openAndAbandoned},
		{"an attempt is stored before its call, with its time", beginStores},
		{"an attempt is not stored without the claim", beginGuarded},
		{"an attempt is not stored for an intent that is closed", beginClosed},
		{"beginning the same attempt twice is harmless", beginTwice},
		{"an answer is stored by the tick that holds the claim", settleStores},
		{"an answer without the claim changes nothing, but its machines get rows", settleWithoutClaim},
		{"the claim is lost when another tick takes the intent over", claimTakenOver},
		{"machines of an answer get their rows once", settleTwice},
		{"an answer does not set back a worker that has registered", settleAfterRegister},
		{"a machine takes its price from the offer that was tried", settlePrice},
		{"a machine costs since the first call and boots since the last", bootsSinceRepeat},
		{"machines of an intent are counted as bound, also when they have ended", boundCounts},
		{"a cool-off is stored with a refusal and ends with a success", coolOffs},
	}
}

func intentRoundTrip(b *bench) {
	in := b.open("round-trip", 2)
	b.want("launch intent", b.intent(in.ID), in)
	b.begin(in, 0)
	got := b.intent(in.ID)
	if len(got.Attempts) != 1 {
		b.Fatalf("%d attempts, want 1", len(got.Attempts))
	}
	stored := attempt(in, 0)
	stored.First = got.Attempts[0].First
	b.want("attempt", got.Attempts[0], stored)

	got.State, got.Claim, got.EmptySince = fleet.IntentAbandoned, "other", got.Created
	got.Attempts[0].Calls, got.Attempts[0].Outcome, got.Attempts[0].Code = 2, fleet.OutcomeUnknown, "unavailable"
	b.commit(func(_ fleet.Memory, p *fleet.Plan, _ *fleet.Record) { p.Intents = []fleet.Intent{got} })
	b.want("changed by a plan", b.intent(in.ID), got)
}

func openAndAbandoned(b *bench) {
	states := []fleet.IntentState{fleet.IntentOpen, fleet.IntentDone, fleet.IntentRefused, fleet.IntentAbandoned, fleet.IntentClosed}
	b.commit(func(m fleet.Memory, p *fleet.Plan, _ *fleet.Record) {
		for _, s := range states {
			in := launch(string(s), 1, m.Now)
			in.State = s
			p.Intents = append(p.Intents, in)
		}
	})
	m := b.recall()
	if len(m.Intents) != 2 || find(m, id("open")) == nil || find(m, id("abandoned")) == nil {
		b.Errorf("recalled %s", text(b.T, m.Intents))
	}
	if len(m.Intents) == 2 && m.Intents[0].ID > m.Intents[1].ID {
		b.Error("intents are not sorted by id")
	}
}

func beginStores(b *bench) {
	in := b.open("begin", 1)
	b.Advance(7 * time.Second)
	now := b.recall().Now
	b.begin(in, 0)
	got := b.intent(in.ID)
	a := got.Last()
	if a == nil || a.Calls != 1 || !a.Unanswered() {
		b.Fatalf("stored attempt %s", text(b.T, a))
	}
	b.near("first stored", a.First, now)
	b.begin(in, 1)
	if n := len(b.intent(in.ID).Attempts); n != 2 {
		b.Errorf("%d attempts, want 2", n)
	}
}

func beginGuarded(b *bench) {
	in := b.open("begin", 1)
	err := b.Store.Begin(b.ctx, fleet.Claim{Intent: in.ID, Token: "someone else"}, attempt(in, 0))
	if !errors.Is(err, fleet.ErrClaimLost) || len(b.intent(in.ID).Attempts) != 0 {
		b.Errorf("got %v and attempts %s, want ErrClaimLost and none", err, text(b.T, b.intent(in.ID).Attempts))
	}
}

func beginClosed(b *bench) {
	in := b.launched("done", "i-done")
	if err := b.Store.Begin(b.ctx, claim(in), attempt(in, 1)); !errors.Is(err, fleet.ErrClaimLost) {
		b.Errorf("got %v, want ErrClaimLost", err)
	}
}

func beginTwice(b *bench) {
	in := b.open("begin", 1)
	b.begin(in, 0)
	first := b.intent(in.ID)
	b.Advance(time.Minute)
	b.begin(in, 0)
	b.want("after the second begin", b.intent(in.ID), first)
}

func settleStores(b *bench) {
	in := b.open("settle", 1)
	b.begin(in, 0)
	b.settle(in, fleet.Result{Outcome: fleet.OutcomeRefused, Code: "no_capacity", State: fleet.IntentOpen})
	b.begin(in, 1)
	b.settle(in, fleet.Result{Attempt: 1, Outcome: fleet.OutcomeUnknown, Code: "unavailable", State: fleet.IntentOpen})
	got := b.intent(in.ID)
	if len(got.Attempts) != 2 || got.Attempts[0].Outcome != fleet.OutcomeRefused || got.Attempts[0].Code != "no_capacity" ||
		got.Attempts[1].Outcome != fleet.OutcomeUnknown || got.Attempts[1].Code != "unavailable" || got.State != fleet.IntentOpen {
		b.Errorf("stored %s", text(b.T, got))
	}
	b.settle(in, fleet.Result{Attempt: 1, Outcome: fleet.OutcomeRefused, Code: "quota", State: fleet.IntentRefused})
	if find(b.recall(), in.ID) != nil {
		b.Error("a refused intent is still recalled")
	}
}

func settleWithoutClaim(b *bench) {
	in := b.open("settle", 1)
	b.begin(in, 0)
	before := b.intent(in.ID)
	err := b.Store.Settle(b.ctx, fleet.Claim{Intent: in.ID, Token: "someone else"}, fleet.Result{
		Outcome: fleet.OutcomeDone, State: fleet.IntentDone, Machines: []fleet.Machine{machine("i-late", in)},
	})
	if !errors.Is(err, fleet.ErrClaimLost) {
		b.Errorf("got %v, want ErrClaimLost", err)
	}
	before.Bound = 1
	b.want("intent", b.intent(in.ID), before)
	if m := b.recall(); len(m.Workers) != 1 || m.Workers[0].Machine != "i-late" || m.Workers[0].Intent != in.ID {
		b.Errorf("workers %s, want the machine of the answer", text(b.T, m.Workers))
	}
}

func claimTakenOver(b *bench) {
	in := b.open("takeover", 1)
	b.begin(in, 0)
	b.commit(func(m fleet.Memory, p *fleet.Plan, _ *fleet.Record) {
		taken := *find(m, in.ID)
		taken.Claim, taken.ClaimedUntil = "second", m.Now.Add(2*time.Minute)
		taken.Attempts[0].Calls = 2
		p.Intents = []fleet.Intent{taken}
	})
	refused := fleet.Result{Outcome: fleet.OutcomeRefused, Code: "quota", State: fleet.IntentRefused}
	if err := b.Store.Settle(b.ctx, claim(in), refused); !errors.Is(err, fleet.ErrClaimLost) {
		b.Errorf("settle by the first tick: %v, want ErrClaimLost", err)
	}
	if err := b.Store.Begin(b.ctx, claim(in), attempt(in, 1)); !errors.Is(err, fleet.ErrClaimLost) {
		b.Errorf("begin by the first tick: %v, want ErrClaimLost", err)
	}
	if got := b.intent(in.ID); got.Claim != "second" || len(got.Attempts) != 1 || got.Attempts[0].Calls != 2 || !got.Attempts[0].Unanswered() {
		b.Errorf("intent %s was changed by the tick that had lost it", text(b.T, got))
	}
}

func settleTwice(b *bench) {
	in := b.open("twice", 2)
	b.begin(in, 0)
	r := fleet.Result{Outcome: fleet.OutcomeDone, State: fleet.IntentDone, Machines: []fleet.Machine{machine("i-1", in), machine("i-2", in)}}
	b.settle(in, r)
	first := b.recall().Workers
	if len(first) != 2 {
		b.Fatalf("%d workers, want 2", len(first))
	}
	if err := b.Store.Settle(b.ctx, claim(in), r); err != nil && !errors.Is(err, fleet.ErrClaimLost) {
		b.Errorf("second settle: %v", err)
	}
	b.want("workers after the second settle", b.recall().Workers, first)
}

func settleAfterRegister(b *bench) {
	b.assign()
	in := b.open("fast-boot", 1)
	b.begin(in, 0)
	worker := b.register("i-fast", in.ID).Worker
	b.settle(in, fleet.Result{Outcome: fleet.OutcomeDone, State: fleet.IntentDone, Machines: []fleet.Machine{machine("i-fast", in)}})
	if w := b.worker(worker); w.Status != fleet.Ready || w.Registered.IsZero() {
		b.Errorf("status %s, registered %v: the answer set the worker back", w.Status, w.Registered)
	}
	if n := len(b.recall().Workers); n != 1 {
		b.Errorf("%d rows for one machine", n)
	}
}

func settlePrice(b *bench) {
	in := b.open("price", 1)
	b.begin(in, 0)
	asked := b.intent(in.ID).Attempts[0].First
	b.settle(in, fleet.Result{Outcome: fleet.OutcomeRefused, Code: "no_capacity", State: fleet.IntentOpen})
	b.begin(in, 1)
	m := machine("i-od", in)
	m.Market, m.Tags.Expires = fleet.OnDemand, in.Created.Add(time.Hour)
	b.Advance(time.Minute)
	b.settle(in, fleet.Result{Attempt: 1, Outcome: fleet.OutcomeDone, State: fleet.IntentDone, Machines: []fleet.Machine{m}})
	w := b.recall().Workers[0]
	if w.Price != 10*fleet.Cent || w.Market != fleet.OnDemand || w.Type != sizeA || w.Pool != poolA || w.MinCharge != 60 ||
		w.Status != fleet.Provisioning || w.Spec != "spec-1" || w.Place != place() || w.Zone != "eu-west-3a" {
		b.Errorf("worker %s", text(b.T, w))
	}
	b.near("expires", w.Expires, in.Created.Add(time.Hour))
	b.near("cost from", w.CostFrom, asked) // the call's begin, not its answer
	b.near("boot at", w.BootAt, w.CostFrom)
}

func bootsSinceRepeat(b *bench) {
	b.assign()
	repeated := func(word string) fleet.Intent {
		var in fleet.Intent
		b.commit(func(m fleet.Memory, p *fleet.Plan, _ *fleet.Record) {
			in = launch(word, 1, m.Now)
			in.Idempotent = true
			p.Intents = []fleet.Intent{in}
		})
		b.begin(in, 0)
		b.Advance(4 * time.Minute)
		b.commit(func(m fleet.Memory, p *fleet.Plan, _ *fleet.Record) {
			taken := *find(m, in.ID)
			taken.Changed, taken.ClaimedUntil, taken.Attempts[0].Calls = m.Now, m.Now.Add(2*time.Minute), 2
			p.Intents = []fleet.Intent{taken}
		})
		return in
	}
	check := func(how string, w fleet.Worker, in fleet.Intent) {
		b.Helper()
		b.near(how+": cost from", w.CostFrom, in.Created)
		b.near(how+": boot at", w.BootAt, in.Created.Add(4*time.Minute))
	}
	in := repeated("answered")
	b.settle(in, fleet.Result{Outcome: fleet.OutcomeDone, State: fleet.IntentDone, Machines: []fleet.Machine{machine("i-answered", in)}})
	check("answered", b.recall().Workers[0], in)
	in = repeated("registered")
	check("registered", b.worker(b.register("i-registered", in.ID).Worker), in)
}

func boundCounts(b *bench) {
	b.assign()
	in := b.open("bound", 3)
	b.begin(in, 0)
	b.settle(in, fleet.Result{Outcome: fleet.OutcomeUnknown, State: fleet.IntentOpen, Machines: []fleet.Machine{machine("i-1", in)}})
	b.register("i-2", in.ID)
	got := b.intent(in.ID)
	if got.Bound != 2 || got.Unbound() != 1 {
		b.Errorf("bound %d, unbound %d, want 2 and 1", got.Bound, got.Unbound())
	}
	b.change(b.register("i-2", in.ID).Worker, "gone", end(fleet.Failed))
	if got := b.intent(in.ID); got.Bound != 2 {
		b.Errorf("bound %d after one ended, want 2: it was had", got.Bound)
	}
}

func coolOffs(b *bench) {
	in := b.open("cool", 1)
	b.begin(in, 0)
	off := fleet.CoolOff{Offer: in.Offers[0].Key(), Until: in.Created.Add(time.Minute), Count: 1, Code: "no_capacity"}
	b.settle(in, fleet.Result{Outcome: fleet.OutcomeRefused, Code: "no_capacity", State: fleet.IntentRefused, CoolOff: &off})
	b.want("cool-offs", b.recall().CoolOffs, []fleet.CoolOff{off})

	again := b.open("cool-again", 1)
	b.begin(again, 0)
	off.Count, off.Until = 2, off.Until.Add(time.Hour)
	b.settle(again, fleet.Result{Outcome: fleet.OutcomeRefused, Code: "no_capacity", State: fleet.IntentRefused, CoolOff: &off})
	b.want("replaced", b.recall().CoolOffs, []fleet.CoolOff{off})

	b.launched("warm", "i-warm")
	if got := b.recall().CoolOffs; len(got) != 0 {
		b.Errorf("cool-offs %s are left after a success", text(b.T, got))
	}
}
