package page

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"sluice/core/config"
	"sluice/core/fleet"
	"sluice/core/tick"
	"sluice/providers/postgres"
	"sluice/providers/postgres/postgrestest"
)

// settings are a VPS and a cloud for bursts; LIMIT is the hourly limit in cents.
const settings = `{
  "name": "media-prod", "mode": "hybrid",
  "queues": {
    "images": {"baseline_workers": 1, "run": {"command": ["true"]}},
    "ocr": {"max_workers": 6, "cloud_enabled": true, "cloud_provider": "aws", "urgency": 20, "run": {"command": ["true"], "slots_per_worker": 4}},
    "bulk": {"max_workers": 5, "cloud_enabled": true, "spot_preferred": true, "on_demand_fallback_seconds": 0, "urgency": 90, "run": {"command": ["true"]}}
  },
  "scaling_rules": {
    "scale_up": {"steps": [
      {"queue_depth_threshold": 6, "oldest_job_age_seconds": 120, "workers": 1},
      {"queue_depth_threshold": 21, "oldest_job_age_seconds": 300, "workers": 3},
      {"queue_depth_threshold": 101, "oldest_job_age_seconds": 600, "workers": "max", "alert": "warning"}]},
    "scale_down": {"idle_minutes": 10, "queue_depth_below": 1}
  },
  "cloud_providers": {"aws": {
    "enabled": true, "region": "eu-west-3", "instance_types": ["c6i.xlarge", "c6a.xlarge"], "ami_id": "ami-0123456789abcdef0",
    "max_instances": 8, "spot_enabled": true, "spot_max_price": "0.12",
    "prices": {"c6i.xlarge": "0.202", "c6a.xlarge": "0.182", "c6i.xlarge:spot": "0.085", "c6a.xlarge:spot": "0.079"}}},
  "cost_limits": {"max_hourly_spend_cents": LIMIT, "max_daily_spend_cents": 1500, "alert_threshold_cents": 1000, "extras_cents_per_machine_hour": 1}
}`

// install is a deployment on a real database, with a cloud and queues that say what the test wants. Its database's
// clock stands where the test puts it.
type install struct {
	t      *testing.T
	pg     postgrestest.Database
	db     *postgres.DB
	conn   *pgx.Conn
	clock  func(time.Time)
	now    time.Time
	config string

	mu       sync.Mutex
	queues   map[string]fleet.QueueState
	machines []fleet.Machine
	refuse   bool // launches
}

// noon is where every test begins.
var noon = time.Date(2027, 1, 14, 12, 0, 0, 0, time.UTC)

func newInstall(t *testing.T) *install {
	t.Helper()
	pg := postgrestest.New(t)
	i := &install{
		t: t, pg: pg, db: pg.Open(t), conn: pg.Connect(t), clock: pg.Clock(t), now: noon, config: strings.Replace(settings, "LIMIT", "200", 1),
		queues: map[string]fleet.QueueState{},
	}
	i.clock(i.now)
	return i
}

// Read implements fleet.Queues.
func (i *install) Read(_ context.Context, queues []fleet.Queue) ([]fleet.QueueState, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	out := make([]fleet.QueueState, len(queues))
	for n, q := range queues {
		out[n] = i.queues[q.Name]
		out[n].Name = q.Name
	}
	return out, nil
}

// Get implements fleet.Objects.
func (i *install) Get(context.Context, string) (fleet.Object, error) {
	return fleet.Object{Name: "scheduler.json", Bytes: []byte(i.config), ETag: fleet.ID(i.config), Modified: noon.Add(-time.Hour)}, nil
}

// List implements fleet.Compute.
func (i *install) List(context.Context, string, string) ([]fleet.Machine, time.Time, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.machines), i.now, nil
}

// Quote implements fleet.Compute.
func (*install) Quote(context.Context, []fleet.Offer) ([]fleet.Quote, error) { return nil, nil }

// Launch implements fleet.Compute.
func (i *install) Launch(_ context.Context, l fleet.Launch) ([]fleet.Machine, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.refuse {
		return nil, fmt.Errorf("launch %s: %w", l.Offer.Type, fleet.ErrNoCapacity)
	}
	var out []fleet.Machine
	for n := range l.Count {
		out = append(out, fleet.Machine{
			ID: fmt.Sprintf("i-%s%d", l.Token[:8], n), State: fleet.MachineRunning, Type: l.Offer.Type, Market: l.Offer.Market, Launched: i.now, Tags: l.Tags,
		})
	}
	i.machines = append(i.machines, out...)
	return out, nil
}

// Suspend implements fleet.Compute.
func (*install) Suspend(context.Context, fleet.Ref) error { return nil }

// Resume implements fleet.Compute.
func (*install) Resume(context.Context, fleet.Ref) error { return nil }

// Terminate implements fleet.Compute.
func (i *install) Terminate(_ context.Context, m fleet.Ref) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.machines = slices.DeleteFunc(i.machines, func(x fleet.Machine) bool { return x.ID == m.Machine })
	return nil
}

func (i *install) world() tick.World {
	return tick.World{
		Name: "media-prod", Objects: i, Store: i.db, Limit: 60 * time.Second, MinInterval: 1,
		Queues: map[fleet.SourceKind]fleet.Queues{fleet.SourcePostgres: i, fleet.SourceRedis: i},
		Clouds: map[string]fleet.Cloud{"aws": {Compute: i, Traits: fleet.Traits{Idempotent: true, Visibility: 60, MinCharge: 60, MaxBatch: 10, Suspends: true}}},
		Parse: func(name string, b []byte) (fleet.Config, error) {
			p, err := config.Parse(name, b, config.Env{})
			return p.Config, err
		},
	}
}

