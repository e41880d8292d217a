package agent

import (
	"context"
	"errors"
	"time"

	"sluice/core/fleet"
)

// heartbeat tells and hears; an error is the end.
func (a *agent) heartbeat(ctx context.Context) error {
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	s, err := a.Database.Heartbeat(call, a.worker, a.Sample(call))
	if errors.Is(err, fleet.ErrNotFound) {
		a.say("heartbeat", "the database does not know this worker, registering again", nil)
		return a.register(ctx)
	}
	if err != nil {
		return a.missed("heartbeat", err)
	}
	a.reached("heartbeat")
	a.accept(ctx, s)
	return nil
}

// accept takes over what the database says.
func (a *agent) accept(ctx context.Context, s Status) {
	a.obey(s.Rules)
	a.expire(s.Left)
	if s.Drain != a.drain {
		a.log().Info("drain changed", "drain", s.Drain, "jobs", len(a.jobs))
		a.drain, a.acked = s.Drain, false
	}
	a.acknowledge(ctx)
}

// acknowledge says that nothing more is claimed. Claims are made by this goroutine too, so none is under way.
func (a *agent) acknowledge(ctx context.Context) {
	if !a.drain || a.acked {
		return
	}
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := a.Database.Drained(call, a.worker); err != nil {
		a.say("drain", unanswered, err) // the next heartbeat tries again
		return
	}
	a.acked = true
}

// obey takes rules over; where there are none, the last hold.
func (a *agent) obey(rules *fleet.Assignment) {
	if rules != nil {
		a.rules = *rules
	}
	a.rules.Heartbeat = or(a.rules.Heartbeat, defaultHeartbeat)
	a.rules.Visibility = or(a.rules.Visibility, defaultVisibility)
	a.rules.LostDatabase = or(a.rules.LostDatabase, defaultLostDatabase)
	a.queues = map[string]fleet.Queue{}
	for _, q := range a.rules.Queues {
		if len(q.Run.Command) == 0 {
			a.say("queue "+q.Name, "this queue has no run.command: its jobs are left to others", nil)
			continue
		}
		a.queues[q.Name] = q
	}
	a.mu.Lock()
	a.lists = a.rules.Queues
	a.mu.Unlock()
}

func or(s, fallback fleet.Seconds) fleet.Seconds {
	if s > 0 {
		return s
	}
	return fallback
}

// expire sets the end by what is left of the time, as the database's clock has it; this machine's clock may be wrong.
func (a *agent) expire(left *time.Duration) {
	ends := a.life
	if left != nil {
		if by := time.Now().Add(*left); ends.IsZero() || by.Before(ends) {
			ends = by
		}
	}
	a.ends = ends
	if ends.IsZero() {
		a.end.Stop()
		return
	}
	a.end.Reset(time.Until(ends))
}
