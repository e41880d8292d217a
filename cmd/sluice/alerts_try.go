package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"sluice/core/fleet"
	"sluice/functions/host"
)

func (a *app) alertsTestCommand() *cobra.Command {
	channel, level := "", ""
	cmd := &cobra.Command{
		Use:   "test",
		Short: "Send a test of each level down each channel, and say what answered",
		Long: "Sends one message of each level down each channel of the config, and prints what answered and after how long. The\n" +
			"messages say that they are a test. A channel gets all levels here; ROUTED says which of them it gets otherwise. The\n" +
			"database is not touched. Ends with 1 where a channel did not take a message.",
		Example: "  sluice alerts test\n  sluice alerts test --channel ops --level critical\n  sluice alerts test --json | jq '.[] | select(.error)'",
		Args:    exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if level != "" && !slices.Contains(fleet.Levels(), fleet.Level(level)) {
				return usageError{fmt.Errorf("--level %s: want info, warning or critical", level)}
			}
			return a.tryChannels(cmd.Context(), channel, fleet.Level(level))
		},
	}
	cmd.Flags().StringVar(&channel, "channel", "", "down one channel only")
	cmd.Flags().StringVar(&level, "level", "", "of one level only: info, warning or critical")
	_ = cmd.RegisterFlagCompletionFunc("level", cobra.FixedCompletions([]string{"info", "warning", "critical"}, cobra.ShellCompDirectiveNoFileComp)) // fails for a flag that is not there alone
	return cmd
}

// tried is what came of one message.
type tried struct {
	Channel string            `json:"channel"`
	Kind    fleet.ChannelKind `json:"kind"`
	Level   fleet.Level       `json:"level"`
	Routed  bool              `json:"routed"`
	ID      string            `json:"id"`
	Answer  string            `json:"answer,omitempty"`
	Millis  int64             `json:"ms"`
	Error   string            `json:"error,omitempty"`
}

func (a *app) tryChannels(ctx context.Context, name string, level fleet.Level) error {
	o := a.options()
	o.Log = host.NewLog(a.err).Alerter()
	c, err := a.currentConfig(ctx, fleet.Memory{})
	if err != nil {
		return err
	}
	channels, err := chosen(c, name)
	if err != nil {
		return err
	}
	open := host.Alerters(o, links()...)
	results := make([][]tried, len(channels))
	var wg sync.WaitGroup
	for i, ch := range channels {
		wg.Go(func() { results[i] = try(ctx, c, ch, level, open[ch.Kind]) })
	}
	wg.Wait()
	return a.tellTried(slices.Concat(results...))
}

// chosen are all channels, or the one of a name.
func chosen(c fleet.Config, name string) ([]fleet.Channel, error) {
	var known []string
	for _, ch := range c.Routes() {
		if ch.Name == name {
			return []fleet.Channel{ch}, nil
		}
		known = append(known, ch.Name)
	}
	if name != "" {
		return nil, fmt.Errorf("the config has no channel %q; it has %s", name, strings.Join(known, ", "))
	}
	return c.Routes(), nil
}

// try sends down one channel a message of each level, or of one.
func try(ctx context.Context, c fleet.Config, ch fleet.Channel, only fleet.Level, open func(fleet.Channel) fleet.Alerter) []tried {
	var out []tried
	for _, level := range fleet.Levels() {
		if only != "" && level != only {
			continue
		}
		m := testMessage(c, ch, level, time.Now())
		t := tried{Channel: ch.Name, Kind: ch.Kind, Level: level, Routed: ch.Takes(level), ID: m.ID}
		if open == nil {
			t.Error = fmt.Sprintf("channels of kind %q are not linked into this build", ch.Kind)
			out = append(out, t)
			continue
		}
		begun := time.Now()
		answer, err := open(ch).Send(ctx, m)
		t.Answer, t.Millis = answer, time.Since(begun).Milliseconds()
		if err != nil {
			t.Error = err.Error()
		}
		out = append(out, t)
	}
	return out
}

// testMessage has a key of its own each time, so that no receiver takes it for a repeat.
func testMessage(c fleet.Config, ch fleet.Channel, level fleet.Level, now time.Time) fleet.Message {
	m := c.Message(fleet.Alert{
		Key: fmt.Sprintf("test/%s/%s/%d", ch.Name, level, now.UnixNano()), Level: level, At: now.UTC(), Facts: []byte(`{"code":"test"}`),
		Title: fmt.Sprintf("This is a test of the channel %s at level %s; nothing has happened", ch.Name, level),
	})
	m.Test = true
	return m
}

func (a *app) tellTried(list []tried) error {
	failed := 0
	rows := make([][]string, len(list))
	for i, t := range list {
		routed, result := "no", t.Answer
		if t.Routed {
			routed = "yes"
		}
		if t.Error != "" {
			failed++
			result = "FAILED: " + t.Error
		}
		rows[i] = []string{t.Channel, string(t.Kind), string(t.Level), routed, fmt.Sprintf("%d ms", t.Millis), result}
	}
	tell := func() error { return a.table([]string{"CHANNEL", "KIND", "LEVEL", "ROUTED", "TIME", "ANSWER"}, rows) }
	if a.asJSON {
		tell = func() error { return a.writeJSON(list) }
	}
	if err := tell(); err != nil {
		return err
	}
	if failed > 0 {
		a.complain("%d of %d test messages were not taken", failed, len(list))
		return exitError(exitFailed)
	}
	return nil
}
