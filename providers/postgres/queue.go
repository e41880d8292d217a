package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"sluice/core/fleet"
)

const (
	// Reading priorities costs nothing: they come with the same index.
	waitingJobs = `SELECT j.queue, j.urgency, count(*), ceil(extract(epoch FROM sluice_clock() - min(j.available_at)))::bigint
		FROM processing_jobs j
		WHERE j.status = 'queued' AND j.queue = ANY ($1::text[]) AND j.available_at <= (SELECT sluice_clock())
		GROUP BY j.queue, j.urgency ORDER BY j.queue, j.urgency`

	runningJobs = `SELECT j.queue, count(*) FROM processing_jobs j WHERE j.status = 'processing' AND j.queue = ANY ($1::text[]) GROUP BY j.queue`
)

// Read implements fleet.Queues: the job table's own numbers, whatever the queues' sources are. A queue
// without a row is empty.
func (d *DB) Read(ctx context.Context, queues []fleet.Queue) ([]fleet.QueueState, error) {
	states, at, names := make([]fleet.QueueState, len(queues)), make(map[string]*fleet.QueueState, len(queues)), make([]string, len(queues))
	for i, q := range queues {
		states[i].Name, names[i] = q.Name, q.Name
		at[q.Name] = &states[i]
	}
	b := &pgx.Batch{}
	b.Queue(waitingJobs, names).Query(func(rows pgx.Rows) error {
		return each(rows, func(r pgx.Rows) error {
			var name string
			var p fleet.PriorityState
			if err := r.Scan(&name, &p.Priority, &p.Depth, &p.Oldest); err != nil {
				return err
			}
			s := at[name]
			s.Depth, s.Oldest, s.Priorities = s.Depth+p.Depth, max(s.Oldest, p.Oldest), append(s.Priorities, p)
			return nil
		})
	})
	b.Queue(runningJobs, names).Query(func(rows pgx.Rows) error {
		return each(rows, func(r pgx.Rows) error {
			var name string
			var n int
			if err := r.Scan(&name, &n); err != nil {
				return err
			}
			at[name].Running = n
			return nil
		})
	})
	if err := d.batch(ctx, "read job table", b); err != nil {
		return nil, err
	}
	return states, nil
}
