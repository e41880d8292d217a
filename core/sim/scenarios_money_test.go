package sim_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/core/config"
	"sluice/core/fleet"
	"sluice/core/sim"
	"sluice/core/tick"
)

func TestS17TheLimitHoldsWithinOnePassAndAcrossTicks(t *testing.T) {
	play(t, func(c *fleet.Config, cloud *sim.Cloud) {
		c.Limits.Hourly, c.Pools[0].UpCooldown, cloud.Traits.MaxBatch = 35*fleet.Cent, 0, 1
		c.Pools[0].Queues[0].Steps = []fleet.Tier{{Depth: 1, Workers: 10}}
	}, func(s *stage) {
		s.enqueue(50, sim.Job{Work: time.Hour})
		var wg sync.WaitGroup
		for i := range 6 { // six ticks at once, each with a due time of its own
			p := s.process()
			wg.Go(func() { _, _ = s.run(p, s.next.Add(-time.Duration(i)*time.Second)) })
		}
		wg.Wait()
		s.agents(s.next.Add(time.Minute))
		s.next = s.next.Add(time.Minute)
		rs := s.minutes(10)
		s.wantMachines(3, 3, "0.35 an hour buys three at 0.10")
		s.wantReason(fleet.LimitHourly{}, rs...)
	})
}

func TestS17AnUnansweredLaunchStaysReserved(t *testing.T) {
	play(t, func(c *fleet.Config, _ *sim.Cloud) {
		c.Limits.Hourly, c.Pools[0].UpCooldown = 15*fleet.Cent, 0
		c.Pools[0].Queues[0].Steps = []fleet.Tier{{Depth: 1, Workers: 10}}
	}, func(s *stage) {
		s.enqueue(50, sim.Job{Work: time.Hour})
		s.w.Break(sim.Fault{Op: sim.OpLaunch, Verdict: sim.Lose(fleet.ErrUnavailable)})
		s.failing(30)
		if rate := s.w.Rate(); rate > 15*fleet.Cent {
			s.Errorf("%s an hour run, the limit is 0.15", rate)
		}
	})
}

func TestS17TheDayEndsAtOrUnderItsLimit(t *testing.T) {
	play(t, func(c *fleet.Config, _ *sim.Cloud) {
		c.Limits.Daily, c.Limits.Alert, c.Pools[0].UpCooldown = 100*fleet.Cent, 60*fleet.Cent, 0
		c.Pools[0].Queues[0].Steps = []fleet.Tier{{Depth: 1, Workers: 6}}
	}, func(s *stage) {
		s.enqueue(60, sim.Job{Work: 25 * time.Minute})
		midnight := time.Now().Truncate(24 * time.Hour)
		rs := s.minutes(5 * 60)
		if spent := s.w.Spent(midnight, midnight.Add(24*time.Hour)); spent > 100*fleet.Cent || spent < 70*fleet.Cent {
			s.Errorf("%s were spent of 1.00", spent)
		}
		if len(s.alive()) > 0 || s.w.Database().Override == nil {
			s.Errorf("%v are alive, override %v", s.alive(), s.w.Database().Override)
		}
		s.wantReason(fleet.DailyLimit{}, rs...)
		if !s.inbox("daily_limit") || !s.inbox("daily_limit.near") {
			s.Error("nobody was told")
		}
	})
}

func TestS20TheGuardIsOwnAccrualNotTheBill(t *testing.T) {
	play(t, func(c *fleet.Config, _ *sim.Cloud) {
		c.Limits.Daily, c.Pools[0].UpCooldown = 100*fleet.Cent, 0
		c.Pools[0].Queues[0].Steps = []fleet.Tier{{Depth: 1, Workers: 6}}
	}, func(s *stage) {
		s.w.Bills(24*time.Hour, 0)
		s.enqueue(60, sim.Job{Work: 25 * time.Minute})
		for range 20 {
			s.minutes(15)
			if _, err := tick.Reconcile(s.Context(), s.world(s.process()), s.next); err != nil {
				s.Fatalf("reconcile: %v", err)
			}
		}
		if s.w.Database().Override == nil || len(s.alive()) > 0 {
			s.Error("the limit was not noticed on the day itself")
		}
	})
}

