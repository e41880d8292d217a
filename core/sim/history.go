package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"sluice/core/fleet"
)

// look asks for leave to read the past.
func (s *Store) look(ctx context.Context, what string, read func(d *database)) error {
	if v := s.p.pass(ctx, OpHistory, what); v.Err != nil {
		return fmt.Errorf("read %s: %w", what, v.Err)
	}
	s.p.w.mu.Lock()
	defer s.p.w.mu.Unlock()
	read(s.p.w.db)
	return nil
}

// Ticks implements fleet.History.
func (s *Store) Ticks(ctx context.Context, since time.Time, limit int) (out []fleet.TickRecord, err error) {
	err = s.look(ctx, "ticks", func(d *database) {
		for _, t := range slices.Backward(d.ticks) {
			if !t.At.Before(since) && len(out) < limit {
				out = append(out, t.TickRecord)
			}
		}
	})
	return out, err
}

// Lines implements fleet.History.
func (s *Store) Lines(ctx context.Context, f fleet.LineFilter) (out []fleet.LineRecord, err error) {
	err = s.look(ctx, "lines", func(d *database) {
		for _, l := range slices.Backward(d.lines) {
			if !l.At.Before(f.Since) && len(out) < f.Limit && (f.Pool == "" || l.Pool == f.Pool) &&
				(f.Tick == "" || l.Tick == f.Tick) && (f.Worker == "" || l.Worker == f.Worker) &&
				holdsAnywhere(l.Facts, "code", f.Code) && holdsAnywhere(l.Facts, "queue", f.Queue) {
				out = append(out, l)
			}
		}
	})
	return out, err
}

// holdsAnywhere looks for a key with a value anywhere in the facts; no value is always there.
func holdsAnywhere(facts json.RawMessage, key, value string) bool {
	var v any
	return value == "" || json.Unmarshal(facts, &v) == nil && holds(v, key, value)
}

func holds(v any, key, value string) bool {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if k == key && e == value || holds(e, key, value) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(e any) bool { return holds(e, key, value) })
	}
	return false
}

// Snapshot implements fleet.History.
func (s *Store) Snapshot(ctx context.Context, tick string) (out fleet.Snapshot, plan []byte, err error) {
	found := false
	err = s.look(ctx, "snapshot", func(d *database) {
		for _, t := range d.ticks {
			if t.ID == tick && t.snapshot != nil {
				out, found = *t.snapshot, true
				plan, _ = json.Marshal(t.plan)
			}
		}
	})
	if err == nil && !found {
		err = fmt.Errorf("snapshot of tick %s: %w", tick, fleet.ErrNotFound)
	}
	return out, plan, err
}

// Samples implements fleet.History.
func (s *Store) Samples(ctx context.Context, since time.Time) (out []fleet.Sample, err error) {
	err = s.look(ctx, "samples", func(d *database) {
		for _, e := range d.samples {
			if !e.At.Before(since) {
				out = append(out, e)
			}
		}
	})
	return out, err
}

// Workers implements fleet.History.
func (s *Store) Workers(ctx context.Context, since time.Time) (out []fleet.WorkerRecord, err error) {
	err = s.look(ctx, "workers", func(d *database) {
		now := s.p.w.clock()
		for _, id := range sortedKeys(d.workers) {
			if row := d.workers[id]; row.Ended.IsZero() || !row.Ended.Before(since) {
				out = append(out, fleet.WorkerRecord{Worker: row.Worker, Ended: row.Ended, EndWhy: row.EndWhy, Cost: d.cost(row, now)})
			}
		}
		slices.SortStableFunc(out, func(a, b fleet.WorkerRecord) int { return b.BootAt.Compare(a.BootAt) })
	})
	return out, err
}

// cost is what the ledger has of a worker and what it costs since.
func (d *database) cost(row workerRow, now time.Time) fleet.Money {
	var sum fleet.Money
	for _, s := range d.spans {
		if s.Worker == row.ID {
			sum += s.Cost()
		}
	}
	if row.Ended.IsZero() && !row.CostFrom.IsZero() {
		price := row.Price
		if row.Status == fleet.Suspended {
			price = row.Idle
		}
		sum += fleet.Span{Price: price, From: row.CostFrom, To: now, MinCharge: row.MinCharge, Increment: row.Increment}.Cost()
	}
	return sum
}

// Ask implements fleet.Requests.
func (s *Store) Ask(ctx context.Context, r fleet.Request) error {
	v := s.p.pass(ctx, OpAsk, r.ID)
	if v.Effect {
		s.p.w.mu.Lock()
		defer s.p.w.mu.Unlock()
		r.At = s.p.w.clock()
		s.p.w.db.requests = append(slices.Clone(s.p.w.db.requests), r)
	}
	if v.Err != nil {
		return fmt.Errorf("ask: %w", v.Err)
	}
	return nil
}
