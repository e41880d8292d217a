package decide_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"sluice/core/decide"
	"sluice/core/fleet"
)

// noon is the tick's now in every test.
var noon = time.Date(2027, 1, 14, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return noon.Add(-d) }

const minute = time.Minute

// aws is the place of most tests; its machines cost a tenth of a unit per hour.
var aws = fleet.Place{Provider: "aws", Scope: "eu"}

const dime = fleet.Unit / 10

func offer() fleet.Offer { return fleet.Offer{Place: aws, Type: "c6i", Market: fleet.OnDemand} }

// change is one difference from the quiet world.
type change func(*fleet.Snapshot)

// world is a hybrid installation with one pool, nothing waiting and nothing running.
func world(changes ...change) fleet.Snapshot {
	s := fleet.Snapshot{
		Version: 1, Function: fleet.Evaluate, Due: noon, Limit: 60,
		Config: fleet.Config{
			Name: "prod", Currency: "USD", Timezone: "UTC", Mode: fleet.Hybrid, Interval: 60,
			Queues: []fleet.Queue{{Name: "ocr", Source: fleet.Source{Kind: fleet.SourcePostgres, Rows: true}}},
			Pools: []fleet.Pool{{
				Name: "ocr", Enabled: true, Automatic: true, Urgency: 50, MaxWorkers: 5, UpCooldown: 120, DownCooldown: 300,
				IdleMinutes: 10, DrainTimeout: 300, OnIdle: fleet.TerminateIdle, FallbackAfter: new(fleet.Seconds), Cheapest: true,
				Queues: []fleet.PoolQueue{{Name: "ocr", Depth: 5, Age: 300, DepthBelow: 2}},
				Offers: []fleet.Offer{offer()},
			}},
			Providers: []fleet.Provider{{Name: "aws", Scope: "eu", MaxInstances: 20}},
			Prices:    []fleet.Price{{Provider: "aws", Type: "c6i", Market: fleet.OnDemand, Price: dime}},
			Suspended: []fleet.SuspendedPrice{{Provider: "aws", Type: "c6i", Price: dime / 10}},
			Workers:   fleet.WorkerRules{Heartbeat: 15, BootTimeout: 300, LostDatabase: 900, MaxLifetime: 43200},
			Limits:    fleet.Limits{Hourly: 5 * fleet.Unit, Daily: 50 * fleet.Unit},
		},
		Queues:   []fleet.QueueState{{Name: "ocr"}},
		Listings: []fleet.Listing{{Place: aws, Begun: noon}},
		Traits:   map[string]fleet.Traits{"aws": {Idempotent: true, Visibility: 60, MinCharge: 60, MaxBatch: 10, Suspends: true}},
		Memory:   fleet.Memory{Deployment: "dep", Now: noon},
	}
	for _, c := range changes {
		c(&s)
	}
	return s
}

// all is several changes under one name.
func all(changes ...change) change {
	return func(s *fleet.Snapshot) {
		for _, c := range changes {
			c(s)
		}
	}
}

func mode(m fleet.Mode) change { return func(s *fleet.Snapshot) { s.Config.Mode = m } }

// waiting is work in the queue, the oldest of it that old.
func waiting(depth int, oldest time.Duration) change {
	return func(s *fleet.Snapshot) {
		s.Queues[0].Depth, s.Queues[0].Oldest = depth, fleet.Seconds(oldest/time.Second)
	}
}

func inHand(n int) change { return func(s *fleet.Snapshot) { s.Queues[0].Running = n } }

func unreadable(cause string) change {
	return func(s *fleet.Snapshot) { s.Queues[0].Unknown = cause }
}

// pool changes the first pool.
func pool(f func(*fleet.Pool)) change { return func(s *fleet.Snapshot) { f(&s.Config.Pools[0]) } }

// queue changes the first pool's queue.
func queue(f func(*fleet.PoolQueue)) change { return pool(func(p *fleet.Pool) { f(&p.Queues[0]) }) }

func limits(hourly, daily fleet.Money) change {
	return func(s *fleet.Snapshot) { s.Config.Limits.Hourly, s.Config.Limits.Daily = hourly, daily }
}

