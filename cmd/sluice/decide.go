package main

import (
	"context"

	"github.com/spf13/cobra"

	"sluice/core/config"
	"sluice/core/decide"
	"sluice/core/explain"
	"sluice/core/fleet"
	"sluice/functions/host"
)

func (a *app) decideCommand() *cobra.Command {
	snapshot := ""
	cmd := &cobra.Command{
		Use:   "decide --snapshot FILE",
		Short: "Decide offline, from a snapshot file",
		Long: "Decides what a tick would do about a snapshot, touching nothing. The config of the snapshot holds, unless --config names another:\n" +
			"so any past decision can be replayed, and any what-if be asked. docs/snapshot.md describes the file.",
		Example: "  sluice decide --snapshot monday.json\n" +
			"  sluice decide --config cheaper.json --snapshot monday.json\n" +
			"  sluice explain TICK --snapshot | sluice decide --snapshot - --json",
		Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.decide(cmd.Context(), snapshot) },
	}
	cmd.Flags().StringVar(&snapshot, "snapshot", "", "snapshot file, or - for standard input (required)")
	return cmd
}

func (a *app) decide(ctx context.Context, path string) error {
	if path == "" {
		return usageError{errNeeds("--snapshot", "a snapshot file, or - for standard input")}
	}
	b, err := a.readInput(ctx, path)
	if err != nil {
		return err
	}
	s, err := parseSnapshot(path, b)
	if err != nil {
		return err
	}
	if a.config != "" { // not SLUICE_CONFIG: a replay is of its own config unless somebody says otherwise
		if s.Config, err = a.parseConfig(ctx, a.config); err != nil {
			return err
		}
	}
	return a.tellPlan(decide.Decide(s), s)
}

func (a *app) parseConfig(ctx context.Context, path string) (fleet.Config, error) {
	b, err := a.readInput(ctx, path)
	if err != nil {
		return fleet.Config{}, err
	}
	p, err := config.Parse(path, b, config.Env{RedisURLSet: a.env(host.EnvRedis) != ""})
	return p.Config, err
}

// answer is a plan for programs, with its lines.
type answer struct {
	Plan    fleet.Plan   `json:"plan"`
	Skipped *fleet.Why   `json:"skipped,omitempty"`
	Lines   []fleet.Line `json:"lines"`
}

func answerOf(p fleet.Plan, c fleet.Config) answer {
	p.Alerts = explain.Alerts(p, c)
	out := answer{Plan: p, Lines: explain.Lines(p, c)}
	if p.Skipped != nil {
		out.Skipped = &fleet.Why{Reason: p.Skipped}
	}
	return out
}

func (a *app) tellPlan(p fleet.Plan, s fleet.Snapshot) error {
	if a.asJSON {
		return a.writeJSON(answerOf(p, s.Config))
	}
	return a.say("%s", explain.Story(p, s))
}
