package services_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/redis/go-redis/v9"

	"sluice/scripts/services"
)

func TestEveryServiceAnswersItsClients(t *testing.T) {
	t.Parallel()
	s := start(t, services.Options{Dir: folder(t), Need: []string{"rabbitmq", "redis", "pgbouncer"}})
	t.Run("postgres runs a query", func(t *testing.T) {
		if got := query(t, s.DatabaseURL, "show max_connections"); got != "200" {
			t.Errorf("max_connections = %s, want 200", got)
		}
	})
	t.Run("pgbouncer passes on any database and role", func(t *testing.T) {
		execute(t, s.DatabaseURL, "create role worker login password 'secret'", "create database jobs owner worker")
		worker := strings.Replace(s.PgBouncerURL, "/postgres?", "/jobs?", 1)
		worker = "postgres://worker:secret@" + worker[strings.Index(worker, "@")+1:]
		if got := query(t, worker, "select current_user || ' in ' || current_database()"); got != "worker in jobs" {
			t.Errorf("got %s", got)
		}
	})
	t.Run("pgbouncer gives a connection back after each transaction", func(t *testing.T) {
		first := query(t, s.PgBouncerURL, "select pg_backend_pid()::text")
		if second := query(t, s.PgBouncerURL, "select pg_backend_pid()::text"); second != first {
			t.Errorf("a second client got worker %s while the first one's %s was idle", second, first)
		}
	})
	t.Run("redis keeps a value", func(t *testing.T) { keepsValue(t, s.RedisURL) })
	t.Run("rabbitmq declares a queue and its API lists it", func(t *testing.T) { declaresQueue(t, s) })
	t.Run("strangers are turned away", func(t *testing.T) {
		for _, url := range []string{s.DatabaseURL, s.PgBouncerURL} {
			stranger := "postgres://postgres:guess@" + url[strings.Index(url, "@")+1:]
			if conn, err := pgx.Connect(t.Context(), stranger); err == nil {
				t.Errorf("a wrong password got in: %v", conn.Close(t.Context()))
			}
		}
	})
}

func TestDataAreFoundAgainByTheNextStart(t *testing.T) {
	t.Parallel()
	o := services.Options{Dir: folder(t), Need: []string{"postgres"}}
	s := start(t, o)
	execute(t, s.DatabaseURL, "create table kept as select 'yes' as word")
	stop(t, s)
	if got := query(t, start(t, o).DatabaseURL, "select word from kept"); got != "yes" {
		t.Errorf("got %s", got)
	}
}

func TestStartRecoversDataOfAKilledPostgres(t *testing.T) {
	t.Parallel()
	o := services.Options{Dir: folder(t), Need: []string{"postgres"}}
	s := start(t, o)
	execute(t, s.DatabaseURL, "create table kept as select 'yes' as word", "checkpoint")
	busy := keepBusy(t, s.DatabaseURL)
	kill(t, filepath.Join(s.Dir, "postgres", "postmaster.pid"))
	_ = s.Stop(t.Context()) // frees the folder; it may or may not have seen the death yet
	if got := query(t, start(t, o).DatabaseURL, "select word from kept"); got != "yes" {
		t.Errorf("got %s", got)
	}
	<-busy
}

func TestStartAfterTheWholeRunWasKilled(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	run := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestHelperThatIsKilled$")
	run.Env = append(os.Environ(), "SERVICES_TEST_DIR="+dir)
	out, err := run.StdoutPipe()
	check(t, err)
	check(t, run.Start())
	if _, err := fmt.Fscanln(out, new(string)); err != nil {
		t.Fatalf("the helper did not start its services: %v", err)
	}
	check(t, run.Process.Kill())
	_ = run.Wait()
	s := start(t, services.Options{Dir: dir, Need: []string{"pgbouncer", "redis"}})
	if got := query(t, s.PgBouncerURL, "select 1::text"); got != "1" {
		t.Errorf("got %s", got)
	}
}

// TestHelperThatIsKilled is the victim of the test above.
func TestHelperThatIsKilled(t *testing.T) {
	dir := os.Getenv("SERVICES_TEST_DIR")
	if dir == "" {
		return
	}
	start(t, services.Options{Dir: dir, Need: []string{"pgbouncer", "redis"}})
	fmt.Println("started")
	select {}
}

