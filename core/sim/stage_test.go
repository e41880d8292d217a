package sim_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sluice/core/explain"
	"sluice/core/fleet"
	"sluice/core/sim"
	"sluice/core/tick"
)

// stage is a small world in which one scenario is played: one pool, one cloud, ticks every minute.
type stage struct {
	*testing.T
	w     *sim.World
	cfg   fleet.Config
	world func(p *sim.Process) tick.World
	ticks int
	next  time.Time
}

// pool is the one pool of a stage; its queue has the same name.
const pool = "ocr"

// play runs a story in a bubble; change makes the config and the cloud what the story needs.
func play(t *testing.T, change func(c *fleet.Config, cloud *sim.Cloud), story func(s *stage)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg, cloud := stageConfig(), stageCloud()
		if change != nil {
			change(&cfg, &cloud)
		}
		s := &stage{T: t, w: sim.New(1, time.Now), cfg: cfg}
		s.w.AddCloud(cloud)
		s.w.SetConfig(configBytes(cfg))
		parsed := &trial{parsed: map[string]fleet.Config{}}
		s.world = func(p *sim.Process) tick.World {
			return tick.World{
				Name: cfg.Name, Objects: p.Objects(), Parse: parsed.parse,
				Queues: map[fleet.SourceKind]fleet.Queues{fleet.SourceRedis: p.Redis(), fleet.SourcePostgres: p.Table()},
				Clouds: p.Clouds(), Billing: p.Billing(), Alerters: p.Alerters(), Store: p.Store(),
				Limit: time.Minute, MinInterval: 60,
			}
		}
		time.Sleep(10 * time.Hour) // mid-morning
		s.next = time.Now()
		story(s)
	})
}

func stageConfig() fleet.Config {
	place := fleet.Place{Provider: "aws", Scope: "eu-1"}
	return fleet.Config{
		Name: "stage", Currency: "USD", Timezone: "UTC", Mode: fleet.Hybrid, Interval: 60,
		Queues:    []fleet.Queue{{Name: pool, Source: fleet.Source{Kind: fleet.SourcePostgres, Rows: true}, Run: fleet.Run{Slots: 1}}},
		Providers: []fleet.Provider{{Name: "aws", Scope: "eu-1", MaxInstances: 200}},
		Pools: []fleet.Pool{{
			Name: pool, Enabled: true, Automatic: true, MaxWorkers: 100, IdleMinutes: 2, DrainTimeout: 300, OnIdle: fleet.TerminateIdle,
			Queues: []fleet.PoolQueue{{Name: pool, Depth: 5, DepthBelow: 1}},
			Offers: []fleet.Offer{{Place: place, Type: "small", Market: fleet.OnDemand, Image: "v1"}},
		}},
		Workers: fleet.WorkerRules{
			Heartbeat: 15, BootTimeout: 300, Visibility: 300, MaxAttempts: 3, RetryElsewhere: true, LostDatabase: 600, MaxLifetime: 24 * 3600,
		},
		Limits: fleet.Limits{Hourly: 100 * fleet.Unit, Daily: 1000 * fleet.Unit},
	}
}

func stageCloud() sim.Cloud {
	return sim.Cloud{
		Provider: "aws", Scope: "eu-1", Boot: time.Minute, Ending: 20 * time.Second, Capacity: map[string]int{},
		Traits: fleet.Traits{Idempotent: true, Visibility: 30, MinCharge: 60, MaxBatch: 50},
		Prices: map[string]fleet.Money{sim.Key("small", fleet.OnDemand): 10 * fleet.Cent, sim.Key("small", fleet.Spot): 4 * fleet.Cent},
	}
}

// run is one tick of a process, due at a time.
func (s *stage) run(p *sim.Process, due time.Time) (tick.Report, error) {
	return tick.Evaluate(context.Background(), s.world(p), due)
}

func (s *stage) process() *sim.Process {
	s.ticks++
	return s.w.Process(fmt.Sprintf("tick-%d", s.ticks))
}

