package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sluice/core/config"
	"sluice/core/fleet"
)

func (a *app) configDiffCommand() *cobra.Command {
	to, version, blind := "", "", false
	cmd := &cobra.Command{
		Use:   "diff FILE",
		Short: "Say what another config would change",
		Long: "Compares a config with the one in force: every setting that would hold otherwise, what the next tick would do with either,\n" +
			"and what it costs. Nothing is written. Ends with 0 where all settings are the same, with 3 where one differs.",
		Example: "  sluice config diff new.json\n  sluice config diff new.json --version 20270114T093100.000Z-1a2b3c4d5e6f\n  sluice config diff new.json --without-plan --json",
		Args:    exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.configDiff(cmd.Context(), args[0], to, version, blind)
		},
	}
	addTo(cmd, &to)
	addWithoutPlan(cmd, &blind)
	cmd.Flags().StringVar(&version, "version", "", "compare with a kept version instead of the config in force")
	return cmd
}

func addWithoutPlan(cmd *cobra.Command, blind *bool) {
	cmd.Flags().BoolVar(blind, "without-plan", false, "do not ask the database and the queues what the next tick would do")
}

func (a *app) configDiff(ctx context.Context, path, to, version string, blind bool) error {
	store, target, err := a.versions(to)
	if err != nil {
		return err
	}
	after, err := a.proposed(ctx, path, target)
	if err != nil {
		return err
	}
	before, err := a.present(ctx, store, target)
	if version != "" && err == nil {
		before, err = a.kept(ctx, store, version)
	}
	if err != nil {
		return err
	}
	c, err := a.compare(ctx, target, before, after, blind)
	if err != nil {
		return err
	}
	if a.asJSON {
		err = a.writeJSON(c)
	} else {
		err = a.tellComparison(c)
	}
	if err == nil && !c.Same {
		return exitError(exitDifferent)
	}
	return err
}

func (a *app) kept(ctx context.Context, store fleet.Versions, id string) (side, error) {
	o, err := store.Version(ctx, id)
	if err != nil {
		return side{}, fmt.Errorf("%w; `sluice config versions` lists what is kept", err)
	}
	return a.side("version "+id, &o), nil
}

// settingChange is a value that would hold otherwise.
type settingChange struct {
	Path string          `json:"path"`
	Old  json.RawMessage `json:"old,omitempty"` // none: there was no such setting
	New  json.RawMessage `json:"new,omitempty"` // none: there is no such setting any more
	From string          `json:"from,omitempty"`
}

// comparison is two configs, and what would come of either.
type comparison struct {
	File        string          `json:"file"`
	Against     string          `json:"against"`
	First       bool            `json:"first"` // there is none to compare with
	Broken      string          `json:"against_broken,omitempty"`
	Same        bool            `json:"same"` // settings
	SameBytes   bool            `json:"same_bytes"`
	Settings    []settingChange `json:"settings"`
	Warnings    []string        `json:"warnings,omitempty"`
	Currency    string          `json:"currency"`
	WorstBefore *worst          `json:"worst_hour_before,omitempty"`
	WorstAfter  worst           `json:"worst_hour_after"`
	Plan        *planChange     `json:"plan,omitempty"`    // none: --without-plan
	Written     bool            `json:"written,omitempty"` // by push and rollback
}

// worst is what every machine at its maximum costs in an hour.
type worst struct {
	Amount   fleet.Money `json:"amount"`
	Unpriced int         `json:"offers_without_a_price,omitempty"`
	Daily    fleet.Money `json:"daily_limit"`
}

func worstOf(c fleet.Config) worst {
	amount, unpriced := config.WorstHour(c)
	return worst{amount, unpriced, c.Limits.Daily}
}

func (a *app) compare(ctx context.Context, target string, before, after side, blind bool) (comparison, error) {
	c := comparison{
		File: after.name, Against: before.name, First: before.object == nil, Warnings: after.parsed.Warnings,
		Currency: after.parsed.Config.Currency, WorstAfter: worstOf(after.parsed.Config),
	}
	c.Settings = settingChanges(before.parsed.Effective, after.parsed.Effective)
	c.Same = len(c.Settings) == 0
	switch {
	case before.broken != nil:
		c.Broken, c.Same = before.broken.Error(), false
	case before.object != nil:
		w := worstOf(before.parsed.Config)
		c.WorstBefore, c.SameBytes = &w, string(before.object.Bytes) == string(after.object.Bytes)
	}
	if blind || c.SameBytes {
		return c, nil
	}
	plan, err := a.comparePlans(ctx, target, before, after)
	c.Plan = plan
	return c, err
}

