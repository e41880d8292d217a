package agent

import (
	"context"
	"encoding/json"
	"time"

	"sluice/core/fleet"
)

// Database is what an agent asks of the worker functions. Every call may be repeated. fleet.ErrAuth is
// an answer of a living database; fleet.ErrBadRequest says that it will never take this value.
type Database interface {
	Register(ctx context.Context, id Identity) (Status, error)
	// Heartbeat answers fleet.ErrNotFound where no row knows the worker.
	Heartbeat(ctx context.Context, worker string, s Sample) (Status, error)
	Claim(ctx context.Context, worker string, queues []string, n int) ([]Job, error)
	// Extend, Complete, Fail and Release tell whether the attempt was still ours.
	Extend(ctx context.Context, attempt string) (bool, error)
	Complete(ctx context.Context, attempt string, result json.RawMessage) (bool, error)
	Fail(ctx context.Context, attempt, text string, code *int) (bool, error)
	Release(ctx context.Context, attempt string) (bool, error)
	Drained(ctx context.Context, worker string) error
	Leave(ctx context.Context, worker string) error
	// Sweep gives jobs back whose visibility ran out, anybody's.
	Sweep(ctx context.Context) error
}

// Identity is who a worker is; it comes from the launch.
type Identity struct {
	Provider, Scope, Zone, Machine, Pool, Intent, Spec, Type, Market string
	Expires                                                          time.Time
}

// Status is what the database says about this worker.
type Status struct {
	Worker string
	// Wait: not taken in yet, register again later.
	Wait  bool
	Drain bool
	// Left is the time to the worker's expiry by the database's clock; nil where it has none.
	Left *time.Duration
	// Rules are nil before the first tick has assigned any.
	Rules *fleet.Assignment
}

// Sample is what a heartbeat tells of the machine; nil is not known.
type Sample struct {
	CPU    *float64 // per cent of all processors
	Load   *float64 // over one minute
	Memory *int     // MB in use
}

// Job is one claimed attempt.
type Job struct {
	Attempt    string
	ID         string
	Queue      string
	Number     int // of the attempt, from 1
	Priority   int
	Payload    json.RawMessage
	Checkpoint json.RawMessage
}
