package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"sluice/core/decide"
	"sluice/core/fleet"
)

func (a *app) workersCommand() *cobra.Command {
	q := workersQuestion{}
	cmd := &cobra.Command{
		Use:   "workers",
		Short: "List workers: where each is in its life, what it does, what it costs",
		Long: "Lists the workers that live. With --since also those that have ended, with what they cost; with --stale only those that\n" +
			"were launched from another spec than the config's, which are replaced when idle, or now by `sluice roll`. With --watch\n" +
			"the list is written anew every two seconds, until Ctrl-C.",
		Example: "  sluice workers\n  sluice workers --since 24h\n  sluice workers --watch\n  sluice workers --json | jq '.[] | select(.lifecycle == \"draining\")'",
		Args:    exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if q.watch && a.asJSON {
				return usageError{errors.New("--watch and --json do not go together: programs call again")}
			}
			return a.workers(cmd.Context(), q)
		},
	}
	cmd.Flags().Var(&age{&q.since}, "since", "also those that ended since, such as 90m, 24h or 7d")
	cmd.Flags().BoolVar(&q.stale, "stale", false, "only those launched from another spec than the config's")
	cmd.Flags().BoolVar(&q.watch, "watch", false, "write the list anew every two seconds")
	return cmd
}

type workersQuestion struct {
	since        time.Duration
	stale, watch bool
}

// workerRow is a worker for programs.
type workerRow struct {
	fleet.WorkerRecord
	Lifecycle fleet.Lifecycle `json:"lifecycle"`
}

func (a *app) workers(ctx context.Context, q workersQuestion) error {
	db, err := a.past(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	if q.watch {
		return a.watchWorkers(ctx, db, q)
	}
	list, now, err := a.listWorkers(ctx, db, q)
	if err != nil {
		return err
	}
	if a.asJSON {
		return a.writeJSON(list)
	}
	return a.tellWorkers(list, now, q)
}

func (a *app) listWorkers(ctx context.Context, db fleet.Database, q workersQuestion) ([]workerRow, time.Time, error) {
	m, err := db.Recall(ctx)
	if err != nil {
		return nil, m.Now, err
	}
	all, err := db.Workers(ctx, m.Now.Add(-q.since))
	if err != nil {
		return nil, m.Now, err
	}
	var c fleet.Config
	if q.stale {
		if c, err = a.currentConfig(ctx, m); err != nil {
			return nil, m.Now, err
		}
	}
	list := []workerRow{}
	for _, w := range all {
		if (w.Ended.IsZero() || q.since > 0) && (!q.stale || decide.Stale(c, w.Worker)) {
			list = append(list, workerRow{w, w.Lifecycle()})
		}
	}
	return list, m.Now, nil
}

const watchEvery = 2 * time.Second

// watchWorkers writes the list in place on a terminal, and below the last one elsewhere, until it is interrupted. A
// database that does not answer is waited for.
func (a *app) watchWorkers(ctx context.Context, db fleet.Database, q workersQuestion) error {
	clock := time.NewTicker(watchEvery)
	defer clock.Stop()
	page := *a
	for {
		var b bytes.Buffer
		page.out = &b
		list, now, err := a.listWorkers(ctx, db, q)
		if err == nil {
			_, _ = fmt.Fprintf(&b, "%s UTC\n", now.UTC().Format(time.DateTime))
			err = page.tellWorkers(list, now, q)
		}
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			b.Reset()
			_ = page.say("%v; trying again every %v", err, watchEvery)
		}
		if a.width > 0 {
			b = *bytes.NewBufferString("\x1b[H\x1b[2J" + b.String()) // home, clear
		}
		if err := writeAll(a.out, b.String()); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-clock.C:
		}
	}
}

func (a *app) tellWorkers(list []workerRow, now time.Time, q workersQuestion) error {
	if len(list) == 0 && q.stale {
		return a.say("Every machine is of the config's spec.")
	}
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
