package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"sluice/core/fleet"
)

// Environment variables of the host that say where machines live and what they run.
const (
	EnvDir   = "SLUICE_LOCAL_DIR"   // default: sluice/machines in the user's state folder
	EnvAgent = "SLUICE_LOCAL_AGENT" // default: sluice-agent beside this program, else in PATH
)

// Link is this provider as a program is built with it.
func Link() fleet.Link {
	return fleet.Link{
		Provider: Provider,
		Cloud: func(s fleet.Setup) (fleet.Cloud, error) {
			return fleet.Cloud{Compute: linked{s}, Traits: Traits()}, nil
		},
	}
}

// linked opens the folder when it is first asked something, so that who does not use this computer as
// a cloud needs neither folder nor agent.
type linked struct{ setup fleet.Setup }

var _ fleet.Compute = linked{}

func (l linked) open() (*Compute, error) {
	dir, err := l.dir()
	if err != nil {
		return nil, err
	}
	return New(Options{Dir: dir, Agent: l.agent()})
}

func (l linked) dir() (string, error) {
	if dir := l.setup.Env(EnvDir); dir != "" {
		return dir, nil
	}
	if state := l.setup.Env("XDG_STATE_HOME"); state != "" {
		return filepath.Join(state, "sluice", "machines"), nil
	}
	if home := l.setup.Env("HOME"); home != "" {
		return filepath.Join(home, ".local", "state", "sluice", "machines"), nil
	}
	return "", errors.New("find folder of local machines: set " + EnvDir)
}

// agent is a name that will not be found where there is none; the launch then says so.
func (l linked) agent() string {
	if agent := l.setup.Env(EnvAgent); agent != "" {
		return agent
	}
	const name = "sluice-agent"
	if self, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(self), name)
		if _, err := os.Stat(beside); err == nil {
			return beside
		}
	}
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	return name
}

// environment is what agents get: where their database is, as a reference. A reference to a variable
// takes the variable along, since a child has no other way to it.
func (l linked) environment(ctx context.Context) ([]string, error) {
	ref, err := l.setup.WorkerDatabase(ctx)
	if err != nil {
		return nil, fmt.Errorf("find the workers' database: %w: %w", err, fleet.ErrBadRequest)
	}
	env := []string{"SLUICE_DATABASE_URL_REF=" + ref}
	names := []string{"PATH", "HOME"}
	if name, ok := strings.CutPrefix(ref, "env:"); ok {
		names = append(names, name)
	}
	for _, name := range names {
		if value := l.setup.Env(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env, nil
}

// List implements fleet.Compute.
func (l linked) List(ctx context.Context, scope, name string) ([]fleet.Machine, time.Time, error) {
	c, err := l.open()
	if err != nil {
		return nil, time.Time{}, err
	}
	return c.List(ctx, scope, name)
}

// Quote implements fleet.Compute.
func (l linked) Quote(context.Context, []fleet.Offer) ([]fleet.Quote, error) { return nil, nil }

// Launch implements fleet.Compute.
func (l linked) Launch(ctx context.Context, launch fleet.Launch) ([]fleet.Machine, error) {
	c, err := l.open()
	if err != nil {
		return nil, err
	}
	if c.o.Env, err = l.environment(ctx); err != nil {
		return nil, err
	}
	return c.Launch(ctx, launch)
}

// Suspend implements fleet.Compute.
func (l linked) Suspend(ctx context.Context, m fleet.Ref) error {
	return l.with(func(c *Compute) error { return c.Suspend(ctx, m) })
}

// Resume implements fleet.Compute.
func (l linked) Resume(ctx context.Context, m fleet.Ref) error {
	return l.with(func(c *Compute) error { return c.Resume(ctx, m) })
}

// Terminate implements fleet.Compute.
func (l linked) Terminate(ctx context.Context, m fleet.Ref) error {
	return l.with(func(c *Compute) error { return c.Terminate(ctx, m) })
}

func (l linked) with(do func(*Compute) error) error {
	c, err := l.open()
	if err != nil {
		return err
	}
	return do(c)
}
