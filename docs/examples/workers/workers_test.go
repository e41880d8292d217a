// Package workers_test runs the workers that the documents show, against a real database.
package workers_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"sluice/core/tick"
	"sluice/functions/host"
	"sluice/providers/file"
	"sluice/providers/postgres"
	"sluice/providers/postgres/postgrestest"
	"sluice/scripts/services"
)

const config = `{
  "name": "workers", "queues": {"ocr": {"baseline_workers": 1, "source": {"kind": "postgres"}, "run": {"command": ["true"]}}},
  "workers": {"heartbeat_seconds": 1, "visibility_timeout_seconds": 30, "max_attempts": 2}
}`

// language is one of the examples, with jobs that it understands.
type language struct {
	command           []string
	env               []string
	quick, slow, fail string // payloads
	hold, finish      func() // has slow jobs go on, and lets them end
	failure           string // what it says of a job that failed
}

func TestTheExampleWorkers(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(*testing.T) language{"shell": shell, "python": python} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStack(t, prepare(t))
			s.survivesAKilledWorker()
			s.triesAFailedJobAgainAndGivesUp()
			s.dropsAJobThatItLost()
			s.drains()
			s.givesBackWhatIsInHandWhenStopped()
		})
	}
}

func shell(t *testing.T) language {
	psql, env, err := services.Psql(t.Context(), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	running := filepath.Join(t.TempDir(), "running")
	// A command that goes on for as long as there is a file, so that none outlives the test.
	command := `read -r payload; case $payload in *slow*) while [ -e "$0" ]; do sleep 0.1; done;; *fail*) echo "unreadable page" >&2; exit 3;; esac; echo seen`
	return language{
		command: []string{"bash", "worker.sh", "ocr", "bash", "-c", command, running},
		env:     append([]string{"PATH=" + filepath.Dir(psql) + ":" + os.Getenv("PATH")}, env...),
		quick:   `{"kind": "quick | or \\ 'quoted'"}`, slow: `{"kind": "slow"}`, fail: `{"kind": "fail"}`,
		hold:    func() { write(t, running, "") },
		finish:  func() { _ = os.Remove(running) }, // it may be gone
		failure: "unreadable page",
	}
}

func python(t *testing.T) language {
	t.Helper()
	_, env, err := services.Bring(t.Context(), io.Discard, "python3-psycopg2", "/usr/lib/python3/dist-packages", "psycopg2/__init__.py")
	if err != nil {
		t.Fatal(err)
	}
	program, _, err := services.Bring(t.Context(), io.Discard, "python3-psycopg2", "/usr/bin", "python3")
	if err != nil {
		t.Fatal(err)
	}
	return language{
		command: []string{program, "worker.py", "ocr"},
		env:     append([]string{"PATH=" + os.Getenv("PATH")}, env...),
		quick:   `{"pages": ["one two", "three"]}`, slow: `{"seconds": 0.1, "pages": ["a"` + strings.Repeat(`, "a"`, 49) + `]}`, fail: `{"pages": 7}`,
		hold:    func() {}, // fifty pages take their time
		finish:  func() {},
		failure: "TypeError",
	}
}

// stack is a database with what a tick has told workers, a role that can only work, and the workers that run.
type stack struct {
	*testing.T
	language
	db   *pgx.Conn
	role []string
	next int
}

func newStack(t *testing.T, l language) *stack {
	t.Helper()
	d := postgrestest.New(t)
	s := &stack{T: t, language: l, db: d.Connect(t)}
	path := filepath.Join(t.TempDir(), "scheduler.json")
	write(t, path, config)
	w, err := host.Open(t.Context(), host.Options{Env: func(string) string { return "" }, Config: path, Database: d.URL, Limit: time.Minute}, file.Link(), postgres.Link())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	if _, err := tick.Evaluate(t.Context(), w.World, time.Now()); err != nil {
		t.Fatal(err)
	}
	at, role := s.db.Config(), d.Name+"_"+strings.ToLower(filepath.Base(t.Name()))
	s.exec("DROP ROLE IF EXISTS " + role)
	s.exec("CREATE ROLE " + role + " LOGIN PASSWORD 'agent' IN ROLE sluice_worker")
	t.Cleanup(func() { s.exec("DROP ROLE " + role) })
	s.role = []string{"PGHOST=" + at.Host, "PGPORT=" + strconv.Itoa(int(at.Port)), "PGDATABASE=" + at.Database, "PGUSER=" + role, "PGPASSWORD=agent"}
	return s
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// running is a worker's process.
type running struct {
	s       *stack
	machine string
	cmd     *exec.Cmd
	said    *text
}

// text is written by a process while a test reads it.
type text struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (x *text) Write(b []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.b.Write(b)
}

func (x *text) String() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.b.String()
}

func (s *stack) start() running {
	s.Helper()
	s.next++
	w := running{s, fmt.Sprintf("machine-%d", s.next), exec.CommandContext(s.Context(), s.command[0], s.command[1:]...), &text{}}
	w.cmd.Env = append(append([]string{"HOME=" + s.TempDir(), "TMPDIR=" + s.TempDir(), "MACHINE=" + w.machine}, s.env...), s.role...)
	w.cmd.Stdout, w.cmd.Stderr = w.said, w.said
	w.cmd.WaitDelay = time.Second // what it started may hold its output open
	if err := w.cmd.Start(); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		if s.Failed() {
			s.Logf("%s said: %s", w.machine, w.said)
		}
		_ = w.cmd.Process.Kill()
		_ = w.cmd.Wait()
	})
	s.until(w.machine+" is known", "SELECT EXISTS (SELECT FROM workers WHERE machine_id = $1 AND status = 'ready')", w.machine)
	return w
}

