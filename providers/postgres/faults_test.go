package postgres_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"

	"sluice/core/fleet"
	"sluice/providers/postgres"
	"sluice/providers/postgres/postgrestest"
)

// tick commits an intent under a due time, unless that was used already.
func tick(ctx context.Context, db *postgres.DB, due time.Time, inside func()) (acted bool, err error) {
	err = db.Transact(ctx, func(m fleet.Memory) (fleet.Plan, fleet.Record) {
		if last := m.LastDue[fleet.Evaluate]; !last.IsZero() && !due.After(last) {
			return fleet.Plan{Skipped: fleet.SkipRepeated{Due: due, Last: last}}, fleet.Record{}
		}
		if inside != nil {
			inside()
		}
		acted = true
		in := fleet.Intent{ID: fleet.ID("tick", due.String()), Kind: fleet.KindLaunch, State: fleet.IntentOpen, Pool: "burst", Count: 1, Claim: "claim", Created: m.Now}
		return fleet.Plan{Function: fleet.Evaluate, Due: due, Now: m.Now, Intents: []fleet.Intent{in}}, fleet.Record{}
	})
	return acted, err
}

func TestOfAHundredTicksOfOneDueTimeExactlyOneActs(t *testing.T) {
	t.Parallel()
	d := postgrestest.New(t)
	due := time.Now().Truncate(time.Minute)
	var acted, skipped atomic.Int32
	var wg sync.WaitGroup
	for range 5 {
		db := d.Open(t)
		for range 20 {
			wg.Go(func() {
				switch did, err := tick(t.Context(), db, due, nil); {
				case err != nil:
					t.Errorf("transact: %v", err)
				case did:
					acted.Add(1)
				default:
					skipped.Add(1)
				}
			})
		}
	}
	wg.Wait()
	if acted.Load() != 1 || skipped.Load() != 99 {
		t.Errorf("%d acted and %d were skipped, want 1 and 99", acted.Load(), skipped.Load())
	}
}

func TestTheDatabaseItselfRefusesDueTimesThatDoNotRise(t *testing.T) {
	t.Parallel()
	d := postgrestest.New(t)
	c := d.Connect(t)
	insert := `INSERT INTO sluice_ticks (id, function, due, at, changed, message, spend) VALUES (gen_random_uuid(), 'evaluate', $1, now(), false, '', '{}')`
	now := time.Now()
	must(t, c, insert, now)
	for _, due := range []time.Time{now, now.Add(-time.Minute)} {
		if _, err := c.Exec(t.Context(), insert, due); err == nil {
			t.Errorf("a tick due %v after the last one was stored", due.Sub(now))
		}
	}
	must(t, c, insert, now.Add(time.Minute))
}

func TestAHolderOfTheLockThatDiesBlocksNobody(t *testing.T) {
	t.Parallel()
	d := postgrestest.New(t)
	db, c := d.Open(t), d.Connect(t)
	holder := startProxy(t, d.URL)
	dying, err := postgres.Open(t.Context(), postgres.URL(holder.url))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(dying.Close)
	due := time.Now().Truncate(time.Minute)
	var next error
	var wg sync.WaitGroup
	_, err = tick(t.Context(), dying, due, func() {
		wg.Go(func() { _, next = tick(t.Context(), db, due.Add(time.Minute), nil) })
		until(t, c, "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))")
		holder.stop() // the holder is gone without a word
	})
	wg.Wait()
	if err == nil || errors.Is(err, fleet.ErrCommitUnknown) {
		t.Errorf("the tick whose connection was cut before its commit: %v, want a plain failure", err)
	}
	if next != nil {
		t.Errorf("the next tick: %v", next)
	}
	if m, err := db.Recall(t.Context()); err != nil || len(m.Intents) != 1 || !m.LastDue[fleet.Evaluate].Equal(due.Add(time.Minute)) {
		t.Errorf("recalled %+v, %v: want the next tick's writes alone", m.Intents, err)
	}
}

// until waits for the server to say yes, for a minute: a test that waits for ever says nothing of what it waits for.
func until(t *testing.T, c *pgx.Conn, sql string, args ...any) {
	t.Helper()
	for begun := time.Now(); ; {
		var yes bool
		if err := c.QueryRow(t.Context(), sql, args...).Scan(&yes); err != nil {
			t.Errorf("%s: %v", sql, err)
			return
		}
		if yes {
			return
		}
		if time.Since(begun) > time.Minute {
			t.Errorf("not within a minute: %s", sql)
			return
		}
	}
}

