package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// Exit codes.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
	exitSignal = 128 // and the signal's number: what was interrupted before it was done
)

// app is what a command may touch of the world outside its arguments.
type app struct {
	in       io.Reader
	out, err io.Writer
	env      func(string) string
	width    int // of the terminal; 0 where there is none

	asJSON   bool
	config   string
	database string
}

func fromOS() *app {
	return &app{in: os.Stdin, out: os.Stdout, err: os.Stderr, env: os.Getenv, width: terminalWidth(os.Stdout, os.Getenv("COLUMNS"))}
}

// usageError is a mistake in the command line, as opposed to a command that failed.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// exitError is a failure that has been told already.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// run is a whole invocation; it returns the exit code.
func run(ctx context.Context, a *app, args []string) int {
	root := newRoot(a) //nolint:contextcheck // commands get it from ExecuteContextC
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	var told exitError
	var usage usageError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &told):
		return int(told)
	case errors.As(err, &usage):
		a.complain("%v\nRun `%s --help` for what it takes.", err, cmd.CommandPath())
		return exitUsage
	}
	a.complain("%v", err)
	if by, ok := errors.AsType[interruption](context.Cause(ctx)); ok {
		return exitSignal + int(by.Signal)
	}
	return exitFailed
}

func (a *app) complain(format string, args ...any) {
	text := wrap("sluice: "+fmt.Sprintf(format, args...), a.width)
	_, _ = fmt.Fprintln(a.err, text)
}

func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "sluice",
		Short: "Open machines when queues rise, close them when they fall, and say why",
		Long: "Sluice opens cloud capacity when job queues rise, closes it when they fall, and never spends\n" +
			"more than it was allowed to. Without a config that says otherwise it starts nothing.",
		Example: "  sluice run                                  # see it work, on this computer\n" +
			"  sluice validate /etc/sluice/scheduler.json  # what a config means\n" +
			"  sluice plan                                 # what a tick would do now, doing nothing",
		SilenceErrors: true, SilenceUsage: true,
		Args: func(cmd *cobra.Command, args []string) error { return unknownCommand(cmd, args) },
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.SetOut(a.err)
			_ = cmd.Help()
			return exitError(exitUsage)
		},
	}
	root.SuggestionsMinimumDistance = 2
	root.SetHelpFunc(a.help)
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	flags := root.PersistentFlags()
	flags.BoolVar(&a.asJSON, "json", false, "write JSON for programs")
	flags.StringVar(&a.config, "config", "", "config file (default: SLUICE_CONFIG)")
	flags.StringVar(&a.database, "database", "", "database URL (default: DATABASE_URL, then the config's connections.database.url)")
	root.AddCommand(a.commands()...)
	root.AddCommand(topics()...)
	return root
}

func (a *app) commands() []*cobra.Command {
	return []*cobra.Command{
		a.runCommand(), a.validateCommand(), a.decideCommand(), a.planCommand(), a.tickCommand(), a.explainCommand(),
		a.statusCommand(), a.doctorCommand(), a.decisionsCommand(), a.workersCommand(), a.drainCommand(), a.rollCommand(), a.adoptCommand(), a.resumeCommand(),
		a.configCommand(), a.migrateCommand(), a.alertsCommand(), a.pageCommand(), a.versionCommand(), a.thumbnailCommand(),
	}
}

// help writes a command's help, wrapped to the terminal.
func (a *app) help(cmd *cobra.Command, _ []string) {
	var b strings.Builder
	if cmd.Long != "" {
		b.WriteString(cmd.Long + "\n\n")
	} else if cmd.Short != "" {
		b.WriteString(cmd.Short + "\n\n")
	}
	b.WriteString(cmd.UsageString())
	_, _ = fmt.Fprintln(cmd.OutOrStdout(), wrap(strings.TrimRight(b.String(), "\n"), a.width))
}

// unknownCommand is what is left when no command has the first word's name.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := ""
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = fmt.Sprintf("; did you mean `%s %s`?", cmd.CommandPath(), near[0])
	}
	return usageError{fmt.Errorf("unknown command %q%s", args[0], hint)}
}

// exactly wants n arguments, named in the usage line.
func exactly(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == n {
			return nil
		}
		return usageError{fmt.Errorf("want `%s`, got %d arguments", cmd.UseLine(), len(args))}
	}
}
