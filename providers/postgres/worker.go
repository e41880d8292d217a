package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"sluice/core/fleet"
)

// Worker is what a worker may do, over the SQL functions that any language can call. It needs no more
// than the role sluice_worker.
type Worker struct{ db *DB }

// OpenWorker prepares a pool; it makes no connection. Errors that are fleet.ErrAuth are about the
// password, never about the database being lost.
func OpenWorker(ctx context.Context, secret fleet.Secret) (*Worker, error) {
	db, err := Open(ctx, secret)
	if err != nil {
		return nil, err
	}
	return &Worker{db: db}, nil
}

// Close gives all connections back.
func (w *Worker) Close() { w.db.Close() }

// Registration is what a machine knows about itself. All but the first three may be empty.
type Registration struct {
	Provider, Machine, Pool string
	Intent, Spec            string
	Expires                 time.Time
	Type                    string
	Market                  fleet.Market
	Scope, Zone             string
}

// Standing is what the database says about a worker.
type Standing struct {
	Worker     string // its id; set by Register only
	Status     fleet.Status
	Drain      bool // claim nothing more
	Expires    time.Time
	Now        time.Time         // the database's clock, against which Expires is read
	Assignment *fleet.Assignment // nil: nothing to run yet
	Wait       bool              // register again later
}

// Register tells that the machine is up. A repeat is harmless.
func (w *Worker) Register(ctx context.Context, r Registration) (Standing, error) {
	var s Standing
	err := w.db.query(ctx, "register worker", `SELECT coalesce(worker_id::text, ''), coalesce(status, ''), drain, expires_at, assignment, wait, sluice_clock()
		FROM sluice_register($1, $2, $3, $4::uuid, $5, $6::timestamptz, $7, $8, $9, $10)`,
		[]any{r.Provider, r.Machine, r.Pool, orNull(r.Intent), orNull(r.Spec), stamp(r.Expires), orNull(r.Type), orNull(string(r.Market)), r.Scope, r.Zone},
		func(row pgx.Rows) error {
			return row.Scan(&s.Worker, &s.Status, &s.Drain, at(&s.Expires), &s.Assignment, &s.Wait, at(&s.Now))
		})
	return s, err
}

// Vitals are measured by the agent; nil is not measured.
type Vitals struct {
	CPUPercent, Load1 *float32
	MemoryMB          *int32
}

// Heartbeat tells that the worker lives. fleet.ErrNotFound means that no row knows it: register again.
func (w *Worker) Heartbeat(ctx context.Context, worker string, v Vitals) (Standing, error) {
	var s Standing
	err := w.db.query(ctx, "heartbeat", "SELECT status, drain, expires_at, assignment, sluice_clock() FROM sluice_heartbeat($1::uuid, $2::real, $3::real, $4::int)",
		[]any{worker, v.CPUPercent, v.Load1, v.MemoryMB}, func(row pgx.Rows) error {
			return row.Scan(&s.Status, &s.Drain, at(&s.Expires), &s.Assignment, at(&s.Now))
		})
	if err == nil && s.Status == "" {
		err = fmt.Errorf("heartbeat of worker %s: %w", worker, fleet.ErrNotFound)
	}
	return s, err
}

// Job is one claimed job. Its attempt is the handle for everything that happens to it.
type Job struct {
	Attempt      string          `json:"attempt_id"`
	ID           string          `json:"job_id"`
	Queue        string          `json:"queue"`
	Payload      json.RawMessage `json:"payload"`
	Priority     int             `json:"priority"`
	Number       int             `json:"attempt"` // 1 for the first attempt
	VisibleUntil time.Time       `json:"visible_until"`
	Checkpoint   json.RawMessage `json:"checkpoint,omitempty"`
}

