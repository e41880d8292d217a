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
	if len(queues) == 0 {
		return nil, nil
	}
	names := make([]string, len(queues))
	for i, q := range queues {
		names[i] = q.Name
	}
	read := make(map[string]fleet.QueueState, len(queues))
	b := &pgx.Batch{}
	b.Queue(waitingJobs, names).Query(func(rows pgx.Rows) error { return each(rows, addWaiting(read)) })
	b.Queue(runningJobs, names).Query(func(rows pgx.Rows) error { return each(rows, addRunning(read)) })
	if err := d.batch(ctx, "read job table", b); err != nil {
		return nil, err
	}
	states := make([]fleet.QueueState, len(queues))
	for i, name := range names {
		states[i] = read[name]
		states[i].Name = name
	}
	return states, nil
}

func addWaiting(to map[string]fleet.QueueState) func(pgx.Rows) error {
	return func(row pgx.Rows) error {
		var name string
		var p fleet.PriorityState
		if err := row.Scan(&name, &p.Priority, &p.Depth, &p.Oldest); err != nil {
			return err
		}
		s := to[name]
		s.Depth, s.Oldest, s.Priorities = s.Depth+p.Depth, max(s.Oldest, p.Oldest), append(s.Priorities, p)
		to[name] = s
		return nil
	}
}

func addRunning(to map[string]fleet.QueueState) func(pgx.Rows) error {
	return func(row pgx.Rows) error {
		var name string
		var n int
		if err := row.Scan(&name, &n); err != nil {
			return err
		}
		s := to[name]
		s.Running = n
		to[name] = s
		return nil
	}
}
