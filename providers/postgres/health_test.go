package postgres_test

import (
	"slices"
	"testing"

	"sluice/core/fleet"
	"sluice/providers/postgres"
	"sluice/providers/postgres/postgrestest"
)

// healthAs is what a role of a group sees.
func healthAs(t *testing.T, d postgrestest.Database, group string) fleet.DatabaseHealth {
	t.Helper()
	db, err := postgres.Open(t.Context(), postgres.URL(as(t, d.URL, login(t, d, group))))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	h, err := db.Health(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestTheRoleOfTheFunctionsLacksNothingAndAWorkersLacksAll(t *testing.T) {
	t.Parallel()
	d := postgrestest.New(t)
	if h := healthAs(t, d, "sluice_functions"); len(h.Forbidden) != 0 || h.Superuser {
		t.Errorf("functions: %+v", h)
	}
	h := healthAs(t, d, "sluice_worker")
	for _, table := range []string{"sluice_schema", "sluice_state", "workers"} {
		if !slices.Contains(h.Forbidden, table) {
			t.Errorf("a worker's role has rights on %s: %q", table, h.Forbidden)
		}
	}
}

func TestSessionsOfOtherRolesAreCountedAndTheirLockIsNotTakenForNone(t *testing.T) {
	t.Parallel()
	d := postgrestest.New(t)
	if h := healthAs(t, d, "sluice_functions"); h.LockHidden || h.LockHeld != 0 {
		t.Errorf("without a lock: %+v", h)
	}
	for range 5 {
		d.Connect(t)
	}
	c := d.Connect(t)
	must(t, c, "BEGIN")
	must(t, c, "SELECT pg_advisory_xact_lock(x'5C1CE'::int, 7)")
	if h := healthAs(t, d, "sluice_functions"); !h.LockHidden || h.Connections < 7 {
		t.Errorf("held by another role: %+v", h)
	}
}