// past is what the rows say of the first pool.
func past(f func(*fleet.PoolMemory)) change {
	return func(s *fleet.Snapshot) {
		for i := range s.Memory.Pools {
			if s.Memory.Pools[i].Pool == "ocr" {
				f(&s.Memory.Pools[i])
				return
			}
		}
		m := fleet.PoolMemory{Pool: "ocr"}
		f(&m)
		s.Memory.Pools = append(s.Memory.Pools, m)
	}
}

func scaledUp(before time.Duration) change {
	return past(func(m *fleet.PoolMemory) { m.LastUp = ago(before) })
}

func scaledDown(before time.Duration) change {
	return past(func(m *fleet.PoolMemory) { m.LastDown = ago(before) })
}

// tweak is one difference of a worker from one that is ready, idle for a minute and listed.
type tweak func(*fleet.Worker)

// has is a cloud worker of the pool, and its machine in the list.
func has(id string, tweaks ...tweak) change {
	return func(s *fleet.Snapshot) {
		w := fleet.Worker{
			ID: id, Pool: "ocr", Queues: []string{"ocr"}, Place: aws, Machine: "i-" + id, Type: "c6i", Market: fleet.OnDemand,
			Price: dime, Idle: dime / 10, Status: fleet.Ready, Slots: 1, CostFrom: ago(time.Hour), BootAt: ago(time.Hour),
			Registered: ago(58 * minute), Heartbeat: ago(10 * time.Second), IdleSince: ago(minute), Changed: ago(58 * minute),
			Expires: noon.Add(11 * time.Hour),
		}
		for _, t := range tweaks {
			t(&w)
		}
		s.Memory.Workers = append(s.Memory.Workers, w)
		state := fleet.MachineRunning
		if w.Status == fleet.Suspended {
			state = fleet.MachineSuspended
		}
		listed(w.Machine, func(m *fleet.Machine) { m.State, m.Tags.Pool = state, w.Pool })(s)
	}
}

// hasMany is n such workers.
func hasMany(n int, tweaks ...tweak) change {
	return func(s *fleet.Snapshot) {
		for i := range n {
			has(fmt.Sprintf("w%d", i+1), tweaks...)(s)
		}
	}
}

func idle(d time.Duration) tweak { return func(w *fleet.Worker) { w.IdleSince = ago(d) } }
func busy1(w *fleet.Worker)      { w.Jobs = 1 }
func silent(d time.Duration) tweak {
	return func(w *fleet.Worker) { w.Heartbeat = ago(d) }
}

// booting was asked for that long ago and has not registered.
func booting(d time.Duration) tweak {
	return func(w *fleet.Worker) {
		w.Status, w.Registered, w.Heartbeat, w.IdleSince = fleet.Provisioning, time.Time{}, time.Time{}, time.Time{}
		w.BootAt, w.CostFrom, w.Changed = ago(d), ago(d), ago(d)
	}
}

// drains for a reason since then.
func drains(why string, d time.Duration) tweak {
	return func(w *fleet.Worker) {
		w.Status, w.DrainAt, w.DrainWhy, w.Changed = fleet.Draining, ago(d), why, ago(d)
	}
}

// acked has said that it claims nothing more.
func acked(w *fleet.Worker) { w.DrainAck = w.DrainAt.Add(time.Second) }

func suspended(d time.Duration) tweak {
	return func(w *fleet.Worker) { w.Status, w.Changed, w.DrainWhy = fleet.Suspended, ago(d), "drain.idle" }
}

func specced(spec string) tweak { return func(w *fleet.Worker) { w.Spec = spec } }

// vps is the worker that is not ours to start.
func vps(s *fleet.Snapshot) {
	s.Memory.Workers = append(s.Memory.Workers, fleet.Worker{
		ID: "vps", Pool: "vps", Queues: []string{"ocr"}, Place: fleet.Place{Provider: fleet.VPS}, Machine: "vps",
		Status: fleet.Ready, Slots: 1, Registered: ago(time.Hour), Heartbeat: ago(5 * time.Second), IdleSince: ago(time.Hour),
	})
}

