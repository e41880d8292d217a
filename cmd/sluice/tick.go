package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"sluice/core/fleet"
	"sluice/core/tick"
	"sluice/functions/host"
)

func (a *app) tickCommand() *cobra.Command {
	books := false
	cmd := &cobra.Command{
		Use:   "tick",
		Short: "Do one tick: decide and act",
		Long: "Does what the evaluate function does once a minute, for installations without functions: start it from a timer.\n" +
			"Writes what it did to standard output, with --json as the functions' log lines.",
		Example: "  sluice tick --config /etc/sluice/scheduler.json\n" +
			"  * * * * *     sluice tick --json >> /var/log/sluice.log               # in a crontab\n" +
			"  */15 * * * *  sluice tick --reconcile --json >> /var/log/sluice.log",
		Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.tick(cmd.Context(), books) },
	}
	cmd.Flags().BoolVar(&books, "reconcile", false, "hold the books against the bills instead, as every 15 minutes")
	return cmd
}

func (a *app) tick(ctx context.Context, books bool) error {
	log := host.NewLog(a.out)
	o := a.options()
	o.Log = alertsAloud{a}
	if a.asJSON {
		o.Log = log.Alerter()
	}
	w, err := host.Open(ctx, o, links()...)
	if err != nil {
		return err
	}
	defer w.Close()
	function, do := fleet.Evaluate, tick.Evaluate
	if books {
		function, do = fleet.Reconcile, tick.Reconcile
	}
	t := host.Tick{Function: function, Due: dueNow()}
	begun := time.Now()
	t.Report, t.Err = do(ctx, w.World, t.Due)
	t.Took = time.Since(begun)
	if a.asJSON {
		log.Write(ctx, t)
		return told(t.Err)
	}
	for _, line := range t.Report.Lines {
		if err := a.say("%s", line.Message); err != nil {
			return err
		}
	}
	for _, u := range t.Report.Unsent {
		a.complain("an alert is not delivered by the channel %s (%s): %s: %s", u.Channel, u.State, u.Title, u.Answer)
	}
	a.tellCauses(t.Report.Snapshot)
	return t.Err
}

// tellCauses says what the tick could not read, and why: no line has room for that.
func (a *app) tellCauses(s fleet.Snapshot) {
	if s.ConfigBroken != "" {
		a.complain("the config is broken: %s", s.ConfigBroken)
	}
	for _, q := range s.Queues {
		if q.Unknown != "" {
			a.complain("queue %s is unknown: %s", q.Name, q.Unknown)
		}
	}
	for _, l := range s.Listings {
		if !l.Complete() {
			a.complain("the machines of %s are unknown: %s", l.Place, l.Unknown)
		}
	}
}

// dueNow is the schedule's time of a tick that a timer has just started.
func dueNow() time.Time { return time.Now().UTC().Truncate(time.Second) }

// told turns an error that the log has told into an exit code.
func told(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w", exitError(exitFailed))
}
