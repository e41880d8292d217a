package postgres

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"sluice/core/fleet"
)

// writer queues everything that a tick writes; each kind of row is one statement, however many rows.
type writer struct {
	*pgx.Batch
	err error
}

// rows queues a statement whose first argument is a JSON array of rows.
func (w *writer) rows(sql string, rows any, args ...any) {
	text, err := encode(rows)
	if err != nil && w.err == nil {
		w.err = err
	}
	w.Queue(sql, append([]any{text}, args...)...)
}

// write turns a plan and its record into one batch.
func write(r *recalled, p fleet.Plan, rec fleet.Record) (*pgx.Batch, error) {
	w := &writer{Batch: &pgx.Batch{}}
	tick := fleet.ID(r.Deployment, "tick", string(p.Function), p.Due.UTC().Format(time.RFC3339Nano))
	w.tick(tick, p, rec)
	w.workers(p)
	w.intents(p)
	w.books(r, p, rec)
	w.alerts(p)
	w.config(r, rec)
	w.assignments(r, p, rec)
	w.sweep(p.Now)
	return w.Batch, w.err
}

func (w *writer) tick(id string, p fleet.Plan, rec fleet.Record) {
	spend, err := encode(p.Spend)
	w.err = cmp.Or(w.err, err)
	w.Queue(`INSERT INTO sluice_ticks (id, function, due, at, changed, message, spend) VALUES ($1::uuid, $2, $3, $4, $5, $6, $7::jsonb)`,
		id, string(p.Function), p.Due.UTC(), p.Now.UTC(), rec.Snapshot != nil, message(rec.Lines), spend)
	if len(rec.Lines) > 0 {
		w.rows(`INSERT INTO sluice_lines (tick, seq, id, at, event, level, pool, worker, message, facts)
			SELECT $2::uuid, n, l ->> 'id', $3::timestamptz, l ->> 'event', l ->> 'level', coalesce(l ->> 'pool', ''), coalesce(l ->> 'worker', ''),
			       l ->> 'message', l -> 'facts'
			  FROM jsonb_array_elements($1::jsonb) WITH ORDINALITY AS x (l, n)`, rec.Lines, id, p.Now.UTC())
	}
	if len(rec.Samples) > 0 {
		w.rows(`INSERT INTO sluice_samples (at, queues) VALUES ($2::timestamptz, $1::jsonb) ON CONFLICT (at) DO NOTHING`, rec.Samples, p.Now.UTC())
	}
	if rec.Snapshot != nil {
		seen, err := squeeze(rec.Snapshot)
		w.err = cmp.Or(w.err, err)
		planned, err := squeeze(p)
		w.err = cmp.Or(w.err, err)
		w.Queue(`INSERT INTO sluice_snapshots (tick, snapshot, plan) VALUES ($1::uuid, $2, $3)`, id, seen, planned)
	}
}

// message is the tick's own line, or the last one.
func message(lines []fleet.Line) string {
	for _, l := range lines {
		if l.Event == "tick" {
			return l.Message
		}
	}
	if len(lines) > 0 {
		return lines[len(lines)-1].Message
	}
	return ""
}

// squeeze is gzip at its fastest: it runs inside the transaction.
func squeeze(v any) ([]byte, error) {
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	if err := json.NewEncoder(z).Encode(v); err != nil {
		return nil, fmt.Errorf("encode snapshot: %w", err)
	}
	err = z.Close()
	return out.Bytes(), err
}

