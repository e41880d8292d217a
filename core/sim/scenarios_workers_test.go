package sim_test

import (
	"strings"
	"testing"
	"time"

	"sluice/core/fleet"
	"sluice/core/sim"
	"sluice/core/tick"
)

// A worker that has been idle for long enough begins to drain; then work comes.
func TestS03WorkThatComesDuringADrainTakesTheWorkerBack(t *testing.T) {
	play(t, func(c *fleet.Config, _ *sim.Cloud) { c.Pools[0].Queues[0].Depth = 1 }, func(s *stage) {
		s.idleWorker(1)
		for range 10 {
			if gave("drain.dry", s.tick()) {
				break
			}
			s.agents(s.next)
		}
		s.enqueue(1, sim.Job{Work: 10 * time.Minute}) // between the check and the end
		s.agents(s.next)
		s.wantJobs("queued", 2, "a draining worker claims nothing") // it and the one of idleWorker, not due for an hour
		s.wantReason(fleet.Undrained{}, s.minutes(2)...)
		s.wantMachines(1, 1, "taken back")
		s.minutes(12)
		s.wantJobs("completed", 2, "by the same worker")
		if b := s.busyEnded(); len(b) > 0 {
			s.Errorf("%v were ended with work in hand", b)
		}
	})
}

// idleWorker leaves one worker that has nothing to do, and a job for later.
func (s *stage) idleWorker(jobs int) {
	s.enqueue(jobs, sim.Job{Work: time.Second})
	s.enqueue(1, sim.Job{Work: time.Second, After: 2 * time.Hour})
	s.minutes(3)
	s.wantJobs("completed", jobs, "before the story")
}

// The claim comes after the tick has read that the worker is idle, and before it has written that it drains.
func TestS03AClaimDuringTheDecisionIsWorkedOff(t *testing.T) {
	play(t, func(c *fleet.Config, _ *sim.Cloud) { c.Pools[0].DrainTimeout = 1200 }, func(s *stage) {
		s.idleWorker(5)
		worker := ""
		s.w.SetGate(func(c sim.Call) sim.Verdict {
			m := s.w.Database()
			if c.Op == sim.OpCommit && worker == "" && len(m.Workers) == 1 && time.Since(m.Workers[0].IdleSince) >= 2*time.Minute {
				worker = m.Workers[0].ID
				s.enqueue(1, sim.Job{Work: 10 * time.Minute})
				time.Sleep(5 * time.Second)
				s.agents(time.Now().Add(time.Second))
				for range 4 { // its agent claims while the transaction is open
					s.agents(time.Now().Add(time.Second))
				}
			}
			return sim.OK()
		})
		for range 10 {
			s.agents(s.next)
			_, _ = s.try()
		}
		s.w.SetGate(nil)
		s.minutes(12)
		s.wantJobs("completed", 6, "after twenty minutes")
		if b := s.busyEnded(); len(b) > 0 || worker == "" {
			s.Errorf("%v were ended with work in hand (claimed during the decision: %q)", b, worker)
		}
	})
}

func TestS04AWorkerThatRegistersLateIsKept(t *testing.T) {
	play(t, func(_ *fleet.Config, cloud *sim.Cloud) { cloud.Boot = 5*time.Minute + 15*time.Second }, func(s *stage) {
		s.enqueue(5, sim.Job{Work: 4 * time.Minute})
		rs := s.minutes(12)
		s.wantReason(fleet.DrainBoot{}, rs...)
		s.wantReason(fleet.Undrained{}, rs...)
		first := s.w.Machines()[0]
		if first.Gone() {
			s.Error("it was killed although it had registered")
		}
		s.minutes(30)
		s.wantJobs("completed", 5, "in the end")

		before := s.launched()
		s.enqueue(5, sim.Job{Work: time.Minute})
		rs = s.minutes(10)
		if gave("drain.boot_timeout", rs...) || s.launched() != before+1 {
			s.Errorf("the boot timeout did not follow the boot that was seen: %d more machines", s.launched()-before)
		}
	})
}

