package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"sluice/core/config"
	"sluice/core/fleet"
	"sluice/functions/host"
)

func (a *app) validateCommand() *cobra.Command {
	effective := false
	cmd := &cobra.Command{
		Use:   "validate FILE",
		Short: "Check a config and say what it means",
		Long: "Checks a config without touching anything. All problems are told at once, each with file, line and path.\n" +
			"Says what this version would not act on, and what the settings mean: how long a job may wait, what may run.",
		Example: "  sluice validate scheduler.json\n  sluice validate scheduler.json --effective   # every value and where it comes from\n  sluice validate scheduler.json --json",
		Args:    exactly(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.validate(cmd.Context(), args[0], effective) },
	}
	cmd.Flags().BoolVar(&effective, "effective", false, "print every value that holds and where it comes from")
	return cmd
}

// validation is the answer for programs.
type validation struct {
	File        string           `json:"file"`
	Valid       bool             `json:"valid"`
	Problems    []config.Problem `json:"problems,omitempty"`
	Warnings    []string         `json:"warnings,omitempty"`
	NotHonoured []string         `json:"not_honoured,omitempty"`
	Meaning     []string         `json:"meaning,omitempty"`
	Effective   []config.Value   `json:"effective,omitempty"`
}

func (a *app) validate(ctx context.Context, path string, effective bool) error {
	b, err := a.readInput(ctx, path)
	if err != nil {
		return err
	}
	p, err := config.Parse(path, b, config.Env{RedisURLSet: a.env(host.EnvRedis) != ""})
	var wrong *config.Errors
	switch {
	case errors.As(err, &wrong):
		return a.invalid(path, wrong)
	case err != nil:
		return err
	}
	v := validation{File: path, Valid: true, Warnings: p.Warnings, NotHonoured: notHonoured(p.Config), Meaning: p.Meaning}
	if effective {
		v.Effective = p.Effective
	}
	if a.asJSON {
		return a.writeJSON(v)
	}
	return a.tellValid(v)
}

// notHonoured is why a tick of this program would refuse the config.
func notHonoured(c fleet.Config) []string {
	out := append([]string{}, c.NotHonoured...)
	var linked []string
	for _, l := range links() {
		if l.Cloud != nil {
			linked = append(linked, l.Provider)
		}
	}
	for _, name := range config.Unlinked(c, linked) {
		out = append(out, fmt.Sprintf("cloud_providers.%s: this build is not linked with it", name))
	}
	return out
}

func (a *app) invalid(path string, wrong *config.Errors) error {
	if a.asJSON {
		return errors.Join(a.writeJSON(validation{File: path, Problems: wrong.Problems}), exitError(exitFailed))
	}
	n := len(wrong.Problems)
	noun := "problems"
	if n == 1 {
		noun = "problem"
	}
	a.complain("%s has %d %s\n%v", path, n, noun, wrong)
	return exitError(exitFailed)
}

func (a *app) tellValid(v validation) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s is valid.\n", v.File)
	section(&b, "What it means", v.Meaning)
	section(&b, "Worth a second look", v.Warnings)
	section(&b, "A tick of this version refuses to run with", v.NotHonoured)
	if err := a.say("%s", b.String()); err != nil {
		return err
	}
	rows := make([][]string, len(v.Effective))
	for i, e := range v.Effective {
		rows[i] = []string{e.Path, string(e.Value), e.From}
	}
	if len(rows) == 0 {
		return nil
	}
	if err := a.say(""); err != nil {
		return err
	}
	return a.table([]string{"KEY", "VALUE", "FROM"}, rows)
}

func section(b *strings.Builder, title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s:\n", title)
	for _, l := range lines {
		fmt.Fprintf(b, "  - %s\n", l)
	}
}

// maxInput is more than any config or snapshot has; what is larger is a mistake.
const maxInput = 256 << 20

// readInput reads a file, or standard input where it is named "-". A pipe or a terminal may never say
// anything, so the wait for it ends with the context.
func (a *app) readInput(ctx context.Context, path string) ([]byte, error) {
	var b []byte
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		b, err = a.readAll(path)
	}()
	select {
	case <-done:
		return b, err
	case <-ctx.Done():
		return nil, fmt.Errorf("read %s: interrupted while waiting for it", path)
	}
}

func (a *app) readAll(path string) ([]byte, error) {
	if path == "-" {
		return readAtMost(a.in, "standard input")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read file: %w", err)
	}
	defer func() { _ = f.Close() }() // only read
	return readAtMost(f, path)
}
