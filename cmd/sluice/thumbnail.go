package main

import (
	"github.com/spf13/cobra"

	"sluice/cmd/sluice/demo"
)

// thumbnailCommand is the job of `sluice run`; people have no use for it.
func (a *app) thumbnailCommand() *cobra.Command {
	return &cobra.Command{
		Use: "thumbnail", Short: "Make one thumbnail, from a job on standard input", Hidden: true,
		Example: `  echo '{"payload":{"source":"a.jpg","target":"b.jpg","width":160}}' | sluice thumbnail`,
		Args:    exactly(0),
		RunE:    func(*cobra.Command, []string) error { return demo.RunJob(a.in) },
	}
}