func TestS04MachinesThatNeverBootOpenTheBreaker(t *testing.T) {
	play(t, func(c *fleet.Config, cloud *sim.Cloud) { cloud.NoBoot, c.Pools[0].UpCooldown = 1, 0 }, func(s *stage) {
		s.enqueue(5, sim.Job{Work: time.Minute})
		rs := s.minutes(120)
		s.wantReason(fleet.LimitBreaker{}, rs...)
		if n := s.launched(); n < 3 || n > 7 {
			s.Errorf("%d machines in two hours, want three and then one for each back-off", n)
		}
		if !s.inbox("boot.failing") {
			s.Error("nobody was told")
		}
		s.w.Alter("aws", func(c *sim.Cloud) { c.NoBoot = 0 })
		s.minutes(80)
		s.wantJobs("completed", 5, "when a probe boots")
	})
}

func TestS05OnePoisonWorkerDoesNotStopTheOthers(t *testing.T) {
	play(t, func(c *fleet.Config, _ *sim.Cloud) {
		c.Pools[0].UpCooldown = 0
		c.Pools[0].Queues[0].Steps = []fleet.Tier{{Depth: 50, Workers: 50}}
	}, func(s *stage) {
		s.enqueue(50, sim.Job{Work: 4 * time.Minute})
		s.minutes(7)
		s.wantMachines(50, 50, "at work")
		s.wantJobs("completed", 50, "worked off")
		poison := s.alive()[17]
		s.w.Break(sim.Fault{Op: sim.OpTerminate, Args: poison, Verdict: sim.Fail(fleet.ErrUnavailable)})
		errs := s.failing(8)
		if left := s.alive(); len(left) != 1 || left[0] != poison {
			s.Errorf("%d machines are left, want the poisoned one alone", len(left))
		}
		if len(errs) == 0 {
			s.Error("the ticks were green although a machine could not be stopped")
		}
		ends := map[time.Time]int{}
		for _, m := range s.w.Machines() {
			ends[m.EndsAt]++
		}
		delete(ends, time.Time{})
		if len(ends) != 1 {
			s.Errorf("the 49 others were stopped in %d ticks, want one", len(ends))
		}
		s.w.Heal()
		s.failing(5)
		s.wantMachines(50, 0, "when it can be stopped")
	})
}

func TestS09DrainingIsNeitherCapacityNorFree(t *testing.T) {
	play(t, func(c *fleet.Config, _ *sim.Cloud) { c.Pools[0].UpCooldown, c.Pools[0].DrainTimeout = 0, 1800 }, func(s *stage) {
		s.enqueue(10, sim.Job{Work: 40 * time.Minute})
		s.minutes(3)
		s.wantMachines(2, 2, "two at work")
		for _, w := range s.w.Database().Workers {
			s.w.Ask(fleet.Request{ID: "ask-" + w.ID, Kind: fleet.RequestDrain, Target: w.ID, Who: "ann", Why: "test"})
		}
		r := s.tick()
		if p := r.Plan.Pools[0]; p.Have != 0 || p.Want == 0 {
			s.Errorf("two draining workers count as %d that accept jobs, %d are wanted for 8 jobs that wait", p.Have, p.Want)
		}
		if r.Plan.Spend.Rate < 20*fleet.Cent {
			s.Errorf("the run rate is %s, but the draining ones still cost 0.20", r.Plan.Spend.Rate)
		}
		if n := s.launched(); n < 3 {
			s.Errorf("%d machines: the queue waits for workers that claim nothing", n)
		}
	})
}

func TestS09NewDemandTakesDrainingWorkersBackFirst(t *testing.T) {
	play(t, func(c *fleet.Config, _ *sim.Cloud) { c.Pools[0].UpCooldown = 0 }, func(s *stage) {
		s.enqueue(10, sim.Job{Work: 3 * time.Minute})
		s.minutes(4)
		off := s.cfg
		off.Mode = fleet.VPSOnly
		s.w.SetConfig(configBytes(off))
		s.enqueue(10, sim.Job{Work: 3 * time.Minute})
		s.tick()
		s.w.SetConfig(configBytes(s.cfg))
		before := s.launched()
		s.next = time.Now().Add(time.Second)
		time.Sleep(time.Second)
		s.wantReason(fleet.Undrained{}, s.tick())
		if s.launched() != before {
			s.Errorf("%d machines were launched while others drained", s.launched()-before)
		}
	})
}

