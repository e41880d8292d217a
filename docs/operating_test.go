package docs_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"sluice/scripts/services"
)

// marked is a block of commands that a document has run, by its name.
var marked = regexp.MustCompile("(?s)<!-- run: (\\w+) -->\n```sh\n(.*?)```")

// server is the one that operating.md speaks of: its database, its folder, its programs.
type server struct {
	*testing.T
	blocks map[string]string
	said   map[string]string // what a block that was run wrote
	name   string            // of the database
	dir    string
	env    []string
	admin  *pgx.Conn
}

// In the order of the document, and between its blocks what happens to an operator.
func TestOperatingIsRunFromTheFirstRoleToTheLast(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for _, block := range []string{"roles", "secrets", "settings", "first", "shadow", "hybrid"} {
		s.run(block)
	}
	s.says("settings", "is valid")
	s.says("first", "Nothing to do")
	agent := s.agent()

	s.query("INSERT INTO sluice_overrides (id, at, who, why) VALUES ('o-1', sluice_clock(), 'evaluate', 'daily limit') RETURNING true")
	s.run("breach")
	s.run("lift")
	s.tickUntil("the override is lifted", "SELECT NOT EXISTS (SELECT FROM sluice_overrides WHERE lifted_at IS NULL)")

	s.query("SELECT count(sluice_enqueue('ocr', '{}')) = 9 FROM generate_series(1, 9)")
	s.run("rotate")
	s.query("SELECT count(pg_terminate_backend(pid)) >= 0 FROM pg_stat_activity WHERE usename = $1", s.name+"_agent") // it has to log in again
	s.until("no job is lost by it", "SELECT count(*) = 9 FROM processing_jobs WHERE status = 'completed'")
	s.run("upgrade")

	s.shell("pg_dump --format=custom --dbname " + s.name + " --file " + s.dir + "/last-night.dump")
	s.query("SELECT count(sluice_enqueue('ocr', '{}')) = 90 FROM generate_series(1, 90)")
	s.tickUntil("a machine works that the dump has not", "SELECT EXISTS (SELECT FROM workers WHERE provider = 'local' AND status = 'ready')")
	s.shell("pg_restore --clean --if-exists --dbname " + s.name + " " + s.dir + "/last-night.dump")
	s.run("adopt")
	s.tickUntil("it is taken over", "SELECT EXISTS (SELECT FROM workers WHERE provider = 'local' AND status IN ('ready', 'provisioning'))")

	s.run("stop")
	s.tickUntil("no machine is left", "SELECT NOT EXISTS (SELECT FROM workers WHERE provider = 'local' AND status NOT IN ('terminated', 'failed'))")
	stop(t, agent)
	s.run("remove")
}

