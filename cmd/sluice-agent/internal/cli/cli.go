package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"sluice/cmd/sluice-agent/internal/proc"
)

// Exit codes.
const (
	codeDone = iota
	codeFailed
	codeUsage
)

var errUsage = errors.New("usage")

const example = `  # the VPS: runs for ever, and keeps the Redis lists in step with the job table
  DATABASE_URL=postgres://… REDIS_URL=redis://… sluice-agent --sweep-redis

  # the password in a file that may be rotated while the agent runs
  SLUICE_DATABASE_URL_REF=file:/run/secrets/database_url sluice-agent

  # a cloud machine, as its launch describes it
  sluice-agent --provider aws --scope eu-west-3 --machine i-0abc --pool ocr --intent 6f1c…`

const long = `Runs on a worker, the VPS included. It registers in the workers table, heartbeats, claims
jobs of the queues that the config assigns to its pool, and runs each queue's run.command:
the job as JSON on stdin, exit code 0 for done, a JSON object on the last line of stdout as result.

SIGTERM: no more claims, jobs get their stop_grace_seconds, the rest goes back to its queue. A second signal ends at once.

Environment:
  SLUICE_DATABASE_URL_REF  where the database's URL is: file:/path or env:NAME (default env:DATABASE_URL)
  SLUICE_REDIS_URL_REF     where the Redis URL is, with --sweep-redis (default env:REDIS_URL)
URLs hold passwords, so there is no flag for them: a command line can be read by every user.

Exit codes: 0 ended as asked, at its expiry or after its lifetime; 1 failed, or lost the database; 2 wrong usage.`

// Main runs the command line and returns its exit code.
func Main(args []string, getenv func(string) string, signals <-chan os.Signal, stdout, stderr io.Writer) int {
	code := codeDone
	root := command(getenv, signals, stderr)
	root.AddCommand(supervise(&code))
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.Execute()
	switch {
	case errors.Is(err, errUsage):
		fmt.Fprintf(stderr, "sluice-agent: %v\nrun sluice-agent --help for what it takes\n", err)
		return codeUsage
	case err != nil:
		fmt.Fprintf(stderr, "sluice-agent: %v\n", err)
		return codeFailed
	}
	return code
}

func command(getenv func(string) string, signals <-chan os.Signal, stderr io.Writer) *cobra.Command {
	var f flags
	c := &cobra.Command{
		Use: "sluice-agent", Short: "Claims jobs and runs their commands", Long: long, Example: example, Version: version(),
		SilenceUsage: true, SilenceErrors: true, CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("%w: unexpected argument %q", errUsage, args[0])
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error {
			return f.run(c.Context(), getenv, signals, stderr)
		},
	}
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return fmt.Errorf("%w: %w", errUsage, err) })
	f.define(c.Flags())
	return c
}

// supervise is what an agent starts for each job.
func supervise(code *int) *cobra.Command {
	var grace time.Duration
	c := &cobra.Command{
		Use: proc.Supervise + " -- COMMAND", Short: "Runs one command and leaves none of its processes behind", Hidden: true, Args: cobra.MinimumNArgs(1),
		Run: func(_ *cobra.Command, args []string) { *code = proc.Watch(args, grace) },
	}
	c.Flags().DurationVar(&grace, "grace", 0, "between SIGTERM and SIGKILL")
	return c
}

// version is what the build knows of itself.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			v += " " + s.Value
		}
	}
	return v
}
