package sim_test

import (
	"sync/atomic"
	"testing"
	"time"

	"sync"

	"sluice/core/fleet"
	"sluice/core/sim"
	"sluice/core/tick"
)

// Five jobs need one worker, which takes three minutes to boot.
func TestS01BootingWorkersCount(t *testing.T) {
	play(t, func(_ *fleet.Config, cloud *sim.Cloud) { cloud.Boot = 3 * time.Minute }, func(s *stage) {
		s.enqueue(5, sim.Job{Work: 20 * time.Second})
		rs := s.minutes(3)
		s.wantMachines(1, 1, "after three ticks")
		var a fleet.Awaiting
		for _, why := range reasons(rs[2].Plan) {
			if w, ok := why.(fleet.Awaiting); ok {
				a = w
			}
		}
		if a.Booting != 1 || len(a.Workers) != 1 || a.LeftS <= 0 || a.LeftS > 300 {
			s.Errorf("the third tick awaits %+v, want one named worker and how long it has left", a)
		}
		s.minutes(6)
		s.wantJobs("completed", 5, "after nine minutes")
	})
}

func TestS02ASlowTickIsNotOvertaken(t *testing.T) {
	play(t, func(c *fleet.Config, _ *sim.Cloud) { c.Pools[0].UpCooldown = 0 }, func(s *stage) {
		s.enqueue(5, sim.Job{Work: time.Hour})
		slow, due := s.w.Process("slow"), s.next
		release := s.hold("slow", sim.OpLaunch)
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = s.run(slow, due)
		}()
		time.Sleep(30 * time.Second)
		again, err := s.run(s.process(), due)
		if _, ok := again.Plan.Skipped.(fleet.SkipRepeated); !ok || err != nil {
			s.Errorf("the same minute again: skipped %v, %v, want repeated and success", again.Plan.Skipped, err)
		}
		s.next = s.next.Add(time.Minute)
		time.Sleep(18 * time.Second) // 48 s: the slow tick's call ends at 50 s
		r := s.tick()
		s.wantReason(fleet.Awaiting{}, r)
		release()
		<-done
		s.minutes(3)
		s.wantMachines(1, 1, "after both")
	})
}

func TestS02OneOfAHundredTicksActs(t *testing.T) {
	play(t, nil, func(s *stage) {
		s.enqueue(5, sim.Job{Work: time.Hour})
		var acted, skipped atomic.Int32
		var wg sync.WaitGroup
		for range 100 {
			p := s.process()
			wg.Go(func() {
				switch r, err := s.run(p, s.next); {
				case err != nil:
					s.Errorf("tick: %v", err)
				case r.Plan.Skipped != nil:
					skipped.Add(1)
				default:
					acted.Add(1)
				}
			})
		}
		wg.Wait()
		if acted.Load() != 1 || skipped.Load() != 99 {
			s.Errorf("%d acted and %d were skipped, want 1 and 99", acted.Load(), skipped.Load())
		}
		s.wantMachines(1, 1, "after a hundred")
	})
}

func TestS02ACrashedHolderBlocksNobody(t *testing.T) {
	play(t, nil, func(s *stage) {
		s.enqueue(5, sim.Job{Work: time.Hour})
		s.w.Break(sim.Fault{Op: sim.OpCommit, Times: 1, Verdict: sim.CrashBefore()})
		if _, err := s.try(); err == nil {
			s.Error("a tick that crashed reported success")
		}
		s.minute()
		s.wantMachines(1, 1, "one tick later")
	})
}

func TestS02AFrozenHolderBlocksNoLongerThanItsTransaction(t *testing.T) {
	play(t, nil, func(s *stage) {
		s.enqueue(5, sim.Job{Work: time.Hour})
		frozen, due := s.w.Process("frozen"), s.next
		release := s.hold("frozen", sim.OpCommit)
		done := make(chan error)
		go func() {
			_, err := s.run(frozen, due)
			done <- err
		}()
		time.Sleep(time.Minute)
		s.next = s.next.Add(time.Minute)
		s.minute()
		release()
		if err := <-done; err == nil {
			s.Error("the frozen tick wrote its decision after another had taken the lock")
		}
		s.minutes(2)
		s.wantMachines(1, 1, "after both")
	})
}

func TestS06OneClampAfterAllRules(t *testing.T) {
	play(t, func(c *fleet.Config, _ *sim.Cloud) {
		p := &c.Pools[0]
		p.MinReady, p.MaxWorkers, p.UpCooldown = 40, 100, 0
		p.Queues[0].Steps = []fleet.Tier{{Depth: 1, Workers: 80}, {Depth: 50, Workers: 140}}
	}, func(s *stage) {
		var rs []tick.Report
		for range 8 {
			s.enqueue(60, sim.Job{Work: 30 * time.Minute})
			rs = append(rs, s.minute())
			if n := len(s.alive()); n > 100 {
				s.Fatalf("%d machines live, the cap is 100", n)
			}
		}
		s.wantMachines(100, 100, "with everything busy")
		s.wantReason(fleet.LimitCeiling{}, rs...)
	})
}

