package decide_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"sluice/core/decide"
	"sluice/core/explain"
	"sluice/core/fleet"
)

// seeds are how many random snapshots each property is tried on.
const seeds = 600

type dice struct{ *rand.Rand }

func (d dice) one(of ...string) string { return of[d.IntN(len(of))] }
func (d dice) chance(n int) bool       { return d.IntN(n) == 0 }
func (d dice) before(most time.Duration) time.Time {
	return noon.Add(-time.Duration(d.Int64N(int64(most))).Truncate(time.Second))
}

// maybe is a time in the past, or none.
func (d dice) maybe(most time.Duration) time.Time {
	if d.chance(3) {
		return time.Time{}
	}
	return d.before(most)
}

func (d dice) place() fleet.Place {
	return fleet.Place{Provider: d.one("aws", "local", "ionos"), Scope: d.one("", "eu")}
}

func (d dice) offer() fleet.Offer {
	o := fleet.Offer{Place: d.place(), Type: d.one("s", "m", "l"), Market: fleet.Market(d.one("spot", "on_demand"))}
	if d.chance(4) {
		o.MaxPrice = fleet.Money(d.IntN(200_000))
	}
	return o
}

func (d dice) pool(name string) fleet.Pool {
	p := fleet.Pool{
		Name: name, Enabled: !d.chance(5), Automatic: !d.chance(5), Urgency: d.IntN(3), MinReady: d.IntN(3), MaxWorkers: d.IntN(12),
		UpCooldown: fleet.Seconds(d.IntN(3) * 60), DownCooldown: fleet.Seconds(d.IntN(3) * 60), IdleMinutes: d.IntN(12), DrainTimeout: fleet.Seconds(d.IntN(6) * 60),
		OnIdle: fleet.OnIdle(d.one("terminate", "suspend")), MaxSuspended: d.IntN(3), MaxSuspendedFor: fleet.Seconds(d.IntN(3) * 3600), Cheapest: d.chance(2),
	}
	if d.chance(2) {
		after := fleet.Seconds(d.IntN(2) * 300)
		p.FallbackAfter = &after
	}
	for i := range d.IntN(3) {
		q := fleet.PoolQueue{Name: fmt.Sprintf("%s-q%d", name, i), Baseline: d.IntN(3), Depth: d.IntN(6), Age: fleet.Seconds(d.IntN(3) * 100), DepthBelow: d.IntN(4)}
		for j := range d.IntN(4) {
			q.Steps = append(q.Steps, fleet.Tier{Depth: d.IntN(5) * (j + 1), Age: fleet.Seconds(d.IntN(3) * 60 * (j + 1)), Workers: d.IntN(6), Max: d.chance(4)})
		}
		p.Queues = append(p.Queues, q)
	}
	for range d.IntN(4) {
		p.Offers = append(p.Offers, d.offer())
	}
	return p
}

func (d dice) worker(id string, pools []string) fleet.Worker {
	w := fleet.Worker{
		ID: id, Pool: d.one(pools...), Place: d.place(), Machine: "i-" + id, Type: d.one("s", "m"), Market: fleet.Spot,
		Intent: d.one("", "in0", "in1"), Spec: d.one("", "", "old"), Price: fleet.Money(d.IntN(100_000)), Idle: fleet.Money(d.IntN(1000)), MinCharge: fleet.Seconds(d.IntN(2) * 3600),
		Status: fleet.Status(d.one("provisioning", "ready", "ready", "draining", "suspended")), Slots: 1, Jobs: d.IntN(3),
		CostFrom: d.maybe(30 * time.Hour), BootAt: d.maybe(time.Hour), Registered: d.maybe(time.Hour), Heartbeat: d.maybe(10 * minute), IdleSince: d.maybe(time.Hour),
		Changed: d.maybe(20 * minute), AbsentSince: d.maybe(10 * minute),
	}
	if w.Status == fleet.Provisioning {
		w.Registered, w.Jobs = time.Time{}, 0
	}
	if w.Status == fleet.Draining {
		w.DrainAt, w.DrainAck = d.before(10*minute), d.maybe(5*minute)
		w.DrainWhy = d.one("drain.idle", "drain.dry", "drain.mode", "drain.stale", "drain.boot_timeout", "drain.unhealthy", "drain.requested", "back")
	}
	if d.chance(6) {
		w.Place = fleet.Place{Provider: fleet.VPS}
	}
	if d.chance(3) {
		w.Expires = noon.Add(time.Duration(d.IntN(1200)-300) * time.Second)
	}
	return w
}

