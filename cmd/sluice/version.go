package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"sluice/providers/postgres"
)

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this program and of its schema",
		Example: "  sluice version --json",
		Args:    exactly(0),
		RunE:    func(*cobra.Command, []string) error { return a.version() },
	}
}

type versions struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Go      string `json:"go"`
	Schema  int    `json:"schema"`
}

func (a *app) version() error {
	v := versions{Version: "unknown", Go: runtime.Version(), Schema: postgres.Version}
	if info, ok := debug.ReadBuildInfo(); ok {
		v.Version = info.Main.Version
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				v.Commit = s.Value
			}
		}
	}
	if a.asJSON {
		return a.writeJSON(v)
	}
	commit := ""
	if v.Commit != "" {
		commit = ", commit " + v.Commit
	}
	return a.say("sluice %s%s, %s, database schema %d", v.Version, commit, v.Go, v.Schema)
}
