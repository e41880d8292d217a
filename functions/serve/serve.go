package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"sluice/core/fleet"
	"sluice/core/tick"
	"sluice/functions/host"
)

// Tick is what a function does: tick.Evaluate or tick.Reconcile.
type Tick = func(ctx context.Context, w tick.World, due time.Time) (tick.Report, error)

// defaultLimit is the time limit of a tick where the cloud tells none.
const defaultLimit = 60 * time.Second

// minInterval is the shortest that a cloud's schedule can keep.
const minInterval = 60

// Function is one of the two functions, with the world that it keeps between calls.
type Function struct {
	Name  fleet.Function
	Tick  Tick
	Links []fleet.Link
	Env   func(string) string
	Out   io.Writer

	mu    sync.Mutex
	world *host.World
}

// Answer is what a call returns. The log says the rest.
type Answer struct {
	Due     time.Time `json:"due"`
	Message string    `json:"message"`
}

// Main serves until the process is told to end, and returns its exit code.
func (f *Function) Main() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	defer f.forget()
	logging.Disable() // the Redis client's own lines are not JSON; its errors come back to us
	if f.Env("AWS_LAMBDA_RUNTIME_API") != "" {
		f.lambda(ctx)
		return 0
	}
	if err := f.http(ctx); err != nil {
		_, _ = fmt.Fprintf(f.Out, "{\"level\":\"ERROR\",\"message\":%q}\n", "serve "+string(f.Name)+": "+err.Error())
		return 1
	}
	return 0
}

// Do does one tick and logs it.
func (f *Function) Do(ctx context.Context, due time.Time) (Answer, error) {
	log, begun := host.NewLog(f.Out), time.Now()
	t := host.Tick{Function: f.Name, Due: due}
	w, err := f.open(ctx, log)
	if err == nil {
		world := w.World
		world.Limit = limit(ctx)
		t.Report, err = f.Tick(ctx, world, due)
	}
	if w != nil && w.Lost() != nil {
		f.forget() // try again next time
	}
	t.Err, t.Took = err, time.Since(begun)
	log.Write(ctx, t)
	answer := Answer{Due: due.UTC()}
	if n := len(t.Report.Lines); n > 0 {
		answer.Message = t.Report.Lines[n-1].Message
	}
	return answer, err
}

// open opens the world once, when it is first needed.
func (f *Function) open(ctx context.Context, log host.Log) (*host.World, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.world != nil {
		return f.world, nil
	}
	w, err := host.Open(ctx, host.Options{Env: f.Env, MinInterval: minInterval, Log: log.Alerter()}, f.Links...)
	if err != nil {
		return nil, err
	}
	f.world = w
	return w, nil
}

func (f *Function) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.world != nil {
		f.world.Close()
		f.world = nil
	}
}

// limit is the time that is left until the cloud ends the call.
func limit(ctx context.Context) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return time.Until(deadline)
	}
	return defaultLimit
}

// thisMinute is the due time of a call that names none.
func thisMinute() time.Time { return time.Now().UTC().Truncate(time.Minute) }

// eventDue reads the due time from an event of a schedule: EventBridge and its Scheduler have it in time.
func eventDue(event json.RawMessage) (time.Time, error) {
	var e struct {
		Time *string `json:"time"`
	}
	if err := json.Unmarshal(event, &e); err != nil {
		return time.Time{}, errors.New("read event: want a JSON object, such as EventBridge sends")
	}
	if e.Time == nil || *e.Time == "" {
		return thisMinute(), nil
	}
	return parseDue("time of the event", *e.Time)
}

func parseDue(what, value string) (time.Time, error) {
	due, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return due, fmt.Errorf("read %s: %q is not a time such as 2027-01-14T09:31:00Z", what, value)
	}
	return due.UTC(), nil
}