// workerRow is what decisions write into a worker's row. Heartbeats, jobs and idleness belong to the worker itself.
type workerRow struct {
	From      fleet.Status  `json:"was,omitempty"`
	EndWhy    string        `json:"end_why,omitempty"`
	ID        string        `json:"id"`
	Pool      string        `json:"pool"`
	Queues    []string      `json:"queues"`
	Provider  string        `json:"provider"`
	Scope     string        `json:"scope"`
	Zone      string        `json:"zone"`
	Machine   string        `json:"machine_id"`
	Type      string        `json:"instance_type"`
	Market    fleet.Market  `json:"market"`
	Intent    string        `json:"intent_id,omitempty"`
	Spec      string        `json:"spec_hash"`
	Price     fleet.Money   `json:"price"`
	Idle      fleet.Money   `json:"idle_price"`
	MinCharge fleet.Seconds `json:"min_charge"`
	Increment fleet.Seconds `json:"increment"`
	Status    fleet.Status  `json:"status"`
	Slots     int           `json:"slots"`

	CostFrom    time.Time `json:"cost_from,omitzero"`
	BootAt      time.Time `json:"boot_at,omitzero"`
	Registered  time.Time `json:"registered_at,omitzero"`
	DrainAt     time.Time `json:"draining_at,omitzero"`
	DrainAck    time.Time `json:"drain_ack_at,omitzero"`
	DrainWhy    string    `json:"drain_why,omitempty"`
	Expires     time.Time `json:"expires_at,omitzero"`
	Changed     time.Time `json:"changed_at,omitzero"`
	AbsentSince time.Time `json:"absent_since,omitzero"`
}

// workerRecord reads such rows in SQL.
const workerRecord = `jsonb_to_recordset($1::jsonb) AS n (was text, end_why text, id uuid, pool text, queues text[], provider text, scope text, zone text,
	machine_id text, instance_type text, market text, intent_id uuid, spec_hash text, price bigint, idle_price bigint, min_charge bigint, increment bigint,
	status text, slots int, cost_from timestamptz, boot_at timestamptz, registered_at timestamptz, draining_at timestamptz,
	drain_ack_at timestamptz, drain_why text, expires_at timestamptz, changed_at timestamptz, absent_since timestamptz)`

func toRow(w fleet.Worker) workerRow {
	return workerRow{
		ID: w.ID, Pool: w.Pool, Queues: append([]string{}, w.Queues...), Provider: w.Place.Provider, Scope: w.Place.Scope, Zone: w.Zone,
		Machine: w.Machine, Type: w.Type, Market: w.Market, Intent: w.Intent, Spec: w.Spec, Price: w.Price, Idle: w.Idle,
		MinCharge: w.MinCharge, Increment: w.Increment, Status: w.Status, Slots: w.Slots, CostFrom: w.CostFrom, BootAt: w.BootAt, Registered: w.Registered,
		DrainAt: w.DrainAt, DrainAck: w.DrainAck, DrainWhy: w.DrainWhy, Expires: w.Expires, Changed: w.Changed, AbsentSince: w.AbsentSince,
	}
}