// stop ends a worker as its system does, and sees that it was content.
func (w running) stop() {
	w.s.Helper()
	if err := w.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		w.s.Fatal(err)
	}
	if err := w.cmd.Wait(); w.cmd.ProcessState.ExitCode() != 0 {
		w.s.Errorf("%s, asked to stop, ends with %v: %s", w.machine, err, w.said)
	}
	w.s.until(w.machine+" has left", "SELECT EXISTS (SELECT FROM workers WHERE machine_id = $1 AND status = 'terminated')", w.machine)
}

func (s *stack) exec(sql string, args ...any) {
	s.Helper()
	if _, err := s.db.Exec(context.WithoutCancel(s.Context()), sql, args...); err != nil {
		s.Fatalf("%s: %v", sql, err)
	}
}

func (s *stack) enqueue(payload string) (job string) {
	s.Helper()
	if err := s.db.QueryRow(s.Context(), "SELECT sluice_enqueue('ocr', $1)::text", payload).Scan(&job); err != nil {
		s.Fatal(err)
	}
	return job
}

// until waits for workers, which are processes of their own.
func (s *stack) until(what, sql string, args ...any) {
	s.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		var yes bool
		if err := s.db.QueryRow(s.Context(), sql, args...).Scan(&yes); err != nil {
			s.Fatalf("%s: %v", what, err)
		}
		if yes {
			return
		}
		if time.Now().After(end) {
			s.Fatalf("not within two minutes: %s", what)
		}
	}
}

func (s *stack) has(job, status string, attempts int) {
	s.Helper()
	s.until(fmt.Sprintf("the job is %s after %d attempts", status, attempts),
		"SELECT EXISTS (SELECT FROM processing_jobs WHERE id = $1 AND status = $2 AND attempts = $3)", job, status, attempts)
}

// expire takes a job away, as the sweep does when its worker has said nothing for its visibility timeout.
func (s *stack) expire(job string) {
	s.Helper()
	s.exec("UPDATE processing_jobs SET visible_until = sluice_clock() - interval '1 second' WHERE id = $1 AND status = 'processing'", job)
	s.exec("SELECT sluice_sweep()")
}

func (s *stack) survivesAKilledWorker() {
	s.Helper()
	s.hold()
	killed := s.start()
	slow := s.enqueue(s.slow)
	s.has(slow, "processing", 1)
	if err := killed.cmd.Process.Kill(); err != nil {
		s.Fatal(err)
	}
	for range 12 {
		s.enqueue(s.quick)
	}
	first, second := s.start(), s.start()
	s.expire(slow)
	// As a tick does that has not heard of it for long enough; until then others leave jobs that failed to it.
	s.exec("UPDATE workers SET status = 'terminated', terminated_at = sluice_clock(), end_why = 'lost' WHERE machine_id = $1", killed.machine)
	s.finish()
	s.has(slow, "completed", 2)
	s.until("every job is completed", "SELECT count(*) = 13 FROM processing_jobs WHERE status = 'completed' AND result IS NOT NULL")
	s.until("the quick ones were done once", "SELECT count(*) = 12 FROM processing_jobs WHERE attempts = 1")
	first.stop()
	second.stop()
}

func (s *stack) triesAFailedJobAgainAndGivesUp() {
	s.Helper()
	w := s.start()
	job := s.enqueue(s.fail)
	s.has(job, "dead", 2)
	s.until("both attempts say why", "SELECT count(*) = 2 FROM job_attempts WHERE job_id = $1 AND error LIKE '%' || $2 || '%'", job, s.failure)
	w.stop()
}

func (s *stack) dropsAJobThatItLost() {
	s.Helper()
	s.hold()
	w := s.start()
	job := s.enqueue(s.slow)
	s.has(job, "processing", 1)
	s.expire(job)
	for end := time.Now().Add(time.Minute); !strings.Contains(w.said.String(), "dropped attempt"); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			s.Fatalf("the worker does not notice that its job was taken away: %s", w.said)
		}
	}
	s.finish()
	s.has(job, "completed", 2)
	w.stop()
}

func (s *stack) drains() {
	s.Helper()
	s.hold()
	w := s.start()
	inHand := s.enqueue(s.slow)
	s.has(inHand, "processing", 1)
	s.exec("UPDATE workers SET status = 'draining', draining_at = sluice_clock(), drain_why = 'requested' WHERE machine_id = $1", w.machine)
	left := s.enqueue(s.quick)
	s.finish()
	s.has(inHand, "completed", 1)
	s.until("the drain is acknowledged", "SELECT EXISTS (SELECT FROM workers WHERE machine_id = $1 AND drain_ack_at IS NOT NULL)", w.machine)
	s.has(left, "queued", 0)
	s.exec("UPDATE workers SET status = 'ready', draining_at = NULL, drain_ack_at = NULL, drain_why = NULL WHERE machine_id = $1", w.machine)
	s.has(left, "completed", 1) // the drain was called off
	w.stop()
}

func (s *stack) givesBackWhatIsInHandWhenStopped() {
	s.Helper()
	s.hold()
	w := s.start()
	job := s.enqueue(s.slow)
	s.has(job, "processing", 1)
	w.stop()
	s.has(job, "queued", 0)
}
