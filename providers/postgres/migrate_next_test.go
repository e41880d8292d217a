package postgres_test

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"sluice/core/fleet/fleettest"
	"sluice/providers/postgres"
	"sluice/providers/postgres/postgrestest"
)

var update = flag.Bool("update", false, "write the golden files")

// TestStoreOnTheNextSchema holds this version's store to the whole suite on a schema that is one step ahead.
func TestStoreOnTheNextSchema(t *testing.T) {
	fleettest.Store(t, func(t *testing.T) fleettest.StoreHarness {
		t.Helper()
		return openOn(t, postgrestest.NewNext(t))
	})
}

func TestTheNextSchemaIsReadWrittenAndLeftAsItIs(t *testing.T) {
	t.Parallel()
	d := postgrestest.NewNext(t)
	m, err := d.Open(t).Recall(t.Context())
	if err != nil || m.Deployment == "" {
		t.Errorf("recalled %+v, %v", m, err)
	}
	migrateRefuses(t, d, strconv.Itoa(postgres.Version+1))
	var kept string
	if err := d.Connect(t).QueryRow(t.Context(), "SELECT next_release FROM sluice_state").Scan(&kept); err != nil || kept != "as before" {
		t.Errorf("the newer column says %q, %v", kept, err)
	}
}

// signatures are those of all functions that programs outside call: workers, whatever puts jobs in, and defaults of tables.
const signatures = `SELECT string_agg(format('%s(%s) -> %s', p.proname, pg_get_function_arguments(p.oid), pg_get_function_result(p.oid)), E'\n' ORDER BY p.proname, p.oid)
	FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace AND p.proname LIKE 'sluice\_%'
	AND (has_function_privilege('sluice_worker', p.oid, 'EXECUTE') OR p.proname = 'sluice_enqueue')`

// TestTheFunctionsOfWorkersKeepTheirSignatures fails on any change, so that it is one on purpose: agents of the last two
// minor versions are baked into images and call these. A new function, or a parameter with a default, is fine: -update accepts it.
func TestTheFunctionsOfWorkersKeepTheirSignatures(t *testing.T) {
	t.Parallel()
	golden := filepath.Join("testdata", "signatures.golden")
	got := signaturesOf(t.Context(), t, postgrestest.New(t).Connect(t))
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("docs/upgrade.md promises these signatures:\n%s\nthis schema has:\n%s", want, got)
	}
	if n := strings.Count(got, "\n"); n < 16 {
		t.Errorf("only %d functions were found", n)
	}
}

func signaturesOf(ctx context.Context, t *testing.T, c *pgx.Conn) (s string) {
	t.Helper()
	if err := c.QueryRow(ctx, signatures).Scan(&s); err != nil {
		t.Fatal(err)
	}
	return s + "\n"
}
