package main

import (
	"fmt"
	"testing"
	"time"

	"sluice/core/decide"
	"sluice/core/fleet"
)

type decided struct {
	ms     float64
	allocs int64
}

// decisions measures Decide alone, with four workers for each queue.
func decisions(queues int) decided {
	s := newSite(queues, 4*queues)
	now := time.Date(2027, 1, 14, 12, 0, 0, 0, time.UTC)
	snap := fleet.Snapshot{
		Version: 1, Function: fleet.Evaluate, Due: now, Limit: 60, Config: s.config,
		Listings: []fleet.Listing{{Place: place, Begun: now}},
		Traits:   map[string]fleet.Traits{"bench": {Idempotent: true, MaxBatch: 10}},
		Memory:   fleet.Memory{Deployment: "bench", Now: now},
	}
	for i, q := range s.config.Queues {
		snap.Queues = append(snap.Queues, fleet.QueueState{Name: q.Name, Depth: i % 50, Oldest: fleet.Seconds(i % 400)})
	}
	for i, w := range s.workers {
		snap.Memory.Workers = append(snap.Memory.Workers, busy(w, i, now))
		snap.Listings[0].Machines = append(snap.Listings[0].Machines, fleet.Machine{ID: w.Machine, State: fleet.MachineRunning})
	}
	r := testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			decide.Decide(snap)
		}
	})
	return decided{ms: float64(r.NsPerOp()) / 1e6, allocs: r.AllocsPerOp()}
}

// busy makes every second worker busy, every fourth drain, and the others idle for some minutes.
func busy(w fleet.Worker, i int, now time.Time) fleet.Worker {
	hour := now.Add(-time.Hour)
	w.ID, w.Price, w.Status, w.Slots, w.Jobs = fmt.Sprintf("w-%05d", i), 100, fleet.Ready, 1, i%2
	w.CostFrom, w.BootAt, w.Registered, w.Changed = hour, hour, hour, hour
	w.Heartbeat, w.IdleSince, w.Expires = now, now.Add(-time.Duration(i%9)*time.Minute), now.Add(10*time.Hour)
	if i%4 == 3 {
		w.Status, w.DrainAt, w.DrainWhy = fleet.Draining, now.Add(-time.Minute), fleet.DrainIdle{}.Code()
	}
	return w
}
