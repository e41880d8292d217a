package decide_test

import (
	"slices"
	"testing"
	"time"

	"sluice/core/decide"
	"sluice/core/fleet"
)

// growth is a case about how many workers a pool wants.
type growth struct {
	name   string
	given  change
	want   int    // wanted in all
	launch int    // machines asked for
	why    string // a code that must be among the steps, or "" for any
}

func (g growth) test(t *testing.T) {
	t.Helper()
	t.Run(g.name, func(t *testing.T) {
		t.Parallel()
		p := first(t, decide.Decide(world(g.given)))
		if p.Want != g.want || p.Launch != g.launch {
			t.Errorf("wants %d and launches %d, should want %d and launch %d: %s", p.Want, p.Launch, g.want, g.launch, text(p))
		}
		if g.why != "" && !slices.Contains(codes(p), g.why) {
			t.Errorf("no step says %s: %v", g.why, codes(p))
		}
	})
}

func TestThresholds(t *testing.T) {
	t.Parallel()
	noAge := func(s *fleet.Snapshot) { s.Queues[0].NoAge = true }
	for _, g := range []growth{
		{"nothing waits", all(), 0, 0, "below_threshold"},
		{"one job below the depth threshold is left to the VPS", waiting(4, minute), 0, 0, "below_threshold"},
		{"the depth threshold itself is enough", waiting(5, minute), 1, 1, "backlog.depth"},
		{"a second below the age threshold is left to the VPS", waiting(1, 299*time.Second), 0, 0, "below_threshold"},
		{"the age threshold itself is enough, whatever the depth", waiting(1, 300*time.Second), 1, 1, "backlog.age"},
		{"both reached is one worker, not two", waiting(50, time.Hour), 1, 1, "backlog.depth"},
		{"an age without a job that waits is none", waiting(0, time.Hour), 0, 0, "below_threshold"},
		{"an age that the source does not tell is none", all(waiting(1, time.Hour), noAge), 0, 0, "below_threshold"},
		{"an age threshold of zero is none", all(waiting(1, time.Hour), queue(func(q *fleet.PoolQueue) { q.Age = 0 })), 0, 0, "below_threshold"},
		{"a depth threshold of zero is none", all(waiting(0, 0), queue(func(q *fleet.PoolQueue) { q.Depth = 0 })), 0, 0, "below_threshold"},
		{"running jobs alone are no backlog", inHand(50), 0, 0, "below_threshold"},
		{"a working worker is joined by one more", all(waiting(5, minute), has("a", busy1)), 2, 1, "backlog.depth"},
		{"a queue that could not be read holds what there is", all(unreadable("refused"), has("a", idle(time.Hour))), 1, 0, "unobserved"},
		{"an unreadable queue is not a deep one", all(unreadable("refused"), waiting(50, minute)), 0, 0, "unobserved"},
		{"where the list is unreadable the job table's age still counts", all(unreadable("refused"), waiting(1, 300*time.Second)), 1, 1, "backlog.age"},
		{"that age does not count while a machine boots for it", all(unreadable("refused"), waiting(1, time.Hour), has("a", booting(minute))), 1, 0, "unobserved"},
		{"a queue that nobody read holds as well", all(func(s *fleet.Snapshot) { s.Queues = nil }, has("a", idle(time.Hour))), 1, 0, "unobserved"},
	} {
		g.test(t)
	}
}

