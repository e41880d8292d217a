// Sluice opens machines when queues rise, closes them when they fall, and says why; this is what operators run.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/redis/go-redis/v9/logging"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	logging.Disable() // the Redis client's own lines: its errors come back to us
	code := run(ctx, fromOS(), os.Args[1:])
	stop()
	os.Exit(code)
}