const (
	lockWorkers = `SELECT count(*) FROM (SELECT FROM workers WHERE id = ANY ($1::uuid[]) ORDER BY id FOR NO KEY UPDATE) held`

	// A worker may register or acknowledge its drain while the tick decides: neither is undone. An
	// observation alone is no change, or the next one would not count.
	changeWorkers = `UPDATE workers w SET
		pool = n.pool, zone = n.zone, instance_type = n.instance_type, market = n.market, intent_id = n.intent_id, spec_hash = n.spec_hash,
		cost_per_hour_micros = n.price, cost_per_hour_cents = n.price / 10000.0, idle_price_micros = n.idle_price,
		min_charge_seconds = n.min_charge, increment_seconds = n.increment, status = n.status, cost_from = n.cost_from, boot_at = n.boot_at,
		registered_at = CASE WHEN n.boot_at IS NOT DISTINCT FROM w.boot_at THEN coalesce(w.registered_at, n.registered_at) ELSE n.registered_at END,
		draining_at = n.draining_at,
		drain_ack_at = CASE WHEN n.draining_at IS NOT DISTINCT FROM w.draining_at THEN coalesce(w.drain_ack_at, n.drain_ack_at) ELSE n.drain_ack_at END,
		drain_why = n.drain_why, expires_at = n.expires_at, absent_since = n.absent_since,
		changed_at = CASE WHEN w.status <> n.status OR w.draining_at IS DISTINCT FROM n.draining_at THEN $2 ELSE greatest(w.changed_at, n.changed_at) END,
		terminated_at = CASE WHEN n.status IN ('terminated', 'failed') THEN $2::timestamptz END,
		end_why = CASE WHEN n.status IN ('terminated', 'failed') THEN n.end_why END
		FROM ` + workerRecord + ` WHERE w.id = n.id AND w.status = n.was`

	returnJobs = `SELECT sluice_return_jobs(ARRAY(SELECT w.id FROM workers w WHERE w.id = ANY ($1::uuid[])
		AND w.status IN ('terminated', 'failed')), 'infinity', 'the worker ended')`

	// A row may be there already: the machine registered first, or its row had ended.
	adoptWorkers = `INSERT INTO workers AS w (id, pool, queues, provider, scope, zone, machine_id, instance_type, market, intent_id, spec_hash,
		cost_per_hour_micros, cost_per_hour_cents, idle_price_micros, min_charge_seconds, increment_seconds, status, slots, cost_from, boot_at, registered_at,
		draining_at, drain_ack_at, drain_why, expires_at, changed_at, absent_since, created_at, terminated_at, end_why)
		SELECT n.id, n.pool, n.queues, n.provider, n.scope, n.zone, n.machine_id, n.instance_type, n.market, n.intent_id, n.spec_hash,
		n.price, n.price / 10000.0, n.idle_price, n.min_charge, n.increment, n.status, greatest(n.slots, 1), n.cost_from, n.boot_at, n.registered_at,
		n.draining_at, n.drain_ack_at, n.drain_why, n.expires_at, coalesce(n.changed_at, $2), n.absent_since, $2::timestamptz,
		CASE WHEN n.status IN ('terminated', 'failed') THEN $2::timestamptz END, CASE WHEN n.status IN ('terminated', 'failed') THEN 'gone' END
		FROM ` + workerRecord + ` ORDER BY n.provider, n.scope, n.machine_id
		ON CONFLICT (provider, scope, machine_id) DO UPDATE SET ` + bind

	// bind joins a row that is there with one that a launch or a listing brings.
	bind = `
		intent_id = coalesce(w.intent_id, excluded.intent_id),
		zone = coalesce(nullif(w.zone, ''), excluded.zone),
		instance_type = coalesce(nullif(w.instance_type, ''), excluded.instance_type),
		market = coalesce(nullif(w.market, ''), excluded.market),
		spec_hash = coalesce(nullif(w.spec_hash, ''), excluded.spec_hash),
		cost_per_hour_micros = CASE WHEN w.cost_per_hour_micros = 0 THEN excluded.cost_per_hour_micros ELSE w.cost_per_hour_micros END,
		cost_per_hour_cents = CASE WHEN w.cost_per_hour_micros = 0 THEN excluded.cost_per_hour_cents ELSE w.cost_per_hour_cents END,
		min_charge_seconds = greatest(w.min_charge_seconds, excluded.min_charge_seconds),
		increment_seconds = greatest(w.increment_seconds, excluded.increment_seconds),
		expires_at = coalesce(w.expires_at, excluded.expires_at),
		cost_from = CASE WHEN w.status IN ('terminated', 'failed') THEN greatest(w.terminated_at, excluded.cost_from) ELSE least(w.cost_from, excluded.cost_from) END,
		boot_at = CASE WHEN w.status IN ('terminated', 'failed') THEN excluded.boot_at ELSE coalesce(w.boot_at, excluded.boot_at) END,
		registered_at = CASE WHEN w.status IN ('terminated', 'failed') THEN excluded.registered_at ELSE w.registered_at END,
		draining_at = CASE WHEN w.status IN ('terminated', 'failed') THEN excluded.draining_at ELSE w.draining_at END,
		drain_ack_at = CASE WHEN w.status IN ('terminated', 'failed') THEN excluded.drain_ack_at ELSE w.drain_ack_at END,
		drain_why = CASE WHEN w.status IN ('terminated', 'failed') THEN excluded.drain_why ELSE w.drain_why END,
		status = CASE WHEN w.status IN ('terminated', 'failed') THEN excluded.status ELSE w.status END,
		changed_at = CASE WHEN w.intent_id IS NULL AND excluded.intent_id IS NOT NULL OR w.status IN ('terminated', 'failed')
			THEN excluded.changed_at ELSE w.changed_at END,
		absent_since = NULL,
		terminated_at = CASE WHEN w.status IN ('terminated', 'failed') THEN excluded.terminated_at END,
		end_why = CASE WHEN w.status IN ('terminated', 'failed') THEN excluded.end_why END`
)

