// Package postgrestest gives each test a migrated database of its own on a real server.
package postgrestest

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"sluice/providers/postgres"
)

// Database is a test's own database.
type Database struct {
	Name   string
	URL    string // through the pooler where POSTGRES_VIA=pgbouncer says so
	Direct string // past the pooler
}

// New makes a migrated database with a deployment id of its own, dropped when the test ends.
func New(t testing.TB) Database {
	t.Helper()
	admin := connect(t, server(t))
	return create(t, admin, template(t, admin), func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, "UPDATE sluice_state SET deployment = gen_random_uuid()")
		return err
	})
}

// Empty makes a database without anything in it.
func Empty(t testing.TB) Database {
	t.Helper()
	return create(t, connect(t, server(t)), "template0", nil)
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

// SetClock makes every sluice_clock() of the database answer with this time until it is set again.
func (d Database) SetClock(t testing.TB, now time.Time) {
	t.Helper()
	exec(t, d.Connect(t), fmt.Sprintf(`CREATE OR REPLACE FUNCTION sluice_clock() RETURNS timestamptz LANGUAGE sql VOLATILE AS
		'SELECT timestamptz ''%s'''`, now.UTC().Format(time.RFC3339Nano)))
}

func server(t testing.TB) string {
	t.Helper()
	s := os.Getenv("DATABASE_URL")
	if s == "" {
		t.Fatal("DATABASE_URL is not set and this test needs a real Postgres: run `make test`")
	}
	return s
}

// via is the server that a test's own connections go through.
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

func create(t testing.TB, admin *pgx.Conn, from string, prepare func(context.Context, *pgx.Conn) error) Database {
	t.Helper()
	d := Database{Name: "sluice_test_" + random()}
	d.Direct, d.URL = named(t, server(t), d.Name), named(t, via(t), d.Name)
	clone(t, admin, d.Name, from)
	t.Cleanup(func() {
		c, err := pgx.Connect(context.WithoutCancel(t.Context()), server(t))
		if err != nil {
			t.Errorf("drop test database: %v", err)
			return
		}
		exec(t, c, "DROP DATABASE IF EXISTS "+d.Name+" WITH (FORCE)")
		_ = c.Close(context.WithoutCancel(t.Context()))
	})
	if prepare != nil {
		if err := prepare(t.Context(), d.Connect(t)); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// template makes a migrated database once per state of the migrations, for whoever comes first.
func template(t testing.TB, admin *pgx.Conn) string {
	t.Helper()
	name := "sluice_template_" + fingerprint(t)
	exec(t, admin, "SELECT pg_advisory_lock(hashtext('sluice templates'))")
	defer exec(t, admin, "SELECT pg_advisory_unlock(hashtext('sluice templates'))")
	var there bool
	if err := admin.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", name).Scan(&there); err != nil {
		t.Fatal(err)
	}
	if there {
		return name
	}
	fresh := name + "_" + random()
	clone(t, admin, fresh, "template0")
	if _, err := postgres.Migrate(t.Context(), named(t, server(t), fresh)); err != nil {
		t.Fatal(err)
	}
	exec(t, admin, "ALTER DATABASE "+fresh+" RENAME TO "+name)
	return name
}

// clone waits while a backend that has just left the template is still being counted as its user.
func clone(t testing.TB, admin *pgx.Conn, name, from string) {
	t.Helper()
	exec(t, admin, fmt.Sprintf("CREATE DATABASE %s TEMPLATE %s", name, from))
}

// fingerprint is of everything that shapes the template.
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
	for _, f := range files {
		b, err := os.ReadFile(f) //nolint:gosec // our own files
		if err != nil {
			t.Fatal(err)
		}
		h.Write(b)
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
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

func exec(t testing.TB, c *pgx.Conn, sql string) {
	t.Helper()
	if _, err := c.Exec(context.WithoutCancel(t.Context()), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func named(t testing.TB, server, database string) string {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal("DATABASE_URL is not a URL (the value is not shown)")
	}
	u.Path = "/" + database
	return u.String()
}

func random() string {
	b := make([]byte, 6)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}
