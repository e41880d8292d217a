package fleettest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"sluice/core/fleet"
)

func workerCases() []storeCase {
	return []storeCase{
		{"registering makes a launched machine ready", registerReady},
		{"registering before the answer binds the machine to its intent", registerBinds},
		{"registering again is the same worker", registerTwice},
		{"registering without an assignment has to wait", registerWaits},
		{"more machines of a launch than it asked for register as draining", registerSurplus},
		{"registering has to wait while a repeated call without idempotency is in flight", registerWaitsForRepeat},
		{"a machine whose end was asked for while nobody knew it does not register", registerDoomed},
		{"the vps registers as itself", registerVPS},
		{"a heartbeat is stored and is no change", heartbeats},
		{"a heartbeat of an unknown or ended worker says so", heartbeatUnknown},
		{"a resumed worker is ready with its first heartbeat", resumedHeartbeat},
		{"a change is written with the tick's time", changeWritten},
		{"a change is not written where the status has moved on", changeGuarded},
		{"a change does not overwrite what the worker wrote meanwhile", changeKeepsWorkersOwn},
		{"an observation alone is no change", absenceIsNoChange},
		{"a drain is acknowledged, and the acknowledgement ends with the drain", drainAck},
		{"an acknowledgement during a transaction is kept", ackDuringTransaction},
		{"a worker that leaves drains", leaves},
		{"a machine without a row is adopted", adopts},
		{"a machine that registers while it is adopted has one row", adoptsRegistered},
		{"a machine listed under an ended row is live again", revives},
		{"an ended worker that registers is live again", registersAgain},
		{"ended workers are not recalled, their spans are", endedSpans},
		{"spans older than fifty hours are not recalled", oldSpans},
		{"living workers are sorted by id", workersSorted},
	}
}

func registerReady(b *bench) {
	b.assign()
	in := b.launched("boot", "i-1")
	before := b.recall().Workers[0]
	b.Advance(3 * time.Minute)
	r := b.register("i-1", in.ID)
	if r.Worker != before.ID || r.Drain || len(r.Assignment) == 0 {
		b.Errorf("registered as %s (drain %v, assignment %s), want %s", r.Worker, r.Drain, r.Assignment, before.ID)
	}
	w := b.worker(r.Worker)
	now := b.recall().Now
	if w.Status != fleet.Ready || !slices.Equal(w.Queues, []string{poolA}) || w.Price != before.Price || !w.CostFrom.Equal(before.CostFrom) {
		b.Errorf("worker %s", text(b.T, w))
	}
	b.near("registered", w.Registered, now)
	b.near("heartbeat", w.Heartbeat, now)
	b.near("idle since", w.IdleSince, now)
	b.near("changed", w.Changed, now)
}

func registerBinds(b *bench) {
	b.assign()
	in := b.open("early", 1)
	b.begin(in, 0)
	w := b.worker(b.register("i-early", in.ID).Worker)
	if w.Intent != in.ID || w.Price != 4*fleet.Cent || w.Pool != poolA || w.Type != sizeA || w.MinCharge != 60 {
		b.Errorf("worker %s", text(b.T, w))
	}
	b.near("cost from", w.CostFrom, b.intent(in.ID).Attempts[0].First)
	if got := b.intent(in.ID); got.Bound != 1 {
		b.Errorf("bound %d, want 1", got.Bound)
	}
}

func registerTwice(b *bench) {
	b.assign()
	in := b.launched("boot", "i-1")
	first := b.register("i-1", in.ID)
	before := b.worker(first.Worker)
	b.Advance(time.Minute)
	if again := b.register("i-1", in.ID); again.Worker != first.Worker {
		b.Errorf("registered as %s and then as %s", first.Worker, again.Worker)
	}
	if after := b.worker(first.Worker); !after.Registered.Equal(before.Registered) || after.Status != fleet.Ready {
		b.Errorf("the second registration made %s of %s", text(b.T, after), text(b.T, before))
	}
}

func registerWaits(b *bench) {
	r, err := b.Workers.Register(b.ctx, Registration{Provider: cloud, Scope: scopeA, Machine: "i-1", Pool: poolA})
	if err != nil || !r.Wait || len(b.recall().Workers) != 0 {
		b.Errorf("wait=%v, %v, workers %s", r.Wait, err, text(b.T, b.recall().Workers))
	}
}