func (d dice) intent(id, pool string, worker *fleet.Worker) fleet.Intent {
	in := fleet.Intent{
		ID: id, Kind: fleet.KindLaunch, State: fleet.IntentState(d.one("open", "abandoned")), Pool: pool, Count: 1 + d.IntN(3), Bound: d.IntN(2),
		Reserve: fleet.Money(d.IntN(100_000)), Idempotent: d.chance(2), MinFor: 60, Created: d.before(30 * minute), ClaimedUntil: d.before(20 * minute), EmptySince: d.maybe(10 * minute),
	}
	in.Changed = in.Created
	if d.chance(4) {
		in.ClaimedUntil = noon.Add(minute)
	}
	if worker != nil {
		kinds := map[fleet.Status][]string{fleet.Draining: {"terminate", "suspend"}, fleet.Suspended: {"terminate", "resume"}}
		in.Kind, in.State = fleet.IntentKind(d.one(kinds[worker.Status]...)), fleet.IntentOpen
		in.Worker, in.Ref, in.Count = worker.ID, worker.Ref(), 1
	}
	for i := range d.IntN(3) {
		a := fleet.Attempt{Ordinal: i + 1, First: d.before(20 * minute), Calls: 1 + d.IntN(2), Outcome: fleet.Outcome(d.one("pending", "refused", "unknown"))}
		if in.Kind == fleet.KindLaunch {
			in.Offers, in.Prices = append(in.Offers, d.offer()), append(in.Prices, in.Reserve)
			a.Launch = &fleet.Launch{Token: "t", Count: in.Count, Offer: in.Offers[i]}
		}
		in.Attempts = append(in.Attempts, a)
	}
	return in
}

func (d dice) list(p fleet.Place, workers []fleet.Worker) fleet.Listing {
	l := fleet.Listing{Place: p, Begun: d.before(minute)}
	if d.chance(5) {
		l.Unknown = "partial"
		return l
	}
	for _, w := range workers {
		if w.Place == p && !d.chance(4) {
			l.Machines = append(l.Machines, d.machine(w.Machine))
		}
	}
	for i := range d.IntN(2) {
		l.Machines = append(l.Machines, d.machine(fmt.Sprintf("x%d", i)))
	}
	return l
}

func (d dice) machine(id string) fleet.Machine {
	return fleet.Machine{
		ID: id, State: fleet.MachineState(d.one("pending", "running", "running", "stopping", "suspended", "gone")), Type: d.one("s", "m"), Market: fleet.Spot,
		Tags: fleet.Tags{Name: "prod", Deployment: d.one("dep", "dep", "other"), Pool: d.one("a", "b", "gone"), Intent: d.one("", "in0", "in1", "in2")},
	}
}

// snapshot is anything that may be seen, likely or not.
func (d dice) snapshot() fleet.Snapshot {
	s := fleet.Snapshot{
		Version: 1, Function: fleet.Function(d.one("evaluate", "evaluate", "evaluate", "reconcile")), Due: noon, Limit: fleet.Seconds(d.IntN(2) * 60), ConfigBroken: d.one("", "", "", "broken"),
		Config: fleet.Config{
			Name: "prod", Currency: "USD", Timezone: d.one("", "UTC", "UTC", "UTC", "UTC", "Europe/Paris", "nowhere"), Mode: fleet.Mode(d.one("vps_only", "hybrid", "hybrid", "cloud_first", "cloud_first")), Interval: 60,
			Workers: fleet.WorkerRules{Heartbeat: fleet.Seconds(d.IntN(60)), BootTimeout: fleet.Seconds(d.IntN(600)), LostDatabase: 900, MaxLifetime: 43200},
			Limits:  fleet.Limits{Hourly: fleet.Money(d.IntN(600_000)), Daily: fleet.Money(d.IntN(3_000_000)), Alert: fleet.Money(d.IntN(100_000)), Extras: fleet.Money(d.IntN(2000))},
		},
		Memory: fleet.Memory{Deployment: "dep", Now: noon},
	}
	names := []string{"gone"}
	for _, n := range []string{"a", "b", "c"}[:d.IntN(4)] {
		s.Config.Pools = append(s.Config.Pools, d.pool(n))
		names = append(names, n, n)
	}
	d.observe(&s)
	d.remember(&s, names)
	for _, provider := range []string{"aws", "ionos", "local"} {
		for _, scope := range []string{"", "eu"} {
			if !d.chance(8) {
				s.Listings = append(s.Listings, d.list(fleet.Place{Provider: provider, Scope: scope}, s.Memory.Workers))
			}
		}
	}
	if !d.chance(3) {
		s.Config.Limits.Hourly, s.Config.Limits.Daily = 10*fleet.Unit, 100*fleet.Unit
	}
	return s
}