func TestABackendKilledBeforeItsCommitIsAPlainFailure(t *testing.T) {
	t.Parallel()
	d := postgrestest.New(t)
	db, c := d.Open(t), d.Connect(t)
	due := time.Now().Truncate(time.Minute)
	_, err := tick(t.Context(), db, due, func() {
		must(t, c, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'")
	})
	if err == nil || errors.Is(err, fleet.ErrCommitUnknown) {
		t.Errorf("got %v, want a failure that is certain", err)
	}
	if acted, err := tick(t.Context(), db, due, nil); !acted || err != nil {
		t.Errorf("the same due time again: acted %v, %v", acted, err)
	}
}

func TestABackendKilledAtItsCommitLeavesTheOutcomeUnknown(t *testing.T) {
	t.Parallel()
	d := postgrestest.New(t)
	c := d.Connect(t)
	// A deferred trigger holds the COMMIT until the test lets it go, or kills it.
	must(t, c, `CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_advisory_xact_lock(4711); RETURN NULL; END'`)
	must(t, c, `CREATE CONSTRAINT TRIGGER hold AFTER INSERT ON sluice_ticks DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION hold()`)
	must(t, c, "SELECT pg_advisory_lock(4711)")
	db := d.Open(t)
	var wg sync.WaitGroup
	var err error
	wg.Go(func() { _, err = tick(t.Context(), db, time.Now().Truncate(time.Minute), nil) })
	until(t, c, "SELECT count(pg_terminate_backend(pid)) > 0 FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'advisory' AND query = 'commit'")
	wg.Wait()
	if !errors.Is(err, fleet.ErrCommitUnknown) {
		t.Errorf("got %v, want ErrCommitUnknown: the server said nothing that is certain", err)
	}
}

func TestAnErrorThatTheServerGivesAtCommitIsAPlainFailure(t *testing.T) {
	t.Parallel()
	d := postgrestest.New(t)
	c := d.Connect(t)
	must(t, c, `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''no''; END'`)
	must(t, c, `CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON sluice_ticks DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse()`)
	_, err := tick(t.Context(), d.Open(t), time.Now().Truncate(time.Minute), nil)
	if err == nil || errors.Is(err, fleet.ErrCommitUnknown) {
		t.Errorf("got %v, want a failure that is certain", err)
	}
}

func TestAnOutcomeToldWhileATickDecidesWaitsForItAndIsNotOverwritten(t *testing.T) {
	t.Parallel()
	d := postgrestest.New(t)
	db, c := d.Open(t), d.Connect(t)
	due := time.Now().Truncate(time.Minute)
	if _, err := tick(t.Context(), db, due, nil); err != nil {
		t.Fatal(err)
	}
	id := fleet.ID("tick", due.String())
	var settled error
	var wg sync.WaitGroup
	err := db.Transact(t.Context(), func(m fleet.Memory) (fleet.Plan, fleet.Record) {
		wg.Go(func() {
			settled = db.Settle(t.Context(), fleet.Claim{Intent: id, Token: "claim"}, fleet.Result{Outcome: fleet.OutcomeRefused, State: fleet.IntentRefused})
		})
		until(t, c, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')")
		taken := m.Intents[0]
		taken.Claim = "another"
		return fleet.Plan{Function: fleet.Evaluate, Due: due.Add(time.Minute), Now: m.Now, Intents: []fleet.Intent{taken}}, fleet.Record{}
	})
	wg.Wait()
	if err != nil || !errors.Is(settled, fleet.ErrClaimLost) {
		t.Errorf("tick %v, outcome %v: want ErrClaimLost for the outcome", err, settled)
	}
	if m, err := db.Recall(t.Context()); err != nil || len(m.Intents) != 1 || m.Intents[0].State != fleet.IntentOpen {
		t.Errorf("recalled %+v, %v", m.Intents, err)
	}
}

func TestWhatIsWrongWithTheServerIsSaidWithWhatToDo(t *testing.T) {
	t.Parallel()
	d := postgrestest.New(t)
	must(t, d.Connect(t), "ALTER DATABASE "+d.Name+" SET default_transaction_read_only = on")
	readonly := postgrestest.Database{Name: d.Name, URL: d.Direct, Direct: d.Direct}
	t.Cleanup(func() {
		c, err := pgx.Connect(context.WithoutCancel(t.Context()), d.Direct)
		if err == nil {
			must(t, c, "SET default_transaction_read_only = off")
			must(t, c, "ALTER DATABASE "+d.Name+" RESET default_transaction_read_only")
			_ = c.Close(context.WithoutCancel(t.Context()))
		}
	})
	down := startProxy(t, d.URL)
	down.stop()
	for name, c := range map[string]struct{ url, want string }{
		"down":                 {down.url, "is the server running"},
		"missing database":     {onDatabase(t, d.Direct, "sluice_test_none"), "create it"},
		"read-only":            {readonly.URL, "name the primary"},
		"too many connections": {refusing(t, "53300", "sorry, too many clients already"), "pooler"},
		"starting":             {refusing(t, "57P03", "the database system is starting up"), "try again"},
		"no permission":        {refusing(t, "42501", "permission denied"), "sluice_functions"},
	} {
		t.Run(name, func(t *testing.T) {
			db, err := postgres.Open(t.Context(), postgres.URL(c.url))
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			_, err = tick(t.Context(), db, time.Now(), nil)
			if err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(err, fleet.ErrAuth) || errors.Is(err, fleet.ErrCommitUnknown) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func onDatabase(t *testing.T, server, name string) string {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + name
	return u.String()
}

// refusing is a server that answers every login with an error.
func refusing(t *testing.T, code, message string) string {
	t.Helper()
	l := listen(t)
	t.Cleanup(func() { _ = l.Close() })
	answer, err := (&pgproto3.ErrorResponse{Severity: "FATAL", SeverityUnlocalized: "FATAL", Code: code, Message: message}).Encode(nil)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				head := make([]byte, 4)
				if _, err := io.ReadFull(c, head); err != nil {
					return
				}
				_, _ = io.CopyN(io.Discard, c, int64(binary.BigEndian.Uint32(head))-4)
				_, _ = c.Write(answer)
			}()
		}
	}()
	return fmt.Sprintf("postgres://someone:hunter2hunter2@%s/db?sslmode=disable", l.Addr())
}

func TestARotatedPasswordIsReadAgainOnce(t *testing.T) {
	t.Parallel()
	d := postgrestest.New(t)
	old := refusing(t, "28P01", `password authentication failed for user "someone"`)
	reads := 0
	secret := func(context.Context) (string, error) {
		if reads++; reads == 1 {
			return old, nil
		}
		return d.URL, nil
	}
	db, err := postgres.Open(t.Context(), secret)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for range 3 {
		if _, err := db.Recall(t.Context()); err != nil {
			t.Errorf("recall: %v", err)
		}
	}
	if reads != 2 {
		t.Errorf("the secret was read %d times, want 2: at the start and after the refusal", reads)
	}
}

func TestAPasswordThatIsRefusedTwiceIsAnAuthenticationErrorForFunctionsAndAgents(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"28P01", "28000"} {
		reads := 0
		old := refusing(t, code, "password authentication failed")
		secret := func(context.Context) (string, error) { reads++; return old, nil }
		w, err := postgres.OpenWorker(t.Context(), secret)
		if err != nil {
			t.Fatal(err)
		}
		_, err = w.Heartbeat(t.Context(), fleet.ID("w"), postgres.Vitals{})
		w.Close()
		if !errors.Is(err, fleet.ErrAuth) || reads != 2 || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got %v after %d reads, want ErrAuth after 2, without the password", code, err, reads)
		}
	}
}

func TestNoErrorTellsThePassword(t *testing.T) {
	t.Parallel()
	l := listen(t)
	closed := l.Addr().String()
	_ = l.Close()
	for _, u := range []string{
		"postgres://me:hunter2hunter2@" + closed + "/db",
		"postgres://me:hunter2hunter2@127.0.0.1:1:2/db",
		"postgres://me:hunter2hunter2%zz@127.0.0.1/db",
		"postgres://me:hunter2#hunter2@127.0.0.1/db",
		"host=127.0.0.1 port=abc password=hunter2hunter2",
		"host=127.0.0.1 password='hunter2hunter2",
		"postgres://me:hunter2hunter2@127.0.0.1/db?sslmode=hunter2mode",
		"postgres://me:hunter2hunter2@127.0.0.1/db?sslmode=verify-full&sslrootcert=/no/such/file",
	} {
		db, err := postgres.Open(t.Context(), postgres.URL(u))
		if err == nil {
			_, err = db.Recall(t.Context())
			db.Close()
		}
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q tells the password", err)
		}
		_, err = postgres.Migrate(t.Context(), u)
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("migrate: %q tells the password", err)
		}
	}
	_, err := postgres.Open(t.Context(), postgres.URL("postgres://me:x@127.0.0.1/db?sslmode=verify-full&sslrootcert=/no/such/file"))
	if err == nil || !strings.Contains(err.Error(), "/no/such/file") {
		t.Errorf("got %v, want the name of the missing file", err)
	}
}