func registerWaitsForRepeat(b *bench) {
	b.assign()
	repeated := func(word string, idempotent bool) fleet.Intent {
		var in fleet.Intent
		b.commit(func(m fleet.Memory, p *fleet.Plan, _ *fleet.Record) {
			in = launch(word, 1, m.Now)
			in.Idempotent = idempotent
			a := attempt(in, 0)
			a.First, a.Calls = m.Now, 2
			in.Attempts = []fleet.Attempt{a}
			p.Intents = []fleet.Intent{in}
		})
		return in
	}
	waits := func(in fleet.Intent) bool {
		r, err := b.Workers.Register(b.ctx, Registration{Provider: cloud, Scope: scopeA, Machine: "i-" + in.ID, Pool: poolA, Intent: in.ID})
		if err != nil {
			b.Fatalf("register: %v", err)
		}
		return r.Wait
	}
	if waits(repeated("idempotent", true)) {
		b.Error("has to wait although the provider is idempotent")
	}
	in := repeated("not-idempotent", false)
	if !waits(in) {
		b.Error("bound to an intent whose repeat may make a second machine")
	}
	b.Advance(3 * time.Minute) // the claim ends, yet a machine may not be visible: the reservation must stay
	if !waits(in) {
		b.Error("bound to an intent that no tick has settled")
	}
	b.commit(func(_ fleet.Memory, p *fleet.Plan, _ *fleet.Record) {
		in.State = fleet.IntentAbandoned
		p.Intents = []fleet.Intent{in}
	})
	if waits(in) {
		b.Error("has to wait although the intent is settled")
	}
}

func registerSurplus(b *bench) {
	b.assign()
	var in fleet.Intent
	b.commit(func(m fleet.Memory, p *fleet.Plan, _ *fleet.Record) {
		in = launch("one", 1, m.Now)
		p.Intents = []fleet.Intent{in}
	})
	for i, want := range []fleet.Status{fleet.Ready, fleet.Draining} {
		machine := fmt.Sprintf("i-%d", i)
		r, err := b.Workers.Register(b.ctx, Registration{Provider: cloud, Scope: scopeA, Machine: machine, Pool: poolA, Intent: in.ID})
		if err != nil || r.Status != string(want) {
			b.Errorf("machine %d of a launch for one is %s, %v; want %s", i+1, r.Status, err, want)
		}
	}
}

func registerDoomed(b *bench) {
	b.assign()
	b.commit(func(m fleet.Memory, p *fleet.Plan, _ *fleet.Record) {
		in := ending("orphan", "", m.Now)
		in.Ref = fleet.Ref{Place: place(), Machine: "i-orphan"}
		p.Intents = []fleet.Intent{in}
	})
	r, err := b.Workers.Register(b.ctx, Registration{Provider: cloud, Scope: scopeA, Machine: "i-orphan", Pool: poolA})
	if err != nil || !r.Wait || len(b.recall().Workers) != 0 {
		b.Errorf("wait=%v, %v, workers %s: it would be given work and then be killed", r.Wait, err, text(b.T, b.recall().Workers))
	}
	b.register("i-another", "")
}

func registerVPS(b *bench) {
	b.assign()
	w := b.worker(b.vps())
	if w.Cloud() || w.Pool != fleet.VPS || w.Status != fleet.Ready || w.Price != 0 {
		b.Errorf("worker %s", text(b.T, w))
	}
}

func heartbeats(b *bench) {
	b.assign()
	worker := b.running("one")
	before := b.worker(worker)
	b.Advance(time.Minute)
	beat, known, err := b.Workers.Heartbeat(b.ctx, worker)
	if err != nil || !known || beat.Drain || beat.Status != string(fleet.Ready) || len(beat.Assignment) == 0 {
		b.Errorf("answer %+v, known %v, %v", beat, known, err)
	}
	after := b.worker(worker)
	b.near("heartbeat", after.Heartbeat, before.Heartbeat.Add(time.Minute))
	if !after.Changed.Equal(before.Changed) {
		b.Error("a heartbeat counted as a change")
	}
}

