package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"sluice/core/fleet"
	"sluice/core/tick"
	"sluice/providers/postgres"
	"sluice/providers/redis"
)

// ticks is what one size measured.
type ticks struct {
	P50      float64 // ms
	P99      float64 // ms
	Postgres int64   // round trips of one tick
	Redis    int64
	Allocs   uint64 // of one tick
	PeakMiB  int    // of the whole process
}

// measureOne measures warm ticks of one size and prints the result as JSON.
func measureOne(ctx context.Context, size string) error {
	var queues, workers int
	if _, err := fmt.Sscanf(size, "%dx%d", &queues, &workers); err != nil {
		return fmt.Errorf("size %q: want queues x workers, such as 5x20", size)
	}
	admin, err := url.Parse(os.Getenv("DATABASE_URL"))
	if err != nil {
		return errors.New("DATABASE_URL is not a URL")
	}
	fresh, drop, err := database(ctx, *admin)
	if err != nil {
		return err
	}
	defer drop()
	pg, pgURL, err := through(fresh)
	if err != nil {
		return err
	}
	rd, rdURL, err := through(os.Getenv("REDIS_URL"))
	if err != nil {
		return err
	}
	s := newSite(queues, workers)
	if err := s.seed(ctx, fresh); err != nil {
		return err
	}
	w, closeWorld, err := s.world(ctx, pgURL, rdURL)
	if err != nil {
		return err
	}
	defer closeWorld()
	t, err := warm(ctx, w, pg, rd, 200*20/max(workers, 20)+20)
	if err != nil {
		return err
	}
	t.PeakMiB = peakMiB()
	return json.NewEncoder(os.Stdout).Encode(t)
}

// warm runs ticks until everything is cached, and then n that count.
func warm(ctx context.Context, w tick.World, pg, rd *meter, n int) (ticks, error) {
	due := time.Now().Add(-time.Hour).Truncate(time.Second)
	one := func() (time.Duration, error) {
		due = due.Add(time.Second)
		start := time.Now()
		r, err := tick.Evaluate(ctx, w, due)
		if err == nil && r.Plan.Skipped != nil {
			err = fmt.Errorf("the tick was skipped: %s", r.Plan.Skipped.Code())
		}
		return time.Since(start), err
	}
	for range 5 {
		if _, err := one(); err != nil {
			return ticks{}, err
		}
	}
	var before, after runtime.MemStats
	pgTrips, rdTrips := pg.trips.Load(), rd.trips.Load()
	runtime.ReadMemStats(&before)
	took := make([]time.Duration, n)
	for i := range took {
		var err error
		if took[i], err = one(); err != nil {
			return ticks{}, err
		}
	}
	runtime.ReadMemStats(&after)
	slices.Sort(took)
	return ticks{
		P50: ms(took[n/2]), P99: ms(took[n*99/100]),
		Postgres: (pg.trips.Load() - pgTrips) / int64(n), Redis: (rd.trips.Load() - rdTrips) / int64(n),
		Allocs: (after.Mallocs - before.Mallocs) / uint64(n), //nolint:gosec // n is positive
	}, nil
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// peakMiB is the most memory that this process ever had resident; 0 where the system does not tell.
func peakMiB() int {
	raw, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(raw), "VmHWM:")
	kib := 0
	_, _ = fmt.Sscan(rest, &kib)
	return kib >> 10
}

// database makes an empty, migrated one on the server, and drops it in the end.
func database(ctx context.Context, admin url.URL) (fresh string, drop func(), err error) {
	c, err := pgx.Connect(ctx, admin.String())
	if err != nil {
		return "", nil, fmt.Errorf("connect: %w", err)
	}
	name := fmt.Sprintf("sluice_bench_%d", os.Getpid())
	if _, err := c.Exec(ctx, "CREATE DATABASE "+name); err != nil {
		return "", nil, err
	}
	drop = func() {
		_, _ = c.Exec(ctx, "DROP DATABASE "+name+" WITH (FORCE)")
		_ = c.Close(ctx)
	}
	admin.Path = "/" + name
	if _, err = postgres.Migrate(ctx, admin.String()); err != nil {
		drop()
	}
	return admin.String(), drop, err
}

// site is a small or a large installation: every queue has some work, every worker is busy or idle for a short while.
type site struct {
	config  fleet.Config
	workers []fleet.Worker
}

var place = fleet.Place{Provider: "bench"}

