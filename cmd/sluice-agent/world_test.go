package main_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/shirou/gopsutil/v4/process"

	"sluice/core/fleet"
	"sluice/providers/postgres"
	"sluice/providers/postgres/postgrestest"
)

// binary is the agent, built once.
var binary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "sluice-agent")
	if err == nil {
		binary = filepath.Join(dir, "sluice-agent")
		build := exec.CommandContext(context.Background(), "go", "build", "-o", binary, ".")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		var out []byte
		if out, err = build.CombinedOutput(); err != nil {
			err = fmt.Errorf("build agent: %w\n%s", err, out)
		}
	}
	code := 1
	if err == nil {
		code = m.Run()
	} else {
		fmt.Fprintln(os.Stderr, err)
	}
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// world is a database of the test's own with real agents on it.
type world struct {
	*testing.T
	postgrestest.Database
	db   *postgres.DB
	conn *pgx.Conn
	mark string // by which the sleeping children of this test are known
}

func newWorld(t *testing.T) *world {
	t.Helper()
	d := postgrestest.New(t)
	return &world{T: t, Database: d, db: d.Open(t), conn: d.Connect(t), mark: fmt.Sprintf("%d.%d", 300000, time.Now().UnixNano())}
}

// assign gives a pool its rules, as a tick does.
func (w *world) assign(pool string, rules fleet.Assignment) {
	w.Helper()
	rules.Heartbeat = max(rules.Heartbeat, 1)
	if rules.Visibility == 0 {
		rules.Visibility = 60
	}
	if rules.MaxAttempts == 0 {
		rules.MaxAttempts = 1
	}
	err := w.db.Transact(w.Context(), func(m fleet.Memory) (fleet.Plan, fleet.Record) {
		return fleet.Plan{Function: fleet.Evaluate, Due: m.Now, Now: m.Now}, fleet.Record{Assignments: map[string]fleet.Assignment{pool: rules}}
	})
	if err != nil {
		w.Fatal(err)
	}
}

// sh is a queue whose jobs run a shell script; MARK in it is this test's mark.
func (w *world) sh(name, script string) fleet.Queue {
	script = strings.ReplaceAll(script, "MARK", w.mark)
	return fleet.Queue{Name: name, Run: fleet.Run{Command: []string{"sh", "-c", script}, Timeout: 60, Slots: 1, StopGrace: 1}}
}

func (w *world) enqueue(queue string, n int) []string {
	w.Helper()
	jobs := make([]postgres.NewJob, n)
	for i := range jobs {
		jobs[i] = postgres.NewJob{Queue: queue, Payload: json.RawMessage(fmt.Sprintf(`{"n":%d}`, i))}
	}
	ids, err := w.db.Enqueue(w.Context(), jobs...)
	if err != nil {
		w.Fatal(err)
	}
	return ids
}

// agent is one running agent.
type agent struct {
	*world
	cmd  *exec.Cmd
	done chan struct{}
	mu   sync.Mutex
	log  strings.Builder
}

func (w *world) start(args ...string) *agent {
	w.Helper()
	return w.startWith([]string{"DATABASE_URL=" + w.URL}, args...)
}

func (w *world) startWith(env []string, args ...string) *agent {
	w.Helper()
	a := &agent{world: w, cmd: exec.CommandContext(context.WithoutCancel(w.Context()), binary, args...), done: make(chan struct{})}
	a.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=/nowhere"}, env...)
	stderr, err := a.cmd.StderrPipe()
	if err != nil {
		w.Fatal(err)
	}
	if err := a.cmd.Start(); err != nil {
		w.Fatal(err)
	}
	go func() {
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			a.mu.Lock()
			a.log.WriteString(lines.Text() + "\n")
			a.mu.Unlock()
		}
		_ = a.cmd.Wait()
		close(a.done)
	}()
	w.Cleanup(func() {
		_ = a.cmd.Process.Kill()
		<-a.done
		if w.Failed() {
			w.Logf("agent %q said:\n%s", args, a.said())
		}
	})
	return a
}

func (a *agent) said() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.log.String()
}

func (a *agent) signal(s syscall.Signal) {
	a.Helper()
	if err := a.cmd.Process.Signal(s); err != nil {
		a.Fatal(err)
	}
}

// ends waits for the exit code.
func (a *agent) ends() int {
	a.Helper()
	select {
	case <-a.done:
	case <-time.After(time.Minute):
		a.Fatal("the agent does not end")
	}
	return a.cmd.ProcessState.ExitCode()
}

