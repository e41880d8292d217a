package main

import (
	"errors"

	"github.com/spf13/cobra"

	"sluice/core/fleet"
)

func (a *app) adoptCommand() *cobra.Command {
	reason, all := "", false
	cmd := &cobra.Command{
		Use:   "adopt MACHINE|--all --reason TEXT",
		Short: "Take over machines that this database does not know",
		Long: "Machines with our tag and no row are orphans, and orphans are removed. After a database was restored or swapped they may\n" +
			"be workers with jobs in hand: adopting gives them rows. The next tick does it.",
		Example: "  sluice adopt i-0abc123 --reason \"restored from backup\"\n  sluice adopt --all --reason \"restored from backup\"",
		Args: func(_ *cobra.Command, args []string) error {
			if all == (len(args) == 1) || len(args) > 1 {
				return usageError{errors.New("name one machine, or --all")}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			target := "all"
			if !all {
				target = args[0]
			}
			return a.ask(cmd.Context(), fleet.Request{Kind: fleet.RequestAdopt, Target: target, Why: reason})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "all machines with our tag")
	addReason(cmd, &reason)
	return cmd
}
