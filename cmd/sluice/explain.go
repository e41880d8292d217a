package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/spf13/cobra"

	"sluice/core/decide"
	"sluice/core/explain"
	"sluice/core/fleet"
)

func (a *app) explainCommand() *cobra.Command {
	raw := false
	cmd := &cobra.Command{
		Use:   "explain TICK|now",
		Short: "Tell a past tick again, and whether today's code agrees",
		Long: "Replays the snapshot that was stored with a tick: what was seen, what each rule made of it, what followed.\n" +
			"`now` tells the present instead, as `sluice plan` does. The ids of ticks are in `sluice decisions`.",
		Example: "  sluice explain now\n  sluice explain 5f0c2c1e-6f0e-5a8b-9c55-0d8f4c8f7a11\n" +
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
	s, stored, err := db.Snapshot(ctx, id)
	if errors.Is(err, fleet.ErrNotFound) {
		return fmt.Errorf("%w; `sluice decisions` lists ticks that changed something", err)
	}
	if err != nil {
		return err
	}
	if raw {
		return a.writeJSON(s)
	}
	p := decide.Decide(s)
	same, err := samePlan(stored, p)
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
		verdict = "Today's code decides otherwise than was decided then; what is told here is today's. See both with --json."
	}
	return a.say("%s\n%s", explain.Story(p, s), verdict)
}

// samePlan compares what was decided then with what would be decided now. Alerts are worded, and one
// about a broken config added, outside of deciding.
func samePlan(stored []byte, now fleet.Plan) (bool, error) {
	b, err := json.Marshal(now)
	if err != nil {
		return false, fmt.Errorf("compare plans: %w", err)
	}
	then, err := decidedPart(stored)
	if err != nil {
		return false, err
	}
	today, err := decidedPart(b)
	return reflect.DeepEqual(then, today), err
}

func decidedPart(plan []byte) (map[string]any, error) {
	var m map[string]any
	d := json.NewDecoder(bytes.NewReader(plan))
	d.UseNumber()
	if err := d.Decode(&m); err != nil {
		return nil, fmt.Errorf("compare plans: %w", err)
	}
	delete(m, "alerts")
	return m, nil
}