func TestS20TheLargerOfBillAndAccrualCounts(t *testing.T) {
	play(t, func(c *fleet.Config, _ *sim.Cloud) {
		c.Limits.Daily, c.Pools[0].MaxWorkers = 100*fleet.Cent, 1
	}, func(s *stage) {
		s.w.Bills(0, 400) // somebody pays five times what the prices say
		s.enqueue(50, sim.Job{Work: 25 * time.Minute})
		for range 16 {
			s.minutes(15)
			if _, err := tick.Reconcile(s.Context(), s.world(s.process()), s.next); err != nil {
				s.Fatalf("reconcile: %v", err)
			}
		}
		if s.w.Database().Override == nil {
			s.Error("own accrual is 0.40, the bill says 2.00 of 1.00, and nothing happened")
		}
	})
}

func TestS24NothingConfiguredIsNoFailure(t *testing.T) {
	play(t, nil, func(s *stage) {
		s.w.RemoveConfig()
		r, err := s.try()
		if _, ok := r.Plan.Skipped.(fleet.SkipNotConfigured); !ok || err != nil {
			s.Errorf("skipped %v, %v, want not configured and success", r.Plan.Skipped, err)
		}
	})
}

func TestS24ABrokenFirstConfigIsAFailure(t *testing.T) {
	play(t, nil, func(s *stage) {
		s.w.SetConfig([]byte(`{"mode": `))
		if _, err := s.try(); err == nil || !strings.Contains(err.Error(), "memory:scheduler.json") {
			s.Errorf("got %v, want an error that names the file", err)
		}
	})
}

// After a good config comes a bad one: the good one stays in force, nothing grows, people are told what to mend.
func TestS24ABrokenConfigFreezesGrowth(t *testing.T) {
	for name, bad := range map[string]struct{ bytes, says string }{
		"missing":         {"", "not found"},
		"malformed":       {"{\n  \"mode\": \"hybrid\",\n}", "scheduler.json:2:"},
		"an unknown key":  {"{\n  \"mode\": \"hybrid\",\n  \"max_worker\": 3\n}", "max_worker"},
		"an unknown mode": {"{\n  \"mode\": \"hybird\"\n}", "hybrid"},
		"no such provider": {`{"mode": "hybrid", "queues": {"ocr": {"max_workers": 3, "cloud_enabled": true, "cloud_provider": "aws2"}}}`,
			"aws2"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(c *fleet.Config, _ *sim.Cloud) { c.Pools[0].UpCooldown = 0 }, func(s *stage) {
				s.strictly()
				s.enqueue(5, sim.Job{Work: 3 * time.Minute})
				s.minutes(3)
				s.w.RemoveConfig()
				if bad.bytes != "" {
					s.w.SetConfig([]byte(bad.bytes))
				}
				s.enqueue(20, sim.Job{Work: time.Minute})
				before := s.launched()
				rs := s.minutes(60)
				if s.launched() != before {
					s.Errorf("%d machines were added with a broken config", s.launched()-before)
				}
				s.wantReason(fleet.LimitFrozen{}, rs...)
				s.wantReason(fleet.ConfigBroken{}, rs...)
				s.wantMachines(before, 0, "the last good config still drains")
				told := ""
				for _, a := range s.w.Inbox() {
					if strings.HasPrefix(a.Key, "config.broken/") && a.Level == fleet.Critical {
						told = a.Title + " " + string(a.Facts)
					}
				}
				if !strings.Contains(told, bad.says) || !strings.Contains(told, "memory:scheduler.json") {
					s.Errorf("people were told %q, want the file and %q", told, bad.says)
				}
			})
		})
	}
}

// strictly reads configs that are not the stage's own as the product does.
func (s *stage) strictly() {
	own, world := string(configBytes(s.cfg)), s.world
	s.world = func(p *sim.Process) tick.World {
		w := world(p)
		w.Parse = func(name string, b []byte) (fleet.Config, error) {
			if string(b) == own {
				return s.cfg, nil
			}
			c, err := config.Parse(name, b, config.Env{})
			return c.Config, err
		}
		return w
	}
}

func TestS24AConfigThatCannotBeReachedIsNotEmpty(t *testing.T) {
	play(t, nil, func(s *stage) {
		s.enqueue(5, sim.Job{Work: 10 * time.Minute})
		s.minutes(3)
		s.w.Break(sim.Fault{Op: sim.OpGet, Verdict: sim.Fail(errors.New("connection refused"))})
		s.minutes(10)
		s.wantMachines(1, 1, "the worker that runs goes on")
	})
}
