package postgres_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"sluice/core/fleet"
	"sluice/providers/postgres"
	"sluice/providers/postgres/postgrestest"
)

// life is a machine of the burst pool, with the clock of its database.
type life struct {
	*testing.T
	db    *postgres.DB
	own   *postgres.Worker
	conn  *pgx.Conn
	now   time.Time
	clock func(time.Time)
	id    string
}

// born is a registered machine that costs 4.16 cents an hour.
func born(t *testing.T) *life {
	t.Helper()
	d := postgrestest.New(t)
	assign(t, d, "ocr")
	l := &life{T: t, db: d.Open(t), own: openWorker(t, d), conn: d.Connect(t), now: time.Now().Truncate(time.Second), clock: d.Clock(t)}
	l.clock(l.now)
	l.tick(func(m fleet.Memory, p *fleet.Plan) {
		p.Adopted = []fleet.Worker{{
			ID: fleet.ID("life"), Pool: "burst", Queues: []string{"ocr"}, Place: fleet.Place{Provider: "local"}, Machine: "m", Slots: 1,
			Price: 41_600, Status: fleet.Provisioning, CostFrom: m.Now, BootAt: m.Now,
		}}
	})
	l.later(time.Minute)
	l.id = spot(t, l.own, "m", l.now.Add(10*time.Hour))
	return l
}

func (l *life) later(d time.Duration) {
	l.now = l.now.Add(d)
	l.clock(l.now)
}

func (l *life) tick(change func(m fleet.Memory, p *fleet.Plan)) {
	l.Helper()
	err := l.db.Transact(l.Context(), func(m fleet.Memory) (fleet.Plan, fleet.Record) {
		p := fleet.Plan{Function: fleet.Evaluate, Due: m.Now, Now: m.Now}
		change(m, &p)
		return p, fleet.Record{}
	})
	if err != nil {
		l.Fatal(err)
	}
	l.later(time.Second)
}

// is compares one value that a host reads with SQL.
func (l *life) is(want, sql string) {
	l.Helper()
	var got string
	if err := l.conn.QueryRow(l.Context(), "SELECT coalesce(("+sql+")::text, 'null')").Scan(&got); err != nil || got != want {
		l.Errorf("%s is %q, %v, want %q", sql, got, err, want)
	}
}

// at is a time as a host reads it.
func (l *life) at(want time.Time, column string) {
	l.Helper()
	var got time.Time
	if err := l.conn.QueryRow(l.Context(), "SELECT "+column+" FROM workers").Scan(&got); err != nil || !got.Equal(want) {
		l.Errorf("%s is %v, %v, want %v", column, got, err, want)
	}
}

func (l *life) becomes(s fleet.Status) {
	l.Helper()
	l.tick(func(m fleet.Memory, p *fleet.Plan) {
		p.Workers = []fleet.WorkerChange{{From: m.Workers[0].Status, Worker: m.Workers[0], Why: "test"}}
		w := &p.Workers[0].Worker
		if w.Status = s; s == fleet.Draining {
			w.DrainAt, w.DrainWhy = m.Now, "drain.idle"
		}
	})
}

// A host's own pages and queries read these columns under these names.
func TestTablesTellTheLifeOfAWorker(t *testing.T) {
	t.Parallel()
	l := born(t)
	l.is("ready", "SELECT status FROM workers")
	l.is("{ocr}", "SELECT queues FROM workers")
	l.is("4.16", "SELECT round(cost_per_hour_cents, 2) FROM workers")
	l.is("0", "SELECT current_jobs FROM workers")
	l.is("null", "SELECT last_job_completed_at FROM workers")

	l.later(15 * time.Second)
	cpu := float32(37.5)
	if _, err := l.own.Heartbeat(t.Context(), l.id, postgres.Vitals{CPUPercent: &cpu}); err != nil {
		t.Fatal(err)
	}
	l.at(l.now, "last_heartbeat")
	l.is("37.5", "SELECT cpu_percent FROM worker_metrics ORDER BY at DESC LIMIT 1")

	enqueue(t, l.db, 1, postgres.NewJob{Queue: "ocr"})
	l.is("true", "SELECT created_at = sluice_clock() FROM processing_jobs")
	l.later(time.Second)
	job := claim(t, l.own, l.id, 1)[0]
	l.is("1", "SELECT current_jobs FROM workers")
	l.is("running", "SELECT status FROM job_attempts")
	l.later(time.Minute)
	if ok, err := l.own.Complete(t.Context(), job.Attempt, nil); !ok || err != nil {
		t.Fatal(ok, err)
	}
	l.is("0", "SELECT current_jobs FROM workers")
	l.at(l.now, "last_job_completed_at")
	l.is("succeeded", "SELECT status FROM job_attempts")
	l.is("completed", "SELECT status FROM processing_jobs")

	l.becomes(fleet.Draining)
	l.is("draining", "SELECT status FROM workers")
	l.is("null", "SELECT terminated_at FROM workers")
	ended := l.now
	l.becomes(fleet.Terminated)
	l.is("terminated", "SELECT status FROM workers")
	l.at(ended, "terminated_at")
}