// Claim takes up to n due jobs of these queues; none while the worker drains or is about to expire.
func (w *Worker) Claim(ctx context.Context, worker string, queues []string, n int) ([]Job, error) {
	var out []Job
	err := w.db.query(ctx, "claim jobs", `SELECT attempt_id, job_id, queue, payload, priority, attempt, visible_until, checkpoint
		FROM sluice_claim($1::uuid, $2::text[], $3)`, []any{worker, queues, n}, func(row pgx.Rows) error {
		var j Job
		err := row.Scan(&j.Attempt, &j.ID, &j.Queue, &j.Payload, &j.Priority, &j.Number, at(&j.VisibleUntil), &j.Checkpoint)
		out = append(out, j)
		return err
	})
	return out, err
}

// Extend keeps a running job from being given to somebody else; false: it already was.
func (w *Worker) Extend(ctx context.Context, attempt string) (bool, error) {
	return w.ask(ctx, "extend job", "SELECT sluice_extend($1::uuid)", attempt)
}

// Checkpoint keeps a job's progress for the next attempt.
func (w *Worker) Checkpoint(ctx context.Context, attempt string, data json.RawMessage) (bool, error) {
	return w.ask(ctx, "checkpoint job", "SELECT sluice_checkpoint($1::uuid, $2::jsonb)", attempt, orNull(string(data)))
}

// Complete ends a job well; false: the attempt is no longer the current one, and the result is not kept.
func (w *Worker) Complete(ctx context.Context, attempt string, result json.RawMessage) (bool, error) {
	return w.ask(ctx, "complete job", "SELECT sluice_complete($1::uuid, $2::jsonb)", attempt, orNull(string(result)))
}

// Fail ends an attempt badly. The job is queued again or dead; empty: the attempt is no longer the current one.
func (w *Worker) Fail(ctx context.Context, attempt, why string, exitCode *int32) (became string, err error) {
	err = w.db.query(ctx, "fail job", "SELECT coalesce(sluice_fail($1::uuid, $2, $3::int), '')", []any{attempt, why, exitCode},
		func(row pgx.Rows) error { return row.Scan(&became) })
	return became, err
}

// Release gives a job back untried: the attempt is not counted.
func (w *Worker) Release(ctx context.Context, attempt string) (bool, error) {
	return w.ask(ctx, "release job", "SELECT sluice_release($1::uuid)", attempt)
}

// Drained acknowledges a drain: nothing more is claimed.
func (w *Worker) Drained(ctx context.Context, worker string) (bool, error) {
	return w.ask(ctx, "acknowledge drain", "SELECT sluice_drained($1::uuid)", worker)
}

// Leave is a clean stop; jobs still in hand go back to their queues.
func (w *Worker) Leave(ctx context.Context, worker string) (bool, error) {
	return w.ask(ctx, "leave", "SELECT sluice_leave($1::uuid)", worker)
}

// Sweep returns jobs whose visibility ran out and says how many.
func (w *Worker) Sweep(ctx context.Context) (n int, err error) {
	err = w.db.query(ctx, "sweep jobs", "SELECT sluice_sweep()", nil, func(row pgx.Rows) error { return row.Scan(&n) })
	return n, err
}

// Listing is what a Redis list must be told about one job: "unlist" removes its id, "relist" pushes it.
type Listing struct{ Job, Queue, Action string }

// RedisPending lists what is to be done, in that order; RedisDone marks one as done.
func (w *Worker) RedisPending(ctx context.Context, n int) ([]Listing, error) {
	var out []Listing
	err := w.db.query(ctx, "read list changes", "SELECT job_id, queue, action FROM sluice_redis_pending($1)", []any{n}, func(row pgx.Rows) error {
		var l Listing
		err := row.Scan(&l.Job, &l.Queue, &l.Action)
		out = append(out, l)
		return err
	})
	return out, err
}

// RedisDone marks a change as made.
func (w *Worker) RedisDone(ctx context.Context, l Listing) error {
	_, err := w.ask(ctx, "mark list change", "SELECT sluice_redis_done($1::uuid, $2)", l.Job, l.Action)
	return err
}

func (w *Worker) ask(ctx context.Context, verb, sql string, args ...any) (yes bool, err error) {
	err = w.db.query(ctx, verb, sql, args, func(row pgx.Rows) error { return row.Scan(&yes) })
	return yes, err
}
