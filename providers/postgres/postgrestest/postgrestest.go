// Package postgrestest gives each test a migrated, empty database of its own on a real server.
package postgrestest

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"sluice/providers/postgres"
)

// Database is a test's own database.
type Database struct {
	Name   string
	URL    string // through the pooler where POSTGRES_VIA=pgbouncer says so
	Direct string // past the pooler
}

// New lends a migrated and emptied database with a deployment id of its own. Making one takes a
// second, so they are kept on the server for the next test; a test that changes the schema spoils
// only its own.
func New(t testing.TB) Database {
	t.Helper()
	return lend(t, "", migrate)
}

// lend finds a database of a kind that nobody uses; one that has to be made is brought to its schema by prepare.
func lend(t testing.TB, kind string, prepare func(testing.TB, Database)) Database {
	t.Helper()
	admin := connect(t, server(t))
	mark := fingerprint(t)
	for n := 0; ; n++ {
		d := named(t, fmt.Sprintf("sluice_test_%s_%s%d", mark, kind, n))
		// The lock ends with this test's connection.
		if value[bool](t, admin, lock, d.Name) {
			d.refresh(t, admin, prepare)
			return d
		}
	}
}

func migrate(t testing.TB, d Database) {
	t.Helper()
	if _, err := postgres.Migrate(t.Context(), d.Direct); err != nil {
		t.Fatal(err)
	}
}

// Empty makes a database without anything in it, dropped when the test ends.
func Empty(t testing.TB) Database {
	t.Helper()
	admin := connect(t, server(t))
	d := named(t, "sluice_test_"+random())
	exec(t, admin, "CREATE DATABASE "+d.Name+" TEMPLATE template0")
	t.Cleanup(func() { exec(t, admin, "DROP DATABASE "+d.Name+" WITH (FORCE)") })
	return d
}

