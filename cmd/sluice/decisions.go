package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sluice/core/fleet"
)

// question is what the decisions command was asked.
type question struct {
	since     time.Duration
	pool      string
	queue     string
	code      string
	limit     int
	wouldHave bool
	all       bool
}

func (a *app) decisionsCommand() *cobra.Command {
	q := question{since: 24 * time.Hour}
	cmd := &cobra.Command{
		Use:   "decisions",
		Short: "List what was decided and why",
		Long: "Lists decision lines, newest first; --all adds a line for each tick.\n" +
			"--reason finds those with a reason's code anywhere among their facts.\n" +
			"--would-have tells instead what hybrid mode would have launched, cost and saved in waiting since then.",
		Example: "  sluice decisions --since 7d --pool ocr\n  sluice decisions --queue ocr --since 2h\n  sluice decisions --reason limit.hourly\n" +
			"  sluice decisions --would-have --since 7d      # a week in vps_only, as hybrid would have spent it",
		Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if q.limit < 0 {
				return usageError{fmt.Errorf("want --limit of at least 0, got %d", q.limit)}
			}
			if q.code != "" && !slices.Contains(reasonCodes(), q.code) {
				return usageError{fmt.Errorf("--reason %s: no reason has this code%s", q.code, similar(q.code, reasonCodes()))}
			}
			return a.decisions(cmd.Context(), q)
		},
	}
	flags := cmd.Flags()
	flags.Var(&age{&q.since}, "since", "how far back, such as 90m, 24h or 7d")
	flags.StringVar(&q.pool, "pool", "", "of one pool only")
	flags.StringVar(&q.queue, "queue", "", "about one queue only")
	flags.StringVar(&q.code, "reason", "", "with this reason only, such as limit.hourly")
	flags.IntVar(&q.limit, "limit", 100, "at most so many; 0 for all")
	flags.BoolVar(&q.all, "all", false, "also the line of each tick, quiet ones included")
	flags.BoolVar(&q.wouldHave, "would-have", false, "what hybrid mode would have done")
	_ = cmd.RegisterFlagCompletionFunc("reason", cobra.FixedCompletions(reasonCodes(), cobra.ShellCompDirectiveNoFileComp)) // fails for a flag that is not there alone
	return cmd
}

// reasonCodes are the codes of all reasons, sorted.
func reasonCodes() []string {
	all := fleet.Reasons()
	codes := make([]string, len(all))
	for i, r := range all {
		codes[i] = r.Code()
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}

// similar suggests the words that share their beginning, or their part after a dot, with what was asked for.
func similar(word string, words []string) string {
	first, _, _ := strings.Cut(word, ".")
	near := slices.DeleteFunc(slices.Clone(words), func(w string) bool {
		return len(first) < 3 || !strings.HasPrefix(w, first[:3]) && !strings.Contains(w, "."+first)
	})
	if len(near) == 0 {
		return "; completion lists them: `sluice completion --help`"
	}
	return "; there are " + strings.Join(near, ", ")
}

func (a *app) decisions(ctx context.Context, q question) error {
	if q.wouldHave {
		return a.wouldHave(ctx, q)
	}
	db, err := a.past(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	since, err := before(ctx, db, q.since)
	if err != nil {
		return err
	}
	lines, err := db.Lines(ctx, fleet.LineFilter{Since: since, Pool: q.pool, Queue: q.queue, Code: q.code})
	if err != nil {
		return err
	}
	lines = q.pick(lines)
	if a.asJSON {
		return a.writeJSON(append([]fleet.LineRecord{}, lines...))
	}
	return a.tellLines(lines, since)
}

// pick leaves out the ticks' own lines, which say again what their decisions say, and then what is beyond the limit.
func (q question) pick(lines []fleet.LineRecord) []fleet.LineRecord {
	if !q.all && q.code == "" {
		lines = slices.DeleteFunc(lines, func(l fleet.LineRecord) bool { return l.Event == "tick" })
	}
	if q.limit > 0 && len(lines) > q.limit {
		lines = lines[:q.limit]
	}
	return lines
}

// before is a time back from now by the database's clock, which is the one that the records have.
func before(ctx context.Context, db fleet.Database, d time.Duration) (time.Time, error) {
	m, err := db.Recall(ctx)
	return m.Now.Add(-d), err
}

func (a *app) tellLines(lines []fleet.LineRecord, since time.Time) error {
	if len(lines) == 0 {
		return a.say("Nothing was decided since %s. `sluice decisions --all` shows whether ticks ran.", since.UTC().Format(time.DateTime))
	}
	rows := make([][]string, len(lines))
	for i, l := range lines {
		rows[i] = []string{l.At.UTC().Format(time.DateTime), string(l.Level), l.Message, l.Tick}
	}
	return a.table([]string{"TIME (UTC)", "LEVEL", "WHAT AND WHY", "TICK"}, rows)
}
