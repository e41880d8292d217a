package decide_test

import (
	"slices"
	"testing"
	"time"

	"sluice/core/decide"
	"sluice/core/fleet"
)

// basePolicy is the policy table of the base system: a figure belongs to the row in which it first appears.
var basePolicy = queue(func(q *fleet.PoolQueue) {
	q.DepthBelow = 1
	q.Steps = []fleet.Tier{{Depth: 6, Age: 120, Workers: 1}, {Depth: 21, Age: 300, Workers: 3}, {Depth: 101, Age: 600, Max: true, Alert: fleet.Warning}}
})

// Every row of the table from its first to its last figure, with the VPS at work beside it.
func TestThePolicyTableRowByRow(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name     string
		depths   []int
		ages     []time.Duration
		launches int // by the first tick; max_workers is 5 and the VPS is one of them
		alerts   int
	}{
		{"up to 5 jobs that wait for less than 2 minutes are the VPS's", []int{0, 1, 5}, []time.Duration{0, minute, 119 * time.Second}, 0, 0},
		{"6 to 20 jobs, or 2 minutes, are worth one machine", []int{6, 13, 20}, []time.Duration{2 * minute, 3 * minute, 299 * time.Second}, 1, 0},
		{"21 to 100 jobs, or 5 minutes, are worth three", []int{21, 60, 100}, []time.Duration{5 * minute, 7 * minute, 599 * time.Second}, 3, 0},
		{"more than 100 jobs, or 10 minutes, are worth all there may be, and somebody is told", []int{101, 1000}, []time.Duration{10 * minute, time.Hour}, 4, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			check := func(depth int, age time.Duration) {
				p := decide.Decide(world(vps, basePolicy, waiting(depth, age)))
				if n := first(t, p).Launch; n != row.launches || len(p.Alerts) != row.alerts {
					t.Errorf("depth %d, age %s: %d machines and alerts %v, want %d and %d", depth, age, n, alerts(p), row.launches, row.alerts)
				}
			}
			for _, d := range row.depths {
				check(d, 0)
			}
			for _, a := range row.ages {
				check(1, a)
			}
		})
	}
	t.Run("at depth 0 for 10 minutes all machines go at once", func(t *testing.T) {
		t.Parallel()
		early := decide.Decide(world(vps, basePolicy, scaledDown(time.Second), hasMany(3, idle(599*time.Second))))
		same(t, "drained a second early", drained(early), map[string]string{})
		p := decide.Decide(world(vps, basePolicy, scaledDown(time.Second), hasMany(3, idle(600*time.Second))))
		same(t, "drained", drained(p), map[string]string{"w1": "drain.dry", "w2": "drain.dry", "w3": "drain.dry"})
	})
}

// withMedia adds a pool of its own for a second queue.
func withMedia(depth int) change {
	return func(s *fleet.Snapshot) {
		p := s.Config.Pools[0]
		p.Name, p.Queues = "media", []fleet.PoolQueue{{Name: "media", Depth: 5, Age: 300, DepthBelow: 2}}
		s.Config.Pools = append(s.Config.Pools, p)
		s.Queues = append(s.Queues, fleet.QueueState{Name: "media", Depth: depth})
	}
}

func planOf(t *testing.T, p fleet.Plan, pool string) fleet.PoolPlan {
	t.Helper()
	i := slices.IndexFunc(p.Pools, func(pp fleet.PoolPlan) bool { return pp.Pool == pool })
	if i < 0 {
		t.Fatalf("no plan for %s", pool)
	}
	return p.Pools[i]
}

func TestQueuesScaleByThemselves(t *testing.T) {
	t.Parallel()
	t.Run("a deep queue asks for no machine of another", func(t *testing.T) {
		t.Parallel()
		p := decide.Decide(world(withMedia(0), waiting(50, 0)))
		if planOf(t, p, "ocr").Launch != 1 || planOf(t, p, "media").Launch != 0 {
			t.Errorf("only ocr is deep: %s", text(p.Pools))
		}
	})
	t.Run("the cooldown of one holds no other", func(t *testing.T) {
		t.Parallel()
		p := decide.Decide(world(withMedia(50), waiting(50, 0), has("a", busy1), scaledUp(time.Second)))
		if planOf(t, p, "ocr").Launch != 0 || planOf(t, p, "media").Launch != 1 {
			t.Errorf("only ocr has just been scaled up: %s", text(p.Pools))
		}
	})
	t.Run("the depth of one keeps no worker of another", func(t *testing.T) {
		t.Parallel()
		p := decide.Decide(world(withMedia(50), has("a", idle(time.Hour))))
		same(t, "drained", drained(p), map[string]string{"a": "drain.dry"})
	})
}