func TestServicesInTwoFoldersDoNotCollide(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"one", "two"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, services.Options{Dir: folder(t), Need: []string{"pgbouncer", "redis"}})
			execute(t, s.PgBouncerURL, "create table mine as select '"+name+"' as word")
			if got := query(t, s.DatabaseURL, "select word from mine"); got != name {
				t.Errorf("got %s, want %s", got, name)
			}
			keepsValue(t, s.RedisURL)
		})
	}
}

func TestAFolderInUseIsRefused(t *testing.T) {
	t.Parallel()
	o := services.Options{Dir: folder(t), Need: []string{services.Redis}}
	s := start(t, o)
	if _, err := services.Start(t.Context(), o); err == nil || !strings.Contains(err.Error(), "in use by another run") {
		t.Errorf("second start: %v", err)
	}
	stop(t, s)
	start(t, o)
}

func TestAFailedStartShowsTheLogAndFreesTheFolder(t *testing.T) {
	t.Parallel()
	o := services.Options{Dir: folder(t), Need: []string{"redis", "postgres"}}
	s := start(t, o)
	stop(t, s)
	control := filepath.Join(s.Dir, "postgres", "global", "pg_control")
	check(t, os.Rename(control, control+".away"))
	if _, err := services.Start(t.Context(), o); err == nil || !strings.Contains(err.Error(), "could not open file") {
		t.Errorf("start with broken data: %v", err)
	}
	check(t, os.Rename(control+".away", control))
	start(t, o)
}

func TestDataOfAMissingVersionAreLeftAlone(t *testing.T) {
	t.Parallel()
	o := services.Options{Dir: folder(t), Need: []string{"postgres"}}
	s := start(t, o)
	stop(t, s)
	check(t, os.WriteFile(filepath.Join(s.Dir, "postgres", "PG_VERSION"), []byte("8\n"), 0o600))
	_, err := services.Start(t.Context(), o)
	if err == nil || !strings.Contains(err.Error(), "of Postgres 8, which is not installed") {
		t.Errorf("start: %v", err)
	}
}

func TestGivenAddressesAreUsedAndNothingStarts(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(folder(t), "services")
	s := start(t, services.Options{
		Dir: dir, Need: []string{"postgres", "redis", "rabbitmq", "pgbouncer"},
		DatabaseURL: "postgres://db", PgBouncerURL: "postgres://pool", RedisURL: "redis://cache", AMQPURL: "amqp://mq",
	})
	want := "DATABASE_URL=postgres://db PGBOUNCER_URL=postgres://pool REDIS_URL=redis://cache AMQP_URL=amqp://mq"
	if got := strings.Join(s.Env(), " "); got != want {
		t.Errorf("got %s", got)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Errorf("%s was made for nothing", dir)
	}
}

func TestPgBouncerServesAGivenPostgres(t *testing.T) {
	t.Parallel()
	given := start(t, services.Options{Dir: folder(t), Need: []string{"postgres"}})
	s := start(t, services.Options{Dir: folder(t), Need: []string{"pgbouncer"}, DatabaseURL: given.DatabaseURL})
	execute(t, given.DatabaseURL, "create table mine as select 'yes' as word")
	if got := query(t, s.PgBouncerURL, "select word from mine"); got != "yes" {
		t.Errorf("got %s", got)
	}
}

func TestAnUnknownServiceIsRefused(t *testing.T) {
	t.Parallel()
	_, err := services.Start(t.Context(), services.Options{Dir: folder(t), Need: []string{"oracle"}})
	if err == nil || !strings.Contains(err.Error(), `unknown service "oracle"`) {
		t.Errorf("start: %v", err)
	}
}

func TestAFolderThatTheServicesCannotEnterIsReplaced(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root's services run as another user")
	}
	dir := filepath.Join(folder(t), "closed")
	check(t, os.Mkdir(dir, 0o700))
	var log strings.Builder
	s := start(t, services.Options{Dir: dir, Need: []string{"postgres"}, Log: &log})
	t.Cleanup(func() { check(t, os.RemoveAll(s.Dir)) })
	if s.Dir == dir || !strings.Contains(log.String(), "using "+s.Dir+" instead") {
		t.Errorf("used %s, log: %s", s.Dir, log.String())
	}
}

