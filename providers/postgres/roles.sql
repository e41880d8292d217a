-- Run after every migration; repeats are harmless. Roles belong to the whole server, so they may exist
-- already, or this user may not make them.
-- The clock and the lane stay open to all: defaults and indexes of the job table call them on a host's behalf.
DO $$
DECLARE
    f regprocedure;
BEGIN
    FOR f IN SELECT p.oid FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace AND p.proname LIKE 'sluice\_%'
              AND p.proname NOT IN ('sluice_clock', 'sluice_lane')
    LOOP
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f);
    END LOOP;
END
$$;
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'sluice_worker') THEN
        CREATE ROLE sluice_worker NOLOGIN;
    END IF;
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'sluice_functions') THEN
        CREATE ROLE sluice_functions NOLOGIN;
    END IF;
EXCEPTION
    WHEN duplicate_object OR unique_violation THEN
        NULL; -- another database of this server was migrated at the same time
    WHEN insufficient_privilege THEN
        RAISE WARNING 'roles sluice_worker and sluice_functions could not be made by %: ask an administrator for CREATE ROLE sluice_worker NOLOGIN; CREATE ROLE sluice_functions NOLOGIN; and run sluice migrate again. Until then only the owner of the tables can use Sluice.', current_user;
END
$$;
DO $$
DECLARE
    f regprocedure;
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'sluice_worker') THEN
        GRANT USAGE ON SCHEMA public TO sluice_worker;
        FOR f IN SELECT p.oid FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace AND p.proname IN (
            'sluice_register', 'sluice_heartbeat', 'sluice_claim', 'sluice_extend', 'sluice_checkpoint', 'sluice_complete', 'sluice_fail',
            'sluice_release', 'sluice_drained', 'sluice_leave', 'sluice_sweep', 'sluice_redis_pending', 'sluice_redis_done')
        LOOP
            EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO sluice_worker', f);
        END LOOP;
    END IF;
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'sluice_functions') THEN
        GRANT USAGE ON SCHEMA public TO sluice_functions;
        FOR f IN SELECT p.oid FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace AND p.proname LIKE 'sluice\_%' LOOP
            EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO sluice_functions', f);
        END LOOP;
        GRANT SELECT, INSERT, UPDATE, DELETE ON
            workers, worker_metrics, processing_jobs, job_attempts, sluice_ticks, sluice_snapshots, sluice_lines, sluice_samples,
            sluice_intents, sluice_intent_attempts, sluice_ledger, sluice_sightings, sluice_quotes, sluice_cool_offs, sluice_requests,
            sluice_overrides, sluice_alerts, sluice_deliveries, sluice_channels, sluice_bills, sluice_assignments TO sluice_functions;
        GRANT SELECT, UPDATE ON sluice_state TO sluice_functions;
        GRANT SELECT ON sluice_schema TO sluice_functions;
    END IF;
END
$$;
