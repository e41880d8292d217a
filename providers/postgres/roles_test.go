package postgres_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"sluice/core/fleet"
	"sluice/providers/postgres"
	"sluice/providers/postgres/postgrestest"
)

const password = "for-tests"

// login makes a role that may log in, and drops it when the test ends.
func login(t *testing.T, d postgrestest.Database, group string) string {
	t.Helper()
	b := make([]byte, 6)
	_, _ = rand.Read(b)
	name := "sluice_test_" + hex.EncodeToString(b)
	c := d.Connect(t)
	must(t, c, "CREATE ROLE "+name+" LOGIN PASSWORD '"+password+"'")
	if group != "" {
		must(t, c, "GRANT "+group+" TO "+name)
	}
	t.Cleanup(func() {
		c, err := pgx.Connect(context.WithoutCancel(t.Context()), d.Direct)
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = c.Close(context.WithoutCancel(t.Context())) }()
		must(t, c, "REASSIGN OWNED BY "+name+" TO CURRENT_USER")
		must(t, c, "DROP OWNED BY "+name)
		must(t, c, "DROP ROLE "+name)
	})
	return name
}

func as(t *testing.T, server, role string) string {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(role, password)
	return u.String()
}

func TestAWorkersRoleRunsAJobFromEndToEnd(t *testing.T) {
	t.Parallel()
	d := postgrestest.New(t)
	assign(t, d, "ocr")
	db := d.Open(t)
	if _, err := db.Enqueue(t.Context(), postgres.NewJob{Queue: "ocr"}, postgres.NewJob{Queue: "ocr"}, postgres.NewJob{Queue: "ocr"}); err != nil {
		t.Fatal(err)
	}
	w, err := postgres.OpenWorker(t.Context(), postgres.URL(as(t, d.URL, login(t, d, "sluice_worker"))))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	s := register(t, w, "box")
	cpu := float32(50)
	if beat, err := w.Heartbeat(t.Context(), s.Worker, postgres.Vitals{CPUPercent: &cpu}); err != nil || beat.Status != fleet.Ready || beat.Now.IsZero() {
		t.Errorf("heartbeat %+v, %v", beat, err)
	}
	jobs, err := w.Claim(t.Context(), s.Worker, []string{"ocr"}, 3)
	if err != nil || len(jobs) != 3 {
		t.Fatalf("claimed %+v, %v", jobs, err)
	}
	for what, do := range map[string]func() (bool, error){
		"extend":     func() (bool, error) { return w.Extend(t.Context(), jobs[0].Attempt) },
		"checkpoint": func() (bool, error) { return w.Checkpoint(t.Context(), jobs[0].Attempt, []byte(`{}`)) },
		"release":    func() (bool, error) { return w.Release(t.Context(), jobs[1].Attempt) },
	} {
		if ok, err := do(); !ok || err != nil {
			t.Errorf("%s: %v, %v", what, ok, err)
		}
	}
	code := int32(3)
	if became, err := w.Fail(t.Context(), jobs[2].Attempt, "boom", &code); became != "queued" || err != nil {
		t.Errorf("fail: %q, %v", became, err)
	}
	if ok, err := w.Complete(t.Context(), jobs[0].Attempt, []byte(`{"n":1}`)); !ok || err != nil {
		t.Errorf("complete: %v, %v", ok, err)
	}
	if _, err := w.Sweep(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := w.RedisPending(t.Context(), 10); err != nil {
		t.Error(err)
	}
	if ok, err := w.Leave(t.Context(), s.Worker); !ok || err != nil {
		t.Errorf("leave: %v, %v", ok, err)
	}
}

func TestAWorkersRoleReadsNoTableAndCallsNothingElse(t *testing.T) {
	t.Parallel()
	d := postgrestest.New(t)
	role := login(t, d, "sluice_worker")
	c, err := pgx.Connect(t.Context(), as(t, d.Direct, role))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(t.Context()) }()
	for _, sql := range []string{
		"SELECT * FROM sluice_intents", "SELECT * FROM workers", "SELECT payload FROM processing_jobs", "UPDATE workers SET status = 'ready'",
		"SELECT sluice_enqueue('ocr', '{}')", "SELECT sluice_return_jobs('{}', 'infinity', '')", "SELECT sluice_recount(gen_random_uuid(), now(), true)",
		"SELECT sluice_assignment('vps')", "CREATE TABLE mine ()", "DELETE FROM sluice_alerts",
	} {
		_, err := c.Exec(t.Context(), sql)
		var pg *pgconn.PgError
		if !errors.As(err, &pg) || pg.Code != "42501" {
			t.Errorf("%s: %v, want permission denied", sql, err)
		}
	}
	var tables, functions []string
	err = d.Connect(t).QueryRow(t.Context(), `SELECT
		ARRAY(SELECT c.relname::text FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'S')
			AND CASE c.relkind WHEN 'r' THEN has_any_column_privilege($1, c.oid, 'SELECT, INSERT, UPDATE') OR has_table_privilege($1, c.oid, 'DELETE, TRUNCATE')
			ELSE has_sequence_privilege($1, c.oid, 'USAGE') END),
		ARRAY(SELECT p.proname::text FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace AND has_function_privilege($1, p.oid, 'EXECUTE') ORDER BY 1)`, role).
		Scan(&tables, &functions)
	want := "sluice_checkpoint sluice_claim sluice_clock sluice_complete sluice_drained sluice_extend sluice_fail sluice_heartbeat sluice_lane " +
		"sluice_leave sluice_redis_done sluice_redis_pending sluice_register sluice_release sluice_sweep"
	if err != nil || len(tables) != 0 || strings.Join(functions, " ") != want {
		t.Errorf("may touch %v and call\n%s\nwant no table and\n%s (%v)", tables, strings.Join(functions, " "), want, err)
	}
}

