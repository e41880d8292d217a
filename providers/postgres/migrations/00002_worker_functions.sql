-- What a worker may do, callable from any language. Every function that touches a worker and its jobs
-- locks the worker's row first and the jobs after it, so that none waits for another in a circle.

-- +goose Up

-- +goose StatementBegin
CREATE FUNCTION sluice_assignment(pool text) RETURNS jsonb LANGUAGE sql STABLE AS
$$ SELECT a.assignment FROM sluice_assignments a WHERE a.pool = $1 $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION sluice_seconds(assignment jsonb, key text, fallback integer) RETURNS interval LANGUAGE sql IMMUTABLE AS
$$ SELECT make_interval(secs => coalesce((assignment ->> key)::double precision, fallback)) $$;
-- +goose StatementEnd

-- Whether ids of this queue's jobs are kept in a Redis list beside the rows.
-- +goose StatementBegin
CREATE FUNCTION sluice_in_redis(queue text) RETURNS boolean LANGUAGE sql STABLE AS
$$ SELECT EXISTS (SELECT FROM sluice_assignments a
    WHERE a.assignment -> 'queues' @> jsonb_build_array(jsonb_build_object('name', $1, 'source', jsonb_build_object('kind', 'redis', 'job_rows', true)))) $$;
-- +goose StatementEnd

-- Counts what a worker has in hand; the caller has locked its row.
-- +goose StatementBegin
CREATE FUNCTION sluice_recount(worker uuid, at timestamptz, completed boolean) RETURNS void LANGUAGE sql AS
$$ UPDATE workers w SET
        current_jobs = n.jobs,
        last_job_completed_at = CASE WHEN completed THEN at ELSE w.last_job_completed_at END,
        idle_since = CASE WHEN n.jobs = 0 AND w.current_jobs > 0 THEN at ELSE w.idle_since END
    FROM (SELECT count(*)::int AS jobs FROM processing_jobs j WHERE j.status = 'processing' AND j.claimed_by = worker) n
    WHERE w.id = worker $$;
-- +goose StatementEnd

-- Gives jobs of these workers back to their queues, attempt counted, or to the dead where none is left.
-- The caller has locked the rows of the workers.
-- +goose StatementBegin
CREATE FUNCTION sluice_return_jobs(lost_workers uuid[], visible_before timestamptz, why text) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    at timestamptz := sluice_clock();
    returned integer;
BEGIN
    WITH lost AS MATERIALIZED (
        SELECT j.id, j.attempt_id, j.claimed_by,
               j.attempts >= coalesce(j.max_attempts, (a.assignment ->> 'max_attempts')::int, 3) AS dead,
               coalesce((a.assignment ->> 'retry_elsewhere')::boolean, true) AS elsewhere
          FROM processing_jobs j
          LEFT JOIN workers w ON w.id = j.claimed_by
          LEFT JOIN sluice_assignments a ON a.pool = coalesce(w.pool, 'vps')
         WHERE j.status = 'processing' AND j.claimed_by = ANY (lost_workers)
           AND coalesce(j.visible_until, 'infinity') <= visible_before
         ORDER BY j.id
           FOR UPDATE OF j
    ), ended AS (
        UPDATE job_attempts t SET status = 'lost', ended_at = at, error = why
          FROM lost WHERE t.id = lost.attempt_id
    ), changed AS (
        UPDATE processing_jobs j SET
               status = CASE WHEN lost.dead THEN 'dead' ELSE 'queued' END,
               claimed_by = NULL, attempt_id = NULL, claimed_at = NULL, visible_until = NULL,
               excluded_worker = CASE WHEN lost.elsewhere THEN lost.claimed_by END,
               last_error = why,
               completed_at = CASE WHEN lost.dead THEN at END,
               relist = NOT lost.dead AND sluice_in_redis(j.queue)
          FROM lost WHERE j.id = lost.id
        RETURNING 1
    )
    SELECT count(*) INTO returned FROM changed;
    PERFORM sluice_recount(w, at, false) FROM unnest(lost_workers) w;
    RETURN returned;
