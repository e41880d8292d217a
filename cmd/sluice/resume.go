package main

import (
	"github.com/spf13/cobra"

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