func TestS12TheCrashAfterTheCreateCall(t *testing.T) {
	for name, idempotent := range map[string]bool{"idempotent": true, "not idempotent": false} {
		for fault, verdict := range map[string]sim.Verdict{"crash": sim.CrashAfter(), "lost answer": sim.Lose(fleet.ErrUnavailable)} {
			t.Run(name+", "+fault, func(t *testing.T) {
				play(t, func(c *fleet.Config, cloud *sim.Cloud) {
					cloud.Traits.Idempotent, c.Pools[0].UpCooldown = idempotent, 0
				}, func(s *stage) {
					s.enqueue(5, sim.Job{Work: 3 * time.Minute})
					s.w.Break(sim.Fault{Op: sim.OpLaunch, Times: 1, Verdict: verdict})
					if errs := s.failing(1); len(errs) != 1 {
						s.Error("the tick that crashed was green")
					}
					s.minutes(20)
					s.wantMachines(1, 0, "after twenty minutes")
					s.wantJobs("completed", 5, "after twenty minutes")
				})
			})
		}
	}
}

func TestS12ACallThatNeverArrivedIsMadeAgain(t *testing.T) {
	for name, idempotent := range map[string]bool{"idempotent": true, "not idempotent": false} {
		t.Run(name, func(t *testing.T) {
			play(t, func(c *fleet.Config, cloud *sim.Cloud) {
				cloud.Traits.Idempotent, c.Pools[0].UpCooldown = idempotent, 0
			}, func(s *stage) {
				s.enqueue(5, sim.Job{Work: time.Minute})
				s.w.Break(sim.Fault{Op: sim.OpLaunch, Times: 2, Verdict: sim.Fail(fleet.ErrUnavailable)})
				s.failing(25)
				s.wantMachines(1, 0, "after 25 minutes")
				s.wantJobs("completed", 5, "after 25 minutes")
			})
		})
	}
}

func TestS13AMachineWithoutARowIsRemoved(t *testing.T) {
	play(t, func(c *fleet.Config, _ *sim.Cloud) { c.Pools[0].UpCooldown, c.Pools[0].MinReady = 0, 6 }, func(s *stage) {
		s.minutes(8)
		s.wantMachines(6, 6, "the pool's own")
		s.w.Alter("aws", func(c *sim.Cloud) { c.NoBoot = 1 }) // or its agent would register, and it would be adopted
		s.w.Outside("aws", fleet.Launch{
			Token: "lost", Count: 1, Offer: s.cfg.Pools[0].Offers[0],
			Tags: fleet.Tags{Name: "stage", Deployment: "an earlier database", Pool: pool, Intent: "lost", Expires: time.Now().Add(24 * time.Hour)},
		})
		rs := s.minutes(3)
		s.wantReason(fleet.OrphanSeen{}, rs...)
		s.wantMachines(7, 7, "within the grace")
		if rate := rs[2].Plan.Spend.Rate; rate < 70*fleet.Cent {
			s.Errorf("the run rate is %s, the orphan costs too", rate)
		}
		rs = s.minutes(8)
		s.wantReason(fleet.OrphanRemoved{}, rs...)
		s.wantMachines(7, 6, "after the grace and a second sighting")
	})
}

