package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"sluice/core/fleet"
)

// toldSince is how far back a worker or a tick is looked for by the beginning of its id: as long as snapshots are kept.
const toldSince = 30 * 24 * time.Hour

// shortest is the least of an id that is looked for.
const shortest = 6

// found is what a person's word stands for: one of a tick, a worker or a queue.
type found struct {
	tick   string
	worker *fleet.WorkerRecord
	queue  string
}

func (f found) String() string {
	switch {
	case f.worker != nil:
		return "worker " + f.worker.ID
	case f.queue != "":
		return "queue " + f.queue
	}
	return "tick " + f.tick
}

// find looks a word up among ids, machines and queues.
func find(ctx context.Context, db fleet.Database, m fleet.Memory, word string) (found, error) {
	workers, err := db.Workers(ctx, m.Now.Add(-toldSince))
	if err != nil {
		return found{}, err
	}
	ticks, err := db.Ticks(ctx, m.Now.Add(-toldSince), 0)
	if err != nil {
		return found{}, err
	}
	samples, err := db.Samples(ctx, m.Now.Add(-queueTold))
	if err != nil {
		return found{}, err
	}
	var all []found
	for i, w := range workers {
		if w.Machine == word || hasID(w.ID, word) {
			all = append(all, found{worker: &workers[i]})
		}
	}
	for _, t := range ticks {
		if hasID(t.ID, word) {
			all = append(all, found{tick: t.ID})
		}
	}
	if len(readingsOf(samples, word)) > 0 {
		all = append(all, found{queue: word})
	}
	return only(all, word)
}

// only is the one that was found; where there are none or several, the error helps on.
func only(all []found, word string) (found, error) {
	switch len(all) {
	case 1:
		return all[0], nil
	case 0:
		return found{}, fmt.Errorf("explain %s: no tick, worker, machine or queue of that name: `sluice decisions`, `sluice workers --since 7d` and `sluice status` list them", word)
	}
	const named = 5
	var names []string
	for _, f := range all[:min(named, len(all))] {
		names = append(names, f.String())
	}
	more := ""
	if len(all) > named {
		more = fmt.Sprintf(" and %d more", len(all)-named)
	}
	return found{}, fmt.Errorf("explain %s: that may be %s%s: write more of the id", word, strings.Join(names, ", "), more)
}

func hasID(id, word string) bool {
	return len(word) >= shortest && strings.HasPrefix(id, strings.ToLower(word))
}