END
$$;
-- +goose StatementEnd

-- The columns of a worker's row that come from the launch that it answers.
-- +goose StatementBegin
CREATE FUNCTION sluice_answer(intent uuid, ordinal integer, type text, market text)
RETURNS TABLE (pool text, price bigint, min_charge bigint, increment bigint, spec text, expires timestamptz, first_at timestamptz, last_at timestamptz, type text, market text, zone text)
LANGUAGE sql STABLE AS $$
    SELECT i.pool,
           coalesce((SELECT (i.prices ->> (o.n::int - 1))::bigint
                       FROM jsonb_array_elements(i.offers) WITH ORDINALITY AS o (offer, n)
                      WHERE o.offer = (a.launch -> 'offer')::jsonb LIMIT 1), i.reserve),
           i.min_charge_seconds, i.increment_seconds,
           a.launch -> 'tags' ->> 'spec',
           nullif(a.launch -> 'tags' ->> 'expires', '')::timestamptz,
           coalesce(a.first_at, i.created_at),
           greatest(a.first_at, i.changed_at), -- what a machine answers may be the last call
           a.launch -> 'offer' ->> 'type', a.launch -> 'offer' ->> 'market', coalesce(a.launch -> 'offer' ->> 'zone', '')
      FROM sluice_intents i
      LEFT JOIN sluice_intent_attempts a ON a.intent = i.id
     WHERE i.id = $1 AND i.kind = 'launch'
     ORDER BY (a.ordinal = $2) IS TRUE DESC, (a.launch -> 'offer' ->> 'type' = $3) IS TRUE DESC, (a.launch -> 'offer' ->> 'market' = $4) IS TRUE DESC,
              a.outcome <> 'refused' DESC, a.ordinal DESC
     LIMIT 1
$$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION sluice_register(
    provider text, machine text, pool text, intent uuid DEFAULT NULL, spec text DEFAULT NULL,
    expires timestamptz DEFAULT NULL, type text DEFAULT NULL, market text DEFAULT NULL,
    scope text DEFAULT '', zone text DEFAULT '')
