package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"sluice/core/fleet"
)

const beginAttempt = `WITH held AS (
		SELECT i.id FROM sluice_intents i WHERE i.id = $2::uuid AND i.claim = $3 AND i.state = 'open' FOR UPDATE
	)
	INSERT INTO sluice_intent_attempts AS a (intent, ordinal, launch, token, first_at, calls, outcome, code)
	SELECT n.intent, n.ordinal, n.launch::json, n.token, coalesce(n.first_at, sluice_clock()), n.calls, n.outcome, n.code
	  FROM ` + attemptRecord + ` JOIN held ON held.id = n.intent
	ON CONFLICT (intent, ordinal) DO UPDATE SET calls = greatest(a.calls, excluded.calls)`

// Begin implements fleet.Store.
func (d *DB) Begin(ctx context.Context, claim fleet.Claim, a fleet.Attempt) error {
	row, err := toAttempt(claim.Intent, a)
	if err != nil {
		return fmt.Errorf("begin attempt: %w", err)
	}
	text, err := encode([]attemptRow{row})
	if err != nil {
		return fmt.Errorf("begin attempt: %w", err)
	}
	n, err := d.exec(ctx, "begin attempt", beginAttempt, text, claim.Intent, claim.Token)
	if err == nil && n == 0 {
		return fmt.Errorf("begin attempt of %s: %w", claim.Intent, fleet.ErrClaimLost)
	}
	return err
}

const (
	lockIntent = "SELECT state FROM sluice_intents WHERE id = $1::uuid FOR UPDATE"

	// bornWorkers are the rows of machines that a launch answered with.
	bornWorkers = `INSERT INTO workers AS w (id, pool, queues, provider, scope, zone, machine_id, instance_type, market, intent_id, spec_hash,
		cost_per_hour_micros, cost_per_hour_cents, min_charge_seconds, increment_seconds, status, cost_from, boot_at, expires_at, changed_at, created_at)
		SELECT gen_random_uuid(), i.pool, ARRAY(SELECT q ->> 'name' FROM jsonb_array_elements(sluice_assignment(i.pool) -> 'queues') q),
		a.launch -> 'offer' ->> 'provider', coalesce(a.launch -> 'offer' ->> 'scope', ''), coalesce(nullif(m ->> 'zone', ''), i.zone),
		m ->> 'id', coalesce(nullif(m ->> 'type', ''), i.type), coalesce(nullif(m ->> 'market', ''), i.market), a.intent, coalesce(i.spec, ''),
		i.price, i.price / 10000.0, i.min_charge, i.increment, 'provisioning', i.first_at, i.last_at, coalesce((m -> 'tags' ->> 'expires')::timestamptz, i.expires), sluice_clock(), sluice_clock()
		FROM jsonb_array_elements($1::jsonb) m
		JOIN sluice_intent_attempts a ON a.intent = $2::uuid AND a.ordinal = $3
		CROSS JOIN sluice_answer($2::uuid, $3, NULL, NULL) i
		ORDER BY m ->> 'id'
		ON CONFLICT (provider, scope, machine_id) DO UPDATE SET ` + bind

	// A repeat by the same claim finds the state that it asked for.
	held = `i.id = $1::uuid AND i.claim = $2 AND i.state IN ('open', $3)`

	settleAttempt = `UPDATE sluice_intent_attempts a SET outcome = $5, code = $6, settled_at = coalesce(a.settled_at, sluice_clock())
		FROM sluice_intents i WHERE a.intent = i.id AND a.ordinal = $4 AND ` + held

	settleIntent = `UPDATE sluice_intents i SET state = $3, changed_at = CASE WHEN i.state = $3 THEN i.changed_at ELSE sluice_clock() END WHERE ` + held

	warmUp = `DELETE FROM sluice_cool_offs c USING sluice_intent_attempts a WHERE a.intent = $1::uuid AND a.ordinal = $2
		AND c.offer = concat_ws('/', a.launch -> 'offer' ->> 'provider', coalesce(a.launch -> 'offer' ->> 'scope', ''),
			coalesce(a.launch -> 'offer' ->> 'zone', ''), a.launch -> 'offer' ->> 'type', a.launch -> 'offer' ->> 'market')`

	coolOff = `INSERT INTO sluice_cool_offs AS c (offer, until, count, code) VALUES ($1, $2, $3, $4)
		ON CONFLICT (offer) DO UPDATE SET until = greatest(c.until, excluded.until), count = excluded.count, code = excluded.code`
)

// Settle implements fleet.Store. Its statements are one transaction, in one round trip.
func (d *DB) Settle(ctx context.Context, claim fleet.Claim, r fleet.Result) error {
	b := &pgx.Batch{}
	b.Queue(lockIntent, claim.Intent)
	if machines := living(r.Machines); len(machines) > 0 {
		text, err := encode(machines)
		if err != nil {
			return fmt.Errorf("settle intent: %w", err)
		}
		b.Queue(bornWorkers, text, claim.Intent, r.Attempt)
	}
	b.Queue(settleAttempt, claim.Intent, claim.Token, string(r.State), r.Attempt, string(r.Outcome), r.Code)
	var kept int64
	b.Queue(settleIntent, claim.Intent, claim.Token, string(r.State)).Exec(func(tag pgconn.CommandTag) error {
		kept = tag.RowsAffected()
		return nil
	})
	if r.Outcome == fleet.OutcomeDone {
		b.Queue(warmUp, claim.Intent, r.Attempt)
	}
	if c := r.CoolOff; c != nil {
		b.Queue(coolOff, c.Offer, c.Until.UTC(), c.Count, c.Code)
	}
	if err := d.batch(ctx, "settle intent", b); err != nil {
		return err
	}
	if kept == 0 {
		return fmt.Errorf("settle intent %s: %w", claim.Intent, fleet.ErrClaimLost)
	}
	return nil
}

// living leaves out machines that the answer itself says are gone, and sorts the rest.
func living(machines []fleet.Machine) []fleet.Machine {
	out := slices.DeleteFunc(slices.Clone(machines), func(m fleet.Machine) bool { return m.State == fleet.MachineGone || m.ID == "" })
	slices.SortFunc(out, func(a, b fleet.Machine) int { return strings.Compare(a.ID, b.ID) })
	return out
}
