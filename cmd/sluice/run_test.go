package main

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
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
	out, err output
	done     chan struct{} // closed when it has ended
}

// output is what a run has said so far.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
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
	b.cmd = call{args: append([]string{"run", "--home", dir, "--listen", "127.0.0.1:0"}, args...), env: env}.command(t.Context())
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
	if err := json.Unmarshal([]byte(b.out.String()), &s); err != nil {
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

// until waits for something that the run does.
func (b *burst) until(t *testing.T, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !so(); {
		select {
		case <-b.done:
			t.Fatalf("the run ended before %s: %s%s", what, b.out.String(), b.err.String())
		case <-time.After(50 * time.Millisecond): // polls the outside world
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s: %s%s", what, b.out.String(), b.err.String())
		}
	}
}

// said waits for words of the run.
func (b *burst) said(t *testing.T, words string) {
	t.Helper()
	b.until(t, strconv.Quote(words), func() bool { return strings.Contains(b.out.String()+b.err.String(), words) })
}

// page is where the run said that its page is.
func (b *burst) page(t *testing.T) string {
	t.Helper()
	b.said(t, "Watch it on ")
	return regexp.MustCompile(`Watch it on (\S+)`).FindStringSubmatch(b.out.String() + b.err.String())[1]
}

// card is a living worker, as the page shows it.
type card struct{ ID, Pool, State string }

// cards are what a browser is sent first.
func (b *burst) cards(t *testing.T) []card {
	t.Helper()
	res, err := http.Get(b.page(t) + "api/events") //nolint:noctx // ends with the run
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var event struct {
		State struct {
			Title   string
			Workers struct {
				Columns []struct {
					ID    string
					Cards []card
				}
			}
		}
	}
	prefix := make([]byte, len("data: "))
	if _, err := res.Body.Read(prefix); err != nil {
		t.Fatal(err)
	}
	if err := json.NewDecoder(res.Body).Decode(&event); err != nil || event.State.Title != "Sluice, a local run" {
		t.Fatalf("the page has sent %+v, %v", event, err)
	}
	var living []card
	for _, c := range event.State.Workers.Columns {
		if c.ID != "asked" && c.ID != "ended" {
			living = append(living, c.Cards...)
		}
	}
	return living
}

// press uses a button of the page, and returns what the page says of it.
func (b *burst) press(t *testing.T, button, worker string) (said string, ok bool) {
	t.Helper()
	body, err := json.Marshal(map[string]string{"worker": worker})
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.Post(b.page(t)+"api/control/"+button, "application/json", bytes.NewReader(body)) //nolint:noctx // ends with the run
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var answer struct{ Said, Error string }
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	return answer.Said + answer.Error, res.StatusCode == http.StatusOK
}

func (b *burst) mustPress(t *testing.T, button, want string) {
	t.Helper()
	if said, ok := b.press(t, button, ""); !ok || !strings.Contains(said, want) {
		t.Fatalf("the page says %q of %s, want %q", said, button, want)
	}
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
	if s.First <= 0 || s.Unfinished != 0 {
		t.Errorf("the first machine was asked for after %v s, and %d jobs were taken back", s.First, s.Unfinished)
	}
	if got := thumbnails(t, b); got != jobs {
		t.Errorf("%d thumbnails, want %d", got, jobs)
	}
	for _, want := range []string{"The first machine was asked for ", "Scaling up images: depth=", "Scaling down worker ", "machine is gone as asked"} {
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
	for killed := 0; killed < 4; killed++ {
		next := time.Now().Add(2 * time.Second)
		b.until(t, "a worker was killed", func() bool {
			if time.Now().Before(next) || thumbnails(t, b) <= 3 {
				return false
			}
			living := b.cards(t)
			if len(living) == 0 {
				return false
			}
			said, ok := b.press(t, "kill", living[dice.IntN(len(living))].ID)
			return ok && strings.HasPrefix(said, "Killed ") // not ended in the meantime
		})
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
	b.until(t, "a machine was started", func() bool { return len(b.agents(t)) >= 2 })
	if err := b.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := b.end(t); code != exitSignal+int(syscall.SIGINT) || !strings.Contains(b.err.String(), "interrupted") {
		t.Errorf("ends with %d: %s", code, b.err.String())
	}
}

// In one run: the work is done, more is asked for while the cloud has no machine left, and then it has some again.
func TestAWatchedRunTakesWorkAndRefusalsFromItsPageUntilItIsInterrupted(t *testing.T) {
	t.Parallel()
	const jobs, more = 4, 50
	db := postgrestest.Empty(t)
	b := startBurst(t, []string{"DATABASE_URL=" + db.Direct}, "--json", "--watch", "--jobs", strconv.Itoa(jobs), "--work", "0.2")
	b.said(t, "jobs into queue images")
	b.until(t, "the buttons worked", func() bool { _, ok := b.press(t, "refuse", ""); return ok })
	b.said(t, "The work is done")
	b.mustPress(t, "add", "Put 50 more jobs into queue images")
	b.said(t, "Not scaling up images: 1 offer was looked at and none can be had")
	if agents := b.agents(t); len(agents) != 1 {
		t.Errorf("%d workers run although every launch is refused, want the VPS alone", len(agents))
	}
	b.mustPress(t, "refuse", "capacity again")
	// A minute passes for the offer that was refused.
	var code string
	if err := db.Connect(t).QueryRow(t.Context(), "UPDATE sluice_cool_offs SET until = now() RETURNING code").Scan(&code); err != nil || code != "no_capacity" {
		t.Fatalf("the refusal is kept as %q, %v, want no_capacity", code, err)
	}
	b.until(t, "a machine was started", func() bool { return len(b.agents(t)) >= 2 })
	b.mustPress(t, "pause", "Ticks are paused")
	b.mustPress(t, "pause", "Ticks go on")
	if err := b.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := b.end(t); code != exitDone {
		t.Fatalf("ends with %d: %s", code, b.err.String())
	}
	s := b.summary(t)
	if s.Jobs != jobs+more || s.Done < jobs || s.Done+s.Unfinished != jobs+more || s.Lost != 0 || s.Left != 0 || s.Machines < 1 {
		t.Errorf("the summary is %+v", s)
	}
}

func TestAPageGoesElsewhereOrSaysThatItsPortIsTaken(t *testing.T) {
	t.Parallel()
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	for address, want := range map[string]struct {
		code int
		says string
	}{
		taken.Addr().String(): {exitFailed, "name a free one with --listen"},
		"0.0.0.0:0":           {exitUsage, "set --token or SLUICE_PAGE_TOKEN"},
		"8585":                {exitUsage, "want HOST:PORT"},
	} {
		b := startBurst(t, nil, "--listen", address)
		if code := b.end(t); code != want.code || !strings.Contains(b.err.String(), want.says) {
			t.Errorf("--listen %s ends with %d, want %d and %q: %s", address, code, want.code, want.says, b.err.String())
		}
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