func TestBootingWorkersAnswerForTheBacklog(t *testing.T) {
	t.Parallel()
	for _, g := range []growth{
		{"one that boots answers for one threshold of jobs", all(waiting(9, minute), has("a", booting(minute))), 1, 0, "awaiting"},
		{"two thresholds of jobs are worth two", all(waiting(10, minute), has("a", booting(minute))), 2, 1, "backlog.depth"},
		{"one that boots answers for age", all(waiting(1, time.Hour), has("a", booting(minute))), 1, 0, "awaiting"},
		{"a launch without an answer counts as booting", all(waiting(9, minute), asked("in", minute, claimed)), 1, 0, "awaiting"},
		{"two machines asked for in one call answer for two", all(waiting(14, minute), asked("in", minute, claimed, count(2))), 2, 0, "awaiting"},
		{"what is resumed answers as well", all(waiting(9, minute), has("a", suspended(time.Hour)), doing(fleet.KindResume, "a", minute)), 1, 0, "awaiting"},
		{"one that drains answers for nothing", all(waiting(5, minute), has("a", drains("drain.stale", minute))), 1, 1, "backlog.depth"},
	} {
		g.test(t)
	}
}

// tick is the next minute of a world in which every launch takes three minutes to boot.
func next(s fleet.Snapshot, p fleet.Plan) fleet.Snapshot {
	now := s.Memory.Now.Add(minute)
	s.Due, s.Memory.Now = now, now
	s.Memory.LastDue = map[fleet.Function]time.Time{fleet.Evaluate: p.Due}
	s.Listings = slices.Clone(s.Listings)
	s.Listings[0].Begun = now
	for _, in := range p.Intents {
		if in.Kind != fleet.KindLaunch || in.State != fleet.IntentOpen {
			continue
		}
		for i := range in.Count {
			id := in.ID[:8] + string(rune('a'+i))
			has(id, booting(0), func(w *fleet.Worker) { w.BootAt, w.CostFrom, w.Changed = p.Now, p.Now, p.Now })(&s)
		}
		past(func(m *fleet.PoolMemory) { m.LastUp = p.Now })(&s)
	}
	for i := range s.Memory.Workers {
		if w := &s.Memory.Workers[i]; w.Status == fleet.Provisioning && now.Sub(w.BootAt) >= 3*minute {
			w.Status, w.Registered, w.IdleSince = fleet.Ready, now, now
		}
		s.Memory.Workers[i].Heartbeat = now
	}
	return s
}

// launches are the machines asked for on each of n ticks.
func launches(t *testing.T, s fleet.Snapshot, n int) []int {
	t.Helper()
	var out []int
	for range n {
		p := decide.Decide(s)
		out = append(out, first(t, p).Launch)
		s = next(s, p)
	}
	return out
}

func TestFiveJobsAndASlowBootAreOneLaunch(t *testing.T) {
	t.Parallel()
	same(t, "launches per tick", launches(t, world(waiting(5, minute)), 3), []int{1, 0, 0})
}

func TestADeepBacklogAddsOnePerCooldown(t *testing.T) {
	t.Parallel()
	same(t, "launches per tick", launches(t, world(waiting(200, minute)), 9), []int{1, 0, 1, 0, 1, 0, 1, 0, 1})
}

func TestFortyTwoJobsAreNotCountedTwiceWhileMachinesBoot(t *testing.T) {
	t.Parallel()
	deep := pool(func(p *fleet.Pool) { p.MaxWorkers = 100; p.UpCooldown = 0; p.Queues[0].Depth = 1 })
	got := launches(t, world(waiting(3, minute), deep), 3)
	same(t, "launches per tick", got, []int{1, 1, 1})
	n := 0
	for _, k := range launches(t, world(waiting(42, minute), deep, func(s *fleet.Snapshot) { s.Config.Pools[0].Queues[0].Depth = 42 }), 3) {
		n += k
	}
	if n != 1 {
		t.Errorf("%d machines for 42 jobs that are one threshold, want 1", n)
	}
}

