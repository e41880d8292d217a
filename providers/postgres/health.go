package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"sluice/core/fleet"
)

// Health implements fleet.Database. It works on any database, also on one without Sluice's tables.
func (d *DB) Health(ctx context.Context) (fleet.DatabaseHealth, error) {
	var h fleet.DatabaseHealth
	conn, err := d.acquire(ctx)
	if err != nil {
		return h, err
	}
	defer conn.Release()
	rows, err := conn.Query(ctx, `SELECT current_setting('server_version'), current_setting('server_version_num')::int, current_user::text,
		(SELECT rolsuper FROM pg_roles WHERE rolname = current_user), clock_timestamp(), pg_backend_pid(),
		(SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'), current_setting('max_connections')::int,
		ARRAY(SELECT c.relname::text FROM pg_class c WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace
			AND (c.relname LIKE 'sluice\_%' OR c.relname IN ('workers', 'worker_metrics', 'processing_jobs', 'job_attempts'))
			AND NOT (has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(c.oid, 'INSERT') AND has_table_privilege(c.oid, 'UPDATE')) ORDER BY 1),
		coalesce((SELECT extract(epoch FROM clock_timestamp() - max(a.xact_start))::bigint FROM pg_locks l JOIN pg_stat_activity a USING (pid)
			WHERE l.locktype = 'advisory' AND l.classid = $1 AND l.granted AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())), 0)`,
		lockClass)
	if err != nil {
		return h, explain("check database", err)
	}
	var backend uint32
	err = each(rows, func(row pgx.Rows) error {
		return row.Scan(&h.Server, &h.ServerNumber, &h.Role, &h.Superuser, at(&h.Clock), &backend, &h.Connections, &h.MaxConnections, &h.Forbidden, &h.LockHeld)
	})
	// A pooler answers the greeting itself, so the backend that it names there is none.
	h.Pooled = err == nil && backend != conn.Conn().PgConn().PID()
	return h, explain("check database", err)
}