func (d dice) observe(s *fleet.Snapshot) {
	for _, p := range s.Config.Pools {
		for _, q := range p.Queues {
			if !d.chance(8) {
				st := fleet.QueueState{Name: q.Name, Depth: d.IntN(2) * d.IntN(30), Running: d.IntN(3), Oldest: fleet.Seconds(d.IntN(400)), NoAge: d.chance(5), Unknown: d.one("", "", "", "", "refused")}
				s.Queues = append(s.Queues, st)
			}
		}
		for _, o := range p.Offers {
			if !d.chance(4) {
				s.Quotes = append(s.Quotes, fleet.Quote{Offer: o.Key(), Price: fleet.Money(d.IntN(100_000)), At: noon})
			}
			if d.chance(6) {
				s.Memory.CoolOffs = append(s.Memory.CoolOffs, fleet.CoolOff{Offer: o.Key(), Until: noon.Add(time.Duration(d.IntN(120)-60) * time.Second), Count: 1})
			}
		}
		if !d.chance(3) {
			s.Memory.Pools = append(s.Memory.Pools, fleet.PoolMemory{
				Pool: p.Name, LastUp: d.maybe(5 * minute), LastDown: d.maybe(10 * minute), Lost: d.IntN(2), SlowestBoot: fleet.Seconds(d.IntN(600)),
				BootFailures: d.IntN(5), LastFailure: d.maybe(20 * minute), SpotRefusedSince: d.maybe(20 * minute),
			})
		}
	}
	for _, n := range []string{"aws", "local", "ionos"} {
		if !d.chance(4) {
			s.Config.Providers = append(s.Config.Providers, fleet.Provider{Name: n, MaxInstances: d.IntN(20)})
		}
		if !d.chance(4) {
			if s.Traits == nil {
				s.Traits = map[string]fleet.Traits{}
			}
			s.Traits[n] = fleet.Traits{Idempotent: d.chance(2), Visibility: fleet.Seconds(d.IntN(120)), MinCharge: fleet.Seconds(d.IntN(2) * 3600), MaxBatch: d.IntN(4), Suspends: d.chance(2)}
		}
	}
}

func (d dice) remember(s *fleet.Snapshot, pools []string) {
	for i := range d.IntN(6) {
		w := d.worker(fmt.Sprintf("w%d", i), pools)
		s.Memory.Workers = append(s.Memory.Workers, w)
		if d.chance(3) && w.Cloud() && (w.Status == fleet.Draining || w.Status == fleet.Suspended) {
			s.Memory.Intents = append(s.Memory.Intents, d.intent("do"+w.ID, w.Pool, &w))
		}
	}
	for i := range d.IntN(3) {
		s.Memory.Intents = append(s.Memory.Intents, d.intent(fmt.Sprintf("in%d", i), d.one(pools...), nil))
	}
	for i := range d.IntN(2) {
		s.Memory.Sightings = append(s.Memory.Sightings, fleet.Sighting{Place: d.place(), Machine: d.machine(fmt.Sprintf("x%d", i)), First: d.before(20 * minute), Last: d.before(5 * minute), Price: 1000})
		s.Memory.Ended = append(s.Memory.Ended, fleet.Span{Worker: "old", Machine: fmt.Sprintf("x%d", i), Last: d.chance(2), Provider: "aws", Price: 1000, From: d.before(40 * time.Hour), To: d.before(10 * time.Hour)})
	}
	if d.chance(8) {
		s.Memory.Override = &fleet.Override{ID: "ov", At: ago(time.Hour)}
	}
	for i, k := range []fleet.RequestKind{fleet.RequestDrain, fleet.RequestAdopt, fleet.RequestResume} {
		if d.chance(6) {
			s.Memory.Requests = append(s.Memory.Requests, fleet.Request{ID: fmt.Sprint(i), Kind: k, Target: d.one("w0", "w1", "all", "x0")})
		}
	}
}

