package postgres_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"sluice/core/fleet"
	"sluice/core/fleet/fleettest"
	"sluice/providers/postgres"
	"sluice/providers/postgres/postgrestest"
)

func TestQueues(t *testing.T) { fleettest.Queues(t, openQueues) }

func openQueues(t *testing.T) fleettest.QueuesHarness {
	t.Helper()
	d := postgrestest.New(t)
	now, clock := time.Now().Truncate(time.Second), d.Clock(t)
	clock(now)
	p := startProxy(t, d.URL)
	db, err := postgres.Open(t.Context(), postgres.URL(p.url))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	w := openWorker(t, d)
	assign(t, d, "ocr")
	return fleettest.QueuesHarness{
		Queues: db, Source: fleet.SourcePostgres,
		Put: func(j fleettest.NewJob) {
			n := postgres.NewJob{Queue: j.Queue, Priority: j.Priority}
			if j.After > 0 {
				n.Due = now.Add(j.After)
			}
			if _, err := db.Enqueue(t.Context(), n); err != nil {
				t.Fatal(err)
			}
		},
		Take: func(queue string) {
			s := register(t, w, "taker")
			if jobs, err := w.Claim(t.Context(), s.Worker, []string{queue}, 1); err != nil || len(jobs) != 1 {
				t.Fatalf("claimed %v, %v", jobs, err)
			}
		},
		Advance: func(by time.Duration) {
			now = now.Add(by)
			clock(now)
		},
		Stop: p.stop,
	}
}

func openWorker(t *testing.T, d postgrestest.Database) *postgres.Worker {
	t.Helper()
	w, err := postgres.OpenWorker(t.Context(), postgres.URL(d.URL))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

// assign gives the pools vps and burst these queues, past the store.
func assign(t *testing.T, d postgrestest.Database, queues ...string) {
	t.Helper()
	list := `{"name":"` + strings.Join(queues, `"},{"name":"`) + `"}`
	c := d.Connect(t)
	must(t, c, `INSERT INTO sluice_assignments SELECT pool, $1::jsonb, now() FROM unnest('{vps,burst}'::text[]) pool
		ON CONFLICT (pool) DO UPDATE SET assignment = excluded.assignment`,
		`{"queues":[`+list+`],"visibility_timeout_seconds":300,"max_attempts":3,"drain_timeout_seconds":300,"retry_elsewhere":true}`)
	_ = c.Close(context.WithoutCancel(t.Context()))
}

func register(t *testing.T, w *postgres.Worker, machine string) postgres.Standing {
	t.Helper()
	s, err := w.Register(t.Context(), postgres.Registration{Provider: fleet.VPS, Machine: machine, Pool: fleet.VPS})
	if err != nil || s.Wait || s.Worker == "" {
		t.Fatalf("register %s: %+v, %v", machine, s, err)
	}
	return s
}

func TestDeadJobsAreNoDemand(t *testing.T) {
	t.Parallel()
	d := postgrestest.New(t)
	must(t, d.Connect(t), `INSERT INTO processing_jobs (queue, status) SELECT 'ocr', s FROM unnest('{dead,failed,completed,whatever}'::text[]) s`)
	got, err := d.Open(t).Read(t.Context(), []fleet.Queue{{Name: "ocr"}, {Name: "ocr"}})
	if err != nil || len(got) != 2 || got[0].Depth != 0 || got[0].Running != 0 {
		t.Errorf("states %+v, %v", got, err)
	}
}

func TestReadingQueuesUsesTheIndexOfWaitingJobsAlone(t *testing.T) {
	t.Parallel()
	d := postgrestest.New(t)
	c := d.Connect(t)
	must(t, c, `INSERT INTO processing_jobs (queue, status, priority) SELECT 'q' || n % 100, CASE n % 8 WHEN 0 THEN 'queued' WHEN 4 THEN 'processing' ELSE 'completed' END, n % 10 + 1
		FROM generate_series(1, 20000) n`)
	must(t, c, "VACUUM ANALYZE processing_jobs")
	for sql, index := range map[string]string{postgres.WaitingJobs: "sluice_jobs_waiting", postgres.RunningJobs: "sluice_jobs_running"} {
		rows, err := c.Query(t.Context(), "EXPLAIN "+sql, []string{"q0", "q4", "q8"})
		if err != nil {
			t.Fatal(err)
		}
		var plan strings.Builder
		for rows.Next() {
			var line string
			if err := rows.Scan(&line); err != nil {
				t.Fatal(err)
			}
			plan.WriteString(line + "\n")
		}
		if p := plan.String(); !strings.Contains(p, index) || strings.Contains(p, "Seq Scan") {
			t.Errorf("the plan does not read %s alone:\n%s", index, p)
		}
	}
}