func TestTheFunctionsRoleRunsWholeTicks(t *testing.T) {
	t.Parallel()
	d := postgrestest.New(t)
	db, err := postgres.Open(t.Context(), postgres.URL(as(t, d.URL, login(t, d, "sluice_functions"))))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	in := everything(t, db)
	for what, err := range map[string]error{
		"begin":  db.Begin(t.Context(), fleet.Claim{Intent: in, Token: "claim"}, fleet.Attempt{Calls: 1, Outcome: fleet.OutcomePending, Launch: &fleet.Launch{Token: "x"}}),
		"settle": db.Settle(t.Context(), fleet.Claim{Intent: in, Token: "claim"}, fleet.Result{Outcome: fleet.OutcomeDone, State: fleet.IntentDone, Machines: []fleet.Machine{{ID: "m2"}}}),
		"sent":   sent(t.Context(), db),
		"ask":    db.Ask(t.Context(), fleet.Request{Kind: fleet.RequestResume, Who: "ann", Why: "checked"}),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := db.Enqueue(t.Context(), postgres.NewJob{Queue: "ocr"}); err != nil {
		t.Error(err)
	}
	if got, err := db.Read(t.Context(), []fleet.Queue{{Name: "ocr"}}); err != nil || got[0].Depth != 1 {
		t.Errorf("queue %+v, %v", got, err)
	}
	if got, err := db.Workers(t.Context(), time.Time{}); err != nil || len(got) == 0 {
		t.Errorf("workers %+v, %v", got, err)
	}
}

// sent hands an alert out and marks it, on a channel that answers and on one that does not.
func sent(ctx context.Context, db *postgres.DB) error {
	levels := fleet.Levels()
	_, err := db.Outbox(ctx, []fleet.Channel{{Name: "log", Levels: levels}, {Name: "ops", Levels: levels}}, 5)
	return errors.Join(err, db.Sent(ctx, fleet.Sending{Key: "alert", Channel: "log", State: fleet.DeliveryDelivered}),
		db.Sent(ctx, fleet.Sending{Key: "alert", Channel: "ops", State: fleet.DeliveryWaiting}))
}

// everything commits a plan with at least one row of each kind, and returns an open launch intent.
func everything(t *testing.T, db *postgres.DB) string {
	t.Helper()
	in := fleet.ID(t.Name())
	err := db.Transact(t.Context(), func(m fleet.Memory) (fleet.Plan, fleet.Record) {
		place := fleet.Place{Provider: "local"}
		p := fleet.Plan{
			Function: fleet.Evaluate, Due: m.Now, Now: m.Now,
			Intents:   []fleet.Intent{{ID: in, Kind: fleet.KindLaunch, State: fleet.IntentOpen, Pool: "burst", Count: 1, Claim: "claim", Created: m.Now}},
			Adopted:   []fleet.Worker{{ID: fleet.ID("w"), Pool: "burst", Place: place, Machine: "m1", Status: fleet.Ready, CostFrom: m.Now}},
			Spans:     []fleet.Span{{Machine: "m0", Provider: "local", From: m.Now, To: m.Now}},
			Sightings: []fleet.Sighting{{Place: place, Machine: fleet.Machine{ID: "odd"}, First: m.Now, Last: m.Now}},
			Override:  &fleet.Override{ID: "o", At: m.Now}, Lifted: true, Taken: []string{"none"},
			Alerts: []fleet.Alert{{Key: "alert", Level: fleet.Info, At: m.Now}},
			Bills:  []fleet.Bill{{Provider: "local", Day: "2026-01-01", SeenAt: m.Now}},
		}
		return p, fleet.Record{
			Snapshot: &fleet.Snapshot{Memory: m}, Config: &fleet.Object{Bytes: []byte("{}"), Modified: m.Now},
			Assignments: map[string]fleet.Assignment{"vps": {}}, Lines: []fleet.Line{{Event: "tick"}}, Samples: []fleet.QueueState{{Name: "ocr"}},
			Quotes: []fleet.Quote{{Offer: "x", At: m.Now}},
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Transact(t.Context(), func(m fleet.Memory) (fleet.Plan, fleet.Record) {
		w := m.Workers[0]
		w.Status = fleet.Terminated
		return fleet.Plan{Function: fleet.Evaluate, Due: m.Now, Now: m.Now, Workers: []fleet.WorkerChange{{From: fleet.Ready, Worker: w, Why: "gone"}}}, fleet.Record{}
	})
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// psql runs a snippet as psql would: each line that is not a comment is a statement; \gset keeps the answer's columns for :'name'.
func psql(t *testing.T, c *pgx.Conn, snippet string, before func(statement string)) (answers []any) {
	t.Helper()
	vars := []string{}
	for line := range strings.Lines(snippet) {
		sql, keep := strings.CutSuffix(strings.TrimSuffix(strings.TrimSpace(line), ";"), `\gset`)
		if strings.HasPrefix(sql, "--") || strings.TrimSpace(sql) == "" {
			continue
		}
		before(sql)
		rows, err := c.Query(t.Context(), strings.NewReplacer(vars...).Replace(sql))
		if err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		n := 0
		for rows.Next() {
			n++
			for i, f := range rows.FieldDescriptions() {
				vars = append(vars, ":'"+f.Name+"'", "'"+string(rows.RawValues()[i])+"'")
			}
			v, err := rows.Values()
			if err != nil {
				t.Fatal(err)
			}
			answers = append(answers, v[0])
		}
		if rows.Err() != nil || n != 1 {
			t.Fatalf("%s: %d rows, %v", sql, n, rows.Err())
		}
		_ = keep
	}
	return answers
}

func TestTheSnippetOfTheManualIsAWorkersWholeLife(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../docs/writing-a-worker.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(doc), "```sql\n")
	snippet, _, ok := strings.Cut(rest, "```")
	if !ok || strings.Count(snippet, "\n") > 20 {
		t.Fatalf("the manual has no snippet of at most 20 lines")
	}
	d := postgrestest.New(t)
	assign(t, d, "ocr")
	ids, err := d.Open(t).Enqueue(t.Context(), postgres.NewJob{Queue: "ocr", Payload: []byte(`{}`)})
	if err != nil {
		t.Fatal(err)
	}
	config, err := pgx.ParseConfig(as(t, d.Direct, login(t, d, "sluice_worker")))
	if err != nil {
		t.Fatal(err)
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol // answers as text, as psql has them
	c, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(t.Context()) }()
	owner := d.Connect(t)
	answers := psql(t, c, snippet, func(statement string) {
		if strings.Contains(statement, "sluice_drained") {
			must(t, owner, "UPDATE workers SET status = 'draining'")
		}
	})
	for i, a := range answers[3:] {
		if a != true {
			t.Errorf("answer %d of the snippet is %v, want true", i+4, a)
		}
	}
	var job, worker string
	var metrics int
	err = owner.QueryRow(t.Context(), `SELECT (SELECT status FROM processing_jobs WHERE id = $1), (SELECT status FROM workers), (SELECT count(*) FROM worker_metrics)`, ids[0]).
		Scan(&job, &worker, &metrics)
	if err != nil || job != "completed" || worker != "terminated" || metrics != 1 {
		t.Errorf("job %s, worker %s, %d metrics, %v", job, worker, metrics, err)
	}
}
