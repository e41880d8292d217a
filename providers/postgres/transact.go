package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"sluice/core/fleet"
)

// lockClass sets Sluice's advisory locks apart from a host's; the second key is the deployment's hash.
const lockClass = 0x5C1CE

// opening are the first statements of every tick's transaction. The lock waits, as a statement of its
// own, so that everything after it sees what the tick before has written. Open intents are locked as
// well, so that no outcome is recorded between reading and writing.
var opening = []string{
	"SET LOCAL statement_timeout = '20s'",
	"SET LOCAL lock_timeout = '5s'",
	"SET LOCAL idle_in_transaction_session_timeout = '10s'",
	fmt.Sprintf("SELECT pg_advisory_xact_lock(%d, hashtext((SELECT deployment::text FROM sluice_state)))", lockClass),
	"SELECT count(*) FROM (SELECT FROM sluice_intents WHERE state IN ('open', 'abandoned') ORDER BY id FOR UPDATE) held",
}

// Transact implements fleet.Store.
func (d *DB) Transact(ctx context.Context, decide func(fleet.Memory) (fleet.Plan, fleet.Record)) error {
	conn, err := d.acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err != nil {
		return explain("begin tick", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // no effect after a commit
	r, err := recall(ctx, tx, opening...)
	if err != nil {
		return err
	}
	plan, record := decide(r.Memory)
	if plan.Skipped != nil {
		return nil
	}
	b, err := write(r, plan, record)
	if err != nil {
		return fmt.Errorf("write plan: %w", err)
	}
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return explain("write plan", err)
	}
	return committed(tx.Commit(ctx))
}

// committed tells a commit that certainly failed from one that nobody knows about: only an error that
// the server answered and survived, or a request that never left, is a certain failure.
func committed(err error) error {
	if err == nil {
		return nil
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) && !severe(pg) || errors.Is(err, pgx.ErrTxCommitRollback) || pgconn.SafeToRetry(err) {
		return explain("commit tick", err)
	}
	return fmt.Errorf("commit tick: %w: %w", fleet.ErrCommitUnknown, err)
}
