package postgres_test

import (
	"errors"
	"io/fs"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"sluice/core/fleet"
	"sluice/providers/postgres"
	"sluice/providers/postgres/postgrestest"
)

func TestVersionIsThatOfTheLastMigration(t *testing.T) {
	t.Parallel()
	files, err := fs.Glob(postgres.Migrations, "migrations/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	last := strings.TrimPrefix(files[len(files)-1], "migrations/")
	if n, err := strconv.Atoi(last[:5]); err != nil || n != postgres.Version {
		t.Errorf("last migration is %s, Version is %d", last, postgres.Version)
	}
}

func TestMigrationsRunOnceWhoeverRunsThem(t *testing.T) {
	t.Parallel()
	d := postgrestest.Empty(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if _, err := postgres.Migrate(t.Context(), d.URL); err != nil {
				t.Errorf("migrate: %v", err)
			}
		})
	}
	wg.Wait()
	before, err := d.Open(t).Recall(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := postgres.Migrate(t.Context(), d.URL); err != nil {
		t.Errorf("migrate again: %v", err)
	}
	if after, err := d.Open(t).Recall(t.Context()); err != nil || after.Deployment != before.Deployment || before.Deployment == "" {
		t.Errorf("deployment id went from %q to %q, %v", before.Deployment, after.Deployment, err)
	}
}

// host is a database in which the spec's tables exist already, with rows and columns of the host's own.
const host = `
CREATE TABLE workers (id uuid PRIMARY KEY, hostname text NOT NULL DEFAULT '', status varchar(20), queues text[],
	current_jobs integer DEFAULT 0, last_job_completed_at timestamptz, last_heartbeat timestamptz, cost_per_hour_cents integer, terminated_at timestamptz);
CREATE TABLE worker_metrics (worker_id uuid REFERENCES workers (id), cpu_percent numeric, recorded_at timestamptz DEFAULT now());
CREATE TABLE processing_jobs (id uuid PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT now(), user_id uuid, file_name text NOT NULL DEFAULT 'none', status text DEFAULT 'queued');
CREATE TABLE job_attempts (id bigint GENERATED ALWAYS AS IDENTITY, status text, note text);
INSERT INTO workers (id, hostname, status, queues) VALUES ('11111111-1111-4111-8111-111111111111', 'old-box', 'ready', '{images}'), (gen_random_uuid(), 'odd', 'active', NULL);
INSERT INTO worker_metrics VALUES ('11111111-1111-4111-8111-111111111111', 12.5);
INSERT INTO processing_jobs (id, user_id, file_name) VALUES ('22222222-2222-4222-8222-222222222222', gen_random_uuid(), 'a.pdf');`

func TestMigratingAHostsDatabaseKeepsItsRowsAndColumns(t *testing.T) {
	t.Parallel()
	d := postgrestest.Empty(t)
	c := d.Connect(t)
	must(t, c, strings.Replace(host, "job_attempts (id bigint GENERATED ALWAYS AS IDENTITY", "job_attempts (id uuid DEFAULT gen_random_uuid()", 1))
	if _, err := postgres.Migrate(t.Context(), d.URL); err != nil {
		t.Fatal(err)
	}
	var name, file string
	if err := c.QueryRow(t.Context(), `SELECT w.hostname, j.file_name FROM workers w, processing_jobs j WHERE w.status = 'ready'`).Scan(&name, &file); err != nil || name != "old-box" || file != "a.pdf" {
		t.Errorf("host's columns now say %q and %q, %v", name, file, err)
	}
	m, err := d.Open(t).Recall(t.Context())
	if err != nil || len(m.Workers) != 1 || m.Workers[0].Cloud() || m.Workers[0].ID != "11111111-1111-4111-8111-111111111111" {
		t.Errorf("recalled %+v, %v: want the host's ready worker as one that Sluice does not pay for", m.Workers, err)
	}
	must(t, c, "INSERT INTO workers (id, hostname, status) VALUES (gen_random_uuid(), 'another', 'ready')")
	must(t, c, "INSERT INTO processing_jobs (id, file_name, queue) VALUES (gen_random_uuid(), 'b.pdf', 'images')")
	assign(t, d, "images")
	w := openWorker(t, d)
	s := register(t, w, "box")
	jobs, err := w.Claim(t.Context(), s.Worker, []string{"images"}, 5)
	if err != nil || len(jobs) != 1 {
		t.Fatalf("claimed %+v, %v: want the host's new job", jobs, err)
	}
	if ok, err := w.Complete(t.Context(), jobs[0].Attempt, nil); !ok || err != nil {
		t.Errorf("complete: %v, %v", ok, err)
	}
	if _, err := d.Open(t).Enqueue(t.Context(), postgres.NewJob{Queue: "images", User: "33333333-3333-4333-8333-333333333333"}); err != nil {
		t.Errorf("enqueue for a user whose id is a uuid here: %v", err)
	}
}

