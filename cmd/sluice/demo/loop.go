package demo

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"sluice/core/fleet"
	"sluice/core/tick"
)

// loop ticks until the burst is worked off and its machines are gone; where a run is watched, until it is interrupted.
func (r *run) loop(ctx context.Context) error {
	r.enter(working)
	defer r.enter(ended)
	evaluate, reconcile := time.NewTicker(evaluateEvery), time.NewTicker(reconcileEvery)
	defer evaluate.Stop()
	defer reconcile.Stop()
	changed := time.Now()
	for {
		select {
		case <-ctx.Done():
			if r.Watch {
				return nil
			}
			return ctx.Err()
		case <-reconcile.C:
			r.reconcile(ctx)
			continue
		case <-evaluate.C:
		}
		switch r.step(ctx) {
		case over:
			return nil
		case moving:
			changed = time.Now()
		case standing:
			if time.Since(changed) > stuckAfter {
				return fmt.Errorf("nothing has changed for %v: %s", stuckAfter, r.seen)
			}
		}
	}
}

func (r *run) enter(p phase) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.phase = p
}

// motion is what a step has come to.
type motion int

const (
	moving   motion = iota
	standing        // still: nothing has changed, and something should
	over
)

// step is one tick and a look at what came of it. Whether the run is over is settled before anybody can add work again.
func (r *run) step(ctx context.Context) motion {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.paused.Load() {
		return moving
	}
	if err := r.evaluate(ctx); err != nil && ctx.Err() == nil {
		r.say("The tick failed: %v", err)
	}
	before := r.seen
	if err := r.look(ctx); err != nil {
		if ctx.Err() == nil {
			r.say("%v", err)
		}
		return standing
	}
	switch {
	case r.seen.over() && !r.Watch:
		r.phase = ended
		return over
	case r.seen.over():
		if !before.over() {
			r.say("The work is done: add more on the page; Ctrl-C ends the run")
		}
		return moving
	case r.seen != before:
		return moving
	}
	return standing
}

func (r *run) reconcile(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.paused.Load() {
		return
	}
	if _, err := tick.Reconcile(ctx, r.world.World, due()); err != nil && ctx.Err() == nil {
		r.say("Reconciling failed: %v", err)
	}
}

// evaluate does a tick and prints what it decided.
func (r *run) evaluate(ctx context.Context) error {
	report, err := tick.Evaluate(ctx, r.world.World, due())
	if r.first == 0 && slices.ContainsFunc(report.Plan.Intents, func(i fleet.Intent) bool { return i.Kind == fleet.KindLaunch }) {
		r.first = time.Since(r.started)
		defer func() { r.say("The first machine was asked for %.1f s after the start", r.first.Seconds()) }()
	}
	for _, line := range report.Lines {
		about := line.Event + " " + line.Pool + " " + line.Worker
		if line.Event != "tick" && r.last[about] != line.Message {
			r.last[about] = line.Message
			r.say("%s", shortened(line))
		}
	}
	return err
}

// shortened is a line's message with as much of its worker's id as tells it from the others; the stored line has all of it.
func shortened(line fleet.Line) string {
	if line.Worker == "" {
		return line.Message
	}
	return strings.ReplaceAll(line.Message, line.Worker, shortID(line.Worker))
}

func shortID(id string) string { return id[:min(len(id), 8)] }

func due() time.Time { return time.Now().UTC() }

// state is where the burst is.
type state struct {
	jobs                       counts
	booting, working, draining int
	intents                    int // asked for, and not answered or not seen yet
}

func (s state) over() bool {
	return s.jobs.total() > 0 && s.jobs.over() == s.jobs.total() && s.booting+s.working+s.draining+s.intents == 0
}

func (s state) String() string {
	return fmt.Sprintf("%d of %d jobs over, %d running; machines: %d booting, %d working, %d draining",
		s.jobs.over(), s.jobs.total(), s.jobs.Running, s.booting, s.working, s.draining)
}

// look counts jobs and machines, and prints progress where it has changed.
func (r *run) look(ctx context.Context) error {
	var s state
	var err error
	if s.jobs, err = count(ctx, r.pool, r.ids); err != nil {
		return err
	}
	m, err := r.db.Recall(ctx)
	if err != nil {
		return err
	}
	for _, w := range m.Workers {
		if !w.Cloud() {
			continue
		}
		switch w.Status {
		case fleet.Provisioning:
			s.booting++
		case fleet.Ready:
			s.working++
		case fleet.Draining, fleet.Suspended, fleet.Terminated, fleet.Failed:
			s.draining++
		}
	}
	s.intents = len(m.Intents)
	r.most = max(r.most, s.booting+s.working+s.draining)
	if line, ok := r.told.next(s, time.Since(r.begun)); ok {
		r.say("%s", line)
	}
	r.seen = s
	return nil
}

// say prints with the time since the burst began.
func (r *run) say(format string, args ...any) {
	r.Say("%6.1fs  %s", time.Since(r.begun).Seconds(), fmt.Sprintf(format, args...))
}

// progress prints where the burst is, but not each second.
type progress struct {
	last   state
	lastAt time.Duration
}

const progressEvery = 4 * time.Second

func (p *progress) next(s state, at time.Duration) (string, bool) {
	if s == p.last || at-p.lastAt < progressEvery {
		return "", false
	}
	p.last, p.lastAt = s, at
	return s.String(), true
}