func heartbeatUnknown(b *bench) {
	b.assign()
	if _, known, err := b.Workers.Heartbeat(b.ctx, id("nobody")); known || err != nil {
		b.Errorf("unknown worker: known %v, %v", known, err)
	}
	worker := b.running("one")
	b.change(worker, "gone", end(fleet.Terminated))
	if _, known, err := b.Workers.Heartbeat(b.ctx, worker); known || err != nil {
		b.Errorf("ended worker: known %v, %v: it must register again", known, err)
	}
}

func resumedHeartbeat(b *bench) {
	b.assign()
	worker := b.running("one")
	b.change(worker, "suspend", end(fleet.Suspended))
	b.Advance(time.Hour)
	b.change(worker, "resume", func(w *fleet.Worker, now time.Time) {
		w.Status, w.BootAt, w.CostFrom, w.Registered = fleet.Provisioning, now, now, time.Time{}
	})
	if w := b.worker(worker); !w.Registered.IsZero() || w.Status != fleet.Provisioning {
		b.Fatalf("resumed worker %s", text(b.T, w))
	}
	b.Advance(time.Minute)
	if _, known, err := b.Workers.Heartbeat(b.ctx, worker); !known || err != nil {
		b.Fatalf("heartbeat: known %v, %v", known, err)
	}
	w := b.worker(worker)
	if w.Status != fleet.Ready {
		b.Errorf("status %s after the first heartbeat", w.Status)
	}
	b.near("registered", w.Registered, w.BootAt.Add(time.Minute))
	b.near("idle since", w.IdleSince, w.Registered)
}

func changeWritten(b *bench) {
	b.assign()
	worker := b.running("one")
	b.Advance(5 * time.Minute)
	b.change(worker, "drain.idle", drain("drain.idle"))
	w, now := b.worker(worker), b.recall().Now
	if w.Status != fleet.Draining || w.DrainWhy != "drain.idle" || !w.DrainAck.IsZero() {
		b.Errorf("worker %s", text(b.T, w))
	}
	b.near("drain at", w.DrainAt, now)
	b.near("changed", w.Changed, now)
}

func changeGuarded(b *bench) {
	b.assign()
	in := b.launched("boot", "i-1")
	worker := b.recall().Workers[0].ID
	b.commit(func(m fleet.Memory, p *fleet.Plan, _ *fleet.Record) {
		p.Workers = []fleet.WorkerChange{changed(m, worker, "drain.boot_timeout", drain("drain.boot_timeout"))}
		b.register("i-1", in.ID) // registers while the tick decides that it never will
	})
	if w := b.worker(worker); w.Status != fleet.Ready || !w.DrainAt.IsZero() {
		b.Errorf("worker %s: a change was written over a registration", text(b.T, w))
	}
}

func changeKeepsWorkersOwn(b *bench) {
	b.assign()
	worker := b.running("one")
	b.enqueue(NewJob{})
	b.Advance(time.Minute)
	var now time.Time
	b.commit(func(m fleet.Memory, p *fleet.Plan, _ *fleet.Record) {
		now = m.Now
		p.Workers = []fleet.WorkerChange{changed(m, worker, "", drain("drain.idle"))}
		if _, known, err := b.Workers.Heartbeat(b.ctx, worker); !known || err != nil {
			b.Errorf("heartbeat during a transaction: known %v, %v", known, err)
		}
		b.claimOne(worker)
	})
	w := b.worker(worker)
	if w.Jobs != 1 || w.Status != fleet.Draining || w.Registered.IsZero() {
		b.Errorf("worker %s, want one job in hand and draining", text(b.T, w))
	}
	b.near("heartbeat", w.Heartbeat, now)
}

func absenceIsNoChange(b *bench) {
	b.assign()
	worker := b.running("one")
	before := b.worker(worker)
	b.Advance(time.Minute)
	b.change(worker, "not_listed", func(w *fleet.Worker, now time.Time) { w.AbsentSince = now })
	after := b.worker(worker)
	b.near("absent since", after.AbsentSince, before.Changed.Add(time.Minute))
	if !after.Changed.Equal(before.Changed) {
		b.Error("an observation counted as a change, so the next one would not count")
	}
	b.change(worker, "", func(w *fleet.Worker, _ time.Time) { w.AbsentSince = time.Time{} })
	if w := b.worker(worker); !w.AbsentSince.IsZero() {
		b.Error("absence was not cleared")
	}
}