func (w *writer) workers(p fleet.Plan) {
	if len(p.Workers) > 0 {
		ids, rows := make([]string, len(p.Workers)), make([]workerRow, len(p.Workers))
		for i, c := range p.Workers {
			ids[i], rows[i] = c.Worker.ID, toRow(c.Worker)
			rows[i].From, rows[i].EndWhy = c.From, c.Why
		}
		w.Queue(lockWorkers, ids)
		w.rows(changeWorkers, rows, p.Now.UTC())
		w.Queue(returnJobs, ids)
	}
	if len(p.Adopted) > 0 {
		rows := make([]workerRow, len(p.Adopted))
		for i, a := range p.Adopted {
			rows[i] = toRow(a)
		}
		w.rows(adoptWorkers, rows, p.Now.UTC())
	}
}

type intentRow struct {
	fleet.Intent
	Provider string `json:"provider"`
	Scope    string `json:"scope"`
	Zone     string `json:"zone"`
	Machine  string `json:"machine"`
}

type attemptRow struct {
	Intent  string        `json:"intent"`
	Ordinal int           `json:"ordinal"`
	Launch  string        `json:"launch,omitempty"` // text, so that its bytes are kept
	Token   string        `json:"token,omitempty"`
	First   time.Time     `json:"first_at,omitzero"`
	Calls   int           `json:"calls"`
	Outcome fleet.Outcome `json:"outcome"`
	Code    string        `json:"code"`
}

func toAttempt(intent string, a fleet.Attempt) (attemptRow, error) {
	row := attemptRow{Intent: intent, Ordinal: a.Ordinal, First: a.First, Calls: a.Calls, Outcome: a.Outcome, Code: a.Code}
	if a.Launch == nil {
		return row, nil
	}
	text, err := encode(a.Launch)
	row.Launch, row.Token = text, a.Launch.Token
	return row, err
}

const (
	storeIntents = `INSERT INTO sluice_intents AS i (id, kind, state, pool, worker, provider, scope, zone, machine, forced, why, count, offers,
		prices, reserve, idempotent, min_charge_seconds, increment_seconds, created_at, changed_at, claimed_until, claim, empty_since)
		SELECT n.id, n.kind, n.state, n.pool, nullif(n.worker, '')::uuid, n.provider, n.scope, n.zone, n.machine, coalesce(n.forced, false),
		coalesce(n.why, ''), n.count, n.offers, n.prices, n.reserve, coalesce(n.idempotent, false), n.min_charge_seconds, coalesce(n.increment_seconds, 0),
		coalesce(n.created_at, $2), coalesce(n.changed_at, $2), n.claimed_until, n.claim, n.empty_since
		FROM jsonb_to_recordset($1::jsonb) AS n (id uuid, kind text, state text, pool text, worker text, provider text, scope text, zone text,
		machine text, forced bool, why text, count int, offers jsonb, prices jsonb, reserve bigint, idempotent bool, min_charge_seconds bigint, increment_seconds bigint,
		created_at timestamptz, changed_at timestamptz, claimed_until timestamptz, claim text, empty_since timestamptz)
		ON CONFLICT (id) DO UPDATE SET state = excluded.state, forced = excluded.forced, why = excluded.why, count = excluded.count,
		offers = excluded.offers, prices = excluded.prices, reserve = excluded.reserve, changed_at = excluded.changed_at,
		claimed_until = excluded.claimed_until, claim = excluded.claim, empty_since = excluded.empty_since`

	attemptRecord = `jsonb_to_recordset($1::jsonb) AS n (intent uuid, ordinal int, launch text, token text, first_at timestamptz, calls int,
		outcome text, code text)`

	storeAttempts = `INSERT INTO sluice_intent_attempts AS a (intent, ordinal, launch, token, first_at, calls, outcome, code, settled_at)
		SELECT n.intent, n.ordinal, n.launch::json, n.token, coalesce(n.first_at, $2), n.calls, n.outcome, n.code,
		CASE WHEN n.outcome IN ('done', 'refused') THEN $2::timestamptz END FROM ` + attemptRecord + `
		ON CONFLICT (intent, ordinal) DO UPDATE SET calls = excluded.calls, outcome = excluded.outcome, code = excluded.code,
		settled_at = coalesce(a.settled_at, excluded.settled_at)`
)

