package sim_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"sluice/core/fleet"
	"sluice/core/fleet/fleettest"
	"sluice/core/sim"
)

// clock is one that a test moves.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func newClock() *clock { return &clock{at: time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func TestStore(t *testing.T) {
	t.Parallel()
	fleettest.Store(t, func(*testing.T) fleettest.StoreHarness {
		c := newClock()
		w := sim.New(1, c.now)
		s := w.Process("suite").Store()
		return fleettest.StoreHarness{
			Store: s, History: s, Requests: s, Workers: suiteWorkers{w.Workers(), w},
			Advance: c.advance,
			LoseCommit: func(applied bool) {
				w.Break(sim.Fault{Op: sim.OpCommit, Times: 1, Verdict: sim.Verdict{Effect: applied, Err: fleet.ErrCommitUnknown}})
			},
		}
	})
}

// suiteWorkers is the worker's side in the words of the suite.
type suiteWorkers struct {
	*sim.Workers
	w *sim.World
}

func (s suiteWorkers) Enqueue(_ context.Context, j fleettest.NewJob) (string, error) {
	return s.w.Enqueue(sim.Job{Queue: j.Queue, Priority: j.Priority, After: j.After, Market: j.Market}), nil
}

func (s suiteWorkers) Register(_ context.Context, r fleettest.Registration) (fleettest.Registered, error) {
	b := s.Workers.Register(sim.Registration{
		Place: fleet.Place{Provider: r.Provider, Scope: r.Scope}, Zone: r.Zone, Machine: r.Machine, Pool: r.Pool,
		Intent: r.Intent, Spec: r.Spec, Type: r.Type, Market: r.Market, Expires: r.Expires,
	})
	return fleettest.Registered{Worker: b.Worker, Beat: suiteBeat(b), Wait: b.Wait}, nil
}

func suiteBeat(b sim.Beat) fleettest.Beat {
	out := fleettest.Beat{Status: string(b.Status), Drain: b.Drain}
	if b.Assignment != nil {
		out.Assignment, _ = json.Marshal(b.Assignment)
	}
	return out
}

func (s suiteWorkers) Heartbeat(_ context.Context, worker string) (fleettest.Beat, bool, error) {
	b, known := s.Workers.Heartbeat(worker)
	return suiteBeat(b), known, nil
}

func (s suiteWorkers) Claim(_ context.Context, worker string, queues []string, n int) (out []fleettest.ClaimedJob, err error) {
	for _, c := range s.Workers.Claim(worker, queues, n) {
		out = append(out, fleettest.ClaimedJob{Attempt: c.Attempt, Job: c.Job, Queue: c.Queue, Number: c.Number, Checkpoint: c.Checkpoint})
	}
	return out, nil
}

func (s suiteWorkers) Extend(_ context.Context, attempt string) (bool, error) {
	return s.Workers.Extend(attempt), nil
}

func (s suiteWorkers) Checkpoint(_ context.Context, attempt string, data json.RawMessage) (bool, error) {
	return s.Workers.Checkpoint(attempt, data), nil
}

func (s suiteWorkers) Complete(_ context.Context, attempt string) (bool, error) {
	return s.Workers.Complete(attempt), nil
}

func (s suiteWorkers) Fail(_ context.Context, attempt, _ string) (string, error) {
	return s.Workers.Fail(attempt), nil
}

func (s suiteWorkers) Release(_ context.Context, attempt string) (bool, error) {
	return s.Workers.Release(attempt), nil
}

func (s suiteWorkers) Drained(_ context.Context, worker string) (bool, error) {
	return s.Workers.Drained(worker), nil
}

func (s suiteWorkers) Leave(_ context.Context, worker string) (bool, error) {
	return s.Workers.Leave(worker), nil
}

func (s suiteWorkers) Sweep(context.Context) (int, error) { return s.Workers.Sweep(), nil }

func (s suiteWorkers) Job(_ context.Context, id string) (fleettest.JobRow, error) {
	for _, j := range s.w.Jobs() {
		if j.ID == id {
			return fleettest.JobRow{Status: j.Status, Attempts: j.Attempts, ClaimedBy: j.ClaimedBy}, nil
		}
	}
	return fleettest.JobRow{}, fleet.ErrNotFound
}

func TestCompute(t *testing.T) {
	t.Parallel()
	for name, traits := range map[string]fleet.Traits{
		"idempotent":     {Idempotent: true, Visibility: 30, MinCharge: 60, MaxBatch: 5, Suspends: true, BoundsLifetime: true},
		"not idempotent": {Visibility: 90, MaxBatch: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fleettest.Compute(t, func(*testing.T) fleettest.Harness { return computeHarness(traits) })
		})
	}
}

func computeHarness(traits fleet.Traits) fleettest.Harness {
	c := newClock()
	w := sim.New(1, c.now)
	w.AddCloud(sim.Cloud{
		Provider: "aws", Scope: "eu", Traits: traits, Quota: 12, Boot: time.Minute, Ending: 40 * time.Second, Keeps: time.Hour,
		Prices: map[string]fleet.Money{sim.Key("small", fleet.Spot): 4 * fleet.Cent},
	})
	return fleettest.Harness{
		Cloud: w.Process("suite").Clouds()["aws"],
		Offer: fleet.Offer{Place: fleet.Place{Provider: "aws", Scope: "eu"}, Zone: "eu-a", Type: "small", Market: fleet.Spot},
		Max:   12, Pages: 12, Unknown: "m-00000000",
		Step:      func() { c.advance(10 * time.Second) },
		BreakList: func() { w.Break(sim.Fault{Op: sim.OpList, Times: 1, Verdict: sim.Fail(fleet.ErrUnavailable)}) },
	}
}

func TestAlerter(t *testing.T) {
	t.Parallel()
	fleettest.Alerter(t, func(*testing.T) fleettest.AlerterHarness {
		w := sim.New(1, newClock().now)
		answer := func(err error) func() {
			return func() { w.Break(sim.Fault{Op: sim.OpSend, Verdict: sim.Fail(err)}) }
		}
		return fleettest.AlerterHarness{
			Alerter: w.Process("suite").Alerters()[fleet.ChannelWebhook](fleet.Channel{}),
			Refuse:  answer(fleet.ErrDenied), Fail: answer(fleet.ErrUnavailable),
			Got: func() (out []string) {
				for _, a := range w.Inbox() {
					out = append(out, a.Title)
				}
				return out
			},
		}
	})
}