func TestTiers(t *testing.T) {
	t.Parallel()
	policy := queue(func(q *fleet.PoolQueue) {
		q.Steps = []fleet.Tier{{Depth: 6, Age: 120, Workers: 1}, {Depth: 21, Age: 300, Workers: 3}, {Depth: 101, Age: 600, Max: true, Alert: fleet.Critical}}
	})
	for _, g := range []growth{
		{"below the first tier nothing is wanted", all(policy, waiting(5, 119*time.Second)), 0, 0, "below_threshold"},
		{"the first tier by depth", all(policy, waiting(6, 0)), 1, 1, "backlog.step"},
		{"the first tier by age", all(policy, waiting(1, 120*time.Second)), 1, 1, "backlog.step"},
		{"the second tier wants three in one tick", all(policy, waiting(21, 0)), 3, 3, "backlog.step"},
		{"a job less is the first tier still", all(policy, waiting(20, 0)), 1, 1, "backlog.step"},
		{"the higher of the two figures decides", all(policy, waiting(6, 300*time.Second)), 3, 3, "backlog.step"},
		{"the top tier wants as many as there may be", all(policy, waiting(101, 0)), 5, 5, "backlog.step"},
		{"the VPS is among them", all(policy, waiting(101, 0), vps), 4, 4, "backlog.step"},
		{"a tier is a total: those that are there count", all(policy, waiting(21, 0), hasMany(2, busy1)), 3, 1, "backlog.step"},
		{"those that boot count as well", all(policy, waiting(21, 0), hasMany(3, booting(minute))), 3, 0, "backlog.step"},
		{"a tier takes nothing away", all(policy, waiting(6, 0), hasMany(3, busy1)), 3, 0, "backlog.step"},
		{"an age without a job is no tier", all(policy, waiting(0, time.Hour)), 0, 0, "below_threshold"},
		{"a policy without figures is no tier", all(waiting(50, time.Hour), queue(func(q *fleet.PoolQueue) { q.Steps = []fleet.Tier{{Workers: 3}} })), 0, 0, "below_threshold"},
	} {
		g.test(t)
	}
	p := decide.Decide(world(policy, waiting(101, 0)))
	if len(p.Alerts) != 1 || p.Alerts[0].Why.Code() != "backlog.top_tier" || p.Alerts[0].Level != fleet.Critical {
		t.Errorf("the top tier must alert the operator: %s", text(p.Alerts))
	}
	same(t, "alerts of the second tier", alerts(decide.Decide(world(policy, waiting(21, 0)))), []string{})
}

func TestCooldownUp(t *testing.T) {
	t.Parallel()
	deep := waiting(50, minute)
	lost := past(func(m *fleet.PoolMemory) { m.Lost = 1 })
	for _, g := range []growth{
		{"a second before its end nothing is launched", all(deep, has("a", busy1), scaledUp(119*time.Second)), 1, 0, "limit.cooldown"},
		{"at its end one is", all(deep, has("a", busy1), scaledUp(120*time.Second)), 2, 1, ""},
		{"a worker that was lost is replaced at once", all(deep, scaledUp(time.Second), lost), 1, 1, ""},
		{"but no more than were lost", all(deep, scaledUp(time.Second), lost, pool(func(p *fleet.Pool) { p.MinReady = 3 })), 1, 1, "limit.cooldown"},
		{"a launch that was refused leaves no record and so ends it", deep, 1, 1, ""},
		{"taking back a worker that drains is not held up", all(deep, has("a", drains("drain.idle", minute)), scaledUp(time.Second)), 1, 0, ""},
		{"a cooldown of zero is none", all(deep, has("a", busy1), scaledUp(0), pool(func(p *fleet.Pool) { p.UpCooldown = 0 })), 2, 1, ""},
	} {
		g.test(t)
	}
}

