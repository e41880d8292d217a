package postgres

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"sluice/core/fleet"
)

// NewJob is a job as a host puts it in. Priority 1 is the most urgent, 10 the least, 0 the usual one.
type NewJob struct {
	Queue    string
	Payload  json.RawMessage
	Priority int
	Due      time.Time // zero: at once
	User     string
	Market   fleet.Market // empty: any
	Class    string       // empty: any
}

// Enqueue puts jobs in, in one round trip, all or none, and returns their ids in order.
func (d *DB) Enqueue(ctx context.Context, jobs ...NewJob) ([]string, error) {
	ids := make([]string, len(jobs))
	b := &pgx.Batch{}
	for i, j := range jobs {
		priority := j.Priority
		if priority == 0 {
			priority = 5
		}
		one(b, "SELECT sluice_enqueue($1, $2::jsonb, $3, $4::timestamptz, $5, $6, $7)",
			[]any{j.Queue, orNull(string(j.Payload)), priority, stamp(j.Due), orNull(j.User), orNull(string(j.Market)), orNull(j.Class)}, &ids[i])
	}
	return ids, d.batch(ctx, "enqueue jobs", b)
}
