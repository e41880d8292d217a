// Sluice-agent runs on every worker: it claims jobs from the job table and runs their commands.
package main

import (
	"os"
	"os/signal"
	"syscall"

	"sluice/cmd/sluice-agent/internal/cli"
)

func main() {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	os.Exit(cli.Main(os.Args[1:], os.Getenv, signals, os.Stdout, os.Stderr))
}
