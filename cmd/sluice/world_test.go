package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"sluice/providers/postgres/postgrestest"
)

// installation is a migrated database and a config.
type installation struct {
	db  postgrestest.Database
	env []string
}

// burstConfig wants a machine for three waiting jobs. Its agent does not exist, so that none is started.
const burstConfig = `{
  "name": "cli-test", "mode": "MODE", "evaluation_interval_seconds": 1,
  "queues": {"ocr": {"max_workers": 3, "cloud_enabled": true, "source": {"kind": "postgres"}, "run": {"command": ["true"]}}},
  "cloud_providers": {"local": {"enabled": true, "price_per_hour": "0.10"}},
  "scaling_rules": {"scale_up": {"queue_depth_threshold": 3}}
}`

func install(t *testing.T, mode string) installation {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "scheduler.json")
	if err := os.WriteFile(path, []byte(strings.Replace(burstConfig, "MODE", mode, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	db := postgrestest.New(t)
	return installation{db, []string{
		"DATABASE_URL=" + db.URL, "SLUICE_CONFIG=" + path, "SLUICE_LOCAL_DIR=" + filepath.Join(dir, "machines"), "SLUICE_LOCAL_AGENT=/nowhere/sluice-agent",
	}}
}

func (i installation) sluice(t *testing.T, args ...string) result {
	t.Helper()
	return call{args: args, env: i.env}.run(t)
}

// must is for calls that have to succeed.
func (i installation) must(t *testing.T, args ...string) string {
	t.Helper()
	r := i.sluice(t, args...)
	if r.code != exitDone {
		t.Fatalf("sluice %v ends with %d: %s%s", args, r.code, r.out, r.err)
	}
	return r.out
}

func (i installation) enqueue(t *testing.T, n int) {
	t.Helper()
	if _, err := i.db.Connect(t).Exec(t.Context(), "SELECT sluice_enqueue('ocr', '{}') FROM generate_series(1, $1)", n); err != nil {
		t.Fatal(err)
	}
}

// everything is all rows of all tables, as one text.
func (i installation) everything(t *testing.T) string {
	t.Helper()
	var all string
	err := i.db.Connect(t).QueryRow(t.Context(), `SELECT string_agg(x, E'\n' ORDER BY x) FROM (
		SELECT tablename || (xpath('/row/c/text()', query_to_xml(format('SELECT md5(string_agg(t::text, '','' ORDER BY t::text)) AS c FROM %I t', tablename), false, true, '')))[1]::text AS x
		FROM pg_tables WHERE schemaname = 'public') s`).Scan(&all)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestAPlanIsTheTicksOwnAndChangesNothing(t *testing.T) {
	t.Parallel()
	i := install(t, "hybrid")
	i.enqueue(t, 5)
	before := i.everything(t)
	plan := i.must(t, "plan")
	for _, want := range []string{"Queue ocr: 5 jobs waiting", "depth 3 is enough", "launch 1 machine", "0.10 USD"} {
		if !strings.Contains(plan, want) {
			t.Errorf("%q is not in the plan:\n%s", want, plan)
		}
	}
	if after := i.everything(t); after != before {
		t.Errorf("the plan has written:\n%s\n%s", before, after)
	}
	if out := i.must(t, "explain", "now"); !strings.Contains(out, "launch 1 machine") {
		t.Errorf("`explain now` tells otherwise:\n%s", out)
	}
}

// tickOf is the tick that the decision lines belong to.
func tickOf(t *testing.T, i installation, args ...string) (tick string, lines []map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(i.must(t, append([]string{"decisions", "--json"}, args...)...)), &lines); err != nil {
		t.Fatal(err)
	}
	if len(lines) == 0 {
		t.Fatal("no decision was stored")
	}
	return lines[0]["tick"].(string), lines
}

func TestATickIsRememberedAndCanBeToldAgain(t *testing.T) {
	t.Parallel()
	i := install(t, "hybrid")
	i.enqueue(t, 5)
	r := i.sluice(t, "tick")
	if r.code != exitFailed || !strings.Contains(r.err, "/nowhere/sluice-agent") {
		t.Fatalf("a launch without an agent ends with %d: %s%s", r.code, r.out, r.err)
	}
	if !strings.Contains(r.out, "Scaling up ocr: depth=5, oldest=") {
		t.Errorf("the decision was not told: %s", r.out)
	}
	id, lines := tickOf(t, i, "--pool", "ocr", "--reason", "backlog.depth")
	if lines[0]["event"] != "scale_up" {
		t.Errorf("the decision is %v", lines[0])
	}
	told := i.must(t, "explain", id)
	for _, want := range []string{"depth 3 is enough", "launch 1 machine", "Today's code decides the same."} {
		if !strings.Contains(told, want) {
			t.Errorf("%q is not in what is told again:\n%s", want, told)
		}
	}
	again := call{args: []string{"decide", "--snapshot", "-", "--json"}, stdin: i.must(t, "explain", id, "--snapshot")}.run(t)
	if got := launches(t, again)["ocr"]; got != 1 {
		t.Errorf("decided offline from the stored snapshot it launches %d, want 1: %s", got, again.err)
	}
}

func TestExplainSaysWhenTodaysCodeDecidesOtherwise(t *testing.T) {
	t.Parallel()
	i := install(t, "hybrid")
	i.enqueue(t, 5)
	i.sluice(t, "tick")
	id, _ := tickOf(t, i, "--pool", "ocr")
	if _, err := i.db.Connect(t).Exec(t.Context(), "UPDATE sluice_snapshots SET plan = $1", zipped(t, `{"function":"evaluate","pools":[]}`)); err != nil {
		t.Fatal(err)
	}
	if out := i.must(t, "explain", id); !strings.Contains(out, "decides otherwise") {
		t.Errorf("it does not say so:\n%s", out)
	}
}

// zipped is a plan as it is stored.
func zipped(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write([]byte(text))
	if err = errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestAWeekInVPSOnlyTellsWhatHybridWouldHaveDone(t *testing.T) {
	t.Parallel()
	i := install(t, "vps_only")
	if out := i.must(t, "decisions", "--would-have", "--since", "7d"); !strings.Contains(out, "No reading") {
		t.Errorf("before any tick: %s", out)
	}
	i.enqueue(t, 5)
	if out := i.must(t, "tick"); strings.Contains(out, "Scaling up") {
		t.Errorf("vps_only scales up: %s", out)
	}
	var report struct {
		Samples int
		Pools   []struct {
			Pool     string
			Launches int
			HasPrice bool `json:"has_price"`
		}
	}
	if err := json.Unmarshal([]byte(i.must(t, "decisions", "--would-have", "--since", "7d", "--json")), &report); err != nil {
		t.Fatal(err)
	}
	if len(report.Pools) != 1 || report.Pools[0].Launches != 1 || !report.Pools[0].HasPrice {
		t.Errorf("the report is %+v, want one launch of ocr with its price", report)
	}
	if out := i.must(t, "decisions", "--would-have", "--since", "7d"); !strings.Contains(out, "ocr") || !strings.Contains(out, "USD") {
		t.Errorf("told as:\n%s", out)
	}
}

func TestQuietTicksAreListedWhenAskedFor(t *testing.T) {
	t.Parallel()
	i := install(t, "vps_only")
	i.must(t, "tick")
	if out := i.must(t, "decisions"); !strings.Contains(out, "Nothing was decided") {
		t.Errorf("a quiet tick is listed: %s", out)
	}
	if out := i.must(t, "decisions", "--all"); !strings.Contains(out, "Nothing to do: 1 pool as wanted") {
		t.Errorf("a quiet tick is not listed: %s", out)
	}
}

func TestWorkersAreListedAndDrained(t *testing.T) {
	t.Parallel()
	i := install(t, "hybrid")
	if out := i.must(t, "workers"); !strings.Contains(out, "No worker lives") {
		t.Errorf("without workers: %s", out)
	}
	var id string
	c := i.db.Connect(t)
	if err := c.QueryRow(t.Context(), "INSERT INTO workers (pool, provider, machine_id, status, boot_at) VALUES ('ocr', 'local', 'm-1', 'ready', sluice_clock()) RETURNING id::text").Scan(&id); err != nil {
		t.Fatal(err)
	}
	if out := i.must(t, "workers"); !strings.Contains(out, id) || !strings.Contains(out, "m-1") {
		t.Errorf("the worker is not listed: %s", out)
	}
	fits(t, call{args: []string{"workers"}, env: append(i.env, "COLUMNS=40")}.run(t).out, 40)
	if out := i.must(t, "drain", id, "--reason", "disk errors"); !strings.Contains(out, "next tick") {
		t.Errorf("told: %s", out)
	}
	var who, why string
	if err := c.QueryRow(t.Context(), "SELECT who, why FROM sluice_requests WHERE kind = 'drain' AND target = $1", id).Scan(&who, &why); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(who, "tester@") || why != "disk errors" {
		t.Errorf("stored: %q asks because %q", who, why)
	}
}

func TestARequestThatCannotBeMeantSaysWhereToLook(t *testing.T) {
	t.Parallel()
	i := install(t, "hybrid")
	for _, worker := range []string{"w-1", "5f0c2c1e-6f0e-4a8b-9c55-0d8f4c8f7a11"} {
		r := i.sluice(t, "drain", worker, "--reason", "x")
		if r.code != exitFailed || !strings.Contains(r.err, "`sluice workers`") {
			t.Errorf("drain %s ends with %d: %s", worker, r.code, r.err)
		}
	}
	r := i.sluice(t, "explain", "5f0c2c1e-6f0e-4a8b-9c55-0d8f4c8f7a11")
	if r.code != exitFailed || !strings.Contains(r.err, "`sluice decisions`") {
		t.Errorf("explain ends with %d: %s", r.code, r.err)
	}
}

func TestAdoptAndResumeAreAskedFor(t *testing.T) {
	t.Parallel()
	i := install(t, "hybrid")
	i.must(t, "adopt", "--all", "--reason", "restored")
	i.must(t, "adopt", "m-7", "--reason", "restored")
	c := i.db.Connect(t)
	if r := i.sluice(t, "resume-cloud", "--reason", "x"); r.code != exitFailed || !strings.Contains(r.err, "no override to lift") {
		t.Errorf("without an override: %d %s", r.code, r.err)
	}
	if _, err := c.Exec(t.Context(), "INSERT INTO sluice_overrides (id, at, who, why) VALUES ('o-1', sluice_clock(), 'sluice', 'daily limit')"); err != nil {
		t.Fatal(err)
	}
	i.must(t, "resume-cloud", "--reason", "budget raised")
	var kinds string
	err := c.QueryRow(t.Context(), "SELECT string_agg(kind || ':' || target, ',' ORDER BY kind, target) FROM sluice_requests").Scan(&kinds)
	if want := "adopt:all,adopt:m-7,resume_cloud:"; err != nil || kinds != want {
		t.Errorf("stored %q, %v, want %q", kinds, err, want)
	}
}

func TestCloudIsNotResumedWhileTheDaysBudgetIsSpent(t *testing.T) {
	t.Parallel()
	i := install(t, "hybrid")
	_, err := i.db.Connect(t).Exec(t.Context(), `WITH o AS (INSERT INTO sluice_overrides (id, at, who, why) VALUES ('o-1', sluice_clock(), 'sluice', 'daily limit'))
		INSERT INTO workers (pool, provider, machine_id, status, boot_at, cost_from, cost_per_hour_micros)
		VALUES ('ocr', 'local', 'm-1', 'ready', sluice_clock(), sluice_clock() - interval '1 minute', 100000000000)`)
	if err != nil {
		t.Fatal(err)
	}
	r := i.sluice(t, "resume-cloud", "--reason", "please")
	if r.code != exitFailed || !strings.Contains(r.err, "not lifted") || !strings.Contains(r.err, "max_daily_spend_cents") {
		t.Errorf("ends with %d: %s%s", r.code, r.out, r.err)
	}
}

func TestTheVPSIsNotDrainedFromHere(t *testing.T) {
	t.Parallel()
	i := install(t, "hybrid")
	i.must(t, "tick") // which tells workers what to run
	var id string
	if err := i.db.Connect(t).QueryRow(t.Context(), "SELECT worker_id::text FROM sluice_register('vps', 'vps', 'vps')").Scan(&id); err != nil {
		t.Fatal(err)
	}
	if r := i.sluice(t, "drain", id, "--reason", "x"); r.code != exitFailed || !strings.Contains(r.err, "is the VPS") {
		t.Errorf("ends with %d: %s", r.code, r.err)
	}
}

func TestMigrateMakesAnEmptyDatabaseFitAndARepeatChangesNothing(t *testing.T) {
	t.Parallel()
	db := postgrestest.Empty(t)
	env := []string{"DATABASE_URL=" + db.Direct}
	r := call{args: []string{"workers"}, env: env}.run(t)
	if r.code != exitFailed || !strings.Contains(r.err, "sluice migrate") {
		t.Errorf("without a schema: %d %s", r.code, r.err)
	}
	for range 2 {
		if r := (call{args: []string{"migrate"}, env: env}).run(t); r.code != exitDone {
			t.Fatal(r.err)
		}
	}
	if r := (call{args: []string{"workers"}, env: env}).run(t); r.code != exitDone {
		t.Error(r.err)
	}
}

func TestAWorkerRoleIsGrantedWhatWorkersNeed(t *testing.T) {
	t.Parallel()
	db := postgrestest.Empty(t)
	c := db.Connect(t)
	role := db.Name + "_worker"
	if _, err := c.Exec(t.Context(), "CREATE ROLE "+role+" LOGIN"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dropRole(t, role) })
	env := []string{"DATABASE_URL=" + db.Direct}
	if r := (call{args: []string{"migrate", "--worker-role", role}, env: env}).run(t); r.code != exitDone {
		t.Fatal(r.err)
	}
	var may bool
	if err := c.QueryRow(t.Context(), "SELECT pg_has_role($1, 'sluice_worker', 'member')", role).Scan(&may); err != nil || !may {
		t.Errorf("granted: %v, %v", may, err)
	}
	if r := (call{args: []string{"migrate", "--worker-role", "no such role"}, env: env}).run(t); r.code != exitFailed || !strings.Contains(r.err, "name of a role") {
		t.Errorf("a role that is not there: %d %s", r.code, r.err)
	}
}

// dropRole takes a role off the server, which outlives the test's database.
func dropRole(t *testing.T, role string) {
	t.Helper()
	ctx := context.Background()
	c, err := pgx.Connect(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = c.Close(ctx) }()
	if _, err := c.Exec(ctx, "DROP ROLE "+role); err != nil {
		t.Error(err)
	}
}

func TestTickWritesTheFunctionsLog(t *testing.T) {
	t.Parallel()
	i := install(t, "vps_only")
	for _, args := range [][]string{{"tick", "--json"}, {"tick", "--reconcile", "--json"}} {
		var line map[string]any
		out := i.must(t, args...)
		if err := json.Unmarshal([]byte(out), &line); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if line["event"] != "tick" || line["install"] != "cli-test" || line["result"] != "nothing_to_do" {
			t.Errorf("%v writes %v", args, line)
		}
	}
}

func TestATickSaysWhatItCouldNotReadAndWhatToDo(t *testing.T) {
	t.Parallel()
	i := install(t, "hybrid")
	path := strings.TrimPrefix(i.env[1], "SLUICE_CONFIG=")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	redis := strings.Replace(string(b), `"kind": "postgres"`, `"kind": "redis"`, 1)
	if err := os.WriteFile(path, []byte(redis), 0o600); err != nil {
		t.Fatal(err)
	}
	down := call{args: []string{"tick"}, env: append(slices.Clone(i.env), "REDIS_URL=redis://:hunter2@127.0.0.1:1")}.run(t)
	if down.code != exitDone || !strings.Contains(down.err, "queue ocr is unknown: ") || !strings.Contains(down.err, "check that it runs") {
		t.Errorf("without Redis it ends with %d: %s%s", down.code, down.out, down.err)
	}
	if strings.Contains(down.err, "pool.go") || strings.Contains(down.err, "hunter2") {
		t.Errorf("a library speaks, or a password is shown: %s", down.err)
	}
	if err := os.Chmod(path, 0o660); err != nil {
		t.Fatal(err)
	}
	r := call{args: []string{"plan"}, env: i.env}.run(t)
	if !strings.Contains(r.out, "chmod go-w") {
		t.Errorf("a plan with a config that others can write says: %s%s", r.out, r.err)
	}
	// A repeat within a second is skipped before it has read anything.
	for r = i.sluice(t, "tick"); strings.Contains(r.out, "Skipped"); {
		r = i.sluice(t, "tick")
	}
	if r.code != exitDone || !strings.Contains(r.err, "the config is broken: ") || !strings.Contains(r.err, "chmod go-w") {
		t.Errorf("with a config that others can write it ends with %d: %s%s", r.code, r.out, r.err)
	}
}