func TestCeiling(t *testing.T) {
	t.Parallel()
	deep := waiting(500, minute)
	most := func(n int) change { return pool(func(p *fleet.Pool) { p.MaxWorkers = n }) }
	for _, g := range []growth{
		{"room for one more", all(deep, most(2), has("a", busy1)), 2, 1, ""},
		{"ready workers fill it", all(deep, most(1), has("a", busy1)), 1, 0, "limit.ceiling"},
		{"the VPS fills it", all(deep, most(1), vps), 0, 0, "limit.ceiling"},
		{"booting workers fill it", all(deep, most(1), has("a", booting(minute))), 1, 0, "limit.ceiling"},
		{"machines asked for fill it", all(deep, most(1), asked("in", minute, claimed)), 1, 0, "limit.ceiling"},
		{"draining workers fill it", all(deep, most(1), has("a", drains("drain.stale", minute))), 0, 0, "limit.ceiling"},
		{"the VPS and a draining worker fill it together", all(deep, most(2), vps, has("a", drains("drain.stale", minute))), 0, 0, "limit.ceiling"},
		{"suspended workers fill it until they are resumed", all(deep, most(1), has("a", suspended(time.Hour)), inState("i-a", fleet.MachinePending),
			pool(func(p *fleet.Pool) { p.OnIdle, p.MaxSuspended = fleet.SuspendIdle, 1 })), 0, 0, "limit.ceiling"},
		{"a machine of a launch that was given up fills it", all(deep, most(1), asked("in", minute, abandoned)), 0, 0, "limit.ceiling"},
		{"an orphan of the pool fills it", all(deep, most(1), listed("i-x")), 0, 0, "limit.ceiling"},
		{"a VPS that is not heard of does not", all(deep, most(1), vps, func(s *fleet.Snapshot) {
			s.Memory.Workers[0].Heartbeat, s.Memory.Workers[0].Registered = ago(time.Hour), ago(time.Hour)
		}), 1, 1, ""},
		{"a VPS that serves other queues does not", all(deep, most(1), vps, func(s *fleet.Snapshot) { s.Memory.Workers[0].Queues = []string{"mail"} }), 1, 1, ""},
		{"zero is zero", all(deep, most(0)), 0, 0, "limit.ceiling"},
		{"a warm floor is cut like any other rule", all(most(3), pool(func(p *fleet.Pool) { p.MinReady = 40 })), 3, 3, "limit.ceiling"},
	} {
		g.test(t)
	}
	t.Run("what runs above it drains, what loses least first", func(t *testing.T) {
		t.Parallel()
		p := decide.Decide(world(deep, most(1), has("a", busy1), has("b", booting(minute)), has("c", idle(time.Second))))
		same(t, "drained", drained(p), map[string]string{"b": "drain.surplus", "c": "drain.surplus"})
	})
	t.Run("what drains already is not drained twice", func(t *testing.T) {
		t.Parallel()
		p := decide.Decide(world(most(1), has("a", busy1), has("b", drains("drain.surplus", minute))))
		same(t, "drained", drained(p), map[string]string{})
	})
}

func TestProviderMaximumHoldsAcrossPools(t *testing.T) {
	t.Parallel()
	second := func(s *fleet.Snapshot) {
		p := s.Config.Pools[0]
		p.Name, p.Urgency = "media", 60
		p.Queues = []fleet.PoolQueue{{Name: "media", Depth: 5, DepthBelow: 2}}
		s.Config.Pools = append(s.Config.Pools, p)
		s.Queues = append(s.Queues, fleet.QueueState{Name: "media", Depth: 50})
	}
	most := func(n int) change { return func(s *fleet.Snapshot) { s.Config.Providers[0].MaxInstances = n } }
	p := decide.Decide(world(waiting(50, minute), second, most(1)))
	if p.Pools[0].Launch != 1 || p.Pools[1].Launch != 0 || rejected(p.Pools[1])[offer().Key()] != "offer.full" {
		t.Errorf("one machine may run, so the more urgent pool gets it: %s", text(p.Pools))
	}
	for _, g := range []growth{
		{"machines of every state count", all(waiting(50, minute), most(3), has("a", busy1), has("b", suspended(time.Hour)), inState("i-b", fleet.MachinePending), asked("in", minute, claimed),
			pool(func(p *fleet.Pool) { p.OnIdle = fleet.SuspendIdle })), 2, 0, "limit.offers"},
		{"orphans count", all(waiting(50, minute), most(1), listed("i-x", func(m *fleet.Machine) { m.Tags.Pool = "gone" })), 0, 0, "limit.offers"},
		{"machines of other pools count", all(waiting(50, minute), most(1), has("a", func(w *fleet.Worker) { w.Pool = "gone" })), 0, 0, "limit.offers"},
		{"part of a tier is better than none", all(waiting(50, minute), most(2), queue(func(q *fleet.PoolQueue) { q.Steps = []fleet.Tier{{Depth: 1, Workers: 4}} })), 2, 2, "limit.provider"},
	} {
		g.test(t)
	}
}

