package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sluice/core/decide"
	"sluice/core/fleet"
)

func (a *app) rollCommand() *cobra.Command {
	reason := ""
	cmd := &cobra.Command{
		Use:   "roll POOL --reason TEXT",
		Short: "Replace now the machines that were launched from an older spec",
		Long: "Asks the next tick to drain each machine of a pool that was launched from another spec than the config's: another type,\n" +
			"image or provider setting. Each finishes its jobs first, and the queue decides whether new ones follow. Without this they\n" +
			"are replaced when they fall idle. `sluice workers --stale` lists them.",
		Example: "  sluice workers --stale\n  sluice roll ocr --reason \"image of November\"",
		Args:    exactly(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.roll(cmd.Context(), args[0], reason) },
	}
	addReason(cmd, &reason)
	return cmd
}

func (a *app) roll(ctx context.Context, pool, why string) error {
	if why == "" {
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
	c, err := a.currentConfig(ctx, m)
	if err != nil {
		return err
	}
	if _, ok := c.Pool(pool); !ok {
		return fmt.Errorf("the config has no pool %q; it has %s", pool, strings.Join(poolNames(c), ", "))
	}
	asked := []string{}
	for _, w := range staleWorkers(c, m) {
		if w.Pool != pool || w.Status == fleet.Draining {
			continue
		}
		r := fleet.Request{Kind: fleet.RequestDrain, Target: w.ID, Why: why, Who: a.who(), At: m.Now}
		r.ID = fleet.ID("request", m.Deployment, string(r.Kind), r.Target, r.Who, m.Now.String())
		if err := db.Ask(ctx, r); err != nil && !errors.Is(err, fleet.ErrNotFound) { // one that has just ended is what was wanted
			return fmt.Errorf("%w; %d drains were asked for before that", err, len(asked))
		}
		asked = append(asked, w.ID)
	}
	if a.asJSON {
		return a.writeJSON(struct {
			Pool    string   `json:"pool"`
			Drained []string `json:"asked_to_drain"`
		}{pool, asked})
	}
	if len(asked) == 0 {
		return a.say("No machine of pool %s is of an older spec: there is nothing to replace.", pool)
	}
	return a.say("Asked to drain %d of pool %s: %s. The next tick takes it up; `sluice workers` shows them go.", len(asked), pool, strings.Join(asked, ", "))
}

func poolNames(c fleet.Config) []string {
	names := make([]string, len(c.Pools))
	for i, p := range c.Pools {
		names[i] = p.Name
	}
	return names
}

// staleWorkers are those that were launched from another spec than the config's.
func staleWorkers(c fleet.Config, m fleet.Memory) []fleet.Worker {
	return slices.DeleteFunc(slices.Clone(m.Workers), func(w fleet.Worker) bool { return !decide.Stale(c, w) })
}
