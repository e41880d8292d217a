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
	logging.Disable() // the Redis client's own lines: its errors come back to us
	os.Exit(run(untilSignal(context.Background()), fromOS(), os.Args[1:]))
}

// interruption is the cause of a context's end: the signal that asked for it.
type interruption struct{ syscall.Signal }

func (i interruption) Error() string { return "interrupted by " + i.String() }

// untilSignal ends the context with the first signal; further ones do not cut the end short.
func untilSignal(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		if s, ok := (<-signals).(syscall.Signal); ok {
			cancel(interruption{s})
		}
	}()
	return ctx
}
