package postgrestest

import (
	"fmt"
	"testing"

	"sluice/providers/postgres"
)

// next is what a migration may do at most, done everywhere: a column more in each table, with a value that old programs
// do not give, a table, an index and functions beside those that are there.
const next = `DO $$ DECLARE r record; BEGIN
	FOR r IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'sluice_schema' LOOP
		EXECUTE format('ALTER TABLE %I ADD COLUMN next_release text NOT NULL DEFAULT ''as before'', ADD COLUMN next_note jsonb', r.tablename);
	END LOOP;
END $$;
CREATE TABLE sluice_next (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, worker_id uuid REFERENCES workers (id) ON DELETE CASCADE);
CREATE INDEX sluice_next_jobs ON processing_jobs (next_release);
CREATE FUNCTION sluice_next(worker uuid) RETURNS text LANGUAGE sql STABLE AS 'SELECT next_release FROM workers WHERE id = worker'`

// NewNext is New on the schema after the present one, as a migration that is yet to come may leave it.
func NewNext(t testing.TB) Database {
	t.Helper()
	return lend(t, "next", func(t testing.TB, d Database) {
		t.Helper()
		migrate(t, d)
		c := d.Connect(t)
		exec(t, c, next)
		exec(t, c, fmt.Sprintf("INSERT INTO sluice_schema (version_id, is_applied) VALUES (%d, true)", postgres.Version+1))
	})
}
