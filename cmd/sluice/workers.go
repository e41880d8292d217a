package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"sluice/core/fleet"
)

func (a *app) workersCommand() *cobra.Command {
	since := time.Duration(0)
	cmd := &cobra.Command{
		Use:     "workers",
		Short:   "List workers: where each is in its life, what it does, what it costs",
		Long:    "Lists the workers that live. With --since also those that have ended, with what they cost.",
		Example: "  sluice workers\n  sluice workers --since 24h\n  sluice workers --json | jq '.[] | select(.lifecycle == \"draining\")'",
		Args:    exactly(0),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.workers(cmd.Context(), since) },
	}
	cmd.Flags().Var(&age{&since}, "since", "also those that ended since, such as 90m, 24h or 7d")
	return cmd
}

// workerRow is a worker for programs.
type workerRow struct {
	fleet.WorkerRecord
	Lifecycle fleet.Lifecycle `json:"lifecycle"`
}

func (a *app) workers(ctx context.Context, since time.Duration) error {
	db, err := a.past(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	m, err := db.Recall(ctx)
	if err != nil {
		return err
	}
	all, err := db.Workers(ctx, m.Now.Add(-since))
	if err != nil {
		return err
	}
	list := []workerRow{}
	for _, w := range all {
		if w.Ended.IsZero() || since > 0 {
			list = append(list, workerRow{w, w.Lifecycle()})
		}
	}
	if a.asJSON {
		return a.writeJSON(list)
	}
	return a.tellWorkers(list, m.Now)
}

func (a *app) tellWorkers(list []workerRow, now time.Time) error {
	if len(list) == 0 {
		return a.say("No worker lives. The VPS shows up when its sluice-agent has registered; machines when a tick starts them.")
	}
	rows := make([][]string, len(list))
	for i, w := range list {
		rows[i] = []string{
			w.ID, w.Pool, string(w.Lifecycle), w.Place.String(), w.Machine, fmt.Sprintf("%d/%d", w.Jobs, w.Slots),
			ago(now, w.BootAt, w.Registered, w.CostFrom), ago(now, w.Heartbeat), w.Price.String(), w.Cost.String(), w.EndWhy,
		}
	}
	return a.table([]string{"WORKER", "POOL", "STATE", "PLACE", "MACHINE", "JOBS", "AGE", "HEARD", "PER HOUR", "COST", "ENDED"}, rows)
}

// ago is how long before now the first time was that is known.
func ago(now time.Time, times ...time.Time) string {
	for _, t := range times {
		if !t.IsZero() {
			return now.Sub(t).Truncate(time.Second).String()
		}
	}
	return "-"
}
