package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"sluice/core/fleet"
)

func (a *app) drainCommand() *cobra.Command {
	reason := ""
	cmd := &cobra.Command{
		Use:   "drain WORKER --reason TEXT",
		Short: "Let a worker finish what it has, then end its machine",
		Long: "Asks the next tick to drain a cloud worker: it claims nothing more, finishes its jobs or gives them back after\n" +
			"the drain timeout, and its machine is ended.",
		Example: "  sluice drain 5f0c2c1e-6f0e-5a8b-9c55-0d8f4c8f7a11 --reason \"disk errors\"",
		Args:    exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.ask(cmd.Context(), fleet.Request{Kind: fleet.RequestDrain, Target: args[0], Why: reason})
		},
	}
	addReason(cmd, &reason)
	return cmd
}

func addReason(cmd *cobra.Command, reason *string) {
	cmd.Flags().StringVar(reason, "reason", "", "why, for the record (required)")
}

// ask puts a request in for the next tick. What that tick would refuse is refused here, while the
// person who asks is still there.
func (a *app) ask(ctx context.Context, r fleet.Request) error {
	if r.Why == "" {
		return usageError{errNoReason}
	}
	db, err := a.past(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	m, err := db.Recall(ctx)
	if err != nil {
		return err
	}
	r.Who = a.who()
	r.At = m.Now
	r.ID = fleet.ID("request", m.Deployment, string(r.Kind), r.Target, r.Who, m.Now.String())
	if err := a.refuse(ctx, r, m); err != nil {
		return err
	}
	if err := db.Ask(ctx, r); err != nil {
		return fmt.Errorf("%w%s", err, nextStep(r, err))
	}
	if a.asJSON {
		return a.writeJSON(r)
	}
	return a.say("Asked for; the next tick takes it up. `sluice decisions` shows what became of it.")
}

func (a *app) refuse(ctx context.Context, r fleet.Request, m fleet.Memory) error {
	switch r.Kind {
	case fleet.RequestDrain:
		return refuseVPS(r.Target, m)
	case fleet.RequestResume:
		return a.refuseResume(ctx, r, m)
	case fleet.RequestAdopt:
	}
	return nil
}

func refuseVPS(worker string, m fleet.Memory) error {
	for _, w := range m.Workers {
		if w.ID == worker && !w.Cloud() {
			return fmt.Errorf("worker %s is the VPS, which Sluice neither starts nor ends: stop its sluice-agent with SIGTERM, it drains by itself", worker)
		}
	}
	return nil
}

func nextStep(r fleet.Request, err error) string {
	if r.Kind == fleet.RequestDrain && (errors.Is(err, fleet.ErrNotFound) || errors.Is(err, fleet.ErrBadRequest)) {
		return "; `sluice workers` lists those that live"
	}
	return ""
}
