package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"sluice/core/fleet"
)

// recalled is what one batch read.
type recalled struct {
	fleet.Memory
	version     int64
	lastName    string // of the last good config
	lastETag    string
	lastChanged time.Time
	assignments string // hash of those stored
	attempts    []attempt
}

type attempt struct {
	intent string
	fleet.Attempt
}

// Recall implements fleet.Store.
func (d *DB) Recall(ctx context.Context) (fleet.Memory, error) {
	conn, err := d.acquire(ctx)
	if err != nil {
		return fleet.Memory{}, err
	}
	defer conn.Release()
	r, err := recall(ctx, conn)
	return r.Memory, err
}

// querier sends batches: a connection, or a transaction on one.
type querier interface {
	SendBatch(context.Context, *pgx.Batch) pgx.BatchResults
	Conn() *pgx.Conn
}

// recall reads everything in one round trip, after whatever is queued before it.
func recall(ctx context.Context, q querier, before ...string) (*recalled, error) {
	r, b := &recalled{}, &pgx.Batch{}
	for _, sql := range before {
		b.Queue(sql)
	}
	r.queueState(b)
	r.queueWorkers(b)
	r.queueIntents(b)
	r.queueBooks(b)
	r.queuePools(b)
	err := q.SendBatch(ctx, b).Close()
	if missing(err) && r.version == 0 {
		return r, foreign(q.Conn().Config().Database)
	}
	if err != nil {
		return r, explain("read database", err)
	}
	r.join()
	return r, nil
}

// queueState reads the schema's version first, so that nothing else is believed where it does not fit,
// and the clock next.
func (r *recalled) queueState(b *pgx.Batch) {
	b.Queue("SELECT max(version_id) FROM " + versionTable + " WHERE is_applied").QueryRow(func(row pgx.Row) error {
		if err := row.Scan(&r.version); err != nil {
			return err
		}
		return fits(r.version)
	})
	one(b, "SELECT greatest(sluice_clock(), (SELECT max(at) FROM sluice_ticks))", nil, at(&r.Now))
	one(b, `SELECT deployment, config_at, coalesce(config_name, ''), coalesce(config_etag, ''), config_modified_at,
		config_bytes, coalesce(assignments_hash, '') FROM sluice_state`, nil,
		&r.Deployment, at(&r.ConfigAt), &r.lastName, &r.lastETag, at(&r.lastChanged), &r.LastGood, &r.assignments)
	b.Queue("SELECT function, max(due) FROM sluice_ticks GROUP BY function").Query(func(rows pgx.Rows) error {
		return each(rows, func(row pgx.Rows) error {
			var f fleet.Function
			var due time.Time
			if err := row.Scan(&f, at(&due)); err != nil {
				return err
			}
			if r.LastDue == nil {
				r.LastDue = map[fleet.Function]time.Time{}
			}
			r.LastDue[f] = due
			return nil
		})
	})
}

// workerColumns are read by scanWorker, in that order. The host may have left any of its own columns empty.
const workerColumns = `w.id, coalesce(w.pool, ''), coalesce(w.queues, '{}'), coalesce(w.provider, 'vps'), coalesce(w.scope, ''),
	coalesce(w.zone, ''), coalesce(w.machine_id, ''), coalesce(w.instance_type, ''), coalesce(w.market, ''),
	coalesce(w.intent_id::text, ''), coalesce(w.spec_hash, ''), coalesce(w.cost_per_hour_micros, 0), coalesce(w.idle_price_micros, 0),
	coalesce(w.min_charge_seconds, 0), coalesce(w.increment_seconds, 0), coalesce(w.status, ''), coalesce(w.slots, 0), coalesce(w.current_jobs, 0),
	w.cost_from, w.boot_at, w.registered_at, w.last_heartbeat, coalesce(w.idle_since, w.last_job_completed_at, w.registered_at),
	w.draining_at, w.drain_ack_at, coalesce(w.drain_why, ''), w.expires_at, w.changed_at, w.absent_since`

func workerFields(w *fleet.Worker) []any {
	return []any{
		&w.ID, &w.Pool, &w.Queues, &w.Place.Provider, &w.Place.Scope, &w.Zone, &w.Machine, &w.Type, &w.Market,
		&w.Intent, &w.Spec, &w.Price, &w.Idle, &w.MinCharge, &w.Increment, &w.Status, &w.Slots, &w.Jobs,
		at(&w.CostFrom), at(&w.BootAt), at(&w.Registered), at(&w.Heartbeat), at(&w.IdleSince),
		at(&w.DrainAt), at(&w.DrainAck), &w.DrainWhy, at(&w.Expires), at(&w.Changed), at(&w.AbsentSince),
	}
}

