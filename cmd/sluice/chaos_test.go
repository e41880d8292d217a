package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"sluice/scripts/services"
)

// How a chaotic run goes: something is killed every chaosEvery or so. The database's clock runs chaosSpeed
// times as fast as the world's, so that claims of killed ticks run out while the test waits.
const (
	chaosEvery = time.Second
	chaosSpeed = 6
	chaosEnd   = 4 * time.Minute // a run that is not over by then is stuck
)

// chaosConfig has the shortest times that are valid.
const chaosConfig = `{
  "name": "chaos", "mode": "hybrid", "evaluation_interval_seconds": 1,
  "connections": {"database": {"url": "file:DIR/scheduler-url", "worker_url": "file:DIR/worker-url"}},
  "queues": {"work": {"baseline_workers": 1, "max_workers": 4, "cloud_enabled": true, "cloud_provider": "local", "source": {"kind": "postgres"},
    "run": {"command": ["sh", "-c", "SCRIPT"], "timeout_seconds": 3, "stop_grace_seconds": 1}}},
  "cloud_providers": {"local": {"enabled": true, "max_instances": 3, "boot_seconds": 1, "price_per_hour": "0.10"}},
  "scaling_rules": {
    "scale_up": {"queue_depth_threshold": 3, "oldest_job_age_seconds": 60, "cooldown_seconds": 5},
    "scale_down": {"idle_minutes": 0, "queue_depth_below": 2, "cooldown_seconds": 5, "drain_timeout_seconds": 30}},
  "workers": {"heartbeat_seconds": 1, "boot_timeout_seconds": 60, "visibility_timeout_seconds": 60, "lost_database_minutes": 1,
    "max_attempts": 8, "max_lifetime_hours": 2}
}`

// chaosScript is what a job does, by its name: fail, hang past its limit, leave a daemon, flood, or work and note it.
const chaosScript = `name=$(sed -n 's/.*"name": *"\([^"]*\)".*/\1/p'); case $name in ` +
	`fail*) exit 3;; hang*) sleep MARK;; fork*) setsid sleep MARK & ;; flood*) yes | head -c 3000000;; esac; ` +
	`sleep 0.7; echo $SLUICE_ATTEMPT >> DIR/done/$name`

// chaos is a run whose scheduler, workers and database are killed.
type chaos struct {
	*testing.T
	dice *rand.Rand
	dir  string // of the config, the secrets, the machines and what jobs leave
	mark string // argument of every sleep that a job leaves behind
	gate *chaosGate
	env  []string

	server   *services.Services
	password string // of the superuser

	mu   sync.Mutex
	tick *exec.Cmd // the scheduler's tick that runs now
	said strings.Builder
	did  []string
}

// TestEveryJobEndsAndNoWorkerIsLeftWhateverIsKilled kills ticks, agents and the server at random moments.
func TestEveryJobEndsAndNoWorkerIsLeftWhateverIsKilled(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("CHAOS_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatalf("CHAOS_SEED: %v", err)
		}
	}
	t.Logf("CHAOS_SEED=%d plays the same dice", seed)
	c := newChaos(t, seed)
	jobs := c.enqueue(map[string]int{"work": 80, "fail": 3, "hang": 2, "fork": 3, "flood": 2})
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	wg.Go(func() { c.schedule(ctx) })
	wg.Go(func() { c.vps(ctx) })
	wg.Go(func() { c.watch(ctx) })
	c.rage()
	left := c.settle()
	stop()
	wg.Wait()
	t.Logf("killed or changed, in this order: %v; at the end: %s", c.did, left)
	c.judge(jobs)
	if t.Failed() {
		c.logs()
	}
}

func newChaos(t *testing.T, seed uint64) *chaos {
	t.Helper()
	dir, err := os.MkdirTemp("", "sluice-chaos-") //nolint:usetesting // the services' own user cannot enter t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	c := &chaos{T: t, dice: rand.New(rand.NewPCG(seed, 1)), dir: dir, mark: fmt.Sprintf("1000.%d", time.Now().UnixNano())}
	if err := errors.Join(os.Chmod(dir, 0o755), os.Mkdir(filepath.Join(dir, "done"), 0o700)); err != nil {
		t.Fatal(err)
	}
	c.gate = newChaosGate(t)
	c.env = []string{
		"SLUICE_CONFIG=" + filepath.Join(dir, "config.json"), "SLUICE_LOCAL_DIR=" + filepath.Join(dir, "machines"),
		"SLUICE_LOCAL_AGENT=" + filepath.Join(programs, "sluice-agent"),
	}
	t.Cleanup(c.killAll)
	t.Cleanup(func() { _ = c.server.Stop(context.Background()) }) // it may be down, as the test wants it
	c.startServer()
	c.prepare()
	return c
}