func TestAFullProviderLeavesTheRestToTheNext(t *testing.T) {
	t.Parallel()
	other := fleet.Place{Provider: "local"}
	s := world(waiting(50, minute), queue(func(q *fleet.PoolQueue) { q.Steps = []fleet.Tier{{Depth: 1, Workers: 3}} }), func(s *fleet.Snapshot) {
		s.Config.Providers = []fleet.Provider{{Name: "aws", Scope: "eu", MaxInstances: 2}, {Name: "local", MaxInstances: 5}}
		s.Config.Prices = append(s.Config.Prices, fleet.Price{Provider: "local", Type: "big", Market: fleet.OnDemand, Price: 2 * dime})
		s.Config.Pools[0].Offers = append(s.Config.Pools[0].Offers, fleet.Offer{Place: other, Type: "big", Market: fleet.OnDemand})
		s.Listings = append(s.Listings, fleet.Listing{Place: other, Begun: noon})
		s.Traits["local"] = fleet.Traits{MaxBatch: 10}
	})
	p := decide.Decide(s)
	same(t, "calls", calls(p), []string{"launch 1", "launch 2"})
	if pp := first(t, p); pp.Launch != 3 || pp.Offer.Provider != "aws" {
		t.Errorf("three are wanted, aws first: %s", text(pp))
	}
}