func TestMigratingTablesThatDoNotFitChangesNothingAndNamesTheColumn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ sql, want string }{
		"a type that does not fit":      {host, "job_attempts.id is bigint"},
		"a column that must be filled":  {"CREATE TABLE workers (id uuid PRIMARY KEY, secret_name text NOT NULL)", "workers.secret_name"},
		"times without their time zone": {"CREATE TABLE workers (id uuid PRIMARY KEY, last_heartbeat timestamp)", "workers.last_heartbeat is timestamp without"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := postgrestest.Empty(t)
			conn := d.Connect(t)
			must(t, conn, c.sql)
			_, err := postgres.Migrate(t.Context(), d.URL)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "sluice migrate again") {
				t.Errorf("got %v, want %q and what to do", err, c.want)
			}
			var n int
			if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM information_schema.columns WHERE table_schema = 'public' AND (table_name = 'sluice_state' OR column_name = 'intent_id')").Scan(&n); err != nil || n != 0 {
				t.Errorf("%d columns of ours are left, %v", n, err)
			}
		})
	}
}

func TestASchemaThatDoesNotFitIsRefusedWithWhatToRun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sql  string
		want []string
	}{
		"too old": {"DELETE FROM sluice_schema WHERE version_id > 1", []string{"has 1", "needs 3", "`sluice migrate`"}},
		"too new": {"INSERT INTO sluice_schema (version_id, is_applied) VALUES (5, true)", []string{"has 5", "works on 3 and 4", "upgrade sluice"}},
		"of something else": {`DO $$ DECLARE r record; BEGIN FOR r IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' LOOP
			EXECUTE format('DROP TABLE %I CASCADE', r.tablename); END LOOP; END $$; CREATE TABLE customers ()`, []string{"no tables of Sluice", "`sluice migrate`"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := postgrestest.New(t)
			must(t, d.Connect(t), c.sql)
			db := d.Open(t)
			_, recalled := db.Recall(t.Context())
			transacted := db.Transact(t.Context(), func(fleet.Memory) (fleet.Plan, fleet.Record) {
				t.Error("decided on a schema that does not fit")
				return fleet.Plan{Skipped: fleet.SkipRepeated{}}, fleet.Record{}
			})
			for _, err := range []error{recalled, transacted} {
				if !errors.Is(err, fleet.ErrSchema) {
					t.Fatalf("got %v, want ErrSchema", err)
				}
				for _, w := range c.want {
					if !strings.Contains(err.Error(), w) {
						t.Errorf("%q does not say %q", err, w)
					}
				}
			}
			if name == "too new" {
				migrateRefuses(t, d, strconv.Itoa(postgres.Version+2))
			}
		})
	}
}

// migrateRefuses says that an older program leaves a newer schema as it is.
func migrateRefuses(t *testing.T, d postgrestest.Database, has string) {
	t.Helper()
	_, err := postgres.Migrate(t.Context(), d.URL)
	if !errors.Is(err, fleet.ErrSchema) || !strings.Contains(err.Error(), "the database has "+has+",") || !strings.Contains(err.Error(), "the newer sluice") {
		t.Errorf("migrating it: %v, want ErrSchema and what to do", err)
	}
}

func TestAMigratorThatMayNotMakeRolesSaysSoAndFinishes(t *testing.T) {
	t.Parallel()
	d := postgrestest.New(t)
	name := login(t, d, "")
	c := d.Connect(t)
	must(t, c, "ALTER DATABASE "+d.Name+" OWNER TO "+name)
	must(t, c, "GRANT ALL ON SCHEMA public TO "+name)
	config, err := pgx.ParseConfig(as(t, d.Direct, name))
	if err != nil {
		t.Fatal(err)
	}
	var notices []string
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { notices = append(notices, n.Message) }
	limited, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = limited.Close(t.Context()) }()
	// Roles belong to the server: other names stand for a server that has none. The functions are the owner's.
	sql := strings.NewReplacer("sluice_worker'", "absent_worker'", "sluice_functions'", "absent_functions'",
		"ROLE sluice_worker N", "ROLE absent_worker N", `'sluice\_%'`, `'none\_%'`).Replace(postgres.Roles)
	must(t, limited, sql)
	if len(notices) != 1 || !strings.Contains(notices[0], "CREATE ROLE sluice_worker NOLOGIN") && !strings.Contains(notices[0], "CREATE ROLE absent_worker NOLOGIN") {
		t.Errorf("notices %q, want one that says what an administrator runs", notices)
	}
}