// startServer starts the server on the data that are there.
func (c *chaos) startServer() {
	s, err := services.Start(c.Context(), services.Options{Dir: filepath.Join(c.dir, "services"), Need: []string{services.Postgres}})
	if err != nil {
		c.Fatal(err)
	}
	u, err := url.Parse(s.DatabaseURL)
	if err != nil {
		c.Fatal(err)
	}
	c.server = s
	c.password, _ = u.User.Password()
	c.gate.point(u.Host)
}

// prepare migrates, makes a role for the scheduler and one for workers, and lets the clock run.
func (c *chaos) prepare() {
	admin := []string{"DATABASE_URL=" + c.server.DatabaseURL}
	conn := c.connect()
	for _, sql := range []string{"CREATE ROLE chaos_scheduler LOGIN", "CREATE ROLE chaos_worker LOGIN"} {
		c.exec(conn, sql)
	}
	if r := (call{args: []string{"migrate", "--worker-role", "chaos_worker"}, env: admin}).run(c.T); r.code != exitDone {
		c.Fatal(r.err)
	}
	c.exec(conn, "GRANT sluice_functions TO chaos_scheduler")
	c.exec(conn, fmt.Sprintf(`CREATE OR REPLACE FUNCTION sluice_clock() RETURNS timestamptz LANGUAGE sql VOLATILE AS
		'SELECT %[1]s + (clock_timestamp() - %[1]s) * %[2]d'`, time.Now().UTC().Format("timestamptz ''2006-01-02T15:04:05Z''"), chaosSpeed))
	c.rotate()
	text := strings.ReplaceAll(chaosConfig, "SCRIPT", strings.Trim(string(c.json(chaosScript)), `"`))
	text = strings.NewReplacer("DIR", c.dir, "MARK", c.mark).Replace(text)
	c.write("config.json", text)
	if r := (call{args: []string{"tick"}, env: c.env}).run(c.T); r.code != exitDone { // tells workers what to run
		c.Fatal(r.err)
	}
}

func (c *chaos) json(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		c.Fatal(err)
	}
	return b
}

func (c *chaos) write(name, content string) {
	path := filepath.Join(c.dir, name)
	if err := errors.Join(os.WriteFile(path+".new", []byte(content), 0o600), os.Rename(path+".new", path)); err != nil {
		c.Fatal(err)
	}
}

