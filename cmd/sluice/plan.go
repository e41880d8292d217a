package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"sluice/core/tick"
)

func (a *app) planCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "plan",
		Short: "Say what a tick would do now, doing nothing",
		Long: "Reads the real queues, workers and clouds and decides, with the tick's own code. Nothing is written,\n" +
			"no cooldown starts, no machine is touched.",
		Example: "  sluice plan --config scheduler.json\n  sluice plan --json | jq .plan.pools",
		Args:    exactly(0),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.plan(cmd.Context()) },
	}
}

func (a *app) plan(ctx context.Context) error {
	w, err := a.world(ctx)
	if err != nil {
		return err
	}
	defer w.Close()
	r, err := tick.Plan(ctx, w.World, time.Now())
	if err != nil {
		return err
	}
	return a.tellPlan(r.Plan, r.Snapshot)
}
