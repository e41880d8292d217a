package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sluice/core/decide"
	"sluice/core/explain"
	"sluice/core/fleet"
)

func (a *app) explainCommand() *cobra.Command {
	raw := false
	cmd := &cobra.Command{
		Use:   "explain TICK|WORKER|QUEUE|now",
		Short: "Tell the story of a tick, a worker or a queue, or of this moment",
		Long: "Of a tick: replays the snapshot that was stored with it, what was seen, what each rule made of it, what followed, and\n" +
			"whether today's code decides the same. Of a worker (its id, or its machine's): its life and what it cost. Of a queue: how\n" +
			"it was in the last hours and what was decided for it. `now` is what a tick would do, as `sluice plan` tells it.\n" +
			"The first six characters of an id are enough where they are one's alone.",
		Example: "  sluice explain now\n  sluice explain 5f0c2c1e\n  sluice explain ocr\n" +
			"  sluice explain 5f0c2c1e-6f0e-5a8b-9c55-0d8f4c8f7a11 --snapshot > monday.json",
		Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] == "now" && !raw {
				return a.plan(cmd.Context())
			}
			return a.explain(cmd.Context(), args[0], raw)
		},
	}
	cmd.Flags().BoolVar(&raw, "snapshot", false, "print the stored snapshot, for `sluice decide`")
	return cmd
}

func (a *app) explain(ctx context.Context, id string, raw bool) error {
	db, err := a.past(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	m, err := db.Recall(ctx)
	if err != nil {
		return err
	}
	what, err := find(ctx, db, m, id)
	if err != nil {
		return err
	}
	if raw && what.tick == "" {
		return usageError{fmt.Errorf("--snapshot is of a tick, and %s is none", id)}
	}
	switch {
	case what.worker != nil:
		return a.explainWorker(ctx, db, m, *what.worker)
	case what.queue != "":
		return a.explainQueue(ctx, db, m, what.queue)
	}
	return a.explainTick(ctx, db, what.tick, raw)
}

func (a *app) explainTick(ctx context.Context, db fleet.Database, id string, raw bool) error {
	s, stored, err := db.Snapshot(ctx, id)
	if errors.Is(err, fleet.ErrNotFound) && !raw {
		return a.explainQuiet(ctx, db, id)
	}
	if err != nil {
		return err
	}
	if raw {
		return a.writeJSON(s)
	}
	p := decide.Decide(s)
	same, err := decide.Same(stored, p)
	if err != nil {
		return err
	}
	if a.asJSON {
		return a.writeJSON(struct {
			Tick string `json:"tick"`
			answer
			Stored json.RawMessage `json:"stored_plan"`
			Same   bool            `json:"same"`
		}{id, answerOf(p, s.Config), stored, same})
	}
	verdict := "Today's code decides the same."
	if !same {
		verdict = "Today's code decides otherwise than was decided then; what is told here is today's. See both with --json." + otherwise(stored, p)
	}
	return a.say("%s\n%s", explain.Story(p, s), verdict)
}

// otherwise says in which pools the plans differ, as far as their figures tell.
func otherwise(stored []byte, now fleet.Plan) string {
	var then struct {
		Pools []fleet.PoolPlan `json:"pools"`
	}
	if json.Unmarshal(stored, &then) != nil { // reasons of another version
		return ""
	}
	var b strings.Builder
	for _, p := range now.Pools {
		i := slices.IndexFunc(then.Pools, func(t fleet.PoolPlan) bool { return t.Pool == p.Pool })
		if i < 0 {
			_, _ = fmt.Fprintf(&b, "\n  pool %s: then not decided; today want %d", p.Pool, p.Want)
		} else if was, is := poolFigures(then.Pools[i]), poolFigures(p); was != is {
			_, _ = fmt.Fprintf(&b, "\n  pool %s: then %s; today %s", p.Pool, was, is)
		}
	}
	return b.String()
}

func poolFigures(p fleet.PoolPlan) string {
	return fmt.Sprintf("want %d of %d: launch %d, resume %d, un-drain %d, drain %d", p.Want, p.Have, p.Launch, len(p.Resume), len(p.Undrain), len(p.Drain))
}

// explainQuiet tells a tick that kept no snapshot: its lines are all that is known of it.
func (a *app) explainQuiet(ctx context.Context, db fleet.Database, tick string) error {
	lines, err := db.Lines(ctx, fleet.LineFilter{Tick: tick})
	if err != nil {
		return err
	}
	if len(lines) == 0 {
		return errors.New("explain tick " + tick + ": it is known, and nothing is kept of it any more")
	}
	if a.asJSON {
		return a.writeJSON(struct {
			Tick  string             `json:"tick"`
			Lines []fleet.LineRecord `json:"lines"`
		}{tick, lines})
	}
	var b strings.Builder
	_, _ = fmt.Fprintf(&b, "Tick %s of %s UTC changed nothing, so what it saw was not kept. It said:", tick, lines[0].At.UTC().Format(time.DateTime))
	for _, l := range lines {
		_, _ = fmt.Fprintf(&b, "\n  %s", l.Message)
	}
	return a.say("%s", b.String())
}