// tick moves the clock on and does one tick there.
func (i *install) tick(after time.Duration) {
	i.t.Helper()
	i.at(after)
	i.exec("UPDATE workers SET last_heartbeat = sluice_clock() WHERE status IN ('ready', 'draining')")
	if _, err := tick.Evaluate(i.t.Context(), i.world(), i.now); err != nil && !errors.Is(err, fleet.ErrNoCapacity) {
		i.t.Fatal(err)
	}
}

// at moves the clock on.
func (i *install) at(after time.Duration) {
	i.t.Helper()
	i.now = i.now.Add(after)
	i.clock(i.now)
}

// waiting is work in a queue, the oldest of it that old.
func (i *install) waiting(queue string, depth, running int, oldest time.Duration) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.queues[queue] = fleet.QueueState{Depth: depth, Running: running, Oldest: fleet.Seconds(oldest / time.Second)}
}

func (i *install) unreadable(queue, cause string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.queues[queue] = fleet.QueueState{Unknown: cause}
}

func (i *install) exec(sql string, args ...any) {
	i.t.Helper()
	if _, err := i.conn.Exec(i.t.Context(), sql, args...); err != nil {
		i.t.Fatal(err)
	}
}

// vps has the machine of one's own registered.
func (i *install) vps(jobs int) {
	i.t.Helper()
	i.exec(`INSERT INTO workers (pool, provider, machine_id, status, slots, current_jobs, registered_at, last_heartbeat, boot_at, changed_at)
		VALUES ('vps', 'vps', 'vps-1', 'ready', 4, $1, sluice_clock() - interval '3 days', sluice_clock(), sluice_clock() - interval '3 days', sluice_clock())`, jobs)
}

// registered has all machines that boot report for work.
func (i *install) registered(jobs int) {
	i.t.Helper()
	i.exec(`UPDATE workers SET status = 'ready', slots = 4, current_jobs = $1, registered_at = sluice_clock(), last_heartbeat = sluice_clock(), changed_at = sluice_clock()
		WHERE status = 'provisioning'`, jobs)
}

// hour is a quiet hour of ticks, a minute apart, with a little work now and then.
func (i *install) hour() {
	i.t.Helper()
	for m := range 60 {
		i.waiting("images", (m*7)%5, 1, time.Duration((m*7)%5)*9*time.Second)
		i.waiting("ocr", max(0, 4-(m%9)), 0, time.Duration(m%9)*5*time.Second)
		i.waiting("bulk", m%3, 0, time.Duration(m%3)*20*time.Second)
		i.tick(time.Minute)
	}
}

// burst is work enough for machines: some work, some boot, one drains and one has ended by the end of it.
func (i *install) burst() {
	i.t.Helper()
	for n, depth := range []int{8, 30, 64, 140, 160, 150} {
		i.waiting("ocr", depth, 4*n, time.Duration(n+1)*45*time.Second)
		i.waiting("bulk", 5*n, n, time.Duration(n)*30*time.Second)
		i.tick(time.Minute)
		if n%2 == 0 {
			i.registered(3)
		}
	}
	i.exec(`UPDATE workers SET status = 'draining', draining_at = sluice_clock(), drain_why = 'drain.expiry', changed_at = sluice_clock()
		WHERE id = (SELECT id FROM workers WHERE status = 'ready' AND provider <> 'vps' ORDER BY id LIMIT 1)`)
	i.exec(`INSERT INTO workers (pool, provider, scope, machine_id, instance_type, market, status, cost_per_hour_micros, boot_at, registered_at, terminated_at, end_why)
		VALUES ('bulk', 'aws', 'eu-west-3', 'i-gone', 'c6a.xlarge', 'spot', 'failed', 89000, sluice_clock() - interval '20 min', sluice_clock() - interval '18 min', sluice_clock() - interval '2 min', 'gone')`)
}

// many are n workers in all states, of many pools.
func (i *install) many(n int) {
	i.t.Helper()
	i.exec(`INSERT INTO workers (pool, provider, scope, machine_id, instance_type, status, slots, current_jobs, cost_per_hour_micros, cost_from, boot_at, registered_at, last_heartbeat, idle_since, changed_at)
		SELECT 'pool-' || n % 20, 'aws', 'eu-west-3', 'i-' || n, 'c6i.xlarge', (ARRAY['ready', 'ready', 'ready', 'provisioning', 'draining', 'suspended'])[1 + n % 6], 4, CASE WHEN n % 6 < 2 THEN 3 ELSE 0 END,
		100, sluice_clock(), sluice_clock(), sluice_clock(), sluice_clock(), sluice_clock(), sluice_clock() FROM generate_series(1, $1) n`, n)
}

// serve serves the install's page on a free port.
func (i *install) serve(change ...func(*Options)) *Server {
	i.t.Helper()
	return serve(i.t, i.db, change...)
}

func serve(t *testing.T, source Source, change ...func(*Options)) *Server {
	t.Helper()
	o := Options{Listen: "127.0.0.1:0", Source: source, Every: 50 * time.Millisecond}
	for _, c := range change {
		c(&o)
	}
	s, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