// every tries a property on random snapshots, and names the seed of one that does not hold.
func every(t *testing.T, holds func(t *testing.T, s fleet.Snapshot, p fleet.Plan) error) {
	t.Helper()
	for seed := range uint64(seeds) {
		s := dice{rand.New(rand.NewPCG(seed, 1))}.snapshot()
		p := decide.Decide(s)
		if err := holds(t, s, p); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, text(s))
		}
	}
}

func TestTheSameSnapshotGivesTheSamePlanByteForByte(t *testing.T) {
	t.Parallel()
	every(t, func(t *testing.T, s fleet.Snapshot, p fleet.Plan) error {
		before, err := json.Marshal(s)
		if err != nil {
			return err
		}
		want := plain(t, p, s)
		var again fleet.Snapshot
		if err := json.Unmarshal(before, &again); err != nil {
			return err
		}
		if got := plain(t, decide.Decide(again), again); got != want {
			return fmt.Errorf("after a round trip:\n%s\nwas\n%s", got, want)
		}
		if got := plain(t, decide.Decide(s), s); got != want {
			return fmt.Errorf("decided twice:\n%s\nwas\n%s", got, want)
		}
		if after, _ := json.Marshal(s); string(after) != string(before) {
			return fmt.Errorf("deciding changed the snapshot to %s", after)
		}
		return nil
	})
}

// plain is a plan with its words.
func plain(t *testing.T, p fleet.Plan, s fleet.Snapshot) string {
	t.Helper()
	b, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return string(b) + explain.Story(p, s)
}

func TestStepsChainFromHaveToWant(t *testing.T) {
	t.Parallel()
	every(t, func(_ *testing.T, _ fleet.Snapshot, p fleet.Plan) error {
		for _, pp := range p.Pools {
			at := pp.Have
			for _, s := range pp.Steps {
				if s.From != at || s.Why == nil {
					return fmt.Errorf("pool %s: a step goes on from %d at %d: %s", pp.Pool, s.From, at, text(pp))
				}
				at = s.To
			}
			if at != pp.Want {
				return fmt.Errorf("pool %s: steps end at %d, want is %d", pp.Pool, at, pp.Want)
			}
			grown := pp.Launch + len(pp.Resume) + len(pp.Undrain)
			if grown != max(0, pp.Want-pp.Have) {
				return fmt.Errorf("pool %s: have %d, want %d, and it grows by %d: %s", pp.Pool, pp.Have, pp.Want, grown, text(pp))
			}
			if grown > 0 && len(pp.Drain) > 0 && pp.Have >= pp.Want {
				return fmt.Errorf("pool %s grows and shrinks", pp.Pool)
			}
		}
		return nil
	})
}

func TestWantIsWithinZeroAndTheMaximum(t *testing.T) {
	t.Parallel()
	every(t, func(_ *testing.T, s fleet.Snapshot, p fleet.Plan) error {
		for _, pp := range p.Pools {
			conf, known := s.Config.Pool(pp.Pool)
			if pp.Want < 0 || pp.Hybrid < 0 || pp.Want > conf.MaxWorkers || !known && pp.Want > 0 {
				return fmt.Errorf("pool %s wants %d of at most %d", pp.Pool, pp.Want, conf.MaxWorkers)
			}
		}
		return nil
	})
}

func TestNothingIsStartedWhereNothingMayBe(t *testing.T) {
	t.Parallel()
	reached := 0
	every(t, func(_ *testing.T, s fleet.Snapshot, p fleet.Plan) error {
		off := s.Config.Mode == fleet.VPSOnly || s.Memory.Override != nil && !p.Lifted || p.Override != nil || s.ConfigBroken != ""
		for _, c := range p.Calls {
			in := intentOf(p, c.Intent)
			if in.Kind != fleet.KindLaunch && in.Kind != fleet.KindResume {
				continue
			}
			reached++
			conf, known := s.Config.Pool(in.Pool)
			if off || !known || !conf.Enabled || in.Kind == fleet.KindLaunch && !conf.Automatic {
				return fmt.Errorf("%s for pool %s", in.Kind, in.Pool)
			}
			for _, o := range in.Offers {
				if _, enabled := s.Config.Provider(o.Provider); !enabled && !c.Repeat {
					return fmt.Errorf("launch at %s, which is not enabled", o.Provider)
				}
			}
		}
		return nil
	})
	if reached < seeds/20 {
		t.Errorf("only %d starts were seen", reached)
	}
}

