package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"sluice/core/fleet"
	"sluice/providers/postgres/postgrestest"
)

// BenchmarkTick is a whole tick's share of the database: reading everything, and writing a change of
// every worker with its line, its snapshot and a sample of every queue.
func BenchmarkTick(b *testing.B) {
	for _, size := range []struct{ pools, workers int }{{5, 20}, {1000, 10000}} {
		b.Run(fmt.Sprintf("pools=%d/workers=%d", size.pools, size.workers), func(b *testing.B) {
			d := postgrestest.New(b)
			c := d.Connect(b)
			for _, sql := range []string{
				fmt.Sprintf(`INSERT INTO workers (pool, queues, provider, scope, machine_id, status, cost_per_hour_micros, cost_from, boot_at, registered_at, last_heartbeat, idle_since, changed_at)
					SELECT 'pool-' || n %% %d, ARRAY['queue-' || n %% %d], 'aws', 'eu', 'i-' || n, 'ready', 40000, now(), now(), now(), now(), now(), now() FROM generate_series(1, %d) n`,
					size.pools, size.pools, size.workers),
				fmt.Sprintf(`INSERT INTO sluice_intents (id, kind, state, pool, provider, scope, zone, machine, forced, why, count, reserve, idempotent, min_charge_seconds, created_at, changed_at, claim)
					SELECT gen_random_uuid(), 'launch', CASE WHEN n %% 20 = 0 THEN 'open' ELSE 'done' END, 'pool-' || n %% %d, '', '', '', '', false, '', 1, 1, true, 60, now(), now(), ''
					FROM generate_series(1, %d) n`, size.pools, size.workers),
				"ANALYZE",
			} {
				if _, err := c.Exec(b.Context(), sql); err != nil {
					b.Fatal(err)
				}
			}
			db := d.Open(b)
			due := time.Now().Truncate(time.Minute)
			assignments, samples := map[string]fleet.Assignment{}, []fleet.QueueState{}
			for i := range size.pools {
				assignments[fmt.Sprintf("pool-%d", i)] = fleet.Assignment{Queues: []fleet.Queue{{Name: fmt.Sprintf("queue-%d", i)}}, Heartbeat: 15}
				samples = append(samples, fleet.QueueState{Name: fmt.Sprintf("queue-%d", i), Depth: i})
			}
			b.ReportAllocs()
			b.Run("recall", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := db.Recall(b.Context()); err != nil {
						b.Fatal(err)
					}
				}
			})
			for _, change := range []bool{false, true} {
				b.Run(fmt.Sprintf("transact/changes=%v", change), func(b *testing.B) {
					b.ReportAllocs()
					for b.Loop() {
						due = due.Add(time.Minute)
						err := db.Transact(b.Context(), func(m fleet.Memory) (fleet.Plan, fleet.Record) {
							p := fleet.Plan{Function: fleet.Evaluate, Due: due, Now: m.Now}
							r := fleet.Record{Assignments: assignments, Samples: samples}
							if change {
								for _, w := range m.Workers {
									c := fleet.WorkerChange{From: w.Status, Worker: w}
									c.Worker.AbsentSince = m.Now
									p.Workers = append(p.Workers, c)
									r.Lines = append(r.Lines, fleet.Line{ID: w.ID, Event: "note", Level: fleet.Info, Message: "not listed", Facts: []byte(`{"code":"not_listed"}`)})
								}
								r.Snapshot = &fleet.Snapshot{Memory: m}
							}
							return p, r
						})
						if err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		})
	}
}
