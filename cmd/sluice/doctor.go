package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sluice/core/fleet"
	"sluice/functions/host"
)

// health is what a check came to.
type health string

const (
	healthy   health = "ok"
	doubtful  health = "warning"
	broken    health = "failure"
	unchecked health = "unknown"
)

// finding is one fact about an installation, with what mends it.
type finding struct {
	Check   string `json:"check"`
	State   health `json:"state"`
	Finding string `json:"finding"`
	Mend    string `json:"mend,omitempty"`
}

// examination is an installation on the couch. What could not be opened is nil, and the findings say why.
type examination struct {
	app      *app
	config   *fleet.Config
	world    *host.World
	db       fleet.Database
	memory   *fleet.Memory
	findings []finding
}

// checkTime bounds a single check.
const checkTime = 5 * time.Second

func (a *app) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Look for what is wrong, and say how to mend it",
		Long: "Checks the config, the database (server, schema, rights, pooler, clock, lock), the last ticks, each queue, the workers,\n" +
			"unanswered launches, waiting alerts, each provider, and what could be spent at worst. Nothing is written or started.\n" +
			"Exit code 1 where a check fails; warnings alone end with 0.",
		Example: "  sluice doctor --config /etc/sluice/scheduler.json\n  sluice doctor --json | jq '.[] | select(.state != \"ok\")'",
		Args:    exactly(0),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.doctor(cmd.Context()) },
	}
}

func (a *app) doctor(ctx context.Context) error {
	e := &examination{app: a}
	for _, check := range []func(context.Context){
		e.checkConfig, e.checkDatabase, e.checkSchema, e.checkTicks, e.checkOverride, e.checkQueues, e.checkWorkers, e.checkIntents,
		e.checkAlerts, e.checkProviders, e.checkBill,
	} {
		bounded, cancel := context.WithTimeout(ctx, checkTime)
		check(bounded)
		cancel()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	if e.db != nil {
		e.db.Close()
	}
	if err := a.tellFindings(e.findings); err != nil {
		return err
	}
	if slices.ContainsFunc(e.findings, func(f finding) bool { return f.State == broken }) {
		return exitError(exitFailed)
	}
	return nil
}

func (e *examination) find(check string, s health, mend, format string, args ...any) {
	e.findings = append(e.findings, finding{check, s, fmt.Sprintf(format, args...), mend})
}

// needs says that a check could not be made, where what it needs is not there.
func (e *examination) needs(check string, there bool, what string) bool {
	if !there {
		e.find(check, unchecked, "", "not checked: %s", what)
	}
	return there
}

const (
	needsConfig   = "it needs a config that can be read"
	needsDatabase = "it needs a database with Sluice's tables"
)

func (a *app) tellFindings(all []finding) error {
	if a.asJSON {
		return a.writeJSON(all)
	}
	counts := map[health]int{}
	var b strings.Builder
	for _, f := range all {
		counts[f.State]++
		_, _ = fmt.Fprintf(&b, "%s %s: %s\n", a.coloured(f.State), f.Check, f.Finding)
		if f.Mend != "" {
			_, _ = fmt.Fprintf(&b, "    → %s\n", f.Mend)
		}
	}
	_, _ = fmt.Fprintf(&b, "\n%d ok, %d warnings, %d failures, %d not checked", counts[healthy], counts[doubtful], counts[broken], counts[unchecked])
	return a.say("%s", b.String())
}

// coloured is a state's word, in colour where a person looks on and has not asked for none.
func (a *app) coloured(s health) string {
	word := fmt.Sprintf("%-8s", s)
	if f, ok := a.out.(*os.File); !ok || a.width == 0 || a.env("NO_COLOR") != "" || a.env("TERM") == "dumb" || !isTerminal(f) {
		return word
	}
	colour := map[health]string{healthy: "32", doubtful: "33", broken: "31", unchecked: "35"}[s]
	return "\x1b[" + colour + "m" + word + "\x1b[0m"
}