func TestModes(t *testing.T) {
	t.Parallel()
	deep := waiting(50, minute)
	work := all(mode(fleet.CloudFirst), waiting(1, 0))
	for _, g := range []growth{
		{"vps_only wants nothing, and says what it would", all(mode(fleet.VPSOnly), deep), 0, 0, "limit.mode"},
		{"the override wants nothing", all(overridden, deep), 0, 0, "limit.override"},
		{"a pool that may not use the cloud wants nothing", all(deep, pool(func(p *fleet.Pool) { p.Enabled = false })), 0, 0, "limit.not_enabled"},
		{"a manual pool grows only by people", all(deep, pool(func(p *fleet.Pool) { p.Automatic = false })), 0, 0, "limit.manual_only"},
		{"a manual pool keeps what it has", all(deep, has("a", busy1), pool(func(p *fleet.Pool) { p.Automatic = false })), 1, 0, "limit.manual_only"},
		{"a broken config adds nothing", all(deep, brokenConfig), 0, 0, "limit.frozen"},
		{"a broken config keeps what there is", all(deep, has("a", busy1), brokenConfig), 1, 0, "limit.frozen"},
		{"a config older than one seen adds nothing", all(deep, staleConfig), 0, 0, "limit.frozen"},
		{"cloud_first gives a queue with any work a worker at once", work, 1, 1, "floor.work"},
		{"cloud_first gives one, not one more", all(work, has("a", busy1)), 1, 0, ""},
		{"in hybrid a single fresh job waits", waiting(1, 0), 0, 0, ""},
		{"cloud_first holds the baseline", all(mode(fleet.CloudFirst), queue(func(q *fleet.PoolQueue) { q.Baseline = 2 })), 2, 2, "floor.baseline"},
		{"hybrid leaves the baseline to the VPS", queue(func(q *fleet.PoolQueue) { q.Baseline = 2 }), 0, 0, ""},
		{"cloud_first keeps its thresholds", all(mode(fleet.CloudFirst), deep, has("a", busy1)), 2, 1, "backlog.depth"},
		{"an unreadable queue is no work for cloud_first", all(mode(fleet.CloudFirst), unreadable("refused")), 0, 0, "unobserved"},
		{"min_ready is held in hybrid", pool(func(p *fleet.Pool) { p.MinReady = 2 }), 2, 2, "floor.min_ready"},
	} {
		g.test(t)
	}
	t.Run("vps_only tells what hybrid would want", func(t *testing.T) {
		t.Parallel()
		if p := first(t, decide.Decide(world(mode(fleet.VPSOnly), deep))); p.Hybrid != 1 {
			t.Errorf("hybrid would want %d, want 1", p.Hybrid)
		}
		if p := first(t, decide.Decide(world(mode(fleet.VPSOnly), deep, pool(func(p *fleet.Pool) { p.Enabled = false })))); p.Hybrid != 0 {
			t.Errorf("a pool that may not use the cloud would want %d in hybrid, want 0", p.Hybrid)
		}
	})
	for _, off := range []struct {
		name string
		off  change
		why  string
	}{
		{"vps_only", mode(fleet.VPSOnly), "drain.mode"},
		{"the override", overridden, "drain.mode"},
		{"a pool that is no longer enabled", pool(func(p *fleet.Pool) { p.Enabled = false }), "drain.not_enabled"},
		{"a pool that is gone from the config", func(s *fleet.Snapshot) { s.Config.Pools = nil }, "drain.not_enabled"},
	} {
		t.Run(off.name+" drains all workers, busy, booting and those of unreadable queues", func(t *testing.T) {
			t.Parallel()
			p := decide.Decide(world(deep, unreadable("refused"), has("a", busy1), has("b", booting(minute)), has("c"), off.off))
			same(t, "drained", drained(p), map[string]string{"a": off.why, "b": off.why, "c": off.why})
			same(t, "calls", calls(p), []string{})
		})
	}
}

func TestQueuesOfOnePool(t *testing.T) {
	t.Parallel()
	two := func(s *fleet.Snapshot) {
		s.Config.Pools[0].Queues = append(s.Config.Pools[0].Queues, fleet.PoolQueue{Name: "media", Depth: 3, Age: 60, DepthBelow: 1})
		s.Queues = append(s.Queues, fleet.QueueState{Name: "media"})
	}
	second := func(f func(*fleet.QueueState)) change { return func(s *fleet.Snapshot) { f(&s.Queues[1]) } }
	for _, g := range []growth{
		{"each queue has its own thresholds", all(two, second(func(q *fleet.QueueState) { q.Depth = 3 })), 1, 1, "backlog.depth"},
		{"two deep queues are one worker per cooldown", all(two, waiting(5, 0), second(func(q *fleet.QueueState) { q.Depth = 3 })), 1, 1, "backlog.depth"},
		{"one unreadable queue does not silence the other", all(two, waiting(5, 0), second(func(q *fleet.QueueState) { q.Unknown = "refused" })), 1, 1, "backlog.depth"},
		{"one unreadable queue keeps the workers", all(two, has("a", idle(time.Hour)), second(func(q *fleet.QueueState) { q.Unknown = "refused" })), 1, 0, "unobserved"},
		{"work in one queue keeps the workers", all(two, has("a", idle(time.Hour)), second(func(q *fleet.QueueState) { q.Depth = 1 })), 1, 0, ""},
	} {
		g.test(t)
	}
}

