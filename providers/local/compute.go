package local

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"sluice/core/fleet"
)

// Provider is the name of this cloud in a config.
const Provider = "local"

// forceAfter is how long after the first terminate call a repeat ends a machine by force.
const forceAfter = 5 * time.Second

// Options are where machines live and what they run.
type Options struct {
	// Dir is the account: its launches, logs and lock. Machines of another folder are not seen.
	Dir string
	// Agent is the path of sluice-agent.
	Agent string
	// MaxInstances and BootDelay hold where a launch does not carry its own.
	MaxInstances int
	BootDelay    fleet.Seconds
	// Env is the environment of agents: references to secrets, PATH, HOME.
	Env []string
}

// Compute is the local cloud. Any number of them may use one folder, in any number of processes.
type Compute struct{ o Options }

var _ fleet.Compute = (*Compute)(nil)

// New makes the folder where it is missing.
func New(o Options) (*Compute, error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("find folder of local machines: %w", err)
	}
	o.Dir = dir
	if err := makeFolders(dir); err != nil {
		return nil, err
	}
	return &Compute{o}, nil
}

// Traits are what the protocol must know: a launch is in every list from the moment that it returns.
func Traits() fleet.Traits {
	return fleet.Traits{Idempotent: true, MaxBatch: 16, Suspends: true}
}

// settings is the part of a provider's block that a launch obeys.
type settings struct {
	MaxInstances *int           `json:"max_instances"`
	Boot         *fleet.Seconds `json:"boot_seconds"`
}

// List reads the operating system, so that machines of a scheduler that crashed are found, and the folder
// for those that ended in the last hour.
func (c *Compute) List(ctx context.Context, scope, name string) ([]fleet.Machine, time.Time, error) {
	all, err := c.machines(ctx)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("list local machines: %w", err)
	}
	var out []fleet.Machine
	for _, m := range all {
		if m.scope == scope && m.Tags.Name == name {
			out = append(out, m.Machine)
		}
	}
	slices.SortFunc(out, func(a, b fleet.Machine) int { return cmp.Compare(a.ID, b.ID) })
	return out, time.Now().UTC(), nil
}

// machines are all of the folder by id. The folder is read first: what it says has started and does not run
// afterwards has ended.
func (c *Compute) machines(ctx context.Context) (map[string]machine, error) {
	launches, err := c.launches()
	if err != nil {
		return nil, err
	}
	out, err := c.running(ctx)
	if err != nil {
		return nil, err
	}
	for _, l := range launches {
		for _, id := range l.Machines {
			if _, runs := out[id]; !runs && l.Started && c.endedLately(id) {
				out[id] = l.gone(id)
			}
		}
	}
	for id, m := range out {
		if m.State == fleet.MachineRunning && !c.termBegun(id).IsZero() {
			m.State = fleet.MachineStopping
			out[id] = m
		}
	}
	return out, nil
}

// Quote knows no prices: a config says what a local machine costs.
func (c *Compute) Quote(context.Context, []fleet.Offer) ([]fleet.Quote, error) { return nil, nil }

// Launch starts up to l.Count agents, and never more than the maximum at once, whoever else launches. What it is
// about to do is on disk before the first starts: a repeat finds it there, also after the machines have ended.
func (c *Compute) Launch(ctx context.Context, l fleet.Launch) ([]fleet.Machine, error) {
	if l.Count < 1 {
		return nil, fmt.Errorf("launch local machines: count is %d, want at least 1: %w", l.Count, fleet.ErrBadRequest)
	}
	unlock, err := c.lock(ctx)
	if err != nil {
		return nil, fmt.Errorf("launch local machines: %w", err)
	}
	defer unlock()
	known, err := c.find(l.Token)
	if err != nil {
		return nil, fmt.Errorf("launch local machines: %w", err)
	}
	running, err := c.running(ctx)
	if err != nil {
		return nil, fmt.Errorf("launch local machines: %w", err)
	}
	if known == nil {
		if known, err = c.plan(l, len(running)); err != nil {
			return nil, fmt.Errorf("launch local machines: %w", err)
		}
	}
	return c.fulfil(ctx, known, running)
}