func drainAck(b *bench) {
	b.assign()
	worker := b.running("one")
	b.change(worker, "drain.idle", drain("drain.idle"))
	if beat, _, _ := b.Workers.Heartbeat(b.ctx, worker); !beat.Drain {
		b.Error("the heartbeat does not tell the worker to drain")
	}
	if w := b.worker(worker); !w.DrainAck.IsZero() {
		b.Error("acknowledged before the worker has said so")
	}
	before := b.worker(worker)
	if ok, err := b.Workers.Drained(b.ctx, worker); !ok || err != nil {
		b.Errorf("acknowledge: %v, %v", ok, err)
	}
	if w := b.worker(worker); w.DrainAck.IsZero() || w.Status != fleet.Draining || !w.Changed.After(before.DrainAt.Add(-time.Second)) {
		b.Errorf("worker %s", text(b.T, w))
	}
	b.change(worker, "undrained", func(w *fleet.Worker, _ time.Time) {
		w.Status, w.DrainAt, w.DrainAck, w.DrainWhy = fleet.Ready, time.Time{}, time.Time{}, ""
	})
	if w := b.worker(worker); w.Status != fleet.Ready || !w.DrainAck.IsZero() || !w.DrainAt.IsZero() || w.DrainWhy != "" {
		b.Errorf("un-drained worker %s", text(b.T, w))
	}
	if beat, _, _ := b.Workers.Heartbeat(b.ctx, worker); beat.Drain {
		b.Error("an un-drained worker is still told to drain")
	}
	if ok, err := b.Workers.Drained(b.ctx, worker); ok || err != nil {
		b.Errorf("a worker that does not drain acknowledged: %v, %v", ok, err)
	}
	b.change(worker, "drain.idle", drain("drain.idle"))
	if w := b.worker(worker); !w.DrainAck.IsZero() {
		b.Error("the second drain was born acknowledged")
	}
}

func ackDuringTransaction(b *bench) {
	b.assign()
	worker := b.running("one")
	b.change(worker, "drain.idle", drain("drain.idle"))
	b.commit(func(m fleet.Memory, p *fleet.Plan, _ *fleet.Record) {
		p.Workers = []fleet.WorkerChange{changed(m, worker, "not_listed", func(w *fleet.Worker, now time.Time) { w.AbsentSince = now })}
		if ok, err := b.Workers.Drained(b.ctx, worker); !ok || err != nil {
			b.Errorf("acknowledge: %v, %v", ok, err)
		}
	})
	if w := b.worker(worker); w.DrainAck.IsZero() {
		b.Error("the acknowledgement was overwritten")
	}
}

func leaves(b *bench) {
	b.assign()
	worker, vps := b.running("one"), b.vps()
	for _, w := range []string{worker, vps} {
		if ok, err := b.Workers.Leave(b.ctx, w); !ok || err != nil {
			b.Errorf("leave: %v, %v", ok, err)
		}
	}
	if w := b.worker(worker); w.Status != fleet.Draining || w.DrainAck.IsZero() {
		b.Errorf("cloud worker %s: its machine still costs", text(b.T, w))
	}
	if n := len(b.recall().Workers); n != 1 {
		b.Errorf("%d workers are left, want the cloud worker alone", n)
	}
}

func adopted(word string, now time.Time) fleet.Worker {
	return fleet.Worker{
		ID: id("row-" + word), Pool: poolA, Queues: []string{poolA}, Place: place(), Machine: "i-" + word, Type: sizeA, Market: fleet.Spot,
		Price: 4 * fleet.Cent, MinCharge: 60, Status: fleet.Provisioning, CostFrom: now, BootAt: now, Changed: now,
	}
}

