package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"time"

	"sluice/core/fleet"
	"sluice/functions/host"
)

// tickLimit bounds a tick that a person or a timer starts, as a function's time limit does.
const tickLimit = 60 * time.Second

func (a *app) options() host.Options {
	return host.Options{
		Env: a.env, Config: a.config, Database: a.database, Limit: tickLimit,
		MinInterval: 1, // a timer on a VPS may fire as often as it likes
	}
}

// world opens everything that a tick needs, and fails where there is no database to speak to.
func (a *app) world(ctx context.Context) (*host.World, error) {
	w, err := host.Open(ctx, a.options(), links()...)
	if err != nil {
		return nil, err
	}
	return w, w.Lost()
}

// past opens the database alone.
func (a *app) past(ctx context.Context) (fleet.Database, error) {
	return host.OpenDatabase(ctx, a.options(), links()...)
}

// who is the person that asks, as the decisions will show it.
func (a *app) who() string {
	name := a.env("SUDO_USER")
	if name == "" {
		name = a.env("USER")
	}
	if u, err := user.Current(); name == "" && err == nil {
		name = u.Username
	}
	if machine, err := os.Hostname(); err == nil {
		return name + "@" + machine
	}
	return name
}

func errNeeds(flag, what string) error { return fmt.Errorf("missing %s: name %s", flag, what) }

var errNoReason = errors.New(`missing --reason: say why in a few words, such as --reason "image upgrade"; the decisions will show it`)