// plan decides how many machines a new launch gets and writes it down.
func (c *Compute) plan(l fleet.Launch, running int) (*launch, error) {
	set := settings{MaxInstances: &c.o.MaxInstances, Boot: &c.o.BootDelay}
	if len(l.Settings) > 0 {
		if err := json.Unmarshal(l.Settings, &set); err != nil {
			return nil, fmt.Errorf("read settings: %w: %w", err, fleet.ErrBadRequest)
		}
	}
	room := *set.MaxInstances - running
	if room <= 0 {
		return nil, fmt.Errorf("%d machines run and max_instances is %d: %w", running, *set.MaxInstances, fleet.ErrQuota)
	}
	rec := &launch{Launch: l, Boot: *set.Boot}
	for i := range min(l.Count, room, Traits().MaxBatch) {
		rec.Machines = append(rec.Machines, machineID(l.Token, i))
	}
	c.forgetOld()
	return rec, c.save(rec)
}

// fulfil starts those machines of a launch that were never started.
func (c *Compute) fulfil(ctx context.Context, rec *launch, running map[string]machine) ([]fleet.Machine, error) {
	if !rec.Started {
		for i, id := range rec.Machines {
			if _, runs := running[id]; runs {
				continue
			}
			if err := c.start(rec, id); err != nil {
				return nil, c.giveUp(rec, i, err)
			}
		}
		rec.Started = true
		if err := c.save(rec); err != nil {
			return nil, fmt.Errorf("launch local machines: %w", err)
		}
		var err error
		if running, err = c.running(ctx); err != nil {
			return nil, fmt.Errorf("launch local machines: %w", err)
		}
	}
	var out []fleet.Machine
	for _, id := range rec.Machines {
		m, runs := running[id]
		if !runs {
			m = rec.gone(id)
		}
		out = append(out, m.Machine)
	}
	return out, nil
}

// giveUp says whether a start that failed had any effect.
func (c *Compute) giveUp(rec *launch, started int, err error) error {
	if started > 0 {
		return fmt.Errorf("launch local machines: only %d of %d started: %w", started, len(rec.Machines), err)
	}
	if forgotten := c.forget(rec); forgotten != nil {
		return fmt.Errorf("launch local machines: %w: %w", err, forgotten)
	}
	return fmt.Errorf("launch local machines: %w: check the path of sluice-agent, %s: %w", err, c.o.Agent, fleet.ErrBadRequest)
}

// Suspend stops every process of a machine where it stands.
func (c *Compute) Suspend(ctx context.Context, r fleet.Ref) error {
	m, err := c.one(ctx, r)
	if err != nil {
		return fmt.Errorf("suspend: %w", err)
	}
	if _, err := freeze(ctx, m.pid); err != nil {
		return fmt.Errorf("suspend local machine %s: %w", r.Machine, err)
	}
	return nil
}

// Resume lets every process of a machine go on.
func (c *Compute) Resume(ctx context.Context, r fleet.Ref) error {
	m, err := c.one(ctx, r)
	if err != nil {
		return fmt.Errorf("resume: %w", err)
	}
	if err := thaw(ctx, m.pid); err != nil {
		return fmt.Errorf("resume local machine %s: %w", r.Machine, err)
	}
	return nil
}

// Terminate asks the agent to end. A suspended machine, and one that was asked before and had its time, is ended
// by force with all its processes.
func (c *Compute) Terminate(ctx context.Context, r fleet.Ref) error {
	m, err := c.one(ctx, r)
	if err != nil {
		return fmt.Errorf("terminate: %w", err)
	}
	asked := c.termBegun(r.Machine)
	if m.State == fleet.MachineSuspended || !asked.IsZero() && time.Since(asked) > forceAfter {
		err = kill(ctx, m.pid)
	} else {
		err = c.ask(ctx, m, asked)
	}
	if err != nil {
		return fmt.Errorf("terminate local machine %s: %w", r.Machine, err)
	}
	return nil
}

// Crash does to a machine what a failure does: all its processes end at once, unasked.
func (c *Compute) Crash(ctx context.Context, id string) error {
	running, err := c.running(ctx)
	if err != nil {
		return fmt.Errorf("crash local machine %s: %w", id, err)
	}
	m, runs := running[id]
	if !runs {
		return fmt.Errorf("crash local machine %s: %w", id, fleet.ErrNotFound)
	}
	if err := kill(ctx, m.pid); err != nil {
		return fmt.Errorf("crash local machine %s: %w", id, err)
	}
	return nil
}

// one finds a running machine of a place.
func (c *Compute) one(ctx context.Context, r fleet.Ref) (machine, error) {
	running, err := c.running(ctx)
	if err != nil {
		return machine{}, fmt.Errorf("find local machine %s: %w", r.Machine, err)
	}
	if m, runs := running[r.Machine]; runs && m.scope == r.Place.Scope {
		return m, nil
	}
	return machine{}, fmt.Errorf("local machine %s: %w", r.Machine, fleet.ErrNotFound)
}
