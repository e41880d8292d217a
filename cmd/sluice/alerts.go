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

// alertsAloud is what channels of kind log write to where a person runs a tick.
type alertsAloud struct{ *app }

var _ fleet.Alerter = alertsAloud{}

// Send implements fleet.Alerter.
func (a alertsAloud) Send(_ context.Context, m fleet.Message) (string, error) {
	return "said", a.say("Alert (%s): %s", m.Level, m.Title)
}

type alertsQuestion struct {
	since   time.Duration
	channel string
	waiting bool
}

func (a *app) alertsCommand() *cobra.Command {
	q := alertsQuestion{since: 24 * time.Hour}
	cmd := &cobra.Command{
		Use:   "alerts",
		Short: "List alerts: what was sent down which channel, and what waits",
		Long: "Lists alerts by channel, newest first: all that wait to be delivered, and those that were raised lately. Every channel\n" +
			"has each alert for itself: one that does not answer holds up no other. `sluice alerts test` tries the channels out.",
		Example: "  sluice alerts\n  sluice alerts --waiting\n  sluice alerts --since 7d --channel ops --json",
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args)
			}
			return a.alerts(cmd.Context(), q)
		},
	}
	cmd.Flags().Var(&age{&q.since}, "since", "how far back, such as 90m, 24h or 7d")
	cmd.Flags().StringVar(&q.channel, "channel", "", "of one channel only")
	cmd.Flags().BoolVar(&q.waiting, "waiting", false, "only those that wait")
	cmd.SuggestionsMinimumDistance = 2
	cmd.AddCommand(a.alertsTestCommand())
	return cmd
}

func (a *app) alerts(ctx context.Context, q alertsQuestion) error {
	db, err := a.past(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	m, err := db.Recall(ctx)
	if err != nil {
		return err
	}
	list, err := db.Deliveries(ctx, m.Now.Add(-q.since))
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(d fleet.DeliveryRecord) bool {
		return q.channel != "" && d.Channel != q.channel || q.waiting && d.State != fleet.DeliveryWaiting
	})
	if a.asJSON {
		return a.writeJSON(append([]fleet.DeliveryRecord{}, list...))
	}
	return a.tellAlerts(list, q)
}

func (a *app) tellAlerts(list []fleet.DeliveryRecord, q alertsQuestion) error {
	of := ""
	if q.channel != "" {
		of = " for the channel " + q.channel
	}
	switch {
	case len(list) == 0 && q.waiting:
		return a.say("No alert waits%s: all are delivered.", of)
	case len(list) == 0:
		return a.say("No alert waits%s, and none was raised in the last %s.", of, strings.TrimSuffix(q.since.String(), "0m0s"))
	}
	rows := make([][]string, len(list))
	for i, d := range list {
		channel := d.Channel
		if channel == "" {
			channel = "(the next tick)"
		}
		next := ""
		if !d.Next.IsZero() {
			next = d.Next.UTC().Format(time.TimeOnly)
		}
		rows[i] = []string{d.At.UTC().Format(time.DateTime), string(d.Level), channel, string(d.State), fmt.Sprint(d.Attempts), next, d.Title, d.Answer}
	}
	return a.table([]string{"RAISED (UTC)", "LEVEL", "CHANNEL", "STATE", "TRIES", "NEXT", "ALERT", "ANSWER"}, rows)
}