// listed is a machine in the list of the place, tagged as ours.
func listed(id string, tweaks ...func(*fleet.Machine)) change {
	return func(s *fleet.Snapshot) {
		m := fleet.Machine{ID: id, State: fleet.MachineRunning, Type: "c6i", Market: fleet.OnDemand, Tags: fleet.Tags{Name: "prod", Deployment: "dep", Pool: "ocr"}}
		for _, t := range tweaks {
			t(&m)
		}
		s.Listings[0].Machines = append(s.Listings[0].Machines, m)
	}
}

// unlisted takes a machine from the list.
func unlisted(id string) change {
	return func(s *fleet.Snapshot) {
		s.Listings[0].Machines = slices.DeleteFunc(s.Listings[0].Machines, func(m fleet.Machine) bool { return m.ID == id })
	}
}

func inState(id string, state fleet.MachineState) change {
	return func(s *fleet.Snapshot) {
		for i := range s.Listings[0].Machines {
			if s.Listings[0].Machines[i].ID == id {
				s.Listings[0].Machines[i].State = state
			}
		}
	}
}

// placeUnknown says that the place could not be listed.
func placeUnknown(s *fleet.Snapshot) {
	s.Listings[0].Machines, s.Listings[0].Unknown = nil, "partial list"
}

// begun is when the list was begun.
func begun(d time.Duration) change { return func(s *fleet.Snapshot) { s.Listings[0].Begun = ago(d) } }

// asked is a launch intent, made that long ago, whose single call has no answer and whose claim has run out.
func asked(id string, d time.Duration, tweaks ...func(*fleet.Intent)) change {
	return func(s *fleet.Snapshot) {
		in := fleet.Intent{
			ID: id, Kind: fleet.KindLaunch, State: fleet.IntentOpen, Pool: "ocr", Count: 1, Offers: []fleet.Offer{offer()},
			Prices: []fleet.Money{dime}, Reserve: dime, MinFor: 60, Idempotent: true, Created: ago(d), Changed: ago(d),
			ClaimedUntil: ago(d - 90*time.Second), Claim: "before",
		}
		for _, t := range tweaks {
			t(&in)
		}
		if in.Attempts == nil {
			a := decide.Attempt(s.Config, "dep", in, 1)
			a.Outcome = fleet.OutcomeUnknown
			in.Attempts = []fleet.Attempt{a}
		}
		s.Memory.Intents = append(s.Memory.Intents, in)
	}
}

func times(calls int) func(*fleet.Intent) {
	return func(in *fleet.Intent) {
		in.Attempts = []fleet.Attempt{{
			Ordinal: 1, First: in.Created, Calls: calls, Outcome: fleet.OutcomeUnknown,
			Launch: &fleet.Launch{Token: "token", Count: in.Count, Offer: offer()},
		}}
	}
}

func notIdempotent(in *fleet.Intent) { in.Idempotent = false }
func count(n int) func(*fleet.Intent) {
	return func(in *fleet.Intent) { in.Count = n }
}
func bound(n int) func(*fleet.Intent) {
	return func(in *fleet.Intent) { in.Bound = n }
}
func abandoned(in *fleet.Intent) { in.State = fleet.IntentAbandoned }
func claimed(in *fleet.Intent)   { in.ClaimedUntil = noon.Add(minute) }
func emptySince(d time.Duration) func(*fleet.Intent) {
	return func(in *fleet.Intent) { in.EmptySince = ago(d) }
}

// doing is an intent about a worker's machine, called that long ago.
func doing(kind fleet.IntentKind, worker string, d time.Duration) change {
	return func(s *fleet.Snapshot) {
		s.Memory.Intents = append(s.Memory.Intents, fleet.Intent{
			ID: "do-" + worker, Kind: kind, State: fleet.IntentOpen, Pool: "ocr", Worker: worker,
			Ref: fleet.Ref{Place: aws, Machine: "i-" + worker}, Count: 1, Created: ago(d), Changed: ago(d), ClaimedUntil: ago(d - 90*time.Second), Claim: "before",
			Attempts: []fleet.Attempt{{Ordinal: 1, First: ago(d), Calls: 1, Outcome: fleet.OutcomeDone}},
		})
	}
}

