package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/providers/postgres"
	"sluice/providers/postgres/postgrestest"
)

// upgradeConfig has the shortest times that are valid, so that a run is over soon.
const upgradeConfig = `{
  "name": "upgrade", "mode": "hybrid", "evaluation_interval_seconds": 1,
  "queues": {"ocr": {"max_workers": 2, "cloud_enabled": true, "source": {"kind": "postgres"}, "run": {"command": ["sh", "-c", "cat > /dev/null; echo '{\"pages\": 3}'"]}}},
  "cloud_providers": {"local": {"enabled": true, "boot_seconds": 1, "price_per_hour": "0.10"}},
  "scaling_rules": {
    "scale_up": {"queue_depth_threshold": 3, "cooldown_seconds": 5},
    "scale_down": {"idle_minutes": 0, "queue_depth_below": 1, "cooldown_seconds": 5, "drain_timeout_seconds": 30}},
  "workers": {"heartbeat_seconds": 1, "boot_timeout_seconds": 60}
}`

// The database is migrated first, functions and images follow: so whatever ran before has to go on on the schema after.
func TestARunIsWholeOnItsOwnSchemaAndOnTheNext(t *testing.T) {
	t.Parallel()
	for name, lend := range map[string]func(testing.TB) postgrestest.Database{
		"the schema of this version": postgrestest.New, "the next schema": postgrestest.NewNext,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runWhole(t, programs, lend(t))
		})
	}
}

// Until there is a release, this version stands for it in the test above.
func TestThePreviousReleasesProgramsRunOnThisSchema(t *testing.T) {
	t.Parallel()
	tag := previousRelease(t)
	if tag == "" {
		t.Log("there is no release yet: no earlier program runs anywhere")
		return
	}
	bin := buildRelease(t, tag)
	var before int
	_, schema, _ := strings.Cut(released(t, bin, nil, "version"), "database schema ")
	if _, err := fmt.Sscan(schema, &before); err != nil {
		t.Fatal(err)
	}
	if postgres.Version > before+1 {
		t.Errorf("%s works on the schemas %d and %d, this version makes %d: one step in a release, join the migrations that came since", tag, before, before+1, postgres.Version)
	}
	runWhole(t, bin, postgrestest.New(t))
}

// runWhole works jobs off with ticks and agents of the programs in a folder, until the last machine has ended.
func runWhole(t *testing.T, bin string, db postgrestest.Database) {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "scheduler.json")
	if err := os.WriteFile(config, []byte(upgradeConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{
		"DATABASE_URL=" + db.URL, "SLUICE_CONFIG=" + config,
		"SLUICE_LOCAL_DIR=" + filepath.Join(dir, "machines"), "SLUICE_LOCAL_AGENT=" + filepath.Join(bin, "sluice-agent"),
	}
	c := db.Connect(t)
	if _, err := c.Exec(t.Context(), "SELECT sluice_enqueue('ocr', '{}') FROM generate_series(1, 6)"); err != nil {
		t.Fatal(err)
	}
	var done, machines, left int
	var told strings.Builder
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(300 * time.Millisecond) { // polls the machines
		told.WriteString(released(t, bin, env, "tick"))
		if err := c.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM processing_jobs WHERE status = 'completed' AND result->>'pages' = '3'),
			count(*), count(*) FILTER (WHERE terminated_at IS NULL) FROM workers`).Scan(&done, &machines, &left); err != nil {
			t.Fatal(err)
		}
		if done == 6 && machines > 0 && left == 0 {
			return
		}
	}
	t.Errorf("%d of 6 jobs are done, %d machines were started, %d are left:\n%s", done, machines, left, told.String())
}

// released calls a program of a folder; a tick may fail and be repaired by the next.
func released(t *testing.T, bin string, env []string, args ...string) string {
	t.Helper()
	cmd := call{args: args, env: env}.command(t.Context())
	cmd.Path = filepath.Join(bin, "sluice")
	out, _ := cmd.CombinedOutput() // what it did is read from the database
	return string(out)
}

// previousRelease is the newest tag of a release that is not the present commit; empty where there is none.
func previousRelease(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", "tag", "--list", "v[0-9]*", "--sort=-version:refname", "--no-contains", "HEAD").Output()
	if err != nil {
		t.Logf("git tells no tags: %v", err) // an unpacked archive has none
		return ""
	}
	first, _, _ := strings.Cut(string(out), "\n")
	return first
}

// buildRelease builds both programs as they were, from the commit of a tag, leaving the repository as it is.
func buildRelease(t *testing.T, tag string) string {
	t.Helper()
	dir := t.TempDir()
	for _, args := range [][]string{
		{"sh", "-c", `git -C "$(git rev-parse --show-toplevel)" archive "$0" | tar -x -C "$1"`, tag, dir},
		{"go", "-C", dir, "build", "-buildvcs=false", "-o", filepath.Join(dir, "release") + string(filepath.Separator), "./cmd/sluice", "./cmd/sluice-agent"},
	} {
		if out, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("build %s: %v: %s", tag, err, out)
		}
	}
	return filepath.Join(dir, "release")
}