// intents stores closed ones first: a worker may have one open intent at a time.
func (w *writer) intents(p fleet.Plan) {
	if len(p.Intents) == 0 {
		return
	}
	intents := slices.Clone(p.Intents)
	slices.SortStableFunc(intents, func(a, b fleet.Intent) int {
		return cmp.Compare(rank(a.State), rank(b.State))
	})
	rows, attempts := make([]intentRow, len(intents)), []attemptRow{}
	for i, in := range intents {
		for _, a := range in.Attempts {
			row, err := toAttempt(in.ID, a)
			w.err = cmp.Or(w.err, err)
			attempts = append(attempts, row)
		}
		in.Attempts = nil
		rows[i] = intentRow{in, in.Ref.Place.Provider, in.Ref.Place.Scope, in.Ref.Zone, in.Ref.Machine}
	}
	w.rows(storeIntents, rows, p.Now.UTC())
	if len(attempts) > 0 {
		w.rows(storeAttempts, attempts, p.Now.UTC())
	}
}

func rank(s fleet.IntentState) int {
	if s == fleet.IntentOpen {
		return 1
	}
	return 0
}

func (w *writer) books(r *recalled, p fleet.Plan, rec fleet.Record) {
	if len(p.Spans) > 0 {
		w.rows(`INSERT INTO sluice_ledger (worker, provider, scope, machine, pool, last, price, from_at, to_at, min_charge_seconds, increment_seconds)
			SELECT nullif(n.worker, '')::uuid, n.provider, coalesce(n.scope, ''), n.machine, n.pool, coalesce(n.last, false), n.price,
			coalesce(n."from", n."to"), n."to", n.min_charge_seconds, coalesce(n.increment_seconds, 0)
			FROM jsonb_to_recordset($1::jsonb) AS n (worker text, provider text, scope text, machine text, pool text, last bool, price bigint,
			"from" timestamptz, "to" timestamptz, min_charge_seconds bigint, increment_seconds bigint)`, p.Spans)
	}
	if len(r.Sightings) > 0 || len(p.Sightings) > 0 {
		w.Queue("DELETE FROM sluice_sightings")
		w.rows(`INSERT INTO sluice_sightings (provider, scope, machine_id, machine, first_seen, last_seen, price, increment_seconds)
			SELECT s -> 'place' ->> 'provider', coalesce(s -> 'place' ->> 'scope', ''), s -> 'machine' ->> 'id', s -> 'machine',
			(s ->> 'first_seen')::timestamptz, (s ->> 'last_seen')::timestamptz, (s ->> 'price')::bigint,
			coalesce((s ->> 'increment_seconds')::bigint, 0)
			FROM jsonb_array_elements($1::jsonb) s`, append([]fleet.Sighting{}, p.Sightings...))
	}
	if len(rec.Quotes) > 0 {
		w.rows(`INSERT INTO sluice_quotes AS q (offer, price, at, currency)
			SELECT DISTINCT ON (n.offer) n.offer, n.price, n.at, coalesce(n.currency, '')
			FROM jsonb_to_recordset($1::jsonb) AS n (offer text, price bigint, at timestamptz, currency text)
			ORDER BY n.offer, n.at DESC
			ON CONFLICT (offer) DO UPDATE SET price = excluded.price, at = excluded.at, currency = excluded.currency WHERE excluded.at > q.at`, rec.Quotes)
	}
	if len(p.Bills) > 0 {
		w.rows(`INSERT INTO sluice_bills (provider, day, seen_at, amount, excess)
			SELECT n.provider, n.day, n.seen_at, n.amount, coalesce(n.excess, 0)
			FROM jsonb_to_recordset($1::jsonb) AS n (provider text, day date, seen_at timestamptz, amount bigint, excess bigint)
			ON CONFLICT (provider, day, seen_at) DO NOTHING`, p.Bills)
	}
	if p.Lifted {
		w.Queue("UPDATE sluice_overrides SET lifted_at = $1 WHERE lifted_at IS NULL", p.Now.UTC())
	}
	if o := p.Override; o != nil {
		w.Queue("INSERT INTO sluice_overrides (id, at, who, why) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING", o.ID, o.At.UTC(), o.Who, o.Why)
	}
	if len(p.Taken) > 0 {
		w.Queue("UPDATE sluice_requests SET taken_at = $2 WHERE id = ANY ($1::text[]) AND taken_at IS NULL", p.Taken, p.Now.UTC())
	}
}