func scanWorker(row pgx.Rows, w *fleet.Worker) error {
	err := row.Scan(workerFields(w)...)
	if len(w.Queues) == 0 {
		w.Queues = nil
	}
	return err
}

func (r *recalled) queueWorkers(b *pgx.Batch) {
	list(b, &r.Workers, "SELECT "+workerColumns+` FROM workers w
		WHERE w.status IN ('provisioning', 'ready', 'draining', 'suspended') ORDER BY w.id`, nil, scanWorker)
}

func (r *recalled) queueIntents(b *pgx.Batch) {
	list(b, &r.Intents, `SELECT i.id, i.kind, i.state, i.pool, coalesce(i.worker::text, ''), i.provider, i.scope, i.zone, i.machine, i.forced,
		i.why, i.count, (SELECT count(*) FROM workers w WHERE w.intent_id = i.id), i.offers, i.prices, i.reserve, i.idempotent,
		i.min_charge_seconds, i.increment_seconds, i.created_at, i.changed_at, i.claimed_until, i.claim, i.empty_since
		FROM sluice_intents i WHERE i.state IN ('open', 'abandoned') ORDER BY i.id`, nil,
		func(row pgx.Rows, i *fleet.Intent) error {
			return row.Scan(&i.ID, &i.Kind, &i.State, &i.Pool, &i.Worker, &i.Ref.Place.Provider, &i.Ref.Place.Scope, &i.Ref.Zone,
				&i.Ref.Machine, &i.Forced, &i.Why, &i.Count, &i.Bound, &i.Offers, &i.Prices, &i.Reserve, &i.Idempotent,
				&i.MinFor, &i.Increment, at(&i.Created), at(&i.Changed), at(&i.ClaimedUntil), &i.Claim, at(&i.EmptySince))
		})
	list(b, &r.attempts, `SELECT a.intent, a.ordinal, a.launch, a.first_at, a.calls, a.outcome, a.code
		FROM sluice_intent_attempts a JOIN sluice_intents i ON i.id = a.intent
		WHERE i.state IN ('open', 'abandoned') ORDER BY a.intent, a.ordinal`, nil,
		func(row pgx.Rows, a *attempt) error {
			return row.Scan(&a.intent, &a.Ordinal, &a.Launch, at(&a.First), &a.Calls, &a.Outcome, &a.Code)
		})
}

// join gives the attempts to their intents; both are sorted by the intent's id.
func (r *recalled) join() {
	byID := make(map[string]*fleet.Intent, len(r.Intents))
	for i := range r.Intents {
		byID[r.Intents[i].ID] = &r.Intents[i]
	}
	for _, a := range r.attempts {
		if in := byID[a.intent]; in != nil {
			in.Attempts = append(in.Attempts, a.Attempt)
		}
	}
}

func (r *recalled) queueBooks(b *pgx.Batch) {
	list(b, &r.Ended, `SELECT coalesce(worker::text, ''), scope, machine, last, pool, provider, price, from_at, to_at, min_charge_seconds, increment_seconds
		FROM sluice_ledger WHERE to_at > `+ledgerReach+` ORDER BY to_at, id`, nil,
		func(row pgx.Rows, s *fleet.Span) error {
			return row.Scan(&s.Worker, &s.Scope, &s.Machine, &s.Last, &s.Pool, &s.Provider, &s.Price, at(&s.From), at(&s.To), &s.MinCharge, &s.Increment)
		})
	r.queueEarlier(b)
	list(b, &r.Sightings, `SELECT provider, scope, machine, first_seen, last_seen, price, increment_seconds FROM sluice_sightings
		ORDER BY provider, scope, machine_id`, nil,
		func(row pgx.Rows, s *fleet.Sighting) error {
			return row.Scan(&s.Place.Provider, &s.Place.Scope, &s.Machine, at(&s.First), at(&s.Last), &s.Price, &s.Increment)
		})
	list(b, &r.CoolOffs, "SELECT offer, until, count, code FROM sluice_cool_offs ORDER BY offer", nil,
		func(row pgx.Rows, c *fleet.CoolOff) error { return row.Scan(&c.Offer, at(&c.Until), &c.Count, &c.Code) })
	list(b, &r.Quotes, "SELECT offer, price, at, currency FROM sluice_quotes ORDER BY offer", nil,
		func(row pgx.Rows, q *fleet.Quote) error { return row.Scan(&q.Offer, &q.Price, at(&q.At), &q.Currency) })
	b.Queue("SELECT id, at, who, why FROM sluice_overrides WHERE lifted_at IS NULL").Query(func(rows pgx.Rows) error {
		return each(rows, func(row pgx.Rows) error {
			r.Override = &fleet.Override{}
			return row.Scan(&r.Override.ID, at(&r.Override.At), &r.Override.Who, &r.Override.Why)
		})
	})
	list(b, &r.Requests, "SELECT id, kind, target, who, why, at FROM sluice_requests WHERE taken_at IS NULL ORDER BY at, id", nil,
		func(row pgx.Rows, q *fleet.Request) error {
			return row.Scan(&q.ID, &q.Kind, &q.Target, &q.Who, &q.Why, at(&q.At))
		})
	list(b, &r.Bills, `SELECT provider, day::text, amount, seen_at, excess FROM sluice_bills
		WHERE day > ((SELECT sluice_clock()) AT TIME ZONE 'UTC')::date - 7 ORDER BY provider, day, seen_at`, nil,
		func(row pgx.Rows, l *fleet.Bill) error {
			return row.Scan(&l.Provider, &l.Day, &l.Amount, at(&l.SeenAt), &l.Excess)
		})
}