// Open opens a test's database as Sluice does.
func (d Database) Open(t testing.TB) *postgres.DB {
	t.Helper()
	db, err := postgres.Open(t.Context(), postgres.URL(d.URL))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

// Connect is a plain connection past the pooler, for looking and for breaking things.
func (d Database) Connect(t testing.TB) *pgx.Conn {
	t.Helper()
	return connect(t, d.Direct)
}

// Clock makes every sluice_clock() of the database stand still at a time, until it is set again.
func (d Database) Clock(t testing.TB) (set func(time.Time)) {
	t.Helper()
	c := d.Connect(t)
	return func(now time.Time) {
		t.Helper()
		exec(t, c, fmt.Sprintf("CREATE OR REPLACE FUNCTION sluice_clock() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT timestamptz ''%s'''",
			now.UTC().Format(time.RFC3339Nano)))
	}
}

const (
	lock = "SELECT pg_try_advisory_lock(hashtext($1))"

	// empty forgets all rows; nothing in these tables points to anything else.
	empty = `DO $$ DECLARE r record; BEGIN
		FOR r IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename NOT IN ('sluice_schema', 'sluice_state') LOOP
			EXECUTE format('DELETE FROM %I', r.tablename);
		END LOOP;
		DELETE FROM sluice_state; INSERT INTO sluice_state DEFAULT VALUES;
	END $$;
	CREATE OR REPLACE FUNCTION sluice_clock() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT clock_timestamp()'`

	// shape is a digest of everything that a test might have changed in the schema.
	shape = `SELECT md5(string_agg(x, ',' ORDER BY x)) FROM (
		SELECT concat(c.relname, c.relacl, a.attname, a.atttypid, a.attnotnull) AS x FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
		 WHERE c.relnamespace = 'public'::regnamespace
		UNION ALL SELECT concat(p.proname, p.proacl, p.prosrc) FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace
		UNION ALL SELECT concat(tgname, tgenabled) FROM pg_trigger
		UNION ALL SELECT version_id::text FROM sluice_schema) s`
)

// refresh empties a database that is there, and makes it anew where it is not or was changed.
func (d Database) refresh(t testing.TB, admin *pgx.Conn, prepare func(testing.TB, Database)) {
	t.Helper()
	known := value[string](t, admin, "SELECT coalesce((SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = $1), '')", d.Name)
	if known != "" {
		value[int](t, admin, "SELECT count(pg_terminate_backend(pid))::int FROM pg_stat_activity WHERE datname = $1 AND state <> 'idle'", d.Name)
		if d.emptied(t, known) {
			return
		}
	}
	forget(t, admin)
	exec(t, admin, "DROP DATABASE IF EXISTS "+d.Name+" WITH (FORCE)")
	exec(t, admin, "CREATE DATABASE "+d.Name+" TEMPLATE template0")
	prepare(t, d)
	c := d.Connect(t)
	exec(t, admin, fmt.Sprintf("COMMENT ON DATABASE %s IS '%s'", d.Name, value[string](t, c, shape)))
	_ = c.Close(t.Context())
}

// forget drops databases that earlier migrations left and nobody uses.
func forget(t testing.TB, admin *pgx.Conn) {
	t.Helper()
	for _, name := range value[[]string](t, admin, `SELECT ARRAY(SELECT datname::text FROM pg_database
		WHERE datname ~ '^sluice_test_[0-9a-f]{12}_[a-z]*[0-9]+$' AND NOT starts_with(datname, $1))`, "sluice_test_"+fingerprint(t)) {
		if value[bool](t, admin, lock, name) {
			exec(t, admin, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
			value[bool](t, admin, "SELECT pg_advisory_unlock(hashtext($1))", name)
		}
	}
}

func (d Database) emptied(t testing.TB, known string) bool {
	t.Helper()
	c, err := pgx.Connect(t.Context(), d.Direct)
	if err != nil {
		return false
	}
	defer func() { _ = c.Close(t.Context()) }()
	if _, err := c.Exec(t.Context(), empty); err != nil {
		return false
	}
	var is string
	err = c.QueryRow(t.Context(), shape).Scan(&is)
	return err == nil && is == known
}

// fingerprint is of everything that shapes a migrated database.
func fingerprint(t testing.TB) string {
	t.Helper()
	_, here, _, _ := runtime.Caller(0)
	root := filepath.Dir(filepath.Dir(here))
	files, err := filepath.Glob(filepath.Join(root, "migrations", "*.sql"))
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, filepath.Join(root, "roles.sql"))
	slices.Sort(files)
	h := sha256.New()
	h.Write([]byte(next))
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		h.Write(b)
	}
	return hex.EncodeToString(h.Sum(nil))[:12]
}

func server(t testing.TB) string {
	t.Helper()
	s := os.Getenv("DATABASE_URL")
	if s == "" {
		t.Fatal("DATABASE_URL is not set and this test needs a real Postgres: run `make test`")
	}
	return s
}

// via is the server that Sluice's own connections go through.
func via(t testing.TB) string {
	t.Helper()
	if os.Getenv("POSTGRES_VIA") != "pgbouncer" {
		return server(t)
	}
	s := os.Getenv("PGBOUNCER_URL")
	if s == "" {
		t.Fatal("POSTGRES_VIA=pgbouncer needs PGBOUNCER_URL: run `make test`")
	}
	return s
}

func named(t testing.TB, name string) Database {
	t.Helper()
	return Database{Name: name, Direct: onServer(t, server(t), name), URL: onServer(t, via(t), name)}
}

func onServer(t testing.TB, server, database string) string {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal("DATABASE_URL is not a URL (the value is not shown)")
	}
	u.Path = "/" + database
	return u.String()
}

func connect(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.WithoutCancel(t.Context())) })
	return c
}

// exec forgives what another database of the same server may be doing at the same moment.
func exec(t testing.TB, c *pgx.Conn, sql string) {
	t.Helper()
	for range 10 {
		_, err := c.Exec(context.WithoutCancel(t.Context()), sql)
		var pg *pgconn.PgError
		if errors.As(err, &pg) && pg.Code == "55006" { // a backend is still leaving
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		return
	}
	t.Fatalf("%s: in use", sql)
}

func value[T any](t testing.TB, c *pgx.Conn, sql string, args ...any) (v T) {
	t.Helper()
	if err := c.QueryRow(t.Context(), sql, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

func random() string {
	b := make([]byte, 6)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}