func (w *writer) alerts(p fleet.Plan) {
	if len(p.Alerts) > 0 {
		w.rows(`INSERT INTO sluice_alerts (key, level, title, facts, at)
			SELECT DISTINCT ON (n.key) n.key, n.level, n.title, n.facts, coalesce(n.at, $2)
			FROM jsonb_to_recordset($1::jsonb) AS n (key text, level text, title text, facts jsonb, at timestamptz)
			ON CONFLICT (key) DO NOTHING`, p.Alerts, p.Now.UTC())
	}
}

// config remembers the newest config ever seen, and the last good one, never an older one than that.
func (w *writer) config(r *recalled, rec fleet.Record) {
	c := rec.Config
	if c == nil || c.Modified.Before(r.ConfigAt) ||
		c.Name == r.lastName && c.ETag == r.lastETag && c.Modified.Truncate(time.Microsecond).Equal(r.lastChanged) && bytes.Equal(c.Bytes, r.LastGood) {
		return
	}
	w.Queue(`UPDATE sluice_state SET config_at = greatest(config_at, $3), config_name = $1, config_etag = $2, config_modified_at = $3, config_bytes = $4`,
		c.Name, c.ETag, stamp(c.Modified), c.Bytes)
}

// assignments are written when they change; a pool that is gone keeps its own for workers that still drain.
func (w *writer) assignments(r *recalled, p fleet.Plan, rec fleet.Record) {
	if len(rec.Assignments) == 0 {
		return
	}
	text, err := encode(rec.Assignments)
	w.err = cmp.Or(w.err, err)
	sum := sha256.Sum256([]byte(text))
	hash := hex.EncodeToString(sum[:])
	if hash == r.assignments {
		return
	}
	w.Queue(`INSERT INTO sluice_assignments AS a (pool, assignment, changed_at) SELECT key, value, $2 FROM jsonb_each($1::jsonb)
		ON CONFLICT (pool) DO UPDATE SET assignment = excluded.assignment, changed_at = excluded.changed_at
		WHERE a.assignment IS DISTINCT FROM excluded.assignment`, text, p.Now.UTC())
	w.Queue("UPDATE sluice_state SET assignments_hash = $1", hash)
}

// sweep returns jobs whose visibility ran out, since no worker may be left to do it, and forgets what
// is old, a little on each tick.
func (w *writer) sweep(now time.Time) {
	w.Queue("SELECT sluice_sweep()")
	month, week := now.AddDate(0, 0, -30).UTC(), now.AddDate(0, 0, -7).UTC()
	w.Queue(`DELETE FROM sluice_ticks WHERE id IN (SELECT t.id FROM sluice_ticks t WHERE t.at < $1
		AND t.due < (SELECT max(l.due) FROM sluice_ticks l WHERE l.function = t.function) ORDER BY t.at LIMIT 100)`, month)
	w.Queue("DELETE FROM sluice_samples WHERE at IN (SELECT at FROM sluice_samples WHERE at < $1 ORDER BY at LIMIT 100)", month)
	w.Queue(`DELETE FROM sluice_intents WHERE id IN (SELECT id FROM sluice_intents WHERE changed_at < $1
		AND state NOT IN ('open', 'abandoned') ORDER BY changed_at LIMIT 100)`, month)
	w.Queue("DELETE FROM sluice_alerts WHERE key IN (SELECT key FROM sluice_alerts WHERE sent_at < $1 LIMIT 100)", month)
	w.Queue("DELETE FROM sluice_ledger WHERE id IN (SELECT id FROM sluice_ledger WHERE to_at < $1 ORDER BY to_at LIMIT 100)", now.AddDate(-2, 0, 0).UTC())
	w.Queue("DELETE FROM worker_metrics WHERE ctid = ANY (ARRAY(SELECT ctid FROM worker_metrics WHERE at < $1 ORDER BY at LIMIT 2000))", week)
}