func TestACommandSeesTheServicesAndItsExitCodeComesBack(t *testing.T) {
	t.Parallel()
	s := start(t, services.Options{Dir: folder(t), RedisURL: "redis://given"})
	code, err := s.Run([]string{"sh", "-c", `[ "$REDIS_URL" = redis://given ] && exit 7`}, nil)
	if err != nil || code != 7 {
		t.Errorf("got %d, %v; want 7", code, err)
	}
	if _, err := s.Run([]string{"/no/such/command"}, nil); err == nil {
		t.Error("a command that cannot run is no error")
	}
}

func TestSignalsReachTheCommandAndItsChildren(t *testing.T) {
	t.Parallel()
	s := start(t, services.Options{Dir: folder(t)})
	signals := make(chan os.Signal, 1)
	signals <- syscall.SIGTERM
	code, err := s.Run([]string{"sh", "-c", "sleep 600; exit 3"}, signals)
	if err != nil || code != 128+int(syscall.SIGTERM) {
		t.Errorf("got %d, %v; want %d", code, err, 128+int(syscall.SIGTERM))
	}
}

// folder is a temporary folder that root's services can get to.
func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	check(t, os.Chmod(filepath.Dir(dir), 0o755)) // for the user that the services run as
	return dir
}

func start(t *testing.T, o services.Options) *services.Services {
	t.Helper()
	o.Volatile = true
	if o.Log == nil {
		o.Log = t.Output()
	}
	s, err := services.Start(t.Context(), o)
	check(t, err)
	t.Cleanup(func() { _ = s.Stop(context.Background()) })
	return s
}

func stop(t *testing.T, s *services.Services) {
	t.Helper()
	check(t, s.Stop(t.Context()))
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	config, err := pgx.ParseConfig(url)
	check(t, err)
	// A pool by transaction knows nothing of statements prepared before.
	config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	conn, err := pgx.ConnectConfig(t.Context(), config)
	check(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func query(t *testing.T, url, sql string) string {
	t.Helper()
	var got string
	check(t, connect(t, url).QueryRow(t.Context(), sql).Scan(&got))
	return got
}

func execute(t *testing.T, url string, statements ...string) {
	t.Helper()
	conn := connect(t, url)
	for _, sql := range statements {
		_, err := conn.Exec(t.Context(), sql)
		check(t, err)
	}
}

// keepBusy has a worker compute, so that it outlives a killed Postgres. What
// comes back is closed when the worker is gone.
func keepBusy(t *testing.T, url string) <-chan struct{} {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	check(t, err)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = conn.Exec(context.Background(), "select count(*) from generate_series(1, 1000000000000)")
	}()
	eventually(t, "the worker is busy", func() bool {
		return query(t, url, "select count(*)::text from pg_stat_activity where state = 'active'") == "2"
	})
	return gone
}

func kill(t *testing.T, pidFile string) {
	t.Helper()
	content, err := os.ReadFile(pidFile)
	check(t, err)
	pid, err := strconv.Atoi(strings.SplitN(string(content), "\n", 2)[0])
	check(t, err)
	check(t, syscall.Kill(pid, syscall.SIGKILL))
}

func keepsValue(t *testing.T, url string) {
	t.Helper()
	options, err := redis.ParseURL(url)
	check(t, err)
	client := redis.NewClient(options)
	defer client.Close() //nolint:errcheck // nothing follows
	check(t, client.SetNX(t.Context(), "key", url, 0).Err())
	if got, err := client.Get(t.Context(), "key").Result(); err != nil || got != url {
		t.Errorf("got %q, %v", got, err)
	}
}

func declaresQueue(t *testing.T, s *services.Services) {
	t.Helper()
	conn, err := amqp.Dial(s.AMQPURL)
	check(t, err)
	defer conn.Close() //nolint:errcheck // nothing follows
	channel, err := conn.Channel()
	check(t, err)
	_, err = channel.QueueDeclare("render", true, false, false, false, nil)
	check(t, err)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.RabbitMQURL+"/api/queues/%2F/render", nil)
	check(t, err)
	resp, err := http.DefaultClient.Do(req)
	check(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	check(t, err)
	if resp.StatusCode != http.StatusOK {
		t.Errorf("%s: %s", resp.Status, body)
	}
}

// eventually polls for what another process does in its own time.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(20 * time.Second)
	for !holds() {
		select {
		case <-deadline:
			t.Fatalf("not in time: %s", what)
		case <-tick.C:
		}
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