func (w *world) until(what string, ok func() bool) {
	w.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range 3000 {
		if ok() {
			return
		}
		<-tick.C
	}
	w.Fatalf("it never came to pass that %s; jobs are %s", what, value[string](w, "SELECT coalesce(jsonb_agg(to_jsonb(j) - 'payload')::text, 'none') FROM processing_jobs j"))
}

// value reads one value.
func value[V any](w *world, sql string, args ...any) (v V) {
	w.Helper()
	if err := w.conn.QueryRow(w.Context(), sql, args...).Scan(&v); err != nil {
		w.Fatalf("%s: %v", sql, err)
	}
	return v
}

func (w *world) exec(sql string, args ...any) {
	w.Helper()
	if _, err := w.conn.Exec(w.Context(), sql, args...); err != nil {
		w.Fatalf("%s: %v", sql, err)
	}
}

// count counts jobs of a queue by status.
func (w *world) count(queue, status string) int {
	w.Helper()
	return value[int](w, "SELECT count(*) FROM processing_jobs WHERE queue = $1 AND status = $2", queue, status)
}

func (w *world) untilCount(queue, status string, n int) {
	w.Helper()
	w.until(fmt.Sprintf("%d jobs of %s are %s", n, queue, status), func() bool { return w.count(queue, status) == n })
}

// sleeping counts the processes that sleep for this test's mark.
func (w *world) sleeping() int {
	w.Helper()
	ps, err := process.Processes()
	if err != nil {
		w.Fatal(err)
	}
	n := 0
	for _, p := range ps {
		if argv, err := p.CmdlineSlice(); err == nil && len(argv) == 2 && argv[0] == "sleep" && argv[1] == w.mark {
			n++
		}
	}
	return n
}

// gate stands before the database: it asks for a password that can be changed, and can be shut.
type gate struct {
	*testing.T
	target   string
	listener net.Listener
	mu       sync.Mutex
	password string
	shut     bool
	refused  int
	conns    []net.Conn
}

func newGate(t *testing.T, target, password string) *gate {
	t.Helper()
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{T: t, target: target, listener: l, password: password}
	t.Cleanup(func() { _ = l.Close(); g.cut() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go g.serve(c)
		}
	}()
	return g
}

func (g *gate) url(password string) string {
	return fmt.Sprintf("postgres://agent:%s@%s/any?sslmode=disable", password, g.listener.Addr())
}

// change sets the password or shuts the gate, and ends all connections.
func (g *gate) change(password string, shut bool) {
	g.mu.Lock()
	g.password, g.shut = password, shut
	g.mu.Unlock()
	g.cut()
}

func (g *gate) cut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.conns {
		_ = c.Close()
	}
	g.conns = nil
}

func (g *gate) refusals() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.refused
}

func (g *gate) serve(c net.Conn) {
	defer c.Close() //nolint:errcheck // a test's end
	b := pgproto3.NewBackend(c, c)
	if _, err := b.ReceiveStartupMessage(); err != nil {
		return
	}
	b.Send(&pgproto3.AuthenticationCleartextPassword{})
	if b.Flush() != nil || b.SetAuthType(pgproto3.AuthTypeCleartextPassword) != nil {
		return
	}
	msg, err := b.Receive()
	given, ok := msg.(*pgproto3.PasswordMessage)
	if err != nil || !ok || !g.admit(given.Password, b) {
		return
	}
	server, err := pgconn.Connect(context.Background(), g.target)
	if err != nil {
		return
	}
	raw, err := server.Hijack()
	if err != nil {
		return
	}
	defer raw.Conn.Close() //nolint:errcheck // a test's end
	b.Send(&pgproto3.AuthenticationOk{})
	for name, value := range raw.ParameterStatuses {
		b.Send(&pgproto3.ParameterStatus{Name: name, Value: value})
	}
	b.Send(&pgproto3.BackendKeyData{ProcessID: raw.PID, SecretKey: raw.SecretKey})
	b.Send(&pgproto3.ReadyForQuery{TxStatus: raw.TxStatus})
	if b.Flush() != nil {
		return
	}
	g.mu.Lock()
	g.conns = append(g.conns, c, raw.Conn)
	g.mu.Unlock()
	go pipe(raw.Conn, c)
	pipe(c, raw.Conn)
}

func (g *gate) admit(password string, b *pgproto3.Backend) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut {
		return false
	}
	if password == g.password {
		return true
	}
	g.refused++
	b.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: "28P01", Message: "password authentication failed for user \"agent\""})
	_ = b.Flush()
	return false
}

func pipe(to, from net.Conn) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if _, werr := to.Write(buf[:n]); err != nil || werr != nil {
			_ = to.Close()
			return
		}
	}
}
