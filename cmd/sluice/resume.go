package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"sluice/core/decide"
	"sluice/core/explain"
	"sluice/core/fleet"
)

func (a *app) resumeCommand() *cobra.Command {
	reason := ""
	cmd := &cobra.Command{
		Use:   "resume-cloud --reason TEXT",
		Short: "Lift the override that a breached daily limit imposed",
		Long: "After the daily limit was reached everything runs as vps_only until a person lifts it. The next tick lifts it, unless the rest\n" +
			"of the day's budget does not cover the cheapest pool for an hour.",
		Example: "  sluice resume-cloud --reason \"budget raised to 80 USD\"",
		Args:    exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.ask(cmd.Context(), fleet.Request{Kind: fleet.RequestResume, Why: reason})
		},
	}
	addReason(cmd, &reason)
	return cmd
}

// refuseResume asks the next tick's own code what it would say.
func (a *app) refuseResume(ctx context.Context, r fleet.Request, m fleet.Memory) error {
	if m.Override == nil {
		return errors.New("there is no override to lift: the config's mode holds")
	}
	c, err := a.currentConfig(ctx, m)
	if err != nil {
		return err
	}
	m.Requests, m.LastDue = append(m.Requests, r), nil
	p := decide.Decide(fleet.Snapshot{
		Version: 1, Function: fleet.Evaluate, Due: m.Now, Limit: fleet.Seconds(tickLimit.Seconds()), Config: c, ConfigAt: m.ConfigAt, Quotes: m.Quotes, Memory: m,
	})
	if p.Lifted {
		return nil
	}
	for _, n := range p.Notes {
		if why, ok := n.Why.(fleet.ResumeRefused); ok {
			return fmt.Errorf("not lifted: %s", explain.Reason(why))
		}
	}
	return errors.New("not lifted: today's spend still reaches the daily limit; raise max_daily_spend_cents or wait for the next day")
}
