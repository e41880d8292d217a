package main

import (
	"context"
	"encoding/json"
	"strings"
	"syscall"
	"testing"
)

func wantAll(t *testing.T, out string, words ...string) {
	t.Helper()
	for _, want := range words {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not said:\n%s", want, out)
		}
	}
}

// withWorkers is an installation whose last tick wanted a machine, with a VPS worker and a machine of an older spec.
func withWorkers(t *testing.T) (i installation, worker string) {
	t.Helper()
	i = install(t, "hybrid")
	i.enqueue(t, 5)
	i.sluice(t, "tick") // its launch fails: there is no agent
	conn := i.db.Connect(t)
	for _, sql := range []string{"SELECT sluice_register('vps', 'vps-1', 'vps')", "SELECT sluice_register('local', 'm-77', 'ocr', NULL, 'old-spec')"} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.QueryRow(t.Context(), "SELECT id::text FROM workers WHERE machine_id = 'm-77'").Scan(&worker); err != nil {
		t.Fatal(err)
	}
	return i, worker
}

func TestExplainTellsAWorkersLifeByItsMachineAndByTheBeginningOfItsID(t *testing.T) {
	t.Parallel()
	i, worker := withWorkers(t)
	byMachine := i.must(t, "explain", "m-77")
	wantAll(t, byMachine, "Worker "+worker+" of pool ocr", "registered", "Now: ready", "Cost: ")
	if byID := i.must(t, "explain", worker[:8]); !strings.Contains(byID, worker) {
		t.Errorf("by the beginning of its id: %s", byID)
	}
	var told struct {
		Worker struct {
			ID string `json:"id"`
		} `json:"worker"`
	}
	if err := json.Unmarshal([]byte(i.must(t, "explain", "m-77", "--json")), &told); err != nil || told.Worker.ID != worker {
		t.Errorf("as JSON %+v, %v", told, err)
	}
}

func TestExplainTellsAQueuesHours(t *testing.T) {
	t.Parallel()
	i := install(t, "hybrid")
	i.must(t, "tick")
	i.enqueue(t, 5)
	out := ""
	for !strings.Contains(out, "5 waiting") { // the next tick is due with the next second
		i.sluice(t, "tick") // its launch fails: there is no agent
		out = i.must(t, "explain", "ocr")
	}
	wantAll(t, out, "Queue ocr: 5 waiting", "▁█  (at most 5)", "Served by the VPS and pool ocr", "depth=5")
}

func TestExplainTellsAQuietTickByItsLineAndAnUnknownWordByWhatItMayBe(t *testing.T) {
	t.Parallel()
	i := install(t, "vps_only")
	i.must(t, "tick")
	var lines []map[string]any
	if err := json.Unmarshal([]byte(i.must(t, "decisions", "--all", "--json")), &lines); err != nil {
		t.Fatal(err)
	}
	id := lines[0]["tick"].(string)
	wantAll(t, i.must(t, "explain", id[:8]), "changed nothing", "Nothing to do")
	r := i.sluice(t, "explain", "nobody")
	if r.code != exitFailed {
		t.Errorf("an unknown word ends with %d", r.code)
	}
	wantAll(t, r.err, "no tick, worker, machine or queue of that name", "sluice status")
}

func TestDecisionsOfOneQueueAndOfAnUnknownReason(t *testing.T) {
	t.Parallel()
	i := install(t, "hybrid")
	i.enqueue(t, 5)
	i.sluice(t, "tick") // its launch fails: there is no agent
	wantAll(t, i.must(t, "decisions", "--queue", "ocr"), "depth=5")
	wantAll(t, i.must(t, "decisions", "--queue", "mail"), "Nothing was decided since")
	r := i.sluice(t, "decisions", "--reason", "limit.howrly")
	if r.code != exitUsage {
		t.Errorf("an unknown code ends with %d, want %d", r.code, exitUsage)
	}
	wantAll(t, r.err, "no reason has this code", "limit.hourly")
}

func TestStaleMachinesAreListedAndRolled(t *testing.T) {
	t.Parallel()
	i, worker := withWorkers(t)
	wantAll(t, i.must(t, "workers", "--stale"), worker)
	wantAll(t, i.must(t, "roll", "ocr", "--reason", "new image"), "Asked to drain 1 of pool ocr: "+worker)
	conn := i.db.Connect(t)
	for status := "ready"; status == "ready"; { // the next tick is due with the next second
		i.sluice(t, "tick")
		if err := conn.QueryRow(t.Context(), "SELECT status FROM workers WHERE id = $1", worker).Scan(&status); err != nil {
			t.Fatal(err)
		}
	}
	if r := i.sluice(t, "roll", "orc", "--reason", "x"); r.code != exitFailed || !strings.Contains(r.err, "it has ocr") {
		t.Errorf("an unknown pool: %d, %s", r.code, r.err)
	}
	if r := i.sluice(t, "roll", "ocr"); r.code != exitUsage {
		t.Errorf("without a reason: %d, %s", r.code, r.err)
	}
	fresh := install(t, "hybrid")
	fresh.must(t, "tick")
	wantAll(t, fresh.must(t, "roll", "ocr", "--reason", "x"), "there is nothing to replace")
	wantAll(t, fresh.must(t, "workers", "--stale"), "Every machine is of the config's spec.")
}

func TestWatchingWorkersEndsWithSuccessWhenInterrupted(t *testing.T) {
	t.Parallel()
	i, worker := withWorkers(t)
	cmd := call{args: []string{"workers", "--watch"}, env: i.env}.command(context.WithoutCancel(t.Context()))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	seen, buf := "", make([]byte, 4096)
	for strings.Count(seen, worker) < 2 {
		n, err := out.Read(buf)
		if err != nil {
			t.Fatalf("%v after %s", err, seen)
		}
		seen += string(buf[:n])
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("interrupted it ends with %v, want success", err)
	}
}