func adopts(b *bench) {
	in := b.open("lost-answer", 1)
	b.begin(in, 0)
	var want fleet.Worker
	b.commit(func(m fleet.Memory, p *fleet.Plan, _ *fleet.Record) {
		want = adopted("found", m.Now)
		want.Intent = in.ID
		p.Adopted = []fleet.Worker{want}
		done := *find(m, in.ID)
		done.State = fleet.IntentDone
		p.Intents = []fleet.Intent{done}
	})
	got := b.recall().Workers
	if len(got) != 1 || got[0].Machine != want.Machine || got[0].Intent != in.ID || got[0].Price != want.Price || got[0].Status != fleet.Provisioning {
		b.Errorf("workers %s, want %s", text(b.T, got), text(b.T, want))
	}
}

func adoptsRegistered(b *bench) {
	b.assign()
	in := b.open("lost-answer", 1)
	b.begin(in, 0)
	b.commit(func(m fleet.Memory, p *fleet.Plan, _ *fleet.Record) {
		w := adopted("both", m.Now)
		w.Intent = in.ID
		p.Adopted = []fleet.Worker{w}
		b.register("i-both", in.ID)
	})
	if m := b.recall(); len(m.Workers) != 1 || m.Workers[0].Status != fleet.Ready {
		b.Errorf("workers %s, want the one that registered", text(b.T, m.Workers))
	}
}

func revives(b *bench) {
	b.assign()
	worker := b.running("one")
	b.change(worker, "gone", end(fleet.Terminated))
	b.commit(func(m fleet.Memory, p *fleet.Plan, _ *fleet.Record) {
		p.Adopted = []fleet.Worker{adopted("one", m.Now)}
	})
	m := b.recall()
	if len(m.Workers) != 1 || m.Workers[0].Machine != "i-one" || m.Workers[0].Price == 0 {
		b.Fatalf("workers %s, want the machine that is back", text(b.T, m.Workers))
	}
	if r := b.register("i-one", ""); r.Worker != m.Workers[0].ID {
		b.Errorf("registered as %s, want %s", r.Worker, m.Workers[0].ID)
	}
}

func registersAgain(b *bench) {
	b.assign()
	worker := b.running("one")
	b.change(worker, "gone", end(fleet.Failed))
	b.register("i-one", "")
	m := b.recall()
	if len(m.Workers) != 1 || m.Workers[0].Status != fleet.Ready || m.Workers[0].Price == 0 {
		b.Errorf("workers %s: a machine that lives costs what it cost", text(b.T, m.Workers))
	}
	b.near("cost from", m.Workers[0].CostFrom, m.Now)
}

func endedSpans(b *bench) {
	b.assign()
	worker := b.running("one")
	var span fleet.Span
	b.commit(func(m fleet.Memory, p *fleet.Plan, _ *fleet.Record) {
		p.Workers = []fleet.WorkerChange{changed(m, worker, "gone", end(fleet.Terminated))}
		span = fleet.Span{
			Worker: worker, Scope: scopeA, Machine: "i-one", Last: true, Pool: poolA, Provider: cloud,
			Price: 4 * fleet.Cent, From: m.Workers[0].CostFrom, To: m.Now, MinCharge: 60,
		}
		p.Spans = []fleet.Span{span}
	})
	m := b.recall()
	if len(m.Workers) != 0 {
		b.Errorf("ended worker is recalled: %s", text(b.T, m.Workers))
	}
	b.want("ledger", m.Ended, []fleet.Span{span})
}

func oldSpans(b *bench) {
	b.commit(func(m fleet.Memory, p *fleet.Plan, _ *fleet.Record) {
		for name, age := range map[string]time.Duration{"young": 49 * time.Hour, "old": 51 * time.Hour} {
			p.Spans = append(p.Spans, fleet.Span{Machine: name, Provider: cloud, Price: 1, From: m.Now.Add(-60 * time.Hour), To: m.Now.Add(-age)})
		}
	})
	if m := b.recall(); len(m.Ended) != 1 || m.Ended[0].Machine != "young" {
		b.Errorf("recalled %s", text(b.T, m.Ended))
	}
}

func workersSorted(b *bench) {
	b.launched("many", "i-1", "i-2", "i-3", "i-4", "i-5", "i-6")
	w := b.recall().Workers
	if len(w) != 6 || !slices.IsSortedFunc(w, func(x, y fleet.Worker) int { return strings.Compare(x.ID, y.ID) }) {
		b.Errorf("workers %s", text(b.T, w))
	}
}
