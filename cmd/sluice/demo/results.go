package demo

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"sluice/core/fleet"
)

// counts are the jobs of the burst by their state.
type counts struct{ Queued, Running, Done, Failed, Dead int }

func (c counts) over() int  { return c.Done + c.Failed + c.Dead }
func (c counts) total() int { return c.over() + c.Queued + c.Running }

func count(ctx context.Context, pool *pgxpool.Pool, ids []string) (counts, error) {
	var c counts
	err := pool.QueryRow(ctx, `SELECT count(*) FILTER (WHERE status = 'queued'), count(*) FILTER (WHERE status = 'processing'),
		count(*) FILTER (WHERE status = 'completed'), count(*) FILTER (WHERE status = 'failed'), count(*) FILTER (WHERE status = 'dead')
		FROM processing_jobs WHERE id = ANY($1::text[]::uuid[])`, ids).Scan(&c.Queued, &c.Running, &c.Done, &c.Failed, &c.Dead)
	if err != nil {
		return c, fmt.Errorf("count jobs: %w", err)
	}
	return c, nil
}

// waits are how long jobs waited for their first attempt: the median and what one in twenty exceeds.
func waits(ctx context.Context, pool *pgxpool.Pool, ids []string) (p50, p95 float64, err error) {
	err = pool.QueryRow(ctx, `SELECT coalesce(percentile_cont(0.5) WITHIN GROUP (ORDER BY w), 0), coalesce(percentile_cont(0.95) WITHIN GROUP (ORDER BY w), 0)
		FROM (SELECT extract(epoch FROM min(a.started_at) - j.created_at)::float8 AS w FROM processing_jobs j JOIN job_attempts a ON a.job_id = j.id
		WHERE j.id = ANY($1::text[]::uuid[]) GROUP BY j.id, j.created_at) x`, ids).Scan(&p50, &p95)
	if err != nil {
		return 0, 0, fmt.Errorf("measure waits: %w", err)
	}
	return p50, p95, nil
}

// retried is how many attempts there were beyond the first of each job.
func retried(ctx context.Context, pool *pgxpool.Pool, ids []string) (n int, err error) {
	err = pool.QueryRow(ctx, `SELECT count(*) - count(DISTINCT job_id) FROM job_attempts WHERE job_id = ANY($1::text[]::uuid[])`, ids).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("count attempts: %w", err)
	}
	return n, nil
}

// Summary is what a run came to.
type Summary struct {
	Jobs       int         `json:"jobs"`
	Done       int         `json:"done"`
	Failed     int         `json:"failed"`
	Dead       int         `json:"dead"`
	Unfinished int         `json:"unfinished"` // taken back when a watched run was ended
	Lost       int         `json:"lost"`       // not there any more, or done without a thumbnail
	Retried    int         `json:"retried"`
	WaitP50    float64     `json:"wait_p50_seconds"`
	WaitP95    float64     `json:"wait_p95_seconds"`
	Took       float64     `json:"took_seconds"`
	First      float64     `json:"first_machine_seconds"` // from the start until a machine was asked for; 0: none was
	Machines   int         `json:"machines_started"`
	Most       int         `json:"machines_at_once"`
	Left       int         `json:"workers_left"`
	Cost       fleet.Money `json:"cost_micros"`
	AlwaysOn   fleet.Money `json:"always_on_micros"` // of as many machines as ran at once, for the whole time
	Thumbnails string      `json:"thumbnails"`
}

// Words tells the summary to a person.
func (s Summary) Words() string {
	saved := ""
	if s.AlwaysOn > 0 && s.Cost < s.AlwaysOn {
		saved = fmt.Sprintf(", %d %% less", 100-100*s.Cost/s.AlwaysOn)
	}
	cost := fmt.Sprintf("%.4f USD; %d machines always on cost %.4f USD in this time%s, and %.2f USD a day",
		s.Cost.Float(), s.Most, s.AlwaysOn.Float(), saved, s.perDay())
	if s.Machines == 0 {
		cost = "nothing: no machine was started"
	}
	unfinished := ""
	if s.Unfinished > 0 {
		unfinished = fmt.Sprintf(", %d taken back", s.Unfinished)
	}
	return fmt.Sprintf(`Jobs      %d of %d done, %d failed, %d dead, %d lost, %d tried again%s
Waits     p50 %.1f s, p95 %.1f s
Machines  %d started, at most %d at once, %d left
Cost      %s
Time      %.1f s
Pictures  %s`,
		s.Done, s.Jobs, s.Failed, s.Dead, s.Lost, s.Retried, unfinished, s.WaitP50, s.WaitP95, s.Machines, s.Most, s.Left,
		cost, s.Took, s.Thumbnails)
}

// perDay is what as many machines as ran at once cost when they are never ended.
func (s Summary) perDay() float64 {
	if s.Took == 0 {
		return 0
	}
	return s.AlwaysOn.Float() / s.Took * 24 * 3600
}

// Err says whether the run kept its promises.
func (s Summary) Err() error {
	switch {
	case s.Lost > 0:
		return fmt.Errorf("%d of %d jobs were lost", s.Lost, s.Jobs)
	case s.Left > 0:
		return fmt.Errorf("%d workers were left running", s.Left)
	case s.Failed+s.Dead > 0:
		return fmt.Errorf("%d of %d jobs did not succeed; `sluice run --watch` keeps the database up to look at", s.Failed+s.Dead, s.Jobs)
	}
	return nil
}