RETURNS TABLE (worker_id uuid, status text, drain boolean, expires_at timestamptz, assignment jsonb, wait boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
DECLARE
    at timestamptz := sluice_clock();
    w workers;
    a jsonb;
BEGIN
    IF coalesce(sluice_register.provider, '') = '' OR coalesce(sluice_register.machine, '') = '' OR coalesce(sluice_register.pool, '') = '' THEN
        RAISE EXCEPTION 'register worker: provider, machine and pool must be named' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT * INTO w FROM workers k
     WHERE k.provider = sluice_register.provider AND k.scope = coalesce(sluice_register.scope, '') AND k.machine_id = sluice_register.machine
       FOR NO KEY UPDATE;
    -- A repeated call of a provider that cannot recognise repeats may have made two machines: neither is
    -- taken in before a tick has settled the launch, since its reservation would end with the first (protocol, point 4).
    IF w.id IS NULL AND EXISTS (
        SELECT FROM sluice_intents i
          JOIN sluice_intent_attempts t ON t.intent = i.id AND t.calls > 1 AND t.outcome IN ('pending', 'unknown')
         WHERE i.id = sluice_register.intent AND i.state = 'open' AND NOT i.idempotent)
    THEN
        RETURN QUERY SELECT NULL::uuid, NULL::text, false, NULL::timestamptz, NULL::jsonb, true;
        RETURN;
    END IF;
    -- A machine whose end was asked for while nobody knew it would be given work and then be killed.
    IF w.id IS NULL AND EXISTS (
        SELECT FROM sluice_intents i WHERE i.kind = 'terminate' AND i.state = 'open' AND i.provider = sluice_register.provider
           AND i.scope = coalesce(sluice_register.scope, '') AND i.machine = sluice_register.machine)
    THEN
        RETURN QUERY SELECT NULL::uuid, NULL::text, false, NULL::timestamptz, NULL::jsonb, true;
        RETURN;
    END IF;
    a := sluice_assignment(coalesce(w.pool, (SELECT i.pool FROM sluice_intents i WHERE i.id = sluice_register.intent), sluice_register.pool));
    IF a IS NULL THEN -- nothing to run yet
        RETURN QUERY SELECT w.id, w.status::text, coalesce(w.status IN ('draining', 'suspended'), false), w.expires_at, NULL::jsonb, true;
        RETURN;
    END IF;
    IF w.id IS NULL THEN
        -- Machines of one launch are counted one after the other, so that none is overlooked.
        PERFORM pg_advisory_xact_lock(378318, hashtext(sluice_register.intent::text));
        INSERT INTO workers AS k (id, pool, provider, scope, zone, machine_id, instance_type, market, intent_id, spec_hash, status,
            cost_per_hour_micros, cost_per_hour_cents, min_charge_seconds, increment_seconds, cost_from, boot_at, expires_at, changed_at, draining_at, drain_why)
        SELECT gen_random_uuid(), coalesce(i.pool, sluice_register.pool), sluice_register.provider, coalesce(sluice_register.scope, ''),
               coalesce(nullif(sluice_register.zone, ''), i.zone, ''), sluice_register.machine,
               coalesce(sluice_register.type, i.type, ''), coalesce(sluice_register.market, i.market, ''),
               sluice_register.intent, coalesce(sluice_register.spec, i.spec, ''), CASE WHEN surplus THEN 'draining' ELSE 'provisioning' END,
               p.price, p.price / 10000.0, coalesce(i.min_charge, 0), coalesce(i.increment, 0), coalesce(i.first_at, at), coalesce(i.last_at, at),
               coalesce(sluice_register.expires, i.expires), at,
               CASE WHEN surplus THEN at END, CASE WHEN surplus THEN 'drain.surplus' END
          FROM (SELECT EXISTS ( -- more machines than the launch asked for
                SELECT FROM sluice_intents s WHERE s.id = sluice_register.intent
                   AND s.count <= (SELECT count(*) FROM workers b WHERE b.intent_id = s.id)) AS surplus) one
          LEFT JOIN sluice_answer(sluice_register.intent, NULL, sluice_register.type, sluice_register.market) i ON true
         CROSS JOIN LATERAL (SELECT coalesce(i.price, (
                SELECT max(q.price) FROM sluice_quotes q WHERE q.offer IN (
                    concat_ws('/', sluice_register.provider, sluice_register.scope, sluice_register.zone, sluice_register.type, sluice_register.market),
                    concat_ws('/', sluice_register.provider, sluice_register.scope, '', sluice_register.type, sluice_register.market))), 0) AS price) p
        ON CONFLICT (provider, scope, machine_id) DO NOTHING;
        SELECT * INTO STRICT w FROM workers k
         WHERE k.provider = sluice_register.provider AND k.scope = coalesce(sluice_register.scope, '') AND k.machine_id = sluice_register.machine
           FOR NO KEY UPDATE;
    END IF;
    UPDATE workers k SET
        -- Whoever registers lives. What its earlier life cost is in the ledger already.
        status = CASE WHEN k.status IN ('ready', 'draining', 'suspended') THEN k.status ELSE 'ready' END,
        cost_from = CASE WHEN k.status IN ('terminated', 'failed') THEN coalesce(k.terminated_at, at) ELSE k.cost_from END,
        boot_at = CASE WHEN k.status IN ('terminated', 'failed') THEN at ELSE k.boot_at END,
        draining_at = CASE WHEN k.status = 'draining' THEN k.draining_at END,
        drain_ack_at = CASE WHEN k.status = 'draining' THEN k.drain_ack_at END,
        drain_why = CASE WHEN k.status IN ('draining', 'suspended') THEN k.drain_why END,
        terminated_at = NULL, end_why = NULL, absent_since = NULL,
        registered_at = CASE WHEN k.status IN ('terminated', 'failed') THEN at ELSE coalesce(k.registered_at, at) END,
        idle_since = CASE WHEN k.status IN ('ready', 'draining', 'suspended') THEN coalesce(k.idle_since, at) ELSE at END,
        changed_at = CASE WHEN k.status IN ('ready', 'draining', 'suspended') THEN coalesce(k.changed_at, at) ELSE at END,
        last_heartbeat = at,
        intent_id = coalesce(k.intent_id, sluice_register.intent),
        spec_hash = coalesce(nullif(k.spec_hash, ''), sluice_register.spec, ''),
        instance_type = coalesce(nullif(k.instance_type, ''), sluice_register.type, ''),
        market = coalesce(nullif(k.market, ''), sluice_register.market, ''),
        zone = coalesce(nullif(k.zone, ''), sluice_register.zone, ''),
        expires_at = coalesce(k.expires_at, sluice_register.expires),
        queues = ARRAY(SELECT q ->> 'name' FROM jsonb_array_elements(a -> 'queues') q),
        slots = coalesce((SELECT sum(greatest((q -> 'run' ->> 'slots_per_worker')::int, 1))::int FROM jsonb_array_elements(a -> 'queues') q), k.slots)
     WHERE k.id = w.id
    RETURNING * INTO w;
    RETURN QUERY SELECT w.id, w.status::text, w.status IN ('draining', 'suspended'), w.expires_at, a, false;
END
$$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION sluice_heartbeat(worker uuid, cpu_percent real DEFAULT NULL, load1 real DEFAULT NULL, memory_mb integer DEFAULT NULL)
RETURNS TABLE (status text, drain boolean, expires_at timestamptz, assignment jsonb)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
DECLARE
    at timestamptz := sluice_clock();
    w workers;
    a jsonb;
BEGIN
    SELECT * INTO w FROM workers k WHERE k.id = sluice_heartbeat.worker
       AND k.status IN ('provisioning', 'ready', 'draining', 'suspended') FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    a := sluice_assignment(w.pool);
    UPDATE workers k SET
        last_heartbeat = at,
        status = CASE WHEN k.status = 'provisioning' THEN 'ready' ELSE k.status END,
        registered_at = CASE WHEN k.status = 'suspended' THEN k.registered_at ELSE coalesce(k.registered_at, at) END,
        idle_since = CASE WHEN k.status = 'provisioning' THEN at ELSE k.idle_since END,
        changed_at = CASE WHEN k.status = 'provisioning' THEN at ELSE k.changed_at END,
        queues = CASE WHEN a IS NULL THEN k.queues ELSE ARRAY(SELECT q ->> 'name' FROM jsonb_array_elements(a -> 'queues') q) END
     WHERE k.id = w.id
    RETURNING * INTO w;
    INSERT INTO worker_metrics (worker_id, at, cpu_percent, load1, memory_mb, current_jobs)
    VALUES (w.id, at, sluice_heartbeat.cpu_percent, sluice_heartbeat.load1, sluice_heartbeat.memory_mb, w.current_jobs);
    RETURN QUERY SELECT w.status::text, w.status IN ('draining', 'suspended'), w.expires_at, a;
END
$$;
-- +goose StatementEnd

-- Claims up to n due jobs, the most urgent first. Ten minutes of waiting are worth one step of priority.
-- A job for on-demand never runs on spot; a job for spot runs elsewhere only where no spot worker serves its queue.
-- +goose StatementBegin
CREATE FUNCTION sluice_claim(worker uuid, queues text[], n integer DEFAULT 1)
RETURNS TABLE (attempt_id uuid, job_id uuid, queue text, payload jsonb, priority integer, attempt integer, visible_until timestamptz, checkpoint jsonb)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
DECLARE
    at timestamptz;
    w workers;
    a jsonb;
    j processing_jobs;
    lane record;
    lanes text[];
    avoid uuid[];
    this uuid;
    claimed integer := 0;
BEGIN
    SELECT * INTO w FROM workers k WHERE k.id = sluice_claim.worker FOR NO KEY UPDATE;
    at := sluice_clock();
    a := sluice_assignment(w.pool);
    IF w.id IS NULL OR w.status <> 'ready' OR w.expires_at - sluice_seconds(a, 'drain_timeout_seconds', 300) <= at THEN
        RETURN;
    END IF;
    lanes := CASE WHEN w.market = 'spot' THEN '{"",spot}'::text[] ELSE '{"",on_demand,spot}'::text[] END;
    -- Jobs that failed here and that somebody else could try.
    avoid := ARRAY(
        SELECT x.id FROM processing_jobs x
         WHERE x.status = 'queued' AND x.excluded_worker = w.id
           AND EXISTS (SELECT FROM workers o WHERE o.id <> w.id AND o.status = 'ready'
                          AND o.last_heartbeat > at - interval '2 minutes' AND x.queue = ANY (o.queues)));
    WHILE claimed < least(sluice_claim.n, 100) LOOP
        j := NULL;
        FOR lane IN
            SELECT q.name, u.n AS urgency, l.name AS market
              FROM (SELECT DISTINCT unnest(coalesce(sluice_claim.queues, w.queues)) AS name) q
             CROSS JOIN generate_series(1, 10) AS u (n)
             CROSS JOIN unnest(lanes) AS l (name)
             CROSS JOIN LATERAL (
                SELECT p.available_at FROM processing_jobs p
                 WHERE p.status = 'queued' AND p.queue = q.name AND p.urgency = u.n AND sluice_lane(p.market) = l.name
                   AND p.available_at <= at
                 ORDER BY p.available_at LIMIT 1) AS head
             WHERE l.name <> 'spot' OR w.market = 'spot' OR NOT EXISTS (
                SELECT FROM workers s WHERE s.status = 'ready' AND s.market = 'spot'
                   AND s.last_heartbeat > at - interval '2 minutes' AND q.name = ANY (s.queues))
             ORDER BY u.n - extract(epoch FROM at - head.available_at) / 600, head.available_at
        LOOP
            SELECT * INTO j FROM processing_jobs p
             WHERE p.status = 'queued' AND p.queue = lane.name AND p.urgency = lane.urgency AND sluice_lane(p.market) = lane.market
               AND p.available_at <= at
               AND (p.class IS NULL OR w.classes IS NULL OR p.class = ANY (w.classes))
               AND p.id <> ALL (avoid)
             ORDER BY p.available_at LIMIT 1
               FOR UPDATE SKIP LOCKED;
            EXIT WHEN j.id IS NOT NULL;
        END LOOP;
        EXIT WHEN j.id IS NULL;
        claimed := claimed + 1;
        this := gen_random_uuid();
        UPDATE processing_jobs p SET
            status = 'processing', attempts = p.attempts + 1, claimed_by = w.id, attempt_id = this, claimed_at = at,
            visible_until = at + sluice_seconds(a, 'visibility_timeout_seconds', 300),
            unlist = sluice_in_redis(p.queue), relist = false
         WHERE p.id = j.id
        RETURNING * INTO j;
        INSERT INTO job_attempts (id, job_id, worker_id, attempt, status, started_at)
        VALUES (this, j.id, w.id, j.attempts, 'running', at);
        RETURN QUERY SELECT this, j.id, j.queue::text, j.payload, j.priority::int, j.attempts::int, j.visible_until, j.checkpoint;
    END LOOP;
    IF claimed > 0 THEN
        PERFORM sluice_recount(w.id, at, false);
    END IF;
END
$$;
-- +goose StatementEnd

-- Locks the worker of an attempt and tells which one it is.
-- +goose StatementBegin
CREATE FUNCTION sluice_lock_attempt(attempt uuid) RETURNS uuid LANGUAGE sql AS
$$ SELECT w.id FROM workers w WHERE w.id = (SELECT t.worker_id FROM job_attempts t WHERE t.id = $1) FOR NO KEY UPDATE $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION sluice_extend(attempt uuid) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    UPDATE processing_jobs j SET visible_until = sluice_clock() + sluice_seconds(
            (SELECT sluice_assignment(w.pool) FROM workers w WHERE w.id = j.claimed_by), 'visibility_timeout_seconds', 300)
     WHERE j.attempt_id = $1 AND j.status = 'processing';
    RETURN FOUND;
END
$$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION sluice_checkpoint(attempt uuid, data jsonb) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    UPDATE processing_jobs j SET checkpoint = $2 WHERE j.attempt_id = $1 AND j.status = 'processing';
    RETURN FOUND;
END
$$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION sluice_complete(attempt uuid, result jsonb DEFAULT NULL) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    w uuid := sluice_lock_attempt($1);
    at timestamptz := sluice_clock();
BEGIN
    UPDATE processing_jobs j SET status = 'completed', result = $2, completed_at = at, claimed_by = NULL, attempt_id = NULL,
           visible_until = NULL, relist = false, last_error = NULL
     WHERE j.attempt_id = $1 AND j.status = 'processing';
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE job_attempts t SET status = 'succeeded', ended_at = at, exit_code = 0 WHERE t.id = $1;
    PERFORM sluice_recount(w, at, true);
    RETURN true;
END
$$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION sluice_fail(attempt uuid, error text, exit_code integer DEFAULT NULL) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
DECLARE
    w uuid := sluice_lock_attempt(sluice_fail.attempt);
    at timestamptz := sluice_clock();
    a jsonb := (SELECT sluice_assignment(k.pool) FROM workers k WHERE k.id = w);
    became text;
BEGIN
    UPDATE processing_jobs j SET
           status = CASE WHEN j.attempts >= coalesce(j.max_attempts, (a ->> 'max_attempts')::int, 3) THEN 'dead' ELSE 'queued' END,
           completed_at = CASE WHEN j.attempts >= coalesce(j.max_attempts, (a ->> 'max_attempts')::int, 3) THEN at END,
           last_error = sluice_fail.error, claimed_by = NULL, attempt_id = NULL, claimed_at = NULL, visible_until = NULL,
           excluded_worker = CASE WHEN coalesce((a ->> 'retry_elsewhere')::boolean, true) THEN w END,
           relist = j.attempts < coalesce(j.max_attempts, (a ->> 'max_attempts')::int, 3) AND sluice_in_redis(j.queue)
     WHERE j.attempt_id = sluice_fail.attempt AND j.status = 'processing'
    RETURNING j.status INTO became;
    IF became IS NULL THEN
        RETURN NULL;
    END IF;
    UPDATE job_attempts t SET status = 'failed', ended_at = at, exit_code = sluice_fail.exit_code, error = sluice_fail.error
     WHERE t.id = sluice_fail.attempt;
    PERFORM sluice_recount(w, at, true);
    RETURN became;
END
$$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION sluice_release(attempt uuid) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    w uuid := sluice_lock_attempt($1);
    at timestamptz := sluice_clock();
BEGIN
    UPDATE processing_jobs j SET status = 'queued', attempts = greatest(j.attempts - 1, 0), claimed_by = NULL, attempt_id = NULL,
           claimed_at = NULL, visible_until = NULL, relist = sluice_in_redis(j.queue)
     WHERE j.attempt_id = $1 AND j.status = 'processing';
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE job_attempts t SET status = 'released', ended_at = at WHERE t.id = $1;
    PERFORM sluice_recount(w, at, false);
    RETURN true;
END
$$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION sluice_drained(worker uuid) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    UPDATE workers w SET drain_ack_at = coalesce(w.drain_ack_at, sluice_clock()) WHERE w.id = $1 AND w.status = 'draining';
    RETURN FOUND;
END
$$;
-- +goose StatementEnd

-- A clean stop. The VPS's row ends; a cloud machine still costs, so it drains until it is ended.
-- +goose StatementBegin
CREATE FUNCTION sluice_leave(worker uuid) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    at timestamptz := sluice_clock();
    w workers;
BEGIN
    SELECT * INTO w FROM workers k WHERE k.id = $1 AND k.status IN ('provisioning', 'ready', 'draining') FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM sluice_return_jobs(ARRAY[w.id], 'infinity', 'the worker left');
    IF w.provider = 'vps' THEN
        UPDATE workers k SET status = 'terminated', terminated_at = at, end_why = 'left', changed_at = at WHERE k.id = w.id;
    ELSE
        UPDATE workers k SET status = 'draining', draining_at = coalesce(k.draining_at, at), drain_ack_at = coalesce(k.drain_ack_at, at),
               drain_why = coalesce(k.drain_why, 'left'), changed_at = at
         WHERE k.id = w.id;
    END IF;
    RETURN true;
END
$$;
-- +goose StatementEnd

-- Jobs whose visibility ran out go back to their queue or to the dead. It waits for nobody, so that
-- anyone may call it at any time.
-- +goose StatementBegin
CREATE FUNCTION sluice_sweep() RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    at timestamptz := sluice_clock();
    holders uuid[];
    locked uuid[];
BEGIN
    holders := ARRAY(SELECT DISTINCT x.claimed_by FROM (
        SELECT j.claimed_by FROM processing_jobs j
         WHERE j.status = 'processing' AND j.visible_until <= at
         ORDER BY j.visible_until LIMIT 1000) x);
    IF cardinality(holders) = 0 THEN
        RETURN 0;
    END IF;
    locked := ARRAY(SELECT w.id FROM workers w WHERE w.id = ANY (holders) ORDER BY w.id FOR NO KEY UPDATE SKIP LOCKED);
    RETURN sluice_return_jobs(
        locked || ARRAY(SELECT h FROM unnest(holders) h WHERE NOT EXISTS (SELECT FROM workers w WHERE w.id = h)),
        at, 'the job''s visibility ran out');
END
$$;
-- +goose StatementEnd

-- Hosts put jobs in with this, or with an INSERT of their own.
-- +goose StatementBegin
CREATE FUNCTION sluice_enqueue(
    queue text, payload jsonb, priority integer DEFAULT 5, due timestamptz DEFAULT NULL,
    user_id text DEFAULT NULL, market text DEFAULT NULL, class text DEFAULT NULL) RETURNS uuid
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
    INSERT INTO processing_jobs (id, queue, payload, priority, due_at, user_id, market, class, created_at, relist)
    SELECT gen_random_uuid(), $1, $2, $3, $4, (jsonb_populate_record(NULL::processing_jobs, jsonb_build_object('user_id', $5))).user_id, $6, $7,
           sluice_clock(), sluice_in_redis($1)
    RETURNING id
$$;
-- +goose StatementEnd

-- What the Redis lists must be told: ids of claimed jobs to be removed, ids of due jobs to be pushed.
-- A job's unlist comes before its relist.
-- +goose StatementBegin
CREATE FUNCTION sluice_redis_pending(n integer DEFAULT 100) RETURNS TABLE (job_id uuid, queue text, action text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
DECLARE
    at timestamptz := sluice_clock();
BEGIN
    RETURN QUERY
    SELECT p.id, p.queue::text, x.action
      FROM processing_jobs p
     CROSS JOIN LATERAL (
        SELECT 'unlist' AS action, 1 AS step WHERE p.unlist
         UNION ALL
        SELECT 'relist', 2 WHERE p.relist AND p.status = 'queued' AND p.available_at <= at) x
     WHERE p.unlist OR p.relist
     ORDER BY p.id, x.step
     LIMIT sluice_redis_pending.n;
END
$$;
-- +goose StatementEnd

-- A push counts only where no removal is outstanding: that removal would take the pushed id away too.
-- +goose StatementBegin
CREATE FUNCTION sluice_redis_done(job uuid, action text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    UPDATE processing_jobs j SET unlist = j.unlist AND $2 <> 'unlist', relist = j.relist AND ($2 <> 'relist' OR j.unlist)
     WHERE j.id = $1 AND (j.unlist OR j.relist);
    RETURN FOUND;
END
$$;
-- +goose StatementEnd