// settingChanges compares by path, in the order of the new file; what is gone comes last.
func settingChanges(before, after []config.Value) []settingChange {
	old := map[string]json.RawMessage{}
	for _, v := range before {
		old[v.Path] = v.Value
	}
	out := []settingChange{}
	for _, v := range after {
		was, had := old[v.Path]
		delete(old, v.Path)
		if !had || string(was) != string(v.Value) {
			out = append(out, settingChange{v.Path, was, v.Value, v.From})
		}
	}
	for _, v := range before {
		if _, gone := old[v.Path]; gone {
			out = append(out, settingChange{Path: v.Path, Old: v.Value})
		}
	}
	return out
}

func (a *app) tellComparison(c comparison) error {
	var b strings.Builder
	switch {
	case c.First:
		fmt.Fprintf(&b, "%s does not exist yet: %s is the first config.\n", c.Against, c.File)
	case c.Broken != "":
		fmt.Fprintf(&b, "%s is not valid, so its settings cannot be compared; all that %s sets is listed:\n%s\n", c.Against, c.File, c.Broken)
	case c.SameBytes:
		fmt.Fprintf(&b, "%s and %s are the same, byte for byte.\n", c.File, c.Against)
	case c.Same:
		fmt.Fprintf(&b, "%s and %s mean the same: only comments or formatting differ.\n", c.File, c.Against)
	}
	if !c.Same {
		tellSettings(&b, c.Settings)
	}
	section(&b, "Worth a second look", c.Warnings)
	if !c.SameBytes {
		tellMoney(&b, c)
		tellPlans(&b, c.Plan, c.Currency)
	}
	return a.say("%s", b.String())
}

func tellSettings(b *strings.Builder, changes []settingChange) {
	fmt.Fprintf(b, "\nSettings that change:\n")
	defaults := 0
	for _, s := range changes {
		switch {
		case s.Old == nil && !strings.HasPrefix(s.From, "line "):
			defaults++ // follows from a setting that is new itself
		case s.Old == nil:
			fmt.Fprintf(b, "  + %s = %s\n", s.Path, s.New)
		case s.New == nil:
			fmt.Fprintf(b, "  - %s = %s\n", s.Path, s.Old)
		case !tellList(b, s):
			fmt.Fprintf(b, "  ~ %s: %s → %s%s\n", s.Path, s.Old, s.New, because(s.From))
		}
	}
	if defaults > 0 {
		fmt.Fprintf(b, "  and %d new ones with their default or an inherited value\n", defaults)
	}
}

// because names where a value comes from, where that is not its own line.
func because(from string) string {
	if from == "" || strings.HasPrefix(from, "line ") {
		return ""
	}
	return " (" + from + ")"
}

// tellList tells a list by its elements, since a long one hides what differs.
func tellList(b *strings.Builder, s settingChange) bool {
	var was, is []json.RawMessage
	if json.Unmarshal(s.Old, &was) != nil || json.Unmarshal(s.New, &is) != nil || was == nil || is == nil {
		return false
	}
	gone, come := without(was, is), without(is, was)
	if len(gone)+len(come) == 0 { // another order
		return false
	}
	fmt.Fprintf(b, "  ~ %s%s\n", s.Path, because(s.From))
	for _, e := range gone {
		fmt.Fprintf(b, "      - %s\n", e)
	}
	for _, e := range come {
		fmt.Fprintf(b, "      + %s\n", e)
	}
	return true
}

// without are the elements of a list that another has not, each counted once.
func without(list, other []json.RawMessage) []json.RawMessage {
	rest := slices.Clone(other)
	var out []json.RawMessage
	for _, e := range list {
		i := slices.IndexFunc(rest, func(r json.RawMessage) bool { return string(r) == string(e) })
		if i < 0 {
			out = append(out, e)
			continue
		}
		rest = slices.Delete(rest, i, i+1)
	}
	return out
}

func tellMoney(b *strings.Builder, c comparison) {
	fmt.Fprintf(b, "\nEvery machine at its maximum:\n")
	if c.WorstBefore != nil {
		fmt.Fprintf(b, "  now: %s\n", worstWords(*c.WorstBefore, c.Currency))
	}
	fmt.Fprintf(b, "  with it: %s\n", worstWords(c.WorstAfter, c.Currency))
}

func worstWords(w worst, currency string) string {
	limit := fmt.Sprintf("; the daily limit is %s %s", w.Daily, currency)
	switch {
	case w.Unpriced > 0 && w.Amount == 0:
		return "not known, since no price is" + limit
	case w.Unpriced > 0:
		return fmt.Sprintf("at least %s %s an hour, and offers without a known price (%d) may cost more%s", w.Amount, currency, w.Unpriced, limit)
	}
	return fmt.Sprintf("%s %s an hour%s", w.Amount, currency, limit)
}

func joined(list []string) string { return strings.Join(list, "; ") }
