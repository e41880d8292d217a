package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"sluice/core/fleet"
)

// URL is a secret that never changes.
func URL(url string) fleet.Secret {
	return func(context.Context) (string, error) { return url, nil }
}

// maxConns is small on purpose: many functions and agents share one server.
const maxConns = 4

// DB is a database of Sluice: a fleet.Store, fleet.Queues, fleet.History and fleet.Requests.
type DB struct {
	secret fleet.Secret // of the URL; read again when the server refuses the password, so that a rotation needs no restart
	pool   *pgxpool.Pool

	mu     sync.Mutex
	config *pgx.ConnConfig // what the next connection is made with
}

var (
	_ fleet.Store    = (*DB)(nil)
	_ fleet.Queues   = (*DB)(nil)
	_ fleet.History  = (*DB)(nil)
	_ fleet.Requests = (*DB)(nil)
)

// Open reads the secret and prepares a pool; it makes no connection, so that a server that is down is
// an error of what is asked of it first.
func Open(ctx context.Context, secret fleet.Secret) (*DB, error) {
	d := &DB{secret: secret}
	if err := d.reread(ctx); err != nil {
		return nil, err
	}
	url, err := pgxpool.ParseConfig("")
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	url.ConnConfig = d.current()
	url.MaxConns, url.MinConns = maxConns, 0
	url.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error {
		*c = *d.current()
		return nil
	}
	if d.pool, err = pgxpool.NewWithConfig(ctx, url); err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	return d, nil
}

// Close gives all connections back.
func (d *DB) Close() { d.pool.Close() }

// parse keeps what the URL says (TLS files, timeouts of the host's choice) and adds what a pooler in
// transaction mode needs: no prepared statements, nothing that lives in a session.
func parse(url string) (*pgx.ConnConfig, error) {
	c, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, parseError(err)
	}
	if c.ConnectTimeout == 0 || c.ConnectTimeout > connectTimeout {
		c.ConnectTimeout = connectTimeout
	}
	c.DefaultQueryExecMode = pgx.QueryExecModeExec
	c.StatementCacheCapacity, c.DescriptionCacheCapacity = 0, 0
	if c.RuntimeParams["application_name"] == "" {
		c.RuntimeParams["application_name"] = "sluice"
	}
	return c, nil
}

// parseError never repeats the URL, which holds the password; the name of a missing TLS file may be told.
func parseError(err error) error {
	var file *fs.PathError
	if errors.As(err, &file) {
		return fmt.Errorf("parse database URL: %w", file)
	}
	return errors.New("parse database URL: want postgres://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=verify-full, with special characters of the password percent-encoded (the value is not shown)")
}

func (d *DB) current() *pgx.ConnConfig {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.config.Copy()
}

func (d *DB) reread(ctx context.Context) error {
	url, err := d.secret(ctx)
	if err != nil {
		return fmt.Errorf("read database URL: %w", err)
	}
	config, err := parse(url)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.config = config
	return nil
}

// acquire takes a connection. Where the password is refused the secret is read again, once.
func (d *DB) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	conn, err := d.pool.Acquire(ctx)
	if err == nil || !refusedLogin(err) {
		return conn, explain("connect to database", err)
	}
	if err := d.reread(ctx); err != nil {
		return nil, err
	}
	conn, err = d.pool.Acquire(ctx)
	return conn, explain("connect to database", err)
}

// batch sends statements in one round trip; outside a transaction they are one.
func (d *DB) batch(ctx context.Context, verb string, b *pgx.Batch) error {
	conn, err := d.acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	return explain(verb, conn.SendBatch(ctx, b).Close())
}

// exec runs one statement and tells how many rows it touched.
func (d *DB) exec(ctx context.Context, verb, sql string, args ...any) (int64, error) {
	conn, err := d.acquire(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Release()
	tag, err := conn.Exec(ctx, sql, args...)
	return tag.RowsAffected(), explain(verb, err)
}

// query runs one statement and hands each row to scan.
func (d *DB) query(ctx context.Context, verb, sql string, args []any, scan func(pgx.Rows) error) error {
	conn, err := d.acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	rows, err := conn.Query(ctx, sql, args...)
	if err != nil {
		return explain(verb, err)
	}
	return explain(verb, each(rows, scan))
}

// each hands every row to scan.
func each(rows pgx.Rows, scan func(pgx.Rows) error) error {
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

func refusedLogin(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "28P01" || pg.Code == "28000" || poolerRefused(pg))
}
