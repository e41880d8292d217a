package agent

import (
	"context"
	"time"

	"sluice/core/fleet"
)

// sweep gives jobs back whose worker died, at a low rate, since every worker does it.
func (a *agent) sweep(ctx context.Context) {
	a.repeat(ctx, "sweep jobs", sweepEvery, a.Database.Sweep)
}

// sweepLists keeps the Redis lists in step with the job table.
func (a *agent) sweepLists(ctx context.Context) {
	a.repeat(ctx, "sweep redis lists", listsEvery, func(ctx context.Context) error {
		return a.Lists(ctx, a.listed())
	})
}

// repeat logs the first of a row of failures.
func (a *agent) repeat(ctx context.Context, what string, every time.Duration, do func(context.Context) error) {
	failing := false
	for sleep(ctx, jitter(every)) {
		call, cancel := context.WithTimeout(ctx, callTimeout)
		err := do(call)
		cancel()
		if err != nil && !failing && ctx.Err() == nil {
			a.log().Warn("could not "+what, "error", err.Error())
		}
		failing = err != nil
	}
}

// listed are the queues whose jobs have an id in a Redis list.
func (a *agent) listed() []fleet.Queue {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []fleet.Queue
	for _, q := range a.lists {
		if q.Source.Kind == fleet.SourceRedis && q.Source.Rows {
			out = append(out, q)
		}
	}
	return out
}