func TestALaunchNeverPassesALimit(t *testing.T) {
	t.Parallel()
	every(t, func(_ *testing.T, _ fleet.Snapshot, p fleet.Plan) error {
		for _, c := range p.Calls {
			if in := intentOf(p, c.Intent); !c.Repeat && (in.Kind == fleet.KindLaunch || in.Kind == fleet.KindResume) {
				if p.Spend.Rate+p.Spend.Reserved > p.Spend.Hourly || p.Spend.Today+p.Spend.Tail > p.Spend.Daily {
					return fmt.Errorf("spend %s after %s", text(p.Spend), text(in))
				}
			}
		}
		return nil
	})
}

func TestNoBusyWorkerIsEndedButByForce(t *testing.T) {
	t.Parallel()
	every(t, func(_ *testing.T, s fleet.Snapshot, p fleet.Plan) error {
		drains := drained(p)
		for _, c := range p.Calls {
			in := intentOf(p, c.Intent)
			if c.Repeat || in.Worker == "" || in.Kind != fleet.KindTerminate && in.Kind != fleet.KindSuspend {
				continue
			}
			for _, w := range s.Memory.Workers {
				if w.ID == in.Worker && (w.Status != fleet.Draining && w.Status != fleet.Suspended || drains[w.ID] != "") {
					return fmt.Errorf("%s is ended by the decision that drains it", w.ID)
				}
				if w.ID == in.Worker && w.Status == fleet.Draining && w.Busy() && !in.Forced && len(open(s, w.ID)) == 0 {
					return fmt.Errorf("%s is busy and ended without force", w.ID)
				}
			}
		}
		return nil
	})
}

// open are the kinds of intents about a worker that are under way.
func open(s fleet.Snapshot, worker string) []fleet.IntentKind {
	var out []fleet.IntentKind
	for _, in := range s.Memory.Intents {
		if in.Worker == worker && in.State == fleet.IntentOpen {
			out = append(out, in.Kind)
		}
	}
	return out
}

func TestThereIsOneOpenIntentForEachMachine(t *testing.T) {
	t.Parallel()
	every(t, func(_ *testing.T, s fleet.Snapshot, p fleet.Plan) error {
		state := map[string]fleet.Intent{}
		for _, in := range append(append([]fleet.Intent{}, s.Memory.Intents...), p.Intents...) {
			state[in.ID] = in
		}
		about := map[fleet.Ref]string{}
		for _, in := range state {
			if in.Kind == fleet.KindLaunch || in.State != fleet.IntentOpen {
				continue
			}
			ref := fleet.Ref{Place: in.Ref.Place, Machine: in.Ref.Machine}
			if about[ref] != "" {
				return fmt.Errorf("%s and %s are both about %s", about[ref], in.ID, ref.Machine)
			}
			about[ref] = in.ID
		}
		return nil
	})
}

func TestWhatWasAskedToEndIsNeverTakenBack(t *testing.T) {
	t.Parallel()
	every(t, func(_ *testing.T, s fleet.Snapshot, p fleet.Plan) error {
		for _, id := range drainedBack(p) {
			if kinds := open(s, id); len(kinds) > 0 {
				return fmt.Errorf("%s claims again although it has an open %s", id, kinds)
			}
		}
		return nil
	})
}

func TestEveryCallHasItsClaimedIntent(t *testing.T) {
	t.Parallel()
	every(t, func(_ *testing.T, s fleet.Snapshot, p fleet.Plan) error {
		for _, c := range p.Calls {
			in := intentOf(p, c.Intent)
			if in.ID == "" || in.State != fleet.IntentOpen || !in.ClaimedUntil.After(noon.Add(s.Limit.Duration())) || in.Claim == "" {
				return fmt.Errorf("call of %s", text(in))
			}
			if in.Kind == fleet.KindLaunch && (len(in.Attempts) == 0 || in.Last().Launch == nil) {
				return fmt.Errorf("launch without a request: %s", text(in))
			}
		}
		return nil
	})
}

