// Package tick is the order of things: expire, load, observe, decide, write down, act, announce.
package tick

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"sluice/core/decide"
	"sluice/core/explain"
	"sluice/core/fleet"
)

// World is everything outside: ports, and what the environment says.
type World struct {
	// Name is the installation's name from the environment and Places are where its machines are: what the
	// expiry step needs when neither config nor database can be had. No places: no expiry step.
	Name   string
	Places []fleet.Place

	Objects fleet.Objects
	// Parse turns config bytes into a config; its error is for people.
	Parse    func(name string, b []byte) (fleet.Config, error)
	Queues   map[fleet.SourceKind]fleet.Queues
	Clouds   map[string]fleet.Cloud
	Billing  map[string]fleet.Billing
	Alerters map[fleet.ChannelKind]func(fleet.Channel) fleet.Alerter
	Store    fleet.Store
	// Limit is the function's time limit, from the start of the tick. It bounds all calls.
	Limit time.Duration
	// MinInterval is the shortest evaluation interval that this host can keep.
	MinInterval fleet.Seconds
}

// Report is what a tick saw, decided and did.
type Report struct {
	Snapshot fleet.Snapshot
	Plan     fleet.Plan
	Lines    []fleet.Line
	// Left are intents whose call was not made for want of time; a later tick makes it.
	Left []string
	// Unsent are alerts that a channel did not take in this tick.
	Unsent []Unsent
}

// settleTime is how long before the function's limit the last call must have ended, so that its
// answer can still be written down.
const settleTime = 10 * time.Second

// Evaluate is one tick: it decides and acts. A skipped tick succeeds; a tick that could not do all it
// decided returns its report with an error.
func Evaluate(ctx context.Context, w World, due time.Time) (Report, error) {
	ctx, cancel := context.WithTimeout(ctx, w.Limit)
	defer cancel()
	calls, cancelCalls := context.WithTimeout(ctx, callTime(w.Limit))
	defer cancelCalls()

	expired := expire(calls, w)
	o, err := observe(calls, w, fleet.Evaluate, due)
	if err != nil {
		return Report{}, errors.Join(expired, err)
	}
	r, err := transact(calls, w, o)
	if err != nil {
		return r, errors.Join(expired, err)
	}
	left, acted := act(ctx, calls, w, r)
	r.Left = left
	r.Unsent = announce(ctx, w, r.Snapshot.Config)
	return r, errors.Join(expired, acted)
}

// callTime leaves time to write answers down, however short the limit is.
func callTime(limit time.Duration) time.Duration { return limit - min(settleTime, limit/3) }

// Plan is the same tick up to the decision. It writes nothing and acts on nothing.
func Plan(ctx context.Context, w World, due time.Time) (Report, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime(w.Limit))
	defer cancel()
	o, err := observe(ctx, w, fleet.Evaluate, due)
	if err != nil {
		return Report{}, err
	}
	if o.skip != nil {
		return skipped(o), nil
	}
	m, err := w.Store.Recall(ctx)
	if err != nil {
		return Report{}, fmt.Errorf("recall: %w", err)
	}
	r, _ := decided(o, m)
	return r, nil
}

// Reconcile holds the books against the bills. Machines are Evaluate's alone, but for expired ones.
func Reconcile(ctx context.Context, w World, due time.Time) (Report, error) {
	ctx, cancel := context.WithTimeout(ctx, w.Limit)
	defer cancel()
	expired := expire(ctx, w)
	o, err := observeBills(ctx, w, due)
	if err != nil {
		return Report{}, errors.Join(expired, err)
	}
	r, err := transact(ctx, w, o)
	if err != nil {
		return r, errors.Join(expired, err)
	}
	r.Unsent = announce(ctx, w, r.Snapshot.Config)
	return r, errors.Join(expired, o.failed)
}

