package postgres_test

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"sluice/core/fleet"
	"sluice/providers/postgres"
	"sluice/providers/postgres/postgrestest"
)

func enqueue(t *testing.T, db *postgres.DB, n int, j postgres.NewJob) []string {
	t.Helper()
	ids, err := db.Enqueue(t.Context(), slices.Repeat([]postgres.NewJob{j}, n)...)
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

func claim(t *testing.T, w *postgres.Worker, worker string, n int) []postgres.Job {
	t.Helper()
	jobs, err := w.Claim(t.Context(), worker, []string{"ocr"}, n)
	if err != nil {
		t.Fatal(err)
	}
	return jobs
}

// spot registers a spot machine of the burst pool.
func spot(t *testing.T, w *postgres.Worker, machine string, expires time.Time) string {
	t.Helper()
	s, err := w.Register(t.Context(), postgres.Registration{Provider: "local", Machine: machine, Pool: "burst", Market: fleet.Spot, Expires: expires})
	if err != nil || s.Worker == "" {
		t.Fatalf("register %s: %+v, %v", machine, s, err)
	}
	return s.Worker
}

func TestEveryJobIsClaimedOnceHoweverManyClaim(t *testing.T) {
	t.Parallel()
	d := postgrestest.New(t)
	assign(t, d, "ocr")
	enqueue(t, d.Open(t), 200, postgres.NewJob{Queue: "ocr"})
	var mu sync.Mutex
	seen := map[string]int{}
	var wg sync.WaitGroup
	for i := range 8 {
		w := openWorker(t, d)
		me := register(t, w, strconv.Itoa(i)).Worker
		wg.Go(func() {
			for {
				jobs, err := w.Claim(t.Context(), me, []string{"ocr"}, 3)
				if err != nil {
					t.Errorf("claim: %v", err)
				}
				if len(jobs) == 0 {
					return
				}
				mu.Lock()
				for _, j := range jobs {
					seen[j.ID]++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for id, n := range seen {
		if n != 1 {
			t.Errorf("job %s was claimed %d times", id, n)
		}
	}
	if len(seen) != 200 {
		t.Errorf("%d jobs were claimed, want 200", len(seen))
	}
}

func TestNoJobIsClaimedOnAWorkerWhoseDrainWasCommitted(t *testing.T) {
	t.Parallel()
	d := postgrestest.New(t)
	assign(t, d, "ocr")
	db := d.Open(t)
	enqueue(t, db, 400, postgres.NewJob{Queue: "ocr"})
	due := time.Now().Truncate(time.Minute)
	for round := range 8 {
		w := openWorker(t, d)
		me := spot(t, w, strconv.Itoa(round), time.Time{})
		var committed atomic.Bool
		var held, started int
		first, stop := make(chan struct{}), make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			for {
				late := committed.Load()
				jobs, err := w.Claim(t.Context(), me, []string{"ocr"}, 1)
				if err != nil || late && len(jobs) > 0 {
					t.Errorf("claimed %d jobs after the drain was committed, %v", len(jobs), err)
				}
				if started++; started == 3 {
					close(first)
				}
				held += len(jobs)
				select {
				case <-stop:
					return
				default:
				}
			}
		})
		<-first
		due = due.Add(time.Minute)
		drain(t, db, me, due)
		committed.Store(true)
		if ok, err := w.Drained(t.Context(), me); !ok || err != nil {
			t.Errorf("acknowledge: %v, %v", ok, err)
		}
		if n := claim(t, w, me, 1); len(n) != 0 {
			t.Errorf("claimed %+v after the acknowledgement", n)
		}
		close(stop)
		wg.Wait()
		m, err := db.Recall(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(m.Workers, func(w fleet.Worker) bool { return w.ID == me })
		if m.Workers[i].Jobs != held || m.Workers[i].DrainAck.IsZero() {
			t.Errorf("the row says %d jobs, the worker holds %d", m.Workers[i].Jobs, held)
		}
	}
}

// drain commits a drain as a tick does.
func drain(t *testing.T, db *postgres.DB, worker string, due time.Time) {
	t.Helper()
	err := db.Transact(t.Context(), func(m fleet.Memory) (fleet.Plan, fleet.Record) {
		p := fleet.Plan{Function: fleet.Evaluate, Due: due, Now: m.Now}
		for _, w := range m.Workers {
			if w.ID == worker {
				c := fleet.WorkerChange{From: w.Status, Worker: w}
				c.Worker.Status, c.Worker.DrainAt, c.Worker.DrainWhy = fleet.Draining, m.Now, "drain.idle"
				p.Workers = []fleet.WorkerChange{c}
			}
		}
		return p, fleet.Record{}
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestWorkersSweepsAndTicksNeverWaitForEachOtherInACircle(t *testing.T) {
	t.Parallel()
	d := postgrestest.New(t)
	assign(t, d, "ocr")
	must(t, d.Connect(t), `UPDATE sluice_assignments SET assignment = assignment || '{"visibility_timeout_seconds":0,"max_attempts":1000}'`)
	db := d.Open(t)
	ids := enqueue(t, db, 60, postgres.NewJob{Queue: "ocr"})
	due := time.Now().Truncate(time.Minute)
	var wg sync.WaitGroup
	for i := range 4 {
		w := openWorker(t, d)
		wg.Go(func() { live(t, w, strconv.Itoa(i)) })
	}
	wg.Go(func() {
		for range 40 {
			due = due.Add(time.Minute)
			if err := endAll(t.Context(), db, due); err != nil {
				t.Errorf("tick: %v", err)
			}
		}
	})
	wg.Wait()
	must(t, d.Connect(t), "SELECT sluice_sweep()")
	var lost, wrong int
	err := d.Connect(t).QueryRow(t.Context(), `SELECT
		(SELECT count(*) FROM processing_jobs WHERE id = ANY ($1) AND status NOT IN ('queued', 'completed', 'processing')),
		(SELECT count(*) FROM workers w WHERE current_jobs <> (SELECT count(*) FROM processing_jobs j WHERE j.status = 'processing' AND j.claimed_by = w.id))`, ids).
		Scan(&lost, &wrong)
	if err != nil || lost != 0 || wrong != 0 {
		t.Errorf("%d jobs lost, %d workers with a wrong count, %v", lost, wrong, err)
	}
}

// live registers, claims, ends jobs in every way and sweeps.
func live(t *testing.T, w *postgres.Worker, machine string) {
	for n := range 40 {
		s, err := w.Register(t.Context(), postgres.Registration{Provider: "local", Machine: machine, Pool: "burst"})
		if err != nil {
			t.Errorf("register: %v", err)
			return
		}
		jobs, err := w.Claim(t.Context(), s.Worker, []string{"ocr"}, 4)
		if err != nil {
			t.Errorf("claim: %v", err)
		}
		for i, j := range jobs {
			switch (n + i) % 4 {
			case 0:
				_, err = w.Release(t.Context(), j.Attempt)
			case 1:
				_, err = w.Fail(t.Context(), j.Attempt, "boom", nil)
			case 2:
				_, err = w.Complete(t.Context(), j.Attempt, nil)
			case 3:
				_, err = w.Sweep(t.Context())
			}
			if err != nil {
				t.Errorf("end job: %v", err)
			}
		}
	}
}

// endAll declares every worker failed, whatever it holds.
func endAll(ctx context.Context, db *postgres.DB, due time.Time) error {
	return db.Transact(ctx, func(m fleet.Memory) (fleet.Plan, fleet.Record) {
		p := fleet.Plan{Function: fleet.Evaluate, Due: due, Now: m.Now}
		for _, w := range m.Workers {
			c := fleet.WorkerChange{From: w.Status, Worker: w, Why: "gone"}
			c.Worker.Status = fleet.Failed
			p.Workers = append(p.Workers, c)
		}
		return p, fleet.Record{}
	})
}

func TestAWorkerNearItsExpiryClaimsNothing(t *testing.T) {
	t.Parallel()
	d := postgrestest.New(t)
	assign(t, d, "ocr")
	now, clock := time.Now().Truncate(time.Second), d.Clock(t)
	clock(now)
	enqueue(t, d.Open(t), 2, postgres.NewJob{Queue: "ocr"})
	w := openWorker(t, d)
	me := spot(t, w, "m", now.Add(time.Hour))
	clock(now.Add(55*time.Minute - time.Second)) // the drain timeout is five minutes
	if jobs := claim(t, w, me, 1); len(jobs) != 1 {
		t.Errorf("claimed %d jobs a second before the drain must begin, want 1", len(jobs))
	}
	clock(now.Add(55 * time.Minute))
	if jobs := claim(t, w, me, 1); len(jobs) != 0 {
		t.Errorf("claimed %+v although a drain would no longer fit", jobs)
	}
}

func TestAJobForSpotRunsElsewhereOnlyWhereNoSpotWorkerServesItsQueue(t *testing.T) {
	t.Parallel()
	d := postgrestest.New(t)
	assign(t, d, "ocr")
	w := openWorker(t, d)
	vps, machine := register(t, w, "box").Worker, spot(t, w, "m", time.Time{})
	enqueue(t, d.Open(t), 2, postgres.NewJob{Queue: "ocr", Market: fleet.Spot})
	if jobs := claim(t, w, vps, 1); len(jobs) != 0 {
		t.Errorf("the vps claimed %+v beside a spot worker", jobs)
	}
	if jobs := claim(t, w, machine, 1); len(jobs) != 1 {
		t.Errorf("the spot worker claimed %+v", jobs)
	}
	if ok, err := w.Leave(t.Context(), machine); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if jobs := claim(t, w, vps, 1); len(jobs) != 1 {
		t.Errorf("the vps claimed %+v without a spot worker", jobs)
	}
}

func TestAJobOfAClassGoesToWorkersOfThatClass(t *testing.T) {
	t.Parallel()
	d := postgrestest.New(t)
	assign(t, d, "ocr")
	w := openWorker(t, d)
	me := register(t, w, "box").Worker
	c := d.Connect(t)
	must(t, c, "UPDATE workers SET classes = '{small}'")
	enqueue(t, d.Open(t), 1, postgres.NewJob{Queue: "ocr", Class: "large"})
	small := enqueue(t, d.Open(t), 1, postgres.NewJob{Queue: "ocr", Class: "small"})
	if jobs := claim(t, w, me, 5); len(jobs) != 1 || jobs[0].ID != small[0] {
		t.Errorf("claimed %+v, want the small one alone", jobs)
	}
	must(t, c, "UPDATE workers SET classes = NULL")
	if jobs := claim(t, w, me, 5); len(jobs) != 1 {
		t.Errorf("a worker of no class claimed %+v, want the large one", jobs)
	}
}

func TestOneWaitingLevelIsTenMinutes(t *testing.T) {
	t.Parallel()
	d := postgrestest.New(t)
	assign(t, d, "ocr")
	now, clock := time.Now().Truncate(time.Second), d.Clock(t)
	clock(now)
	db, w := d.Open(t), openWorker(t, d)
	me := register(t, w, "box").Worker
	old := enqueue(t, db, 1, postgres.NewJob{Queue: "ocr", Priority: 6})
	clock(now.Add(9 * time.Minute))
	young := enqueue(t, db, 1, postgres.NewJob{Queue: "ocr", Priority: 5})
	if jobs := claim(t, w, me, 1); len(jobs) != 1 || jobs[0].ID != young[0] {
		t.Errorf("after nine minutes claimed %+v, want the more urgent one", jobs)
	}
	clock(now.Add(11 * time.Minute))
	enqueue(t, db, 1, postgres.NewJob{Queue: "ocr", Priority: 5})
	if jobs := claim(t, w, me, 1); len(jobs) != 1 || jobs[0].ID != old[0] {
		t.Errorf("after eleven minutes claimed %+v, want the one that has waited", jobs)
	}
}

func TestTheListsOfRedisAreToldWhatChanged(t *testing.T) {
	t.Parallel()
	d := postgrestest.New(t)
	assign(t, d, "plain", "ocr")
	must(t, d.Connect(t), `UPDATE sluice_assignments SET assignment = jsonb_set(assignment, '{queues,1,source}', '{"kind":"redis","job_rows":true}')`)
	now, clock := time.Now().Truncate(time.Second), d.Clock(t)
	clock(now)
	db, w := d.Open(t), openWorker(t, d)
	me := register(t, w, "box").Worker
	enqueue(t, db, 1, postgres.NewJob{Queue: "plain"})
	job := enqueue(t, db, 1, postgres.NewJob{Queue: "ocr", Due: now.Add(time.Minute)})[0]
	pending := func(want ...string) {
		t.Helper()
		got, err := w.RedisPending(t.Context(), 10)
		var actions []string
		for _, l := range got {
			if l.Job != job || l.Queue != "ocr" {
				t.Errorf("told %+v", l)
			}
			actions = append(actions, l.Action)
		}
		if err != nil || !slices.Equal(actions, want) {
			t.Errorf("told %v, %v, want %v", actions, err, want)
		}
	}
	done := func(action string) {
		t.Helper()
		if err := w.RedisDone(t.Context(), postgres.Listing{Job: job, Action: action}); err != nil {
			t.Error(err)
		}
	}
	pending() // not due
	clock(now.Add(time.Minute))
	pending("relist")
	done("relist")
	pending()
	first := claim(t, w, me, 1)[0]
	pending("unlist")
	if _, err := w.Fail(t.Context(), first.Attempt, "boom", nil); err != nil {
		t.Fatal(err)
	}
	pending("unlist", "relist")
	done("relist") // of a push before the claim: the removal that is outstanding would take it away
	pending("unlist", "relist")
	done("unlist")
	pending("relist")
	second := claim(t, w, me, 1)[0]
	pending("unlist")
	done("unlist")
	if ok, err := w.Complete(t.Context(), second.Attempt, nil); !ok || err != nil {
		t.Fatal(ok, err)
	}
	pending()
}

func TestAHostsOwnInsertIsAJobAndItsOwnConsumerKeepsWorking(t *testing.T) {
	t.Parallel()
	d := postgrestest.New(t)
	assign(t, d, "ocr")
	c := d.Connect(t)
	role := login(t, d, "")
	must(t, c, "GRANT SELECT, INSERT, UPDATE ON processing_jobs TO "+role)
	own, err := pgx.Connect(t.Context(), as(t, d.Direct, role))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = own.Close(t.Context()) }()
	must(t, own, `INSERT INTO processing_jobs (queue, payload) VALUES ('ocr', '{"n":1}'), ('ocr', '{"n":2}')`)
	must(t, own, `UPDATE processing_jobs SET status = 'processing' WHERE payload = '{"n":1}'`) // popped by the host
	w := openWorker(t, d)
	me := register(t, w, "box").Worker
	if jobs := claim(t, w, me, 5); len(jobs) != 1 || string(jobs[0].Payload) != `{"n": 2}` {
		t.Errorf("claimed %+v, want the second alone", jobs)
	}
	if n, err := w.Sweep(t.Context()); n != 0 || err != nil {
		t.Errorf("swept %d, %v: the host's own job has no visibility of ours", n, err)
	}
}

func TestAMachineUnknownToTheDatabaseRegistersWithWhatItKnows(t *testing.T) {
	t.Parallel()
	d := postgrestest.New(t)
	assign(t, d, "ocr")
	must(t, d.Connect(t), "INSERT INTO sluice_quotes VALUES ('aws/eu//c6i/spot', 41600, now())")
	w := openWorker(t, d)
	expires := time.Now().Add(time.Hour).UTC().Truncate(time.Microsecond)
	s, err := w.Register(t.Context(), postgres.Registration{
		Provider: "aws", Machine: "i-1", Pool: "burst", Intent: fleet.ID("forgotten"), Spec: "abc", Expires: expires,
		Type: "c6i", Market: fleet.Spot, Scope: "eu", Zone: "eu-a",
	})
	if err != nil || s.Wait || s.Status != fleet.Ready {
		t.Fatalf("registered as %+v, %v", s, err)
	}
	m, err := d.Open(t).Recall(t.Context())
	if err != nil || len(m.Workers) != 1 {
		t.Fatal(m.Workers, err)
	}
	got := m.Workers[0]
	if got.Pool != "burst" || got.Spec != "abc" || !got.Expires.Equal(expires) || got.Type != "c6i" || got.Market != fleet.Spot || got.Zone != "eu-a" ||
		got.Intent != fleet.ID("forgotten") || got.Price != 41600 || got.CostFrom.IsZero() {
		t.Errorf("row %+v", got)
	}
}

func TestASuspendedWorkerIsToldToDrainAndIsNotMadeReadyByAHeartbeat(t *testing.T) {
	t.Parallel()
	d := postgrestest.New(t)
	assign(t, d, "ocr")
	w := openWorker(t, d)
	me := spot(t, w, "m", time.Time{})
	must(t, d.Connect(t), "UPDATE workers SET status = 'suspended'")
	beat, err := w.Heartbeat(t.Context(), me, postgres.Vitals{})
	if err != nil || !beat.Drain || beat.Status != fleet.Suspended {
		t.Errorf("heartbeat %+v, %v", beat, err)
	}
}

func TestMachinesOfOneLaunchThatRegisterAtOnceAreCountedOneAfterTheOther(t *testing.T) {
	t.Parallel()
	d := postgrestest.New(t)
	assign(t, d, "ocr")
	db, c, first := d.Open(t), d.Connect(t), d.Connect(t)
	due := time.Now().Truncate(time.Minute)
	if _, err := tick(t.Context(), db, due, nil); err != nil {
		t.Fatal(err)
	}
	intent := fleet.ID("tick", due.String())
	w := openWorker(t, d)
	must(t, first, "BEGIN")
	must(t, first, "SELECT sluice_register('local', 'm1', 'burst', $1)", intent)
	var second postgres.Standing
	var err error
	var wg sync.WaitGroup
	wg.Go(func() {
		second, err = w.Register(t.Context(), postgres.Registration{Provider: "local", Machine: "m2", Pool: "burst", Intent: intent})
	})
	until(t, c, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'advisory')")
	must(t, first, "COMMIT")
	wg.Wait()
	if err != nil || second.Status != fleet.Draining {
		t.Errorf("the second machine of a launch for one is %q, %v, want draining", second.Status, err)
	}
}

func TestAMachineThatIsAdoptedAsEndedIsNotAmongTheLiving(t *testing.T) {
	t.Parallel()
	d := postgrestest.New(t)
	db := d.Open(t)
	start := time.Now().Add(-time.Hour)
	err := db.Transact(t.Context(), func(m fleet.Memory) (fleet.Plan, fleet.Record) {
		w := fleet.Worker{ID: fleet.ID("w"), Pool: "burst", Place: fleet.Place{Provider: "local"}, Machine: "m", Status: fleet.Terminated, CostFrom: m.Now}
		return fleet.Plan{Function: fleet.Evaluate, Due: m.Now, Now: m.Now, Adopted: []fleet.Worker{w}}, fleet.Record{}
	})
	if err != nil {
		t.Fatal(err)
	}
	if m, err := db.Recall(t.Context()); err != nil || len(m.Workers) != 0 {
		t.Errorf("recalled %+v, %v", m.Workers, err)
	}
	if got, err := db.Workers(t.Context(), start); err != nil || len(got) != 1 || got[0].Ended.IsZero() || got[0].EndWhy == "" {
		t.Errorf("history has %+v, %v", got, err)
	}
}