// A claim of another tick is not touched.
func TestClaimsOfOthersAreLeftAlone(t *testing.T) {
	t.Parallel()
	every(t, func(_ *testing.T, s fleet.Snapshot, p fleet.Plan) error {
		for _, was := range s.Memory.Intents {
			in := intentOf(p, was.ID)
			if was.State == fleet.IntentOpen && noon.Before(was.ClaimedUntil) && in.ID != "" && (in.State == fleet.IntentOpen || was.Kind == fleet.KindLaunch) {
				return fmt.Errorf("%s became %s", text(was), text(in))
			}
		}
		return nil
	})
}

// Scale-in is a fixed point: a worker that goes for idleness is not wanted back at once, whatever the config.
func TestScaleInIsAFixedPoint(t *testing.T) {
	t.Parallel()
	reached := 0
	every(t, func(_ *testing.T, s fleet.Snapshot, _ fleet.Plan) error {
		s = lull(s)
		p := decide.Decide(s)
		idle := map[string]bool{}
		for id, why := range drained(p) {
			if why == "drain.idle" || why == "drain.dry" {
				idle[id] = true
			}
		}
		if len(idle) == 0 {
			return nil
		}
		reached++
		after := s
		after.Due, after.Memory.Now = noon.Add(minute), noon.Add(minute)
		after.Memory.Workers, after.Memory.Intents, after.Memory.Pools, after.Memory.Requests = nil, nil, nil, nil
		for _, w := range s.Memory.Workers {
			if !idle[w.ID] {
				after.Memory.Workers = append(after.Memory.Workers, w)
			}
		}
		for _, pp := range decide.Decide(after).Pools {
			for _, was := range p.Pools {
				if was.Pool == pp.Pool && len(was.Drain) > 0 && idle[was.Drain[0].Worker] && pp.Want > max(was.Want, pp.Have) && pp.Have >= was.Want {
					return fmt.Errorf("pool %s drained to %d and now wants %d: %s", pp.Pool, was.Want, pp.Want, text(pp))
				}
			}
		}
		return nil
	})
	if reached < seeds/20 {
		t.Errorf("only %d scale-ins were seen", reached)
	}
}

// lull is a world in which little waits and workers have been idle for hours.
func lull(s fleet.Snapshot) fleet.Snapshot {
	s.Function, s.ConfigBroken, s.Memory.Override = fleet.Evaluate, "", nil
	s.Config.Limits.Daily, s.Config.Limits.Hourly = 1000*fleet.Unit, 100*fleet.Unit
	if s.Config.Mode == fleet.VPSOnly {
		s.Config.Mode = fleet.CloudFirst
	}
	for i := range s.Queues {
		s.Queues[i].Unknown, s.Queues[i].Depth, s.Queues[i].Oldest = "", s.Queues[i].Depth%3, s.Queues[i].Oldest%200
	}
	for i := range s.Memory.Workers {
		w := &s.Memory.Workers[i]
		if w.Status == fleet.Ready {
			w.Jobs, w.Registered, w.IdleSince, w.Heartbeat, w.Expires, w.MinCharge = 0, ago(3*time.Hour), ago(2*time.Hour), noon, time.Time{}, 0
		}
	}
	return s
}

func TestNothingIsDecidedFromNothing(t *testing.T) {
	t.Parallel()
	for _, s := range []fleet.Snapshot{
		{}, {Function: fleet.Evaluate}, {Function: fleet.Reconcile},
		{Function: fleet.Evaluate, Config: fleet.Config{Mode: fleet.Hybrid, Pools: []fleet.Pool{{}}}},
		{Function: fleet.Evaluate, Config: fleet.Config{Mode: fleet.CloudFirst, Pools: []fleet.Pool{{Enabled: true, Automatic: true, MaxWorkers: 3, Queues: []fleet.PoolQueue{{}}, Offers: []fleet.Offer{{}}}}}},
		{Function: fleet.Evaluate, Memory: fleet.Memory{Workers: []fleet.Worker{{}}, Intents: []fleet.Intent{{}, {Kind: fleet.KindLaunch, State: fleet.IntentOpen}}, Sightings: []fleet.Sighting{{}}, Ended: []fleet.Span{{}}, Requests: []fleet.Request{{}}}},
	} {
		if p := decide.Decide(s); len(p.Calls) != 0 || p.Override != nil {
			t.Errorf("from %s came %s", text(s), text(p))
		}
	}
}