// transact decides under the lock and writes the plan down. What a lost answer to the commit may
// have written is acted on by nobody until its claims have run out.
func transact(ctx context.Context, w World, o observation) (Report, error) {
	if o.skip != nil {
		return skipped(o), nil
	}
	var r Report
	err := w.Store.Transact(ctx, func(m fleet.Memory) (fleet.Plan, fleet.Record) {
		var rec fleet.Record
		r, rec = decided(o, m)
		return r.Plan, rec
	})
	if err != nil {
		return r, fmt.Errorf("write the decision: %w", err)
	}
	return r, nil
}

// skipped is the report of a tick that found before deciding that there is nothing to decide.
func skipped(o observation) Report {
	plan := fleet.Plan{Function: o.snapshot.Function, Due: o.snapshot.Due, Skipped: o.skip}
	return Report{Plan: plan, Lines: explain.Lines(plan, o.snapshot.Config)}
}

// decided is the pure part: from what was seen and what is remembered to what shall be written.
func decided(o observation, m fleet.Memory) (Report, fleet.Record) {
	s := o.snapshot
	s.Memory = m
	s.Quotes = fresh(s.Config, m, o.quotes)
	p := decide.Decide(s)
	p.Alerts = append(p.Alerts, brokenAlert(s, p)...)
	p.Alerts = explain.Alerts(p, s.Config)
	r := Report{Snapshot: s, Plan: p, Lines: explain.Lines(p, s.Config)}
	rec := fleet.Record{Lines: r.Lines, Samples: s.Queues, Quotes: o.quotes}
	if s.ConfigBroken == "" && !s.ConfigAt.Before(m.ConfigAt) { // a tick that read an older one brings nothing back
		rec.Config, rec.Assignments = o.object, Assignments(s.Config)
	}
	if changed(p) {
		rec.Snapshot = &s
	}
	return r, rec
}

// brokenAlert tells people that the last good config is in force.
func brokenAlert(s fleet.Snapshot, p fleet.Plan) []fleet.Alert {
	if s.ConfigBroken == "" || p.Skipped != nil {
		return nil
	}
	why := fleet.ConfigBroken{Cause: s.ConfigBroken}
	key := fleet.ID(s.ConfigBroken) + "/" + p.Now.UTC().Format(time.DateOnly)
	return []fleet.Alert{{Key: why.Code() + "/" + key, Level: fleet.Critical, At: p.Now, Why: why}}
}

// changed says that a plan is worth keeping with its snapshot.
func changed(p fleet.Plan) bool {
	if len(p.Intents)+len(p.Adopted)+len(p.Taken)+len(p.Bills) > 0 || p.Override != nil || p.Lifted {
		return true
	}
	return slices.ContainsFunc(p.Workers, func(c fleet.WorkerChange) bool { return c.From != c.Worker.Status }) ||
		slices.ContainsFunc(p.Pools, func(p fleet.PoolPlan) bool { return p.Have != p.Want })
}

// Assignments tell agents what to run: each pool's own queues, and all of them on the VPS.
func Assignments(c fleet.Config) map[string]fleet.Assignment {
	base := fleet.Assignment{
		Heartbeat: c.Workers.Heartbeat, Visibility: c.Workers.Visibility, MaxAttempts: c.Workers.MaxAttempts,
		LostDatabase: c.Workers.LostDatabase, DrainTimeout: fleet.DefaultDrainTimeout, RetryElsewhere: c.Workers.RetryElsewhere,
	}
	out := map[string]fleet.Assignment{fleet.VPS: base}
	for _, p := range c.Pools {
		a := base
		a.DrainTimeout = p.DrainTimeout
		for _, q := range c.Queues {
			if slices.ContainsFunc(p.Queues, func(pq fleet.PoolQueue) bool { return pq.Name == q.Name }) {
				a.Queues = append(a.Queues, q)
			}
		}
		out[p.Name] = a
	}
	vps := out[fleet.VPS]
	vps.Queues = c.Queues
	out[fleet.VPS] = vps
	return out
}
