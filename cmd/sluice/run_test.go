package main

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice/cmd/sluice/demo"
	"sluice/providers/postgres/postgrestest"
)

// burst is a local run under way.
type burst struct {
	cmd      *exec.Cmd
	home     string
	out, err bytes.Buffer
	done     chan struct{} // closed when it has ended
}

func startBurst(t *testing.T, env []string, args ...string) *burst {
	t.Helper()
	dir, err := os.MkdirTemp("", "sluice-run-") //nolint:usetesting // a folder that the services' own user can enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	b := &burst{home: dir, done: make(chan struct{})}
	b.cmd = call{args: append([]string{"run", "--home", dir}, args...), env: env}.command(t.Context())
	b.cmd.Cancel = func() error { return b.cmd.Process.Signal(syscall.SIGTERM) }
	b.cmd.Stdout, b.cmd.Stderr = &b.out, &b.err
	if err := b.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = b.cmd.Wait() // its exit code is looked at later
		close(b.done)
	}()
	return b
}

// end waits for the run and says how it ended.
func (b *burst) end(t *testing.T) int {
	t.Helper()
	select {
	case <-b.done:
	case <-time.After(4 * time.Minute):
		_ = b.cmd.Process.Signal(syscall.SIGTERM)
		<-b.done
		t.Errorf("the run did not end by itself:\n%s%s", b.out.String(), b.err.String())
	}
	for _, pid := range b.processes(t) {
		t.Errorf("process %d of the run is left: %s", pid, commandLine(pid))
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	return b.cmd.ProcessState.ExitCode()
}

func (b *burst) summary(t *testing.T) demo.Summary {
	t.Helper()
	var s demo.Summary
	if err := json.Unmarshal(b.out.Bytes(), &s); err != nil {
		t.Fatalf("%v: %s%s", err, b.out.String(), b.err.String())
	}
	return s
}

func commandLine(pid int) string {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	if err != nil {
		return ""
	}
	return strings.ReplaceAll(string(b), "\x00", " ")
}

// processes are those that have the run's folder in their command line: agents, services and jobs.
func (b *burst) processes(t *testing.T) []int {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err == nil && pid != b.cmd.Process.Pid && strings.Contains(commandLine(pid), b.home) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// agents are the workers: the VPS and the machines.
func (b *burst) agents(t *testing.T) []int {
	t.Helper()
	var pids []int
	for _, pid := range b.processes(t) {
		if line := commandLine(pid); strings.Contains(line, "--machine=") && strings.Contains(line, "sluice-agent ") {
			pids = append(pids, pid)
		}
	}
	return pids
}

// thumbnails are those that were made, by the folder's own word.
func thumbnails(t *testing.T, b *burst) int {
	t.Helper()
	made, err := filepath.Glob(filepath.Join(b.home, "run", "thumbnails", "*.jpg"))
	if err != nil {
		t.Fatal(err)
	}
	return len(made)
}

func TestABurstIsWorkedOffByMachinesThatComeAndGo(t *testing.T) {
	t.Parallel()
	const jobs = 40
	b := startBurst(t, nil, "--json", "--jobs", strconv.Itoa(jobs), "--work", "0.4")
	if code := b.end(t); code != exitDone {
		t.Fatalf("ends with %d: %s", code, b.err.String())
	}
	s := b.summary(t)
	if s.Jobs != jobs || s.Done != jobs || s.Lost != 0 || s.Left != 0 || s.Machines < 1 || s.Cost <= 0 || s.WaitP50 <= 0 {
		t.Errorf("the summary is %+v", s)
	}
	if got := thumbnails(t, b); got != jobs {
		t.Errorf("%d thumbnails, want %d", got, jobs)
	}
	for _, want := range []string{"Scaling up images: depth=", "Scaling down worker ", "machine is gone as asked"} {
		if !strings.Contains(b.err.String(), want) {
			t.Errorf("%q was not told:\n%s", want, b.err.String())
		}
	}
}

func TestABurstSurvivesWorkersThatAreKilled(t *testing.T) {
	t.Parallel()
	const jobs = 60
	dice := rand.New(rand.NewPCG(7, 7))
	b := startBurst(t, []string{"DATABASE_URL=" + postgrestest.Empty(t).Direct}, "--json", "--jobs", strconv.Itoa(jobs), "--work", "0.4")
	killed := 0
	for next := time.NewTicker(2 * time.Second); killed < 4; {
		select {
		case <-next.C:
		case <-b.done:
			t.Fatalf("the run ended before its workers were killed: %s", b.err.String())
		}
		if agents := b.agents(t); thumbnails(t, b) > 3 && len(agents) > 0 {
			if syscall.Kill(agents[dice.IntN(len(agents))], syscall.SIGKILL) == nil {
				killed++
			}
		}
	}
	if code := b.end(t); code != exitDone {
		t.Fatalf("ends with %d: %s", code, b.err.String())
	}
	if s := b.summary(t); s.Done != jobs || s.Lost != 0 || s.Left != 0 {
		t.Errorf("the summary is %+v", s)
	}
	if got := thumbnails(t, b); got != jobs {
		t.Errorf("%d thumbnails, want %d", got, jobs)
	}
}

func TestAnInterruptedBurstLeavesNothingRunning(t *testing.T) {
	t.Parallel()
	b := startBurst(t, nil, "--jobs", "200")
	for deadline := time.Now().Add(time.Minute); len(b.agents(t)) < 2; {
		if time.Now().After(deadline) {
			t.Fatalf("no machine was started: %s%s", b.out.String(), b.err.String())
		}
		time.Sleep(50 * time.Millisecond) // polls the operating system
	}
	if err := b.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := b.end(t); code != exitSignal+int(syscall.SIGINT) || !strings.Contains(b.err.String(), "interrupted") {
		t.Errorf("ends with %d: %s", code, b.err.String())
	}
}

// A database with rows that are not of a local run is somebody's.
func TestARealDatabaseIsNotTouchedUnlessSomebodyInsists(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	if _, err := db.Connect(t).Exec(t.Context(), "SELECT sluice_enqueue('images', '{}')"); err != nil {
		t.Fatal(err)
	}
	b := startBurst(t, []string{"DATABASE_URL=" + db.Direct}, "--jobs", "4")
	if code := b.end(t); code != exitFailed {
		t.Errorf("ends with %d: %s", code, b.out.String())
	}
	for _, want := range []string{"in use", "--force", "unset DATABASE_URL"} {
		if !strings.Contains(b.err.String(), want) {
			t.Errorf("%q is not in %s", want, b.err.String())
		}
	}
}