func TestBreaker(t *testing.T) {
	t.Parallel()
	failed := func(n int, last time.Duration) change {
		return past(func(m *fleet.PoolMemory) { m.BootFailures, m.LastFailure = n, ago(last) })
	}
	deep := waiting(50, minute)
	for _, g := range []growth{
		{"two failures in a row stop nothing", all(deep, failed(2, minute)), 1, 1, ""},
		{"three do", all(deep, failed(3, minute)), 0, 0, "limit.breaker"},
		{"a second before five minutes nothing is tried", all(deep, failed(3, 299*time.Second)), 0, 0, "limit.breaker"},
		{"after five minutes one probe is", all(deep, failed(3, 300*time.Second)), 1, 1, ""},
		{"one probe, whatever the policy wants", all(deep, failed(3, time.Hour), queue(func(q *fleet.PoolQueue) { q.Steps = []fleet.Tier{{Depth: 1, Workers: 4}} })), 1, 1, "limit.breaker"},
		{"no second probe while the first boots", all(deep, failed(3, time.Hour), has("a", booting(minute))), 1, 0, "limit.breaker"},
		{"a fourth failure doubles the wait", all(deep, failed(4, 599*time.Second)), 0, 0, "limit.breaker"},
		{"and then one is tried", all(deep, failed(4, 600*time.Second)), 1, 1, ""},
		{"the wait never passes an hour", all(deep, failed(40, time.Hour)), 1, 1, ""},
		{"what drains may be taken back", all(deep, failed(3, minute), has("a", drains("drain.idle", minute))), 1, 0, ""},
	} {
		g.test(t)
	}
	p := decide.Decide(world(has("a", booting(300*time.Second)), past(func(m *fleet.PoolMemory) { m.BootFailures = 2 }), deep))
	if !slices.Contains(alerts(p), "boot.failing") || !slices.Contains(codes(first(t, p)), "limit.breaker") {
		t.Errorf("the third failure opens the breaker in the same tick and says so: %v %v", alerts(p), codes(first(t, p)))
	}
}

func TestLadder(t *testing.T) {
	t.Parallel()
	deep := all(waiting(50, minute), queue(func(q *fleet.PoolQueue) { q.Steps = []fleet.Tier{{Depth: 1, Workers: 3}} }),
		pool(func(p *fleet.Pool) { p.OnIdle, p.MaxSuspended = fleet.SuspendIdle, 2 }))
	t.Run("un-drain first, then resume, then launch", func(t *testing.T) {
		t.Parallel()
		p := decide.Decide(world(deep, has("d", drains("drain.idle", minute)), has("s", suspended(time.Hour))))
		pp := first(t, p)
		same(t, "un-drained", pp.Undrain, []string{"d"})
		same(t, "resumed", pp.Resume, []string{"s"})
		same(t, "calls", calls(p), []string{"launch 1", "resume i-s"})
		if w := row(p, "d"); w.Status != fleet.Ready || !w.DrainAt.IsZero() || w.DrainWhy != "" {
			t.Errorf("the worker that was taken back is %s", text(w))
		}
	})
	t.Run("the youngest drain comes back first", func(t *testing.T) {
		t.Parallel()
		p := decide.Decide(world(waiting(5, 0), has("a", drains("drain.idle", 3*minute)), has("b", drains("drain.idle", minute)), has("c", drains("drain.idle", 2*minute))))
		same(t, "un-drained", first(t, p).Undrain, []string{"b"})
	})
	for _, c := range []struct {
		name   string
		worker change
	}{
		{"one whose end was asked for", all(has("x", drains("drain.idle", minute), acked), doing(fleet.KindTerminate, "x", 10*time.Second))},
		{"one whose suspension was asked for", all(has("x", drains("drain.idle", minute), acked), doing(fleet.KindSuspend, "x", 10*time.Second))},
		{"one that drains for its spec", has("x", drains("drain.stale", minute))},
		{"one that drains because a person asked", has("x", drains("drain.requested", minute))},
		{"one that drains for its expiry", has("x", drains("drain.expiry", minute))},
		{"one that is not heard of", has("x", drains("drain.idle", minute), silent(3*minute))},
		{"one of a launch that was given up", has("x", drains("drain.abandoned", minute))},
		{"one launched from another spec", has("x", drains("drain.idle", minute), specced("old"))},
		{"a suspended one of another spec", has("x", suspended(time.Hour), specced("old"))},
		{"a suspended one that is not in the list", all(has("x", suspended(time.Hour)), unlisted("i-x"))},
		{"a suspended one that expires", has("x", suspended(time.Hour), func(w *fleet.Worker) { w.Expires = noon.Add(4 * minute) })},
		{"a suspended one whose resume was refused lately", all(has("x", suspended(time.Hour)), func(s *fleet.Snapshot) {
			s.Memory.CoolOffs = []fleet.CoolOff{{Offer: decide.ResumeKey("x"), Until: noon.Add(minute), Count: 1, Code: "no_capacity"}}
		})},
	} {
		t.Run("never taken back: "+c.name, func(t *testing.T) {
			t.Parallel()
			keeps := pool(func(p *fleet.Pool) { p.OnIdle, p.MaxSuspended = fleet.SuspendIdle, 2 })
			pp := first(t, decide.Decide(world(waiting(50, minute), keeps, c.worker)))
			if len(pp.Undrain)+len(pp.Resume) > 0 || pp.Launch != 1 {
				t.Errorf("must launch instead: %s", text(pp))
			}
		})
	}
}