func newSite(queues, workers int) *site {
	s := &site{config: fleet.Config{
		Name: "bench", Currency: "USD", Timezone: "UTC", Mode: fleet.Hybrid, Interval: 1,
		Providers: []fleet.Provider{{Name: "bench", MaxInstances: 10 * workers}},
		Prices:    []fleet.Price{{Provider: "bench", Type: "m", Market: fleet.OnDemand, Price: 100}},
		Workers:   fleet.WorkerRules{Heartbeat: 15, BootTimeout: 300, Visibility: 300, MaxAttempts: 3, LostDatabase: 1 << 30, MaxLifetime: 1 << 20},
		Limits:    fleet.Limits{Hourly: 1000 * fleet.Unit, Daily: 100000 * fleet.Unit},
	}}
	for i := range queues {
		name := fmt.Sprintf("bench-%04d", i)
		s.config.Queues = append(s.config.Queues, fleet.Queue{
			Name: name, Source: fleet.Source{Kind: fleet.SourceRedis, Key: "queue:" + name, Rows: true}, Run: fleet.Run{Timeout: 60, Slots: 1},
		})
		s.config.Pools = append(s.config.Pools, fleet.Pool{
			Name: name, Enabled: true, Automatic: true, MaxWorkers: 4 * workers / queues, UpCooldown: 120, DownCooldown: 300,
			IdleMinutes: 1 << 20, DrainTimeout: 300, OnIdle: fleet.TerminateIdle, Cheapest: true,
			Queues: []fleet.PoolQueue{{Name: name, Depth: 10, Age: 1 << 30, DepthBelow: 2}},
			Offers: []fleet.Offer{{Place: place, Type: "m", Market: fleet.OnDemand}},
		})
	}
	for i := range workers {
		pool := s.config.Pools[i%queues].Name
		s.workers = append(s.workers, fleet.Worker{Pool: pool, Machine: fmt.Sprintf("m-%05d", i), Place: place, Queues: []string{pool}})
	}
	return s
}

// seed fills the database: workers with fresh heartbeats, and three jobs that wait in each queue.
func (s *site) seed(ctx context.Context, url string) error {
	c, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer c.Close(ctx) //nolint:errcheck // the process ends
	machines, pools, queues := make([]string, len(s.workers)), make([]string, len(s.workers)), make([]string, len(s.config.Queues))
	for i, w := range s.workers {
		machines[i], pools[i] = w.Machine, w.Pool
	}
	for i, q := range s.config.Queues {
		queues[i] = q.Name
	}
	if _, err := c.Exec(ctx, `INSERT INTO workers (pool, queues, provider, scope, zone, machine_id, instance_type, market, status, slots,
		cost_per_hour_micros, cost_per_hour_cents, cost_from, boot_at, registered_at, last_heartbeat, idle_since, changed_at, expires_at)
		SELECT p, ARRAY[p], 'bench', '', '', m, 'm', 'on_demand', 'ready', 1, 100, 0.01, t, t, t, now() + interval '1 day', now(), t, now() + interval '10 days'
		FROM unnest($1::text[], $2::text[]) AS x (m, p), (SELECT now() - interval '1 hour' AS t) old`, machines, pools); err != nil {
		return fmt.Errorf("seed workers: %w", err)
	}
	_, err = c.Exec(ctx, `SELECT sluice_enqueue(q, '{}') FROM unnest($1::text[]) q, generate_series(1, 3)`, queues)
	return err
}

// world is the production tick over the real servers; the cloud and the config object are in memory.
func (s *site) world(ctx context.Context, pgURL, rdURL string) (tick.World, func(), error) {
	db, err := postgres.Open(ctx, postgres.URL(pgURL))
	if err != nil {
		return tick.World{}, nil, err
	}
	rd := redis.New(func(context.Context) (string, error) { return rdURL, nil })
	w := tick.World{
		Objects: object{}, Parse: func(string, []byte) (fleet.Config, error) { return s.config, nil },
		Queues: map[fleet.SourceKind]fleet.Queues{fleet.SourcePostgres: db, fleet.SourceRedis: rd},
		Clouds: map[string]fleet.Cloud{"bench": {Compute: s, Traits: fleet.Traits{Idempotent: true, MaxBatch: 10}}},
		Store:  db, Limit: time.Minute, MinInterval: 1,
	}
	return w, func() { _ = rd.Close(); db.Close() }, nil
}

type object struct{}

func (object) Get(context.Context, string) (fleet.Object, error) {
	return fleet.Object{Name: "bench", Bytes: []byte("{}"), ETag: "1", Modified: time.Unix(1, 0)}, nil
}

// List shows every worker's machine.
func (s *site) List(context.Context, string, string) ([]fleet.Machine, time.Time, error) {
	out := make([]fleet.Machine, len(s.workers))
	for i, w := range s.workers {
		out[i] = fleet.Machine{ID: w.Machine, State: fleet.MachineRunning, Type: "m", Market: fleet.OnDemand, Tags: fleet.Tags{Name: "bench", Pool: w.Pool}}
	}
	return out, time.Now(), nil
}

var errUnexpected = errors.New("a warm tick makes no such call")

// Quote is not asked: the config has the prices.
func (s *site) Quote(context.Context, []fleet.Offer) ([]fleet.Quote, error) {
	return nil, errUnexpected
}

// Launch fails the measurement.
func (s *site) Launch(context.Context, fleet.Launch) ([]fleet.Machine, error) {
	return nil, errUnexpected
}

// Suspend fails the measurement.
func (s *site) Suspend(context.Context, fleet.Ref) error { return errUnexpected }

// Resume fails the measurement.
func (s *site) Resume(context.Context, fleet.Ref) error { return errUnexpected }

// Terminate fails the measurement.
func (s *site) Terminate(context.Context, fleet.Ref) error { return errUnexpected }