// poolsSQL derives what the rows say about each pool's past. Every part is a few index reads per pool.
const poolsSQL = `
WITH pools AS (
	SELECT DISTINCT pool FROM sluice_intents UNION SELECT DISTINCT pool FROM workers WHERE provider <> 'vps'
), spot AS (
	SELECT i.pool, a.outcome, coalesce(a.settled_at, a.first_at) AS at
	  FROM sluice_intent_attempts a JOIN sluice_intents i ON i.id = a.intent
	 WHERE a.first_at > (SELECT sluice_clock()) - interval '7 days' AND a.outcome IN ('refused', 'done')
	   AND a.launch -> 'offer' ->> 'market' = 'spot'
), streak AS (
	SELECT s.pool, min(s.at) AS since FROM spot s
	 WHERE s.outcome = 'refused' AND s.at > coalesce((SELECT max(d.at) FROM spot d WHERE d.pool = s.pool AND d.outcome = 'done'), '-infinity')
	 GROUP BY s.pool
)
SELECT p.pool, up.at, down.at, lost.n, coalesce(boot.slowest, 0), failed.n, failed.at, streak.since
  FROM pools p
  LEFT JOIN streak ON streak.pool = p.pool
 CROSS JOIN LATERAL (
	SELECT max(i.created_at) AS at FROM sluice_intents i
	 WHERE i.pool = p.pool AND i.kind IN ('launch', 'resume') AND i.state <> 'refused') up
 CROSS JOIN LATERAL (
	SELECT max(w.draining_at) AS at FROM workers w WHERE w.pool = p.pool AND w.drain_why IN ('drain.idle', 'drain.dry')) down
 CROSS JOIN LATERAL (
	SELECT count(*) AS n FROM workers w WHERE w.pool = p.pool AND w.status = 'failed' AND w.provider <> 'vps'
	   AND w.terminated_at > coalesce(up.at, '-infinity')) lost
 CROSS JOIN LATERAL (
	SELECT ceil(extract(epoch FROM max(l.registered_at - l.boot_at)))::bigint AS slowest FROM (
		SELECT w.registered_at, w.boot_at FROM workers w
		 WHERE w.pool = p.pool AND w.registered_at IS NOT NULL AND w.provider <> 'vps'
		 ORDER BY w.registered_at DESC LIMIT 10) l) boot
 CROSS JOIN LATERAL (
	SELECT count(*) AS n, max(f.at) AS at FROM (
		SELECT CASE WHEN w.drain_why = 'drain.boot_timeout' THEN w.draining_at ELSE w.terminated_at END AS at
		  FROM workers w
		 WHERE w.pool = p.pool AND w.registered_at IS NULL AND w.provider <> 'vps'
		   AND (w.drain_why = 'drain.boot_timeout' OR w.status = 'failed')) f
	 WHERE f.at > coalesce((SELECT max(w.registered_at) FROM workers w WHERE w.pool = p.pool AND w.registered_at IS NOT NULL), '-infinity')) failed
 ORDER BY p.pool`

func (r *recalled) queuePools(b *pgx.Batch) {
	list(b, &r.Pools, poolsSQL, nil, func(row pgx.Rows, p *fleet.PoolMemory) error {
		return row.Scan(&p.Pool, at(&p.LastUp), at(&p.LastDown), &p.Lost, &p.SlowestBoot, &p.BootFailures, at(&p.LastFailure), at(&p.SpotRefusedSince))
	})
}