func TestLaunchIntent(t *testing.T) {
	t.Parallel()
	p := decide.Decide(world(waiting(5, minute)))
	if len(p.Intents) != 1 || len(p.Intents[0].Attempts) != 1 {
		t.Fatalf("one intent with its first attempt: %s", text(p.Intents))
	}
	in := p.Intents[0]
	l := in.Attempts[0].Launch
	if in.State != fleet.IntentOpen || in.Reserve != dime || in.MinFor != 60 || !in.Idempotent || in.Count != 1 ||
		!in.ClaimedUntil.Equal(noon.Add(90*time.Second)) || in.Claim == "" || in.Attempts[0].Calls != 1 {
		t.Errorf("intent %s", text(in))
	}
	if l.Token == "" || l.Token == in.ID || l.Tags.Intent != in.ID || l.Tags.Name != "prod" || l.Tags.Deployment != "dep" || l.Tags.Pool != "ocr" ||
		!l.Tags.Expires.Equal(noon.Add(12*time.Hour)) || l.Lifetime != 43200 || l.Tags.Spec != decide.Spec(offer(), nil) {
		t.Errorf("request %s", text(l))
	}
	again := decide.Decide(world(waiting(5, minute)))
	same(t, "the same tick asks under the same id", again.Intents[0].ID, in.ID)
	later := decide.Decide(next(world(waiting(5, minute)), fleet.Plan{Due: noon}))
	if later.Intents[0].ID == in.ID {
		t.Error("another tick asks under another id")
	}
}

func TestBatches(t *testing.T) {
	t.Parallel()
	three := all(waiting(50, minute), queue(func(q *fleet.PoolQueue) { q.Steps = []fleet.Tier{{Depth: 1, Workers: 3}} }))
	batch := func(n int) change {
		return func(s *fleet.Snapshot) { tr := s.Traits["aws"]; tr.MaxBatch = n; s.Traits["aws"] = tr }
	}
	same(t, "one call", calls(decide.Decide(world(three))), []string{"launch 3"})
	same(t, "calls of at most two", calls(decide.Decide(world(three, batch(2)))), []string{"launch 1", "launch 2"})
	same(t, "a provider that says nothing takes one", calls(decide.Decide(world(three, batch(0)))), []string{"launch 1", "launch 1", "launch 1"})
	ids := map[string]bool{}
	for _, in := range decide.Decide(world(three, batch(1))).Intents {
		ids[in.ID], ids[in.Attempts[0].Launch.Token] = true, true
	}
	if len(ids) != 6 {
		t.Errorf("three intents have three ids and three tokens, got %d", len(ids))
	}
}