// connect is the judge's own way in.
func (c *chaos) connect() *pgx.Conn {
	conn, err := pgx.Connect(c.Context(), c.server.DatabaseURL)
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func (c *chaos) exec(conn *pgx.Conn, sql string) {
	if _, err := conn.Exec(c.Context(), sql); err != nil {
		c.Fatalf("%s: %v", sql, err)
	}
}

// rotate changes both passwords, and then the secrets that lead to them.
func (c *chaos) rotate() {
	conn := c.connect()
	for _, who := range []string{"scheduler", "worker"} {
		password := fmt.Sprintf("hunter2-%d", c.dice.Uint64())
		c.exec(conn, fmt.Sprintf("ALTER ROLE chaos_%s PASSWORD '%s'", who, password))
		c.write(who+"-url", fmt.Sprintf("postgres://chaos_%s:%s@%s/postgres?sslmode=disable\n", who, password, c.gate.addr()))
	}
	_ = conn.Close(c.Context())
}

// enqueue puts jobs in, mixed, and says what each is named.
func (c *chaos) enqueue(kinds map[string]int) map[string]string {
	var names []string
	for kind, n := range kinds {
		for i := range n {
			names = append(names, fmt.Sprintf("%s-%d", kind, i))
		}
	}
	slices.Sort(names)
	c.dice.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	conn, ids := c.connect(), map[string]string{}
	for _, name := range names {
		var id string
		if err := conn.QueryRow(c.Context(), "SELECT sluice_enqueue('work', jsonb_build_object('name', $1::text))::text", name).Scan(&id); err != nil {
			c.Fatal(err)
		}
		ids[id] = name
	}
	return ids
}

// schedule is a timer that starts a tick a second, whatever becomes of the one before.
func (c *chaos) schedule(ctx context.Context) {
	for every := time.NewTicker(time.Second); ; {
		var out, stderr strings.Builder
		cmd := call{args: []string{"tick", "--json"}, env: c.env}.command(context.WithoutCancel(ctx))
		cmd.Stdout, cmd.Stderr = &out, &stderr
		c.mu.Lock()
		err := cmd.Start()
		c.tick = cmd
		c.mu.Unlock()
		if err != nil {
			c.Error(err)
			return
		}
		_ = cmd.Wait() // it may fail: the server may be down
		c.mu.Lock()
		c.tick = nil
		c.said.WriteString(out.String() + stderr.String())
		c.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
	}
}

// vps keeps the VPS worker alive, as an init system does.
func (c *chaos) vps(ctx context.Context) {
	log, err := os.Create(filepath.Join(c.dir, "vps.log"))
	if err != nil {
		c.Error(err)
		return
	}
	defer func() { _ = log.Close() }()
	for ctx.Err() == nil {
		cmd := exec.CommandContext(ctx, filepath.Join(programs, "sluice-agent"), "--machine=vps", "--name=chaos", "--state-dir="+c.dir)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "SLUICE_DATABASE_URL_REF=file:" + filepath.Join(c.dir, "worker-url")}
		cmd.Stdout, cmd.Stderr = log, log
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		cmd.WaitDelay = 15 * time.Second
		_ = cmd.Run() // killed by the test, or ended by its end
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// watch holds the cloud to its limit at every moment.
func (c *chaos) watch(ctx context.Context) {
	for {
		if n := len(c.agents(true)); n > 3 {
			c.Errorf("%d machines run at once, and max_instances is 3", n)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// agents are the workers that run: the machines, and with the VPS all.
func (c *chaos) agents(machinesOnly bool) []int {
	var pids []int
	for _, pid := range c.processes() {
		line := commandLine(pid)
		sid, err := syscall.Getpgid(pid)
		if err != nil || !strings.HasPrefix(line, filepath.Join(programs, "sluice-agent")+" ") || !strings.Contains(line, "--machine=") {
			continue
		}
		machine := strings.Contains(line, "--provider=local ")
		if machine && sid == pid || !machine && !machinesOnly {
			pids = append(pids, pid)
		}
	}
	return pids
}

// processes have the run's folder or a job's mark in their command line, but for the server and the ticks.
func (c *chaos) processes() []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		c.Error(err)
	}
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		line := commandLine(pid)
		if (strings.Contains(line, c.dir) || strings.Contains(line, c.mark)) && !strings.Contains(line, filepath.Join(c.dir, "services")) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// rage does a fixed number of each kind of harm, in an order and at moments that the dice tell.
func (c *chaos) rage() {
	harms := map[string]func() bool{
		"tick": c.killTick, "agent": c.killAgent, "backend": c.killBackend, "server": c.killServer,
		"password": func() bool { c.rotate(); return true },
	}
	deck := slices.Concat(slices.Repeat([]string{"tick"}, 6), slices.Repeat([]string{"agent"}, 6), []string{"backend", "backend", "server", "server", "password", "password"})
	c.dice.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
	for _, harm := range deck {
		time.Sleep(time.Duration(c.dice.Int64N(int64(2 * chaosEvery)))) // a random moment
		if !harms[harm]() {
			c.Errorf("no %s could be harmed", harm)
		}
		c.did = append(c.did, harm)
	}
}

// killTick lets ticks live for a part of their time, until one was still alive after it.
func (c *chaos) killTick() bool {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		c.mu.Lock()
		cmd := c.tick
		c.mu.Unlock()
		if cmd == nil {
			time.Sleep(5 * time.Millisecond) // polls for the next tick
			continue
		}
		time.Sleep(time.Duration(c.dice.Int64N(int64(300 * time.Millisecond)))) // a random moment
		if cmd.Process.Kill() == nil {
			return true
		}
	}
	return false
}

// killAgent kills a machine or the VPS worker; one of them always comes back.
func (c *chaos) killAgent() bool {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		if pids := c.agents(false); len(pids) > 0 && syscall.Kill(pids[c.dice.IntN(len(pids))], syscall.SIGKILL) == nil {
			return true
		}
		time.Sleep(50 * time.Millisecond) // polls the operating system
	}
	return false
}

// killBackend kills one of the server's own, upon which the server ends all connections and recovers.
func (c *chaos) killBackend() bool {
	conn := c.connect()
	defer func() { _ = conn.Close(context.Background()) }()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		var pids []int
		err := conn.QueryRow(c.Context(), `SELECT ARRAY(SELECT pid FROM pg_stat_activity
			WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() ORDER BY pid)`).Scan(&pids)
		if err != nil {
			return false
		}
		if len(pids) > 0 && syscall.Kill(pids[c.dice.IntN(len(pids))], syscall.SIGKILL) == nil {
			c.ready()
			return true
		}
	}
	return false
}

// ready waits until the server answers again.
func (c *chaos) ready() {
	for range 600 {
		conn, err := pgx.Connect(c.Context(), c.server.DatabaseURL)
		if err == nil {
			err = conn.Ping(c.Context())
			_ = conn.Close(c.Context())
		}
		if err == nil {
			return
		}
		time.Sleep(50 * time.Millisecond) // polls the server
	}
	c.Fatal("the server does not come back")
}

// killServer kills it, leaves it dead for a while, and starts it on the same data.
func (c *chaos) killServer() bool {
	b, err := os.ReadFile(filepath.Join(c.server.Dir, "postgres", "postmaster.pid"))
	if err != nil {
		c.Fatal(err)
	}
	first, _, _ := strings.Cut(string(b), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil || pid < 2 {
		c.Fatalf("the server's process is %q", first)
	}
	killed := syscall.Kill(pid, syscall.SIGKILL) == nil
	c.gate.point("")
	time.Sleep(time.Duration(c.dice.Int64N(int64(3 * time.Second))))
	_ = c.server.Stop(c.Context()) // says that it ended by itself
	c.startServer()
	return killed
}

// end is where a run has come to.
type end struct{ open, workers, intents, silent, machines int }

func (e end) String() string {
	return fmt.Sprintf("%d jobs open, %d workers, %d intents, %d VPS workers not heard since the last harm, %d machines",
		e.open, e.workers, e.intents, e.silent, e.machines)
}

// settle waits, with nothing killed any more, until all is over.
func (c *chaos) settle() end {
	conn := c.connect()
	defer func() { _ = conn.Close(context.Background()) }()
	var e end
	var began time.Time // the server's clock, after the last harm
	if err := conn.QueryRow(c.Context(), "SELECT sluice_clock()").Scan(&began); err != nil {
		c.Fatal(err)
	}
	for deadline := time.Now().Add(chaosEnd); ; {
		err := conn.QueryRow(c.Context(), `SELECT (SELECT count(*) FROM processing_jobs WHERE status NOT IN ('completed', 'dead')),
			(SELECT count(*) FROM workers WHERE provider <> 'vps' AND status NOT IN ('terminated', 'failed')),
			(SELECT count(*) FROM sluice_intents WHERE state = 'open'),
			(SELECT count(*) FROM workers WHERE provider = 'vps' AND last_heartbeat <= $1)`, began).Scan(&e.open, &e.workers, &e.intents, &e.silent)
		if err != nil {
			c.Fatal(err)
		}
		e.machines = len(c.agents(true))
		if e == (end{}) {
			return e
		}
		if time.Now().After(deadline) {
			c.Errorf("the run is not over after %v: %s", chaosEnd, e)
			return e
		}
		time.Sleep(200 * time.Millisecond) // polls the server and the operating system
	}
}

// judge looks at what is left of each job, of each attempt and of the processes.
func (c *chaos) judge(jobs map[string]string) {
	conn := c.connect()
	rows, err := conn.Query(c.Context(), "SELECT id::text, status FROM processing_jobs")
	if err != nil {
		c.Fatal(err)
	}
	var id, status string
	seen := 0
	_, err = pgx.ForEachRow(rows, []any{&id, &status}, func() error {
		seen++
		name := jobs[id]
		want := "completed"
		if strings.HasPrefix(name, "fail") || strings.HasPrefix(name, "hang") {
			want = "dead"
		}
		if status != want {
			c.Errorf("job %s is %s, want %s", name, status, want)
		}
		_, err := os.Stat(filepath.Join(c.dir, "done", name))
		if did := err == nil; did != (want == "completed") {
			c.Errorf("job %s is %s, and its work was done: %v", name, status, did)
		}
		return nil
	})
	if err != nil || seen != len(jobs) {
		c.Errorf("%d jobs of %d are there: %v", seen, len(jobs), err)
	}
	var running, drains int
	if err := conn.QueryRow(c.Context(), "SELECT count(*) FROM job_attempts WHERE status = 'running'").Scan(&running); err != nil || running > 0 {
		c.Errorf("%d attempts still count as running, %v", running, err)
	}
	if err := conn.QueryRow(c.Context(), "SELECT count(*) FROM workers WHERE provider = 'vps' AND status NOT IN ('terminated', 'failed')").Scan(&drains); err != nil || drains > 0 {
		c.Errorf("%d VPS workers are left after a clean stop, %v", drains, err)
	}
	for _, pid := range c.processes() {
		c.Errorf("process %d is left: %s", pid, commandLine(pid))
	}
	c.secrets(conn)
}

// secrets looks for passwords where people and programs look.
func (c *chaos) secrets(conn *pgx.Conn) {
	said := c.said.String() + c.files()
	for _, bad := range []string{"hunter2", c.password, "goroutine ", "panic:"} {
		if i := strings.Index(said, bad); i >= 0 {
			c.Errorf("a log shows %q: …%s…", bad, said[max(0, i-200):min(len(said), i+200)])
		}
	}
	rows, err := conn.Query(c.Context(), "SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
	if err != nil {
		c.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		c.Fatal(err)
	}
	for _, table := range tables {
		var n int
		if err := conn.QueryRow(c.Context(), "SELECT count(*) FROM "+table+" t WHERE t::text LIKE '%hunter2%'").Scan(&n); err != nil || n > 0 {
			c.Errorf("%d rows of %s hold a password, %v", n, table, err)
		}
	}
}

// files are the logs of all agents.
func (c *chaos) files() string {
	paths, err := filepath.Glob(filepath.Join(c.dir, "machines", "logs", "*.log"))
	if err != nil {
		c.Fatal(err)
	}
	var all strings.Builder
	for _, path := range append(paths, filepath.Join(c.dir, "vps.log")) {
		b, err := os.ReadFile(path)
		if err != nil {
			c.Error(err)
		}
		_, _ = fmt.Fprintf(&all, "%s:\n%s\n", filepath.Base(path), b)
	}
	return all.String()
}

// logs shows the ends of what everybody said.
func (c *chaos) logs() {
	said := c.said.String()
	c.Logf("the scheduler:\n%s", said[max(0, len(said)-6000):])
	said = c.files()
	c.Logf("the agents:\n%s", said[max(0, len(said)-6000):])
}

func (c *chaos) killAll() {
	for _, pid := range c.processes() {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// chaosGate is the server's one address, wherever the server is.
type chaosGate struct {
	l  net.Listener
	mu sync.Mutex
	to string
}

func newChaosGate(t *testing.T) *chaosGate {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // ends with the test
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	g := &chaosGate{l: l}
	go g.serve()
	return g
}

func (g *chaosGate) addr() string { return g.l.Addr().String() }

// point says where the server is; nowhere, while it is down.
func (g *chaosGate) point(to string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.to = to
}

func (g *chaosGate) serve() {
	for {
		from, err := g.l.Accept()
		if err != nil {
			return
		}
		g.mu.Lock()
		to := g.to
		g.mu.Unlock()
		go pass(from, to)
	}
}

func pass(from net.Conn, addr string) {
	defer func() { _ = from.Close() }()
	to, err := net.Dial("tcp", addr) //nolint:noctx // ends with either side
	if err != nil {
		return
	}
	defer func() { _ = to.Close() }()
	go func() {
		_, _ = io.Copy(to, from)
		_ = to.Close()
	}()
	_, _ = io.Copy(from, to)
}