func TestS13ManyMachinesWithoutRowsAreNotRemoved(t *testing.T) {
	play(t, func(c *fleet.Config, _ *sim.Cloud) {
		c.Pools[0].UpCooldown, c.Pools[0].MinReady, c.Pools[0].MaxWorkers = 0, 4, 4
	}, func(s *stage) {
		s.minutes(6)
		s.w.Swap() // another, empty database: the machines' agents register again, those without one cannot
		for _, a := range s.w.Agents() {
			s.w.Silence(a, 30*time.Minute)
		}
		rs := s.minutes(15)
		s.wantReason(fleet.OrphansTooMany{}, rs...)
		s.wantMachines(4, 4, "the database is suspected")
		if !s.inbox("orphan.too_many") {
			s.Error("nobody was told")
		}
	})
}

func TestS13ARowWithoutAMachineEnds(t *testing.T) {
	play(t, nil, func(s *stage) {
		s.enqueue(5, sim.Job{Work: 10 * time.Minute})
		s.minutes(7)
		s.w.Interrupt(s.alive()[0])
		s.minutes(5)
		s.wantMachines(2, 1, "the lost one was replaced")
		if n := len(s.w.Database().Workers); n != 1 {
			s.Errorf("%d workers, want the replacement alone", n)
		}
	})
}

func TestS13ASlowDeleteIsConfirmedLater(t *testing.T) {
	play(t, func(_ *fleet.Config, cloud *sim.Cloud) { cloud.Ending = 10 * time.Minute }, func(s *stage) {
		s.enqueue(5, sim.Job{Work: time.Second})
		s.minutes(4)
		var rs []tick.Report
		for range 20 {
			r := s.minute()
			rs = append(rs, r)
			if len(s.alive()) == 1 && r.Plan.Spend.Rate == 0 {
				s.Fatal("a machine that is being deleted costs nothing")
			}
		}
		s.wantReason(fleet.Gone{}, rs...)
		s.wantMachines(1, 0, "in the end")
	})
}

func TestS14AnUnreadableQueueRemovesNobody(t *testing.T) {
	play(t, func(c *fleet.Config, _ *sim.Cloud) {
		c.Queues[0].Source = fleet.Source{Kind: fleet.SourceRedis, Key: "queue:ocr", Rows: true}
		c.Pools[0].UpCooldown = 0
		c.Pools[0].Queues[0].Steps = []fleet.Tier{{Depth: 20, Workers: 20}}
	}, func(s *stage) {
		s.enqueue(20, sim.Job{Work: 4 * time.Minute})
		s.minutes(4)
		s.wantMachines(20, 20, "at work")
		s.w.Break(sim.Fault{Op: sim.OpRead, Args: "redis", Verdict: sim.Fail(fleet.ErrUnavailable)})
		rs := s.minutes(10)
		s.wantMachines(20, 20, "after ten dark minutes, all idle")
		s.wantReason(fleet.Unobserved{}, rs...)
		if !s.inbox("unobserved") {
			s.Error("nobody was told")
		}
		for _, r := range rs {
			if p := r.Plan.Pools[0]; p.Want < p.Have {
				s.Errorf("unknown was read as little: %d → %d", p.Have, p.Want)
			}
		}
		s.w.Heal()
		s.minutes(10)
		s.wantMachines(20, 0, "when it can be read")
	})
}

func TestS14TheAgeInTheTableStillCounts(t *testing.T) {
	play(t, func(c *fleet.Config, _ *sim.Cloud) {
		c.Queues[0].Source = fleet.Source{Kind: fleet.SourceRedis, Key: "queue:ocr", Rows: true}
		c.Pools[0].Queues[0].Age = 300
	}, func(s *stage) {
		s.w.Break(sim.Fault{Op: sim.OpRead, Args: "redis", Verdict: sim.Fail(fleet.ErrUnavailable)})
		s.enqueue(1, sim.Job{Work: time.Minute})
		s.minutes(10)
		s.wantJobs("completed", 1, "although the list cannot be read")
	})
}

