package agent

import (
	"context"
	"slices"
	"time"
)

// claim takes as many jobs as there is room for.
func (a *agent) claim(ctx context.Context) {
	for a.claims() {
		queues, n := a.room()
		if n == 0 || !a.claimSome(ctx, queues, n) {
			return
		}
	}
}

// claims says whether this worker takes jobs at all now.
func (a *agent) claims() bool {
	select {
	case <-a.term: // not yet seen by the loop, perhaps
		return false
	default:
	}
	if a.stopping || a.drain || a.away > 0 {
		return false
	}
	return a.ends.IsZero() || time.Until(a.ends) > a.rules.DrainTimeout.Duration()
}

// room are the queues with a free slot and how many jobs fit, whichever of them they come from.
func (a *agent) room() ([]string, int) {
	used := map[string]int{}
	for _, j := range a.jobs {
		used[j.Queue]++
	}
	var queues []string
	n := 0
	for name, q := range a.queues {
		free := max(1, q.Run.Slots) - used[name]
		if free <= 0 {
			continue
		}
		if n == 0 || free < n {
			n = free
		}
		queues = append(queues, name)
	}
	slices.Sort(queues)
	return queues, n
}

// claimSome makes one call and says whether there may be more.
func (a *agent) claimSome(ctx context.Context, queues []string, n int) bool {
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	begun := time.Now()
	jobs, err := a.Database.Claim(call, a.worker, queues, n)
	if err != nil {
		a.say("claim", unanswered, err)
		return false
	}
	delete(a.said, "claim")
	for _, j := range jobs {
		a.start(ctx, j, begun)
	}
	return len(jobs) == n
}
