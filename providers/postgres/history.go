package postgres

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"

	"sluice/core/fleet"
)

// Ticks implements fleet.History.
func (d *DB) Ticks(ctx context.Context, since time.Time, limit int) ([]fleet.TickRecord, error) {
	var out []fleet.TickRecord
	err := d.query(ctx, "read ticks", `SELECT id, function, due, at, changed, message, spend FROM sluice_ticks
		WHERE at >= coalesce($1, '-infinity'::timestamptz) ORDER BY at DESC, function LIMIT $2`, []any{stamp(since), most(limit)},
		func(row pgx.Rows) error {
			var t fleet.TickRecord
			err := row.Scan(&t.ID, &t.Function, at(&t.Due), at(&t.At), &t.Changed, &t.Message, &t.Spend)
			out = append(out, t)
			return err
		})
	return out, err
}

// most is a limit as an argument; none is all.
func most(limit int) any {
	if limit <= 0 {
		return nil
	}
	return limit
}

// Lines implements fleet.History.
func (d *DB) Lines(ctx context.Context, f fleet.LineFilter) ([]fleet.LineRecord, error) {
	if f.Tick != "" && !uuid.MatchString(f.Tick) {
		return nil, fmt.Errorf("read decisions of tick %q: %w", f.Tick, fleet.ErrNotFound)
	}
	var out []fleet.LineRecord
	err := d.query(ctx, "read decisions", `SELECT l.id, l.event, l.level, l.pool, l.worker, l.message, l.facts, l.tick, l.at FROM sluice_lines l
		WHERE l.at >= coalesce($1, '-infinity'::timestamptz) AND ($2 = '' OR l.pool = $2) AND ($3::uuid IS NULL OR l.tick = $3::uuid)
		AND ($4 = '' OR jsonb_path_exists(l.facts, '$.**.code ? (@ == $code)', jsonb_build_object('code', $4::text)))
		AND ($6 = '' OR l.worker = $6) AND ($7 = '' OR jsonb_path_exists(l.facts, '$.**.queue ? (@ == $queue)', jsonb_build_object('queue', $7::text)))
		ORDER BY l.at DESC, l.tick, l.seq LIMIT $5`, []any{stamp(f.Since), f.Pool, orNull(f.Tick), f.Code, most(f.Limit), f.Worker, f.Queue},
		func(row pgx.Rows) error {
			var l fleet.LineRecord
			err := row.Scan(&l.ID, &l.Event, &l.Level, &l.Pool, &l.Worker, &l.Message, &l.Facts, &l.Tick, at(&l.At))
			out = append(out, l)
			return err
		})
	return out, err
}

// Snapshot implements fleet.History.
func (d *DB) Snapshot(ctx context.Context, tick string) (fleet.Snapshot, []byte, error) {
	var seen, planned []byte
	var s fleet.Snapshot
	none := fmt.Errorf("read snapshot of tick %q: %w: nothing had changed, or it is older than 30 days", tick, fleet.ErrNotFound)
	if !uuid.MatchString(tick) {
		return s, nil, none
	}
	err := d.query(ctx, "read snapshot", "SELECT snapshot, plan FROM sluice_snapshots WHERE tick = $1::uuid", []any{tick},
		func(row pgx.Rows) error { return row.Scan(&seen, &planned) })
	if err != nil {
		return s, nil, err
	}
	if seen == nil {
		return s, nil, none
	}
	text, err := unsqueeze(seen)
	if err != nil {
		return s, nil, err
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return s, nil, fmt.Errorf("decode snapshot of tick %s: %w", tick, err)
	}
	plan, err := unsqueeze(planned)
	return s, bytes.TrimSpace(plan), err
}

func unsqueeze(b []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("unpack snapshot: %w", err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		return nil, fmt.Errorf("unpack snapshot: %w", err)
	}
	return text, nil
}

// Samples implements fleet.History.
func (d *DB) Samples(ctx context.Context, since time.Time) ([]fleet.Sample, error) {
	var out []fleet.Sample
	err := d.query(ctx, "read samples", "SELECT at, queues FROM sluice_samples WHERE at >= coalesce($1, '-infinity'::timestamptz) ORDER BY at",
		[]any{stamp(since)}, func(row pgx.Rows) error {
			var s fleet.Sample
			err := row.Scan(at(&s.At), &s.Queues)
			out = append(out, s)
			return err
		})
	return out, err
}

// Workers implements fleet.History. A worker's cost is what the ledger holds of it and what it has
// cost since the last line there.
func (d *DB) Workers(ctx context.Context, since time.Time) ([]fleet.WorkerRecord, error) {
	var out []fleet.WorkerRecord
	var now time.Time
	costs := map[string]fleet.Money{}
	b := &pgx.Batch{}
	one(b, "SELECT sluice_clock()", nil, at(&now))
	list(b, &out, "SELECT "+workerColumns+`, w.terminated_at, coalesce(w.end_why, '') FROM workers w
		WHERE coalesce(w.terminated_at, 'infinity') >= coalesce($1, '-infinity'::timestamptz)
		AND w.status IN ('provisioning', 'ready', 'draining', 'suspended', 'terminated', 'failed') ORDER BY w.created_at DESC, w.id`,
		[]any{stamp(since)}, func(row pgx.Rows, w *fleet.WorkerRecord) error {
			return row.Scan(append(workerFields(&w.Worker), at(&w.Ended), &w.EndWhy)...)
		})
	b.Queue(`SELECT l.worker, l.price, l.from_at, l.to_at, l.min_charge_seconds, l.increment_seconds FROM sluice_ledger l JOIN workers w ON w.id = l.worker
		WHERE coalesce(w.terminated_at, 'infinity') >= coalesce($1, '-infinity'::timestamptz)`, stamp(since)).Query(func(rows pgx.Rows) error {
		return each(rows, func(row pgx.Rows) error {
			var s fleet.Span
			err := row.Scan(&s.Worker, &s.Price, at(&s.From), at(&s.To), &s.MinCharge, &s.Increment)
			costs[s.Worker] += s.Cost()
			return err
		})
	})
	if err := d.batch(ctx, "read workers", b); err != nil {
		return nil, err
	}
	for i := range out {
		out[i].Cost = costs[out[i].ID] + running(out[i], now)
	}
	return out, nil
}

// running is what a living cloud worker has cost since its last line in the ledger.
func running(w fleet.WorkerRecord, now time.Time) fleet.Money {
	switch {
	case !w.Ended.IsZero() || !w.Cloud() || w.CostFrom.IsZero():
		return 0
	case w.Status == fleet.Suspended:
		return w.Idle.For(now.Sub(w.CostFrom))
	}
	return fleet.Span{Price: w.Price, From: w.CostFrom, To: now, MinCharge: w.MinCharge, Increment: w.Increment}.Cost()
}
