package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"sluice/core/fleet"
)

// Health implements fleet.Database. It works on any database, also on one without Sluice's tables. What a role needs is
// what roles.sql grants to sluice_functions. The server shows little of other roles' sessions: not since when they
// are in a transaction, and not what kind they are, so connections are counted by database.
func (d *DB) Health(ctx context.Context) (fleet.DatabaseHealth, error) {
	var h fleet.DatabaseHealth
	conn, err := d.acquire(ctx)
	if err != nil {
		return h, err
	}
	defer conn.Release()
	rows, err := conn.Query(ctx, `SELECT current_setting('server_version'), current_setting('server_version_num')::int, current_user::text,
		(SELECT rolsuper FROM pg_roles WHERE rolname = current_user), clock_timestamp(), pg_backend_pid(),
		(SELECT sum(numbackends) FROM pg_stat_database), current_setting('max_connections')::int,
		ARRAY(SELECT c.relname::text FROM pg_class c WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace
			AND (c.relname LIKE 'sluice\_%' OR c.relname IN ('workers', 'worker_metrics', 'processing_jobs', 'job_attempts'))
			AND EXISTS (SELECT FROM unnest(CASE c.relname WHEN 'sluice_schema' THEN '{SELECT}' WHEN 'sluice_state' THEN '{SELECT,UPDATE}'
				ELSE '{SELECT,INSERT,UPDATE,DELETE}' END::text[]) p WHERE NOT has_table_privilege(c.oid, p)) ORDER BY 1),
		held.seconds, held.hidden
		FROM (SELECT coalesce(extract(epoch FROM clock_timestamp() - min(a.xact_start))::bigint, 0) AS seconds,
			count(*) > count(a.xact_start) AS hidden FROM pg_locks l JOIN pg_stat_activity a USING (pid)
			WHERE l.locktype = 'advisory' AND l.classid = $1 AND l.granted AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())) held`,
		lockClass)
	if err != nil {
		return h, explain("check database", err)
	}
	var backend uint32
	err = each(rows, func(row pgx.Rows) error {
		return row.Scan(&h.Server, &h.ServerNumber, &h.Role, &h.Superuser, at(&h.Clock), &backend, &h.Connections, &h.MaxConnections, &h.Forbidden, &h.LockHeld, &h.LockHidden)
	})
	// A pooler answers the greeting itself, so the backend that it names there is none.
	h.Pooled = err == nil && backend != conn.Conn().PgConn().PID()
	return h, explain("check database", err)
}