// Whatever people ask for, the mode of the config holds: nothing starts, and what runs goes on draining.
func TestNoRequestChangesTheMode(t *testing.T) {
	t.Parallel()
	for _, kind := range []fleet.RequestKind{fleet.RequestDrain, fleet.RequestAdopt, fleet.RequestResume} {
		for _, target := range []string{"", "a", "i-x", "all"} {
			for _, more := range []change{all(), overridden, all(has("s", suspended(time.Hour)))} {
				p := decide.Decide(world(mode(fleet.VPSOnly), waiting(500, time.Hour), has("a"), has("d", drains("drain.mode", minute)),
					listed("i-x"), more, requested(kind, target)))
				for _, in := range p.Intents {
					if in.Kind == fleet.KindLaunch || in.Kind == fleet.KindResume {
						t.Errorf("%s %q: %s", kind, target, text(in))
					}
				}
				if drained(p)["a"] == "" || len(drainedBack(p)) > 0 {
					t.Errorf("%s %q: drained %v, taken back %v", kind, target, drained(p), drainedBack(p))
				}
			}
		}
	}
}

func TestAlertLevels(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		given change
		code  string
		level fleet.Level
	}{
		{"the daily limit is reached: critical", all(has("a", busy1), limits(5*fleet.Unit, dime)), "daily_limit", fleet.Critical},
		{"the daily spend comes near it: warning", all(has("a", busy1), func(s *fleet.Snapshot) { s.Config.Limits.Alert = dime }), "daily_limit.near", fleet.Warning},
		{"all workers are silent: critical", hasMany(3, silent(3*minute)), "all_unhealthy", fleet.Critical},
		{"a queue cannot be read: warning", unreadable("refused"), "unobserved", fleet.Warning},
		{"a place cannot be listed: warning", placeUnknown, "place.unknown", fleet.Warning},
		{"the top of the policy table: as it says", all(basePolicy, waiting(101, 0)), "backlog.top_tier", fleet.Warning},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := decide.Decide(world(c.given))
			if len(p.Alerts) != 1 || p.Alerts[0].Why.Code() != c.code || p.Alerts[0].Level != c.level {
				t.Errorf("alerts %s, want %s at %s", text(p.Alerts), c.code, c.level)
			}
		})
	}
	t.Run("a worker that is not heard of is drained, told of and no alert", func(t *testing.T) {
		t.Parallel()
		p := decide.Decide(world(has("a", silent(3*minute)), has("b"), has("c")))
		same(t, "drained", drained(p), map[string]string{"a": "drain.unhealthy"})
		same(t, "alerts", alerts(p), []string{})
	})
}

// The hourly limit holds whatever waits.
func TestNoDepthPassesTheHourlyLimit(t *testing.T) {
	t.Parallel()
	for _, depth := range []int{5, 500, 1_000_000} {
		for _, policy := range []change{all(), basePolicy} {
			p := decide.Decide(world(policy, waiting(depth, time.Hour), has("a", busy1), limits(2*dime-1, 50*fleet.Unit)))
			if pp := first(t, p); pp.Launch != 0 || !slices.Contains(codes(pp), "limit.hourly") {
				t.Errorf("depth %d: launches %d, steps %v", depth, pp.Launch, codes(pp))
			}
		}
	}
}

func TestAColdPoolEndsItsMachinesWithTheBatch(t *testing.T) {
	t.Parallel()
	cold := pool(func(p *fleet.Pool) { p.IdleMinutes = 0 })
	done := decide.Decide(world(cold, scaledDown(time.Second), hasMany(2, idle(0))))
	same(t, "drained when the last job is done", drained(done), map[string]string{"w1": "drain.dry", "w2": "drain.dry"})
	rest := decide.Decide(world(cold, inHand(1), has("w1", busy1), has("w2", idle(0))))
	same(t, "drained while one is at work", drained(rest), map[string]string{"w2": "drain.idle"})
	same(t, "calls for a queue of nothing", calls(decide.Decide(world(cold))), []string{})
}