// try is the next minute's tick, which may fail.
func (s *stage) try() (tick.Report, error) {
	due := s.next
	s.next = s.next.Add(time.Minute)
	return s.run(s.process(), due)
}

// tick is the next minute's tick.
func (s *stage) tick() tick.Report {
	s.Helper()
	r, err := s.try()
	if err != nil {
		s.Fatalf("tick: %v", err)
	}
	return r
}

// minute is a tick and what agents do until the next one.
func (s *stage) minute() tick.Report {
	s.Helper()
	r := s.tick()
	s.agents(s.next)
	return r
}

func (s *stage) minutes(n int) (all []tick.Report) {
	s.Helper()
	for range n {
		all = append(all, s.minute())
	}
	return all
}

// failing are minutes whose ticks may fail; it returns the errors.
func (s *stage) failing(n int) (errs []error) {
	for range n {
		if _, err := s.try(); err != nil {
			errs = append(errs, err)
		}
		s.agents(s.next)
	}
	return errs
}

// agents act until a time.
func (s *stage) agents(until time.Time) {
	for time.Now().Before(until) {
		for _, a := range s.w.Due() {
			s.w.Act(a)
		}
		next := earlier(until, s.w.NextDue())
		time.Sleep(max(time.Second, time.Until(next)))
	}
	s.w.Workers().Sweep()
}

func (s *stage) enqueue(n int, j sim.Job) {
	j.Queue = pool
	for range n {
		s.w.Enqueue(j)
	}
}

// launched counts all machines that ever were.
func (s *stage) launched() int { return len(s.w.Machines()) }

func (s *stage) alive() (ids []string) {
	for _, m := range s.w.Machines() {
		if !m.Gone() {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

func (s *stage) wantMachines(launched, alive int, when string) {
	s.Helper()
	if s.launched() != launched || len(s.alive()) != alive {
		s.Errorf("%s: %d machines were launched and %d live, want %d and %d", when, s.launched(), len(s.alive()), launched, alive)
	}
}

// statuses counts jobs.
func (s *stage) statuses() map[string]int {
	out := map[string]int{}
	for _, j := range s.w.Jobs() {
		out[j.Status]++
	}
	return out
}

func (s *stage) wantJobs(status string, n int, when string) {
	s.Helper()
	if got := s.statuses(); got[status] != n {
		s.Errorf("%s: jobs are %v, want %d %s", when, got, n, status)
	}
}

// gave says that some report gives a reason.
func gave(code string, rs ...tick.Report) bool {
	return slices.ContainsFunc(rs, func(r tick.Report) bool {
		return slices.ContainsFunc(reasons(r.Plan), func(why fleet.Reason) bool { return why.Code() == code })
	})
}

func (s *stage) wantReason(why fleet.Reason, rs ...tick.Report) {
	s.Helper()
	if !gave(why.Code(), rs...) {
		s.Errorf("no tick gave the reason %s; they said:\n%s", why.Code(), said(rs...))
	}
}

func said(rs ...tick.Report) string {
	var b strings.Builder
	for _, r := range rs {
		for _, why := range reasons(r.Plan) {
			fmt.Fprintf(&b, "%s: %s\n", why.Code(), explain.Reason(why))
		}
	}
	return b.String()
}

func (s *stage) inbox(code string) bool {
	return slices.ContainsFunc(s.w.Inbox(), func(a fleet.Alert) bool { return strings.HasPrefix(a.Key, code+"/") })
}

// busyEnded lists machines that were ended with jobs in hand.
func (s *stage) busyEnded() (ids []string) {
	for _, e := range s.w.Events() {
		if e.Kind == sim.EventEnding && e.Busy > 0 {
			ids = append(ids, e.Machine)
		}
	}
	return ids
}

// hold makes the calls of one kind by one process wait until the returned function is called.
func (s *stage) hold(process string, op sim.Op) (release func()) {
	open := make(chan struct{})
	s.w.SetGate(func(c sim.Call) sim.Verdict {
		if c.Process == process && c.Op == op {
			<-open
		}
		return sim.OK()
	})
	return func() { close(open) }
}