func tagged(intent string) func(*fleet.Machine) {
	return func(m *fleet.Machine) { m.Tags.Intent = intent }
}

func overridden(s *fleet.Snapshot) {
	s.Memory.Override = &fleet.Override{ID: "ov", At: ago(time.Hour), Who: "evaluate", Why: "daily limit"}
}

func requested(kind fleet.RequestKind, target string) change {
	return func(s *fleet.Snapshot) {
		s.Memory.Requests = append(s.Memory.Requests, fleet.Request{ID: "r", Kind: kind, Target: target, Who: "ann", Why: "because"})
	}
}

// spent is what the day has cost so far.
func spent(m fleet.Money) change {
	return func(s *fleet.Snapshot) {
		s.Memory.Ended = append(s.Memory.Ended, fleet.Span{
			Worker: "old", Machine: "i-old", Pool: "ocr", Provider: "aws", Scope: "eu", Price: m, From: ago(2 * time.Hour), To: ago(time.Hour),
		})
	}
}

// brokenConfig: the last good config is in force.
func brokenConfig(s *fleet.Snapshot) { s.ConfigBroken = "config.json:3: unknown key" }

// staleConfig: a newer one was seen before.
func staleConfig(s *fleet.Snapshot) { s.ConfigAt, s.Memory.ConfigAt = ago(time.Hour), ago(minute) }

// first is the first pool's plan.
func first(t *testing.T, p fleet.Plan) fleet.PoolPlan {
	t.Helper()
	for _, pp := range p.Pools {
		if pp.Pool == "ocr" {
			return pp
		}
	}
	t.Fatalf("no plan for pool ocr in %s", text(p))
	return fleet.PoolPlan{}
}

func text(v any) string {
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// codes are what a plan gives as reasons about a pool's count.
func codes(p fleet.PoolPlan) []string {
	var out []string
	for _, s := range p.Steps {
		out = append(out, s.Why.Code())
	}
	return out
}

func notes(p fleet.Plan) []string {
	var out []string
	for _, n := range p.Notes {
		out = append(out, n.Why.Code())
	}
	return out
}

func alerts(p fleet.Plan) []string {
	var out []string
	for _, a := range p.Alerts {
		out = append(out, a.Why.Code())
	}
	return out
}

// drained are the workers that begin to drain, with why.
func drained(p fleet.Plan) map[string]string {
	out := map[string]string{}
	for _, pp := range p.Pools {
		for _, d := range pp.Drain {
			out[d.Worker] = d.Why.Code()
		}
	}
	return out
}

func kept(p fleet.Plan, worker string) string {
	for _, pp := range p.Pools {
		for _, k := range pp.Kept {
			if k.Worker == worker {
				return k.Why.Code()
			}
		}
	}
	return ""
}

func rejected(p fleet.PoolPlan) map[string]string {
	out := map[string]string{}
	for _, r := range p.Rejected {
		out[r.Offer] = r.Why.Code()
	}
	return out
}

// calls are what a plan does, as "kind target", with "again" for repeats.
func calls(p fleet.Plan) []string {
	var out []string
	for _, c := range p.Calls {
		in := intentOf(p, c.Intent)
		s := string(in.Kind) + " " + in.Ref.Machine
		if in.Kind == fleet.KindLaunch {
			s = fmt.Sprintf("launch %d", in.Count)
		}
		if c.Repeat {
			s += " again"
		}
		out = append(out, s)
	}
	slices.Sort(out)
	return out
}

func intentOf(p fleet.Plan, id string) fleet.Intent {
	for _, in := range p.Intents {
		if in.ID == id {
			return in
		}
	}
	return fleet.Intent{}
}

// row is a worker as the plan changes or adopts it.
func row(p fleet.Plan, id string) fleet.Worker {
	for _, c := range p.Workers {
		if c.Worker.ID == id {
			return c.Worker
		}
	}
	for _, w := range p.Adopted {
		if w.ID == id || w.Machine == id {
			return w
		}
	}
	return fleet.Worker{}
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	g, w := text(got), text(want)
	if g != w && (g != "null" || w != "[]") && (g != "[]" || w != "null") {
		t.Errorf("%s: got %s, want %s", what, g, w)
	}
}