func TestS15OnlyIdleWorkersAreCandidates(t *testing.T) {
	play(t, func(c *fleet.Config, _ *sim.Cloud) {
		c.Pools[0].UpCooldown = 0
		c.Pools[0].Queues[0].Steps = []fleet.Tier{{Depth: 5, Workers: 5}}
	}, func(s *stage) {
		s.enqueue(5, sim.Job{Work: 30 * time.Minute})
		s.minutes(3)
		s.wantMachines(5, 5, "at work")
		for _, r := range s.minutes(25) {
			if len(r.Plan.Pools[0].Drain) > 0 {
				s.Fatalf("a worker in the middle of its job drains:\n%s", said(r))
			}
		}
		s.minutes(15)
		s.wantJobs("completed", 5, "in one attempt each")
		for _, j := range s.w.Jobs() {
			if j.Attempts != 1 {
				s.Errorf("job %s took %d attempts", j.ID, j.Attempts)
			}
		}
		s.wantMachines(5, 0, "afterwards")
	})
}

// Two jobs wait that no spot machine may run, above the threshold that launches one and below the depth at which one may go.
func TestS18ScaleInIsAFixedPoint(t *testing.T) {
	play(t, func(c *fleet.Config, _ *sim.Cloud) {
		c.Pools[0].UpCooldown, c.Pools[0].MaxWorkers = 0, 1
		c.Pools[0].Queues[0].Depth, c.Pools[0].Queues[0].DepthBelow = 2, 5
		c.Pools[0].Offers[0].Market = fleet.Spot
	}, func(s *stage) {
		s.enqueue(2, sim.Job{Work: time.Second, Market: fleet.OnDemand})
		rs := s.minutes(14 * 60)
		s.wantMachines(1, 1, "after fourteen hours")
		s.wantReason(fleet.KeptWanted{}, rs...)
	})
}

func TestS23TheDeadlineIsKnown(t *testing.T) {
	play(t, func(c *fleet.Config, cloud *sim.Cloud) {
		cloud.Traits.MaxBatch = 1
		c.Pools[0].Queues[0].Steps = []fleet.Tier{{Depth: 1, Workers: 40}}
	}, func(s *stage) {
		s.enqueue(40, sim.Job{Work: time.Hour})
		s.w.SetGate(func(c sim.Call) sim.Verdict {
			if c.Op == sim.OpLaunch {
				select {
				case <-time.After(20 * time.Second):
				case <-c.Ctx.Done():
					return sim.Fail(c.Ctx.Err())
				}
			}
			return sim.OK()
		})
		start := time.Now()
		r, err := s.try()
		if took := time.Since(start); took >= time.Minute {
			s.Errorf("it took %s and ran into its limit", took)
		}
		if len(r.Left) == 0 || err == nil || !strings.Contains(err.Error(), "no time left") {
			s.Errorf("left %d calls, %v: want what was left, said", len(r.Left), err)
		}
		if s.launched() == 0 {
			s.Error("nothing was done at all")
		}
		s.w.SetGate(nil)
		s.agents(s.next)
		s.failing(5)
		if n := s.launched(); n != 40 {
			s.Errorf("%d machines after later ticks, want 40", n)
		}
	})
}

// Neither config nor database can be had; machines past their expiry go all the same.
func TestMachinesPastTheirExpiryGoWithoutADatabase(t *testing.T) {
	play(t, func(c *fleet.Config, _ *sim.Cloud) { c.Workers.MaxLifetime = 1800 }, func(s *stage) {
		world := s.world
		s.world = func(p *sim.Process) tick.World {
			w := world(p)
			w.Places = []fleet.Place{s.cfg.Providers[0].Place()}
			return w
		}
		s.enqueue(5, sim.Job{Work: time.Hour})
		s.minutes(5)
		s.w.Break(sim.Fault{Op: sim.OpRecall, Verdict: sim.Fail(fleet.ErrUnavailable)})
		s.w.Break(sim.Fault{Op: sim.OpGet, Verdict: sim.Fail(fleet.ErrUnavailable)})
		s.failing(20)
		s.wantMachines(1, 1, "before its expiry")
		if errs := s.failing(10); len(errs) != 10 {
			s.Errorf("%d of ten ticks failed visibly", len(errs))
		}
		s.wantMachines(1, 0, "after it")
	})
}
