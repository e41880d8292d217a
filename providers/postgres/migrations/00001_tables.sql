-- The tables that Sluice shares with its host (workers, worker_metrics, processing_jobs, job_attempts)
-- may exist already, with rows and with columns of the host's own. What is missing is added, what
-- is there is kept; a column of another type than needed stops the migration with its name.

-- +goose Up

-- The one clock. Tests replace this function.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION sluice_clock() RETURNS timestamptz LANGUAGE sql VOLATILE AS
'SELECT clock_timestamp()';
-- +goose StatementEnd

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION sluice_lane(market text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
'SELECT CASE WHEN market IN (''on_demand'', ''spot'') THEN market ELSE '''' END';
-- +goose StatementEnd

CREATE TABLE IF NOT EXISTS workers (id uuid PRIMARY KEY DEFAULT gen_random_uuid());
ALTER TABLE workers
    ADD COLUMN IF NOT EXISTS pool text NOT NULL DEFAULT 'vps',
    ADD COLUMN IF NOT EXISTS queues text[] NOT NULL DEFAULT '{}',
    ADD COLUMN IF NOT EXISTS provider text NOT NULL DEFAULT 'vps',
    ADD COLUMN IF NOT EXISTS scope text NOT NULL DEFAULT '',
    ADD COLUMN IF NOT EXISTS zone text NOT NULL DEFAULT '',
    ADD COLUMN IF NOT EXISTS machine_id text NOT NULL DEFAULT gen_random_uuid()::text,
    ADD COLUMN IF NOT EXISTS instance_type text NOT NULL DEFAULT '',
    ADD COLUMN IF NOT EXISTS market text NOT NULL DEFAULT '',
    ADD COLUMN IF NOT EXISTS intent_id uuid,
    ADD COLUMN IF NOT EXISTS spec_hash text NOT NULL DEFAULT '',
    ADD COLUMN IF NOT EXISTS classes text[],
    ADD COLUMN IF NOT EXISTS status text NOT NULL DEFAULT 'provisioning',
    ADD COLUMN IF NOT EXISTS slots integer NOT NULL DEFAULT 1,
    ADD COLUMN IF NOT EXISTS current_jobs integer NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS cost_per_hour_cents numeric NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS cost_per_hour_micros bigint NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS idle_price_micros bigint NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS min_charge_seconds bigint NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS increment_seconds bigint NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS created_at timestamptz NOT NULL DEFAULT sluice_clock(),
    ADD COLUMN IF NOT EXISTS cost_from timestamptz,
    ADD COLUMN IF NOT EXISTS boot_at timestamptz,
    ADD COLUMN IF NOT EXISTS registered_at timestamptz,
    ADD COLUMN IF NOT EXISTS last_heartbeat timestamptz,
    ADD COLUMN IF NOT EXISTS last_job_completed_at timestamptz,
    ADD COLUMN IF NOT EXISTS idle_since timestamptz,
    ADD COLUMN IF NOT EXISTS draining_at timestamptz,
    ADD COLUMN IF NOT EXISTS drain_ack_at timestamptz,
    ADD COLUMN IF NOT EXISTS drain_why text,
    ADD COLUMN IF NOT EXISTS expires_at timestamptz,
    ADD COLUMN IF NOT EXISTS changed_at timestamptz,
    ADD COLUMN IF NOT EXISTS absent_since timestamptz,
    ADD COLUMN IF NOT EXISTS terminated_at timestamptz,
    ADD COLUMN IF NOT EXISTS end_why text;

CREATE TABLE IF NOT EXISTS worker_metrics (worker_id uuid NOT NULL);
ALTER TABLE worker_metrics
    ADD COLUMN IF NOT EXISTS worker_id uuid,
    ADD COLUMN IF NOT EXISTS at timestamptz NOT NULL DEFAULT sluice_clock(),
    ADD COLUMN IF NOT EXISTS cpu_percent real,
    ADD COLUMN IF NOT EXISTS load1 real,
    ADD COLUMN IF NOT EXISTS memory_mb integer,
    ADD COLUMN IF NOT EXISTS current_jobs integer;

CREATE TABLE IF NOT EXISTS processing_jobs (id uuid PRIMARY KEY DEFAULT gen_random_uuid());
ALTER TABLE processing_jobs
    ADD COLUMN IF NOT EXISTS queue text,
    ADD COLUMN IF NOT EXISTS status text NOT NULL DEFAULT 'queued',
    ADD COLUMN IF NOT EXISTS payload jsonb,
    ADD COLUMN IF NOT EXISTS priority integer NOT NULL DEFAULT 5,
    ADD COLUMN IF NOT EXISTS attempts integer NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS max_attempts integer,
    ADD COLUMN IF NOT EXISTS created_at timestamptz NOT NULL DEFAULT sluice_clock(),
    ADD COLUMN IF NOT EXISTS due_at timestamptz,
    ADD COLUMN IF NOT EXISTS market text,
    ADD COLUMN IF NOT EXISTS class text,
    ADD COLUMN IF NOT EXISTS user_id text,
    ADD COLUMN IF NOT EXISTS credits numeric,
    ADD COLUMN IF NOT EXISTS claimed_by uuid,
    ADD COLUMN IF NOT EXISTS attempt_id uuid,
    ADD COLUMN IF NOT EXISTS claimed_at timestamptz,
    ADD COLUMN IF NOT EXISTS visible_until timestamptz,
    ADD COLUMN IF NOT EXISTS excluded_worker uuid,
    ADD COLUMN IF NOT EXISTS checkpoint jsonb,
    ADD COLUMN IF NOT EXISTS result jsonb,
    ADD COLUMN IF NOT EXISTS last_error text,
    ADD COLUMN IF NOT EXISTS completed_at timestamptz,
    ADD COLUMN IF NOT EXISTS unlist boolean NOT NULL DEFAULT false,
    ADD COLUMN IF NOT EXISTS relist boolean NOT NULL DEFAULT false;

CREATE TABLE IF NOT EXISTS job_attempts (id uuid PRIMARY KEY DEFAULT gen_random_uuid());
ALTER TABLE job_attempts
    ADD COLUMN IF NOT EXISTS job_id uuid,
    ADD COLUMN IF NOT EXISTS worker_id uuid,
    ADD COLUMN IF NOT EXISTS attempt integer,
    ADD COLUMN IF NOT EXISTS status text NOT NULL DEFAULT 'running',
    ADD COLUMN IF NOT EXISTS started_at timestamptz DEFAULT sluice_clock(),
    ADD COLUMN IF NOT EXISTS ended_at timestamptz,
    ADD COLUMN IF NOT EXISTS exit_code integer,
    ADD COLUMN IF NOT EXISTS error text;

-- +goose StatementBegin
DO $$
DECLARE
    wrong text;
BEGIN
    SELECT string_agg(format('%s.%s is %s, needed is %s', c.table_name, c.column_name,
                             CASE WHEN c.data_type = 'ARRAY' THEN c.udt_name ELSE c.data_type END, w.types), '; '
                      ORDER BY c.table_name, c.column_name)
      INTO wrong
      FROM (VALUES
        ('workers', 'uuid', '{id,intent_id}'::text[]),
        ('workers', 'text or varchar', '{pool,provider,scope,zone,machine_id,instance_type,market,spec_hash,status,drain_why,end_why}'),
        ('workers', '_text', '{queues,classes}'),
        ('workers', 'a whole number', '{slots,current_jobs,cost_per_hour_micros,idle_price_micros,min_charge_seconds,increment_seconds}'),
        ('workers', 'numeric or a whole number', '{cost_per_hour_cents}'),
        ('workers', 'timestamp with time zone', '{created_at,cost_from,boot_at,registered_at,last_heartbeat,last_job_completed_at,idle_since,draining_at,drain_ack_at,expires_at,changed_at,absent_since,terminated_at}'),
        ('worker_metrics', 'uuid', '{worker_id}'),
        ('worker_metrics', 'timestamp with time zone', '{at}'),
        ('worker_metrics', 'a number', '{cpu_percent,load1}'),
        ('worker_metrics', 'a whole number', '{memory_mb,current_jobs}'),
        ('processing_jobs', 'uuid', '{id,claimed_by,attempt_id,excluded_worker}'),
        ('processing_jobs', 'text or varchar', '{queue,status,market,class,last_error}'),
        ('processing_jobs', 'jsonb', '{payload,checkpoint,result}'),
        ('processing_jobs', 'a whole number', '{priority,attempts,max_attempts}'),
        ('processing_jobs', 'timestamp with time zone', '{created_at,due_at,claimed_at,visible_until,completed_at}'),
        ('processing_jobs', 'boolean', '{unlist,relist}'),
        ('job_attempts', 'uuid', '{id,job_id,worker_id}'),
        ('job_attempts', 'text or varchar', '{status,error}'),
        ('job_attempts', 'a whole number', '{attempt,exit_code}'),
        ('job_attempts', 'timestamp with time zone', '{started_at,ended_at}')
      ) AS w (tab, types, cols)
      JOIN information_schema.columns c
        ON c.table_schema = 'public' AND c.table_name = w.tab AND c.column_name = ANY (w.cols)
     WHERE NOT CASE w.types
            WHEN 'text or varchar' THEN c.data_type IN ('text', 'character varying')
            WHEN 'a whole number' THEN c.data_type IN ('integer', 'bigint', 'smallint')
            WHEN 'numeric or a whole number' THEN c.data_type IN ('numeric', 'integer', 'bigint')
            WHEN 'a number' THEN c.data_type IN ('real', 'double precision', 'numeric', 'integer')
            WHEN '_text' THEN c.udt_name IN ('_text', '_varchar')
            ELSE c.data_type = w.types END;
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION 'tables of this database do not fit Sluice: %', wrong
            USING HINT = 'convert or rename these columns, then run sluice migrate again; nothing was changed';
    END IF;

    SELECT string_agg(c.table_name || '.' || c.column_name, ', ' ORDER BY c.table_name, c.column_name)
      INTO wrong
      FROM information_schema.columns c
      JOIN (VALUES
        ('workers', '{id,pool,queues,provider,scope,zone,machine_id,instance_type,market,spec_hash,status,slots,current_jobs,cost_per_hour_cents,cost_per_hour_micros,idle_price_micros,min_charge_seconds,increment_seconds}'::text[]),
        ('worker_metrics', '{worker_id}'),
        ('job_attempts', '{id,job_id,worker_id,attempt,status}')
      ) AS own (tab, cols) ON own.tab = c.table_name
     WHERE c.table_schema = 'public' AND c.is_nullable = 'NO' AND c.column_default IS NULL
       AND c.is_identity = 'NO' AND c.is_generated = 'NEVER' AND NOT c.column_name = ANY (own.cols);
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION 'Sluice adds rows to these tables and cannot know what belongs into %', wrong
            USING HINT = 'give these columns a default or allow NULL, then run sluice migrate again; nothing was changed';
    END IF;
END
$$;
-- +goose StatementEnd

ALTER TABLE processing_jobs
    ADD COLUMN IF NOT EXISTS available_at timestamptz GENERATED ALWAYS AS (greatest(created_at, due_at)) STORED,
    ADD COLUMN IF NOT EXISTS urgency integer GENERATED ALWAYS AS (least(greatest(coalesce(priority, 5), 1), 10)) STORED;

CREATE UNIQUE INDEX IF NOT EXISTS sluice_workers_machine ON workers (provider, scope, machine_id);
CREATE INDEX IF NOT EXISTS sluice_workers_live ON workers (id) WHERE status IN ('provisioning', 'ready', 'draining', 'suspended');
CREATE INDEX IF NOT EXISTS sluice_workers_intent ON workers (intent_id) WHERE intent_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS sluice_workers_boots ON workers (pool, registered_at DESC) WHERE registered_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS sluice_workers_unborn ON workers (pool) WHERE registered_at IS NULL;
CREATE INDEX IF NOT EXISTS sluice_workers_drained ON workers (pool, draining_at DESC) WHERE drain_why IN ('drain.idle', 'drain.dry');
CREATE INDEX IF NOT EXISTS sluice_workers_ended ON workers (terminated_at) WHERE terminated_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS sluice_workers_failed ON workers (pool, terminated_at) WHERE status = 'failed';
CREATE INDEX IF NOT EXISTS sluice_metrics_at ON worker_metrics (at);
CREATE INDEX IF NOT EXISTS sluice_metrics_worker ON worker_metrics (worker_id, at);
CREATE INDEX IF NOT EXISTS sluice_jobs_waiting ON processing_jobs (queue, urgency, sluice_lane(market), available_at) WHERE status = 'queued';
CREATE INDEX IF NOT EXISTS sluice_jobs_excluded ON processing_jobs (excluded_worker) WHERE status = 'queued' AND excluded_worker IS NOT NULL;
CREATE INDEX IF NOT EXISTS sluice_jobs_running ON processing_jobs (queue) WHERE status = 'processing';
CREATE INDEX IF NOT EXISTS sluice_jobs_worker ON processing_jobs (claimed_by) WHERE status = 'processing';
CREATE INDEX IF NOT EXISTS sluice_jobs_visible ON processing_jobs (visible_until) WHERE status = 'processing';
CREATE INDEX IF NOT EXISTS sluice_jobs_attempt ON processing_jobs (attempt_id) WHERE status = 'processing';
CREATE INDEX IF NOT EXISTS sluice_jobs_redis ON processing_jobs (id) WHERE unlist OR relist;
CREATE INDEX IF NOT EXISTS sluice_attempts_job ON job_attempts (job_id);

-- Exactly one row. deployment tells this installation's machines from those of another database.
CREATE TABLE sluice_state (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    deployment uuid NOT NULL DEFAULT gen_random_uuid(),
    config_at timestamptz,
    config_name text,
    config_etag text,
    config_modified_at timestamptz,
    config_bytes bytea,
    assignments_hash text
);
INSERT INTO sluice_state DEFAULT VALUES;

CREATE TABLE sluice_ticks (
    id uuid PRIMARY KEY,
    function text NOT NULL,
    due timestamptz NOT NULL,
    at timestamptz NOT NULL,
    changed boolean NOT NULL,
    message text NOT NULL,
    spend jsonb NOT NULL,
    UNIQUE (function, due)
);
CREATE INDEX sluice_ticks_at ON sluice_ticks (at);

-- The last wall behind the lock and the decision: due times of a function only rise.
-- +goose StatementBegin
CREATE FUNCTION sluice_due_rises() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM sluice_ticks t WHERE t.function = NEW.function AND t.due >= NEW.due) THEN
        RAISE EXCEPTION 'tick of % due at % is not after the last one', NEW.function, NEW.due USING ERRCODE = 'unique_violation';
    END IF;
    RETURN NEW;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER sluice_due_rises BEFORE INSERT ON sluice_ticks FOR EACH ROW EXECUTE FUNCTION sluice_due_rises();

-- What a tick saw and planned: gzipped JSON.
CREATE TABLE sluice_snapshots (
    tick uuid PRIMARY KEY REFERENCES sluice_ticks ON DELETE CASCADE,
    snapshot bytea NOT NULL,
    plan bytea NOT NULL
);
CREATE TABLE sluice_lines (
    tick uuid NOT NULL REFERENCES sluice_ticks ON DELETE CASCADE,
    seq integer NOT NULL,
    id text NOT NULL,
    at timestamptz NOT NULL,
    event text NOT NULL,
    level text NOT NULL,
    pool text NOT NULL,
    worker text NOT NULL,
    message text NOT NULL,
    facts jsonb,
    PRIMARY KEY (tick, seq)
);
CREATE INDEX sluice_lines_at ON sluice_lines (at);
CREATE TABLE sluice_samples (at timestamptz PRIMARY KEY, queues jsonb NOT NULL);

CREATE TABLE sluice_intents (
    id uuid PRIMARY KEY,
    kind text NOT NULL CHECK (kind IN ('launch', 'resume', 'suspend', 'terminate')),
    state text NOT NULL CHECK (state IN ('open', 'done', 'refused', 'abandoned', 'closed')),
    pool text NOT NULL,
    worker uuid,
    provider text NOT NULL,
    scope text NOT NULL,
    zone text NOT NULL,
    machine text NOT NULL,
    forced boolean NOT NULL,
    why text NOT NULL,
    count integer NOT NULL,
    offers jsonb,
    prices jsonb,
    reserve bigint NOT NULL,
    idempotent boolean NOT NULL,
    min_charge_seconds bigint NOT NULL,
    increment_seconds bigint NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL,
    changed_at timestamptz NOT NULL,
    claimed_until timestamptz,
    claim text NOT NULL,
    empty_since timestamptz
);
CREATE UNIQUE INDEX sluice_intents_worker ON sluice_intents (worker) WHERE state = 'open' AND worker IS NOT NULL;
CREATE UNIQUE INDEX sluice_intents_machine ON sluice_intents (provider, scope, machine) WHERE state = 'open' AND machine <> '';
CREATE INDEX sluice_intents_open ON sluice_intents (id) WHERE state IN ('open', 'abandoned');
CREATE INDEX sluice_intents_up ON sluice_intents (pool, created_at DESC) WHERE kind IN ('launch', 'resume') AND state <> 'refused';
CREATE INDEX sluice_intents_changed ON sluice_intents (changed_at);

CREATE TABLE sluice_intent_attempts (
    intent uuid NOT NULL REFERENCES sluice_intents ON DELETE CASCADE,
    ordinal integer NOT NULL,
    launch json, -- not jsonb: a repeat must send what was stored, byte for byte
    token text,
    first_at timestamptz,
    calls integer NOT NULL,
    outcome text NOT NULL CHECK (outcome IN ('pending', 'done', 'refused', 'unknown')),
    code text NOT NULL,
    settled_at timestamptz,
    PRIMARY KEY (intent, ordinal)
);
CREATE UNIQUE INDEX sluice_intent_attempts_token ON sluice_intent_attempts (token);
CREATE INDEX sluice_intent_attempts_first ON sluice_intent_attempts (first_at);

-- What machines cost over stretches of time that are over.
CREATE TABLE sluice_ledger (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    worker uuid,
    provider text NOT NULL,
    scope text NOT NULL,
    machine text NOT NULL,
    pool text NOT NULL,
    last boolean NOT NULL,
    price bigint NOT NULL,
    from_at timestamptz NOT NULL,
    to_at timestamptz NOT NULL,
    min_charge_seconds bigint NOT NULL,
    increment_seconds bigint NOT NULL DEFAULT 0
);
CREATE INDEX sluice_ledger_to ON sluice_ledger (to_at);
CREATE INDEX sluice_ledger_worker ON sluice_ledger (worker);

CREATE TABLE sluice_sightings (
    provider text NOT NULL,
    scope text NOT NULL,
    machine_id text NOT NULL,
    machine jsonb NOT NULL,
    first_seen timestamptz NOT NULL,
    last_seen timestamptz NOT NULL,
    price bigint NOT NULL,
    increment_seconds bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (provider, scope, machine_id)
);
CREATE TABLE sluice_quotes (offer text PRIMARY KEY, price bigint NOT NULL, at timestamptz NOT NULL, currency text NOT NULL DEFAULT '');
CREATE TABLE sluice_cool_offs (offer text PRIMARY KEY, until timestamptz NOT NULL, count integer NOT NULL, code text NOT NULL);
CREATE TABLE sluice_requests (
    id text PRIMARY KEY,
    kind text NOT NULL,
    target text NOT NULL,
    who text NOT NULL,
    why text NOT NULL,
    at timestamptz NOT NULL,
    taken_at timestamptz
);
CREATE INDEX sluice_requests_open ON sluice_requests (at) WHERE taken_at IS NULL;
CREATE TABLE sluice_overrides (
    id text PRIMARY KEY,
    at timestamptz NOT NULL,
    who text NOT NULL,
    why text NOT NULL,
    lifted_at timestamptz
);
CREATE UNIQUE INDEX sluice_overrides_one ON sluice_overrides ((true)) WHERE lifted_at IS NULL;
CREATE TABLE sluice_alerts (
    key text PRIMARY KEY,
    level text NOT NULL,
    title text NOT NULL,
    facts jsonb,
    at timestamptz NOT NULL,
    sent_at timestamptz
);
CREATE INDEX sluice_alerts_unsent ON sluice_alerts (at, key) WHERE sent_at IS NULL;
CREATE TABLE sluice_bills (
    provider text NOT NULL,
    day date NOT NULL,
    seen_at timestamptz NOT NULL,
    amount bigint NOT NULL,
    excess bigint NOT NULL,
    PRIMARY KEY (provider, day, seen_at)
);
CREATE TABLE sluice_assignments (pool text PRIMARY KEY, assignment jsonb NOT NULL, changed_at timestamptz NOT NULL);
CREATE INDEX sluice_assignments_queues ON sluice_assignments USING gin ((assignment -> 'queues') jsonb_path_ops);

-- What ledger lines older than 50 hours before the last tick, and bills that memory does not have, cost in the period that
-- the last tick stood in. A line's part is the difference of two amounts since it began, each rounded up to a millionth.
-- It is a function so that where no period has a limit nothing of it is planned, at every tick.
-- +goose StatementBegin
CREATE FUNCTION sluice_earlier(OUT since timestamptz, OUT something boolean, OUT spent bigint) LANGUAGE plpgsql STABLE AS $$
DECLARE
    reach timestamptz;
BEGIN
    SELECT t.at - interval '50 hours', (t.spend -> 'period' ->> 'from')::timestamptz INTO reach, since FROM sluice_ticks t ORDER BY t.at DESC LIMIT 1;
    spent := 0;
    IF since IS NULL THEN
        something := EXISTS (SELECT FROM sluice_ledger l WHERE l.to_at <= reach AND l.to_at > reach - interval '40 days');
        RETURN;
    END IF;
    something := true;
    SELECT coalesce(sum(ceil(o.price * o.charged / 3600000000) - ceil(o.price * o.before / 3600000000)), 0)
      INTO spent FROM (
        SELECT l.price::numeric AS price, (extract(epoch FROM greatest(since, l.from_at) - l.from_at) * 1000000)::bigint::numeric AS before,
               greatest(l.min_charge_seconds * 1000000::numeric, CASE WHEN l.increment_seconds = 0 THEN m.ran
                   ELSE ceil(m.ran / (l.increment_seconds * 1000000)) * l.increment_seconds * 1000000 END) AS charged
          FROM sluice_ledger l CROSS JOIN LATERAL (SELECT (extract(epoch FROM l.to_at - l.from_at) * 1000000)::bigint::numeric AS ran) m
         WHERE l.to_at <= reach AND l.to_at > since - interval '1 day') o
     WHERE o.charged > o.before;
    spent := spent + (SELECT coalesce(sum(b.excess), 0) FROM sluice_bills b
        WHERE b.seen_at >= since AND b.day <= (sluice_clock() AT TIME ZONE 'UTC')::date - 7);
END
$$;
-- +goose StatementEnd