func newServer(t *testing.T) *server {
	t.Helper()
	admin, err := pgx.Connect(t.Context(), os.Getenv("DATABASE_URL"))
	if err != nil {
		t.Fatalf("DATABASE_URL has to name a real Postgres, as `make test` does: %v", err)
	}
	psql, env, err := services.Psql(t.Context(), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	s := &server{T: t, blocks: map[string]string{}, said: map[string]string{}, name: fmt.Sprintf("docs%d", time.Now().UnixNano()), dir: t.TempDir(), admin: admin}
	for _, m := range marked.FindAllStringSubmatch(readDoc(t, "operating.md"), -1) {
		s.blocks[m[1]] = m[2]
	}
	at := admin.Config()
	own, err := url.Parse(os.Getenv("DATABASE_URL"))
	if err != nil {
		t.Fatal("DATABASE_URL is no URL")
	}
	own.Path = "/" + s.name
	s.env = append([]string{
		"PATH=" + build(t) + ":" + filepath.Dir(psql) + ":" + os.Getenv("PATH"), "HOME=" + s.dir, "USER=tester", "ADMIN=" + own.String(),
		"PGHOST=" + at.Host, "PGPORT=" + strconv.Itoa(int(at.Port)), "PGUSER=" + at.User, "PGPASSWORD=" + at.Password, "PGDATABASE=" + at.Database,
		"SLUICE_CONFIG=" + s.dir + "/etc/scheduler.json", "SLUICE_LOCAL_DIR=" + s.dir + "/machines",
	}, env...)
	if err := os.Mkdir(filepath.Join(s.dir, "etc"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.clear)
	return s
}

// clear leaves nothing on the server, wherever the test has ended.
func (s *server) clear() {
	ctx := context.Background()
	for _, sql := range []string{"DROP DATABASE IF EXISTS %[1]s WITH (FORCE)", "DROP ROLE IF EXISTS %[1]s_scheduler, %[1]s_agent"} {
		if _, err := s.admin.Exec(ctx, fmt.Sprintf(sql, s.name)); err != nil {
			s.Error(err)
		}
	}
	_ = s.admin.Close(ctx) // nothing is left to be done on it
}

// run runs a block of the document, which must succeed.
func (s *server) run(block string) {
	s.Helper()
	if s.blocks[block] == "" {
		s.Fatalf("operating.md has no block %q", block)
	}
	at := s.admin.Config()
	s.said[block] = s.shell(strings.NewReplacer("media", s.name, "/etc/sluice", s.dir+"/etc", "127.0.0.1:5432", fmt.Sprintf("%s:%d", at.Host, at.Port)).Replace(s.blocks[block]))
}

func (s *server) shell(script string) string {
	s.Helper()
	cmd := exec.CommandContext(s.Context(), "bash", "-euo", "pipefail", "-c", script)
	cmd.Env = s.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.Fatalf("%s\n%v: %s", script, err, out)
	}
	return string(out)
}

func (s *server) says(block, want string) {
	s.Helper()
	if !strings.Contains(s.said[block], want) {
		s.Errorf("%s does not say %q: %s", block, want, s.said[block])
	}
}

// query asks the database something, each time anew: it is restored and dropped in between.
func (s *server) query(sql string, args ...any) (yes bool) {
	s.Helper()
	c := s.admin.Config().Copy()
	c.Database = s.name
	conn, err := pgx.ConnectConfig(s.Context(), c)
	if err != nil {
		s.Fatal(err)
	}
	defer func() { _ = conn.Close(s.Context()) }() // only asked
	if err := conn.QueryRow(s.Context(), sql, args...).Scan(&yes); err != nil {
		s.Fatalf("%s: %v", sql, err)
	}
	return yes
}

// until waits for the agents, which are processes of their own.
func (s *server) until(what, sql string) {
	s.Helper()
	for end := time.Now().Add(2 * time.Minute); !s.query(sql); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			s.Fatalf("not within two minutes: %s; the blocks said %q", what, s.said)
		}
	}
}

// tickUntil is the timer meanwhile: a tick in the second of the one before is skipped.
func (s *server) tickUntil(what, sql string) {
	s.Helper()
	for end := time.Now().Add(2 * time.Minute); !s.query(sql); time.Sleep(500 * time.Millisecond) {
		if said := s.shell("sluice tick"); time.Now().After(end) {
			s.Fatalf("not after two minutes of ticks: %s; the last one said %s", what, said)
		}
	}
}

// agent starts the server's own worker as its unit does.
func (s *server) agent() *exec.Cmd {
	s.Helper()
	cmd := exec.CommandContext(s.Context(), filepath.Join(strings.Split(strings.TrimPrefix(s.env[0], "PATH="), ":")[0], "sluice-agent"))
	cmd.Env = append([]string{"SLUICE_DATABASE_URL_REF=file:" + s.dir + "/etc/agent.url"}, s.env[:2]...)
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		_, _ = cmd.Process.Kill(), cmd.Wait() // it has ended, but where the test has failed
		if s.Failed() {
			s.Logf("the agent said: %s", said.String())
		}
	})
	return cmd
}

func stop(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the agent ends with %v", err)
	}
}
