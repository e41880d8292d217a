package postgres

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"sluice/core/fleet"
)

// Version is the schema that this program makes. It reads and writes the next one too, so that the database may be
// migrated while functions of this version still run: each migration adds to what they know and changes none of it.
const Version = 3

// versionTable is Sluice's own, so that a host that uses the same library does not meet it.
const versionTable = "sluice_schema"

//go:embed migrations/*.sql
var migrations embed.FS

//go:embed roles.sql
var roles string

// Migrate brings a database to Version, whether it is empty, older, or holds the shared tables of a
// host already. Several at once wait for each other; a repeat changes nothing. The notices are for people.
func Migrate(ctx context.Context, url string) (notices []string, err error) {
	config, err := parse(url)
	if err != nil {
		return nil, err
	}
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		if n.Severity == "WARNING" {
			notices = append(notices, n.Message)
		}
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, explain("connect to database", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	// The lock lives as long as this transaction: it ends with the connection, and a pooler keeps it.
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1, 0)", lockClass); err != nil {
			return err
		}
		if err := up(ctx, config); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, roles, pgx.QueryExecModeSimpleProtocol)
		return err
	})
	return notices, explain("migrate database", err)
}

// up runs the migrations on a connection of its own.
func up(ctx context.Context, config *pgx.ConnConfig) error {
	db := stdlib.OpenDB(*config)
	defer func() { _ = db.Close() }()
	p, err := provider(db)
	if err != nil {
		return err
	}
	if at, err := p.GetDBVersion(ctx); err == nil && at > Version {
		return fmt.Errorf("%w: the database has %d, this program makes %d and cannot go back: run the migrate of the newer sluice", fleet.ErrSchema, at, Version)
	}
	if _, err := p.Up(ctx); err != nil {
		var partial *goose.PartialError
		if errors.As(err, &partial) {
			return partial.Err
		}
		return err
	}
	return nil
}

func provider(db *sql.DB) (*goose.Provider, error) {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(goose.DialectPostgres, db, files,
		goose.WithTableName(versionTable), goose.WithDisableGlobalRegistry(true))
}

// fits says whether a database's schema is one that this program can work on: its own, or the next.
func fits(at int64) error {
	switch {
	case at < Version:
		return fmt.Errorf("%w: the database has %d, this program needs %d: run `sluice migrate`", fleet.ErrSchema, at, Version)
	case at > Version+1:
		return fmt.Errorf("%w: the database has %d, this program works on %d and %d: upgrade sluice", fleet.ErrSchema, at, Version, Version+1)
	}
	return nil
}

// foreign is the answer of a database without any schema of ours.
func foreign(database string) error {
	return fmt.Errorf("%w: database %q has no tables of Sluice (0, this program needs %d): if it is the right one, run `sluice migrate`",
		fleet.ErrSchema, database, Version)
}

// connectTimeout bounds reaching the server; a function has little time.
const connectTimeout = 5 * time.Second
