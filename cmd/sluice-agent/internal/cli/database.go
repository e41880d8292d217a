package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"sluice/cmd/sluice-agent/internal/agent"
	"sluice/core/fleet"
	"sluice/providers/postgres"
	"sluice/providers/redis"
)

var _ agent.Database = database{}

// database is the worker functions in the words of the agent.
type database struct{ *postgres.Worker }

func (d database) Register(ctx context.Context, id agent.Identity) (agent.Status, error) {
	s, err := d.Worker.Register(ctx, postgres.Registration{
		Provider: id.Provider, Scope: id.Scope, Zone: id.Zone, Machine: id.Machine, Pool: id.Pool, Intent: id.Intent, Spec: id.Spec,
		Type: id.Type, Market: fleet.Market(id.Market), Expires: id.Expires,
	})
	return status(s, s.Worker), err
}

func (d database) Heartbeat(ctx context.Context, worker string, m agent.Sample) (agent.Status, error) {
	s, err := d.Worker.Heartbeat(ctx, worker, postgres.Vitals{CPUPercent: narrow(m.CPU), Load1: narrow(m.Load), MemoryMB: small(m.Memory)})
	return status(s, worker), err
}

// status reads the expiry against the clock that it was answered with.
func status(s postgres.Standing, worker string) agent.Status {
	out := agent.Status{Worker: worker, Wait: s.Wait, Drain: s.Drain, Rules: s.Assignment}
	if !s.Expires.IsZero() {
		left := s.Expires.Sub(s.Now)
		out.Left = &left
	}
	return out
}

func narrow(f *float64) *float32 {
	if f == nil {
		return nil
	}
	n := float32(*f)
	return &n
}

func small(i *int) *int32 {
	if i == nil {
		return nil
	}
	n := int32(max(min(*i, math.MaxInt32), math.MinInt32))
	return &n
}

func (d database) Claim(ctx context.Context, worker string, queues []string, n int) ([]agent.Job, error) {
	jobs, err := d.Worker.Claim(ctx, worker, queues, n)
	var out []agent.Job
	for _, j := range jobs {
		out = append(out, agent.Job{
			Attempt: j.Attempt, ID: j.ID, Queue: j.Queue, Number: j.Number, Priority: j.Priority, Payload: j.Payload, Checkpoint: j.Checkpoint,
		})
	}
	return out, err
}

func (d database) Complete(ctx context.Context, attempt string, result json.RawMessage) (bool, error) {
	ours, err := d.Worker.Complete(ctx, attempt, result)
	return ours, refused(err)
}

func (d database) Fail(ctx context.Context, attempt, text string, code *int) (bool, error) {
	became, err := d.Worker.Fail(ctx, attempt, text, small(code))
	return became != "", refused(err)
}

// refused tells values that the database will never take, such as a NUL in JSON, from failures that pass.
func refused(err error) error {
	var pg *pgconn.PgError
	if errors.As(err, &pg) && (strings.HasPrefix(pg.Code, "22") || strings.HasPrefix(pg.Code, "54")) {
		return fmt.Errorf("%w: %w", fleet.ErrBadRequest, err)
	}
	return err
}

func (d database) Drained(ctx context.Context, worker string) error {
	_, err := d.Worker.Drained(ctx, worker)
	return err
}

func (d database) Leave(ctx context.Context, worker string) error {
	_, err := d.Worker.Leave(ctx, worker)
	return err
}

func (d database) Sweep(ctx context.Context) error {
	_, err := d.Worker.Sweep(ctx)
	return err
}

// ledger is the job table's note of what its Redis lists have not heard of.
type ledger struct {
	worker *postgres.Worker
	queues []fleet.Queue
}

func (l ledger) Pending(ctx context.Context, n int) ([]redis.Move, error) {
	pending, err := l.worker.RedisPending(ctx, n)
	var moves []redis.Move
	for _, p := range pending {
		moves = append(moves, redis.Move{Job: p.Job, Queue: p.Queue, Key: l.key(p.Queue), Action: redis.Action(p.Action)})
	}
	return moves, err
}

// key is the list of a queue; one that is no longer assigned had the usual name.
func (l ledger) key(queue string) string {
	for _, q := range l.queues {
		if q.Name == queue {
			return redis.Key(q)
		}
	}
	return redis.Key(fleet.Queue{Name: queue})
}

func (l ledger) Done(ctx context.Context, moves []redis.Move) error {
	for _, m := range moves {
		if err := l.worker.RedisDone(ctx, postgres.Listing{Job: m.Job, Queue: m.Queue, Action: string(m.Action)}); err != nil {
			return err
		}
	}
	return nil
}
