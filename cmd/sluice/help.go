package main

import (
	"strings"

	"github.com/spf13/cobra"

	"sluice/docs"
)

// topics are texts that help shows beside the commands.
func topics() []*cobra.Command {
	settings, _, _ := strings.Cut(docs.Configuration, "\n## Reference")
	all := []*cobra.Command{
		{Use: "concepts", Short: "What the words mean: queue, pool, tick, intent, limits, modes, override", Long: docs.Concepts, Example: "  sluice run   # see all of it move"},
		{Use: "settings", Short: "What the settings file says, and how", Long: settings, Example: "  sluice validate scheduler.json --effective   # every key, its value and where it comes from"},
		{Use: "environment", Short: "The environment variables that are read", Long: environment, Example: "  SLUICE_CONFIG=/etc/sluice/scheduler.json sluice plan"},
		{Use: "exit-codes", Short: "How a command says how it went", Long: exitCodes, Example: "  sluice validate scheduler.json || echo \"ends with $?\""},
	}
	for _, t := range all {
		t.SetUsageTemplate("Example:\n{{.Example}}\n") // a topic has no usage and no flags
	}
	return all
}

const environment = `SLUICE_CONFIG
  Path of the settings file. --config comes first.
DATABASE_URL
  Postgres, as a URL with user, password, host and database. --database comes first; connections.database.url of the settings is what is left.
REDIS_URL
  Redis, where the settings name no other. With it, queues whose source is not said are Redis lists.
SLUICE_NAME, SLUICE_PLACES
  The settings' name, and places such as aws/eu-west-3, separated by commas: what a tick needs to remove expired machines
  while settings and database cannot be read.
SLUICE_LOCAL_DIR
  Folder of the machines that are processes here. Default: sluice/machines below XDG_STATE_HOME, else below HOME/.local/state.
SLUICE_LOCAL_AGENT
  The sluice-agent that they run. Default: the one beside this program, else in PATH.
COLUMNS
  Width that output is wrapped to. Default: the terminal's; nothing is wrapped in a file or a pipe.
USER, SUDO_USER
  Who asks, as the decisions show it.

References such as env:NAME and file:/path in the settings name further ones. sluice-agent --help tells what an agent reads.`

const exitCodes = `0      done
1      failed: what and why is on standard error, with what to do next
2      used wrongly: an unknown command or flag, a value that makes no sense
128+n  ended by signal n, such as 130 after Ctrl-C

With --json standard output holds the answer and nothing else. A tick that failed ends with 1 and has said so in its log line.`
