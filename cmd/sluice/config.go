package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"sluice/core/config"
	"sluice/core/fleet"
	"sluice/functions/host"
	"sluice/providers/file"
)

// exitDifferent is the answer of `config diff` where there is a difference: 1 and 2 mean failure and usage everywhere.
const exitDifferent = 3

func (a *app) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Replace the config with care: compare, write, put back",
		Long:  "Says what another config would change before it is in force, writes it whole or not at all, and keeps what it replaces.",
		Example: "  sluice config diff new.json\n  sluice config push new.json\n" +
			"  sluice config versions\n  sluice config rollback --reason \"too many machines\"",
		Args: func(cmd *cobra.Command, args []string) error { return unknownCommand(cmd, args) },
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.SetOut(a.err)
			_ = cmd.Help()
			return exitError(exitUsage)
		},
	}
	cmd.AddCommand(a.configDiffCommand(), a.configPushCommand(), a.configRollbackCommand(), a.configVersionsCommand())
	return cmd
}

func (a *app) configVersionsCommand() *cobra.Command {
	to := ""
	cmd := &cobra.Command{
		Use:     "versions",
		Short:   "List the configs that were replaced",
		Long:    "Lists what was in force before, newest first, and who replaced it. `config rollback` puts one back.",
		Example: "  sluice config versions\n  sluice config versions --json",
		Args:    exactly(0),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.configVersions(cmd.Context(), to) },
	}
	addTo(cmd, &to)
	return cmd
}

func (a *app) configVersions(ctx context.Context, to string) error {
	store, path, err := a.versions(to)
	if err != nil {
		return err
	}
	kept, err := store.Kept(ctx)
	if err != nil {
		return err
	}
	if a.asJSON {
		return a.writeJSON(append([]fleet.KeptObject{}, kept...))
	}
	if len(kept) == 0 {
		return a.say("No version of %s is kept: `sluice config push` has not replaced it yet.", path)
	}
	rows := make([][]string, len(kept))
	for i, k := range kept {
		rows[i] = []string{k.ID, second(k.Modified), second(k.Replaced), k.Who, k.Why}
	}
	return a.table([]string{"VERSION", "WRITTEN", "REPLACED", "BY", "WHY"}, rows)
}

func second(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

func addTo(cmd *cobra.Command, to *string) {
	cmd.Flags().StringVar(to, "to", "", "the config in force (default: --config, then SLUICE_CONFIG)")
}

// versions opens the config in force.
func (a *app) versions(to string) (fleet.Versions, string, error) {
	path := to
	if path == "" {
		path = a.options().ConfigPath()
	}
	if path == "" {
		return nil, "", errors.New("find the config in force: no path is known; name one with --to, --config or " + host.EnvConfig)
	}
	for _, l := range links() {
		if l.Versions != nil {
			return l.Versions(path), path, nil
		}
	}
	return nil, "", errors.New("find the config in force: this build cannot write one")
}

// side is one of two configs that are compared.
type side struct {
	name   string
	object *fleet.Object // nil: there is none
	parsed config.Parsed
	broken error // it does not parse
}

func (a *app) side(name string, o *fleet.Object) side {
	s := side{name: name, object: o}
	if o != nil {
		s.parsed, s.broken = config.Parse(name, o.Bytes, config.Env{RedisURLSet: a.env(host.EnvRedis) != ""})
	}
	return s
}

// present is the config in force, which may be missing or broken.
func (a *app) present(ctx context.Context, store fleet.Versions, path string) (side, error) {
	o, err := store.Get(ctx, "")
	switch {
	case errors.Is(err, fleet.ErrNotFound):
		return a.side(path, nil), nil
	case err != nil:
		return side{}, err
	}
	return a.side(path, &o), nil
}

// proposed reads a config that is to be compared, and refuses what a tick would refuse.
func (a *app) proposed(ctx context.Context, path, target string) (side, error) {
	if mine, err := os.Stat(path); err == nil {
		if theirs, err := os.Stat(target); err == nil && os.SameFile(mine, theirs) {
			return side{}, usageError{fmt.Errorf("%s is the config in force itself: change a copy, and name that", path)}
		}
		if mine.Mode().IsRegular() && mine.Size() > file.MaxConfig {
			return side{}, fmt.Errorf("%s has %d bytes, expected at most %d", path, mine.Size(), file.MaxConfig)
		}
	}
	b, err := a.readInput(ctx, path)
	if err != nil {
		return side{}, err
	}
	return a.acceptable(a.side(path, &fleet.Object{Name: path, Bytes: b}))
}

// acceptable says of a config that may come into force what is wrong with it.
func (a *app) acceptable(s side) (side, error) {
	var wrong *config.Errors
	if errors.As(s.broken, &wrong) {
		return s, a.invalid(s.name, wrong)
	}
	if s.broken != nil {
		return s, s.broken
	}
	if refused := notHonoured(s.parsed.Config); len(refused) > 0 {
		return s, fmt.Errorf("%s is valid, but a tick of this version refuses to run with %s", s.name, joined(refused))
	}
	return s, nil
}
