// Sluice opens machines when queues rise, closes them when they fall, and says why; this is what operators run.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, fromOS(), os.Args[1:])
	stop()
	os.Exit(code)
}