func TestS07WantedAboveTheMaximum(t *testing.T) {
	play(t, func(c *fleet.Config, _ *sim.Cloud) {
		c.Pools[0].MaxWorkers, c.Pools[0].UpCooldown = 3, 0
		c.Pools[0].Queues[0].Steps = []fleet.Tier{{Depth: 1, Workers: 9}}
	}, func(s *stage) {
		s.enqueue(30, sim.Job{Work: 4 * time.Minute})
		s.minutes(5)
		s.wantMachines(3, 3, "nine are wanted, three are allowed")

		s.cfg.Pools[0].MaxWorkers = 1 // now more run than are allowed
		s.w.SetConfig(configBytes(s.cfg))
		rs := s.minutes(12)
		s.wantMachines(3, 1, "one is allowed")
		s.wantReason(fleet.DrainSurplus{}, rs...)
		for _, r := range rs {
			for _, p := range r.Plan.Pools {
				if p.Want < 0 || p.Launch < 0 {
					s.Errorf("a negative count: %s", text(p))
				}
			}
		}
	})
}

func TestS07ARejectedCallIsAFailedTick(t *testing.T) {
	play(t, nil, func(s *stage) {
		s.enqueue(5, sim.Job{Work: time.Minute})
		s.w.Break(sim.Fault{Op: sim.OpLaunch, Times: 1, Verdict: sim.Fail(fleet.ErrBadRequest)})
		if _, err := s.try(); err == nil {
			s.Error("the API rejected the call and the tick is green")
		}
	})
}

func TestS08NoCapacityTriesTheNextOfferInTheSameTick(t *testing.T) {
	play(t, func(c *fleet.Config, cloud *sim.Cloud) {
		spot := c.Pools[0].Offers[0]
		spot.Market = fleet.Spot
		zero := fleet.Seconds(0)
		c.Pools[0].Offers, c.Pools[0].Cheapest, c.Pools[0].FallbackAfter = append(c.Pools[0].Offers, spot), true, &zero
		cloud.Capacity[sim.Key("small", fleet.Spot)] = 0
	}, func(s *stage) {
		s.enqueue(5, sim.Job{Work: 10 * time.Minute})
		s.tick()
		s.wantMachines(1, 1, "in one tick")
		if m := s.w.Machines()[0]; m.Market != fleet.OnDemand {
			s.Errorf("launched %s, which cannot be had", m.Market)
		}
		s.agents(s.next)
		s.minutes(4)
		s.enqueue(10, sim.Job{Work: time.Minute})
		s.wantReason(fleet.OfferCoolingOff{}, s.minute(), s.minute())
	})
}

func TestS16JobsAreNotCountedTwiceWhileMachinesBoot(t *testing.T) {
	play(t, func(c *fleet.Config, cloud *sim.Cloud) {
		c.Pools[0].UpCooldown = 0
		c.Pools[0].Queues[0].Steps = []fleet.Tier{{Depth: 1, Workers: 1}, {Depth: 42, Workers: 42}}
		cloud.Boot = 3 * time.Minute
	}, func(s *stage) {
		s.enqueue(42, sim.Job{Work: 6 * time.Minute})
		s.minutes(20)
		if n := s.launched(); n != 42 {
			s.Errorf("%d machines for 42 jobs", n)
		}
		s.wantJobs("completed", 42, "after twenty minutes")
	})
}

func TestS19RulesHoldAtZero(t *testing.T) {
	play(t, func(c *fleet.Config, _ *sim.Cloud) {
		c.Pools[0].Queues[0] = fleet.PoolQueue{Name: pool, Depth: 1}
		c.Pools[0].IdleMinutes, c.Pools[0].DrainTimeout = 0, 0
	}, func(s *stage) {
		s.minutes(2) // no job, no worker, no rate
		s.wantMachines(0, 0, "nothing to do")
		s.enqueue(1, sim.Job{Work: time.Minute})
		s.minutes(6)
		s.wantJobs("completed", 1, "from zero workers")
	})
}

func TestS19APriceOfZeroIsUnknown(t *testing.T) {
	play(t, func(_ *fleet.Config, cloud *sim.Cloud) {
		cloud.Prices[sim.Key("small", fleet.OnDemand)] = 0
	}, func(s *stage) {
		s.enqueue(5, sim.Job{Work: time.Minute})
		rs := s.minutes(2)
		s.wantMachines(0, 0, "no price")
		s.wantReason(fleet.OfferNoPrice{}, rs...)
	})
}

func TestS22JobsThatCrashTheirWorkerDie(t *testing.T) {
	play(t, func(c *fleet.Config, _ *sim.Cloud) {
		c.Pools[0].Queues[0] = fleet.PoolQueue{Name: pool, Depth: 1, DepthBelow: 1}
		c.Pools[0].MaxWorkers = 4
	}, func(s *stage) {
		s.enqueue(1, sim.Job{Work: 20 * time.Second, Crashes: 99})
		s.minutes(60)
		s.wantJobs("dead", 1, "after an hour")
		if n := s.launched(); n < 2 {
			s.Errorf("%d machines: it was not retried on another worker", n)
		}
		before := s.launched()
		s.minutes(60)
		s.wantMachines(before, 0, "when the job is dead")
	})
}

func TestS22JobsThatAreNotDueAreNoDemand(t *testing.T) {
	play(t, nil, func(s *stage) {
		s.enqueue(100, sim.Job{Work: time.Second, After: time.Hour})
		s.minutes(50)
		s.wantMachines(0, 0, "before they are due")
		s.minutes(15)
		if s.launched() == 0 {
			s.Error("no machine when they are due")
		}
	})
}
