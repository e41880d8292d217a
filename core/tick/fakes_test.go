package tick_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"sluice/core/fleet"
	"sluice/core/tick"
)

var noon = time.Date(2027, 1, 14, 12, 0, 0, 0, time.UTC)

var errDown = errors.New("connection refused")

// store is a database of one row each: what a tick reads is memory, what it writes is kept.
type store struct {
	mu      sync.Mutex
	memory  fleet.Memory
	down    error
	plans   []fleet.Plan
	records []fleet.Record
	begun   []fleet.Attempt
	settled map[string]fleet.Result // by intent
	outbox  []fleet.Alert
	due     []fleet.Delivery
	sent    map[string][]fleet.Sending // by channel
	lost    bool                       // the claim
}

func (s *store) Recall(context.Context) (fleet.Memory, error) { return s.memory, s.down }

func (s *store) Transact(_ context.Context, decide func(fleet.Memory) (fleet.Plan, fleet.Record)) error {
	if s.down != nil {
		return s.down
	}
	p, r := decide(s.memory)
	s.plans, s.records, s.outbox = append(s.plans, p), append(s.records, r), append(s.outbox, p.Alerts...)
	return nil
}

func (s *store) Begin(_ context.Context, _ fleet.Claim, a fleet.Attempt) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun = append(s.begun, a)
	return nil
}

func (s *store) Settle(_ context.Context, c fleet.Claim, r fleet.Result) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.settled == nil {
		s.settled = map[string]fleet.Result{}
	}
	s.settled[c.Intent] = r
	if s.lost {
		return fleet.ErrClaimLost
	}
	return nil
}

func (s *store) Outbox(_ context.Context, channels []fleet.Channel, _ int) ([]fleet.Delivery, error) {
	out := slices.Clone(s.due)
	for _, a := range s.outbox {
		for _, c := range channels {
			out = append(out, fleet.Delivery{Alert: a, Channel: c.Name})
		}
	}
	return out, nil
}

func (s *store) Sent(_ context.Context, x fleet.Sending) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sent == nil {
		s.sent = map[string][]fleet.Sending{}
	}
	s.sent[x.Channel] = append(s.sent[x.Channel], x)
	return nil
}

// object is a config file as JSON of the config itself.
type object struct {
	fleet.Object
	err error
}

func (o *object) Get(context.Context, string) (fleet.Object, error) { return o.Object, o.err }

func parse(name string, b []byte) (fleet.Config, error) {
	var c fleet.Config
	if err := json.Unmarshal(b, &c); err != nil {
		return c, fmt.Errorf("%s: %w", name, err)
	}
	return c, nil
}

// queues answers with what it is told.
type queues struct {
	states []fleet.QueueState
	err    error
	asked  [][]fleet.Queue
}

func (q *queues) Read(_ context.Context, asked []fleet.Queue) ([]fleet.QueueState, error) {
	q.asked = append(q.asked, asked)
	return q.states, q.err
}

// cloud counts its calls and answers a launch by the offer's type.
type cloud struct {
	mu       sync.Mutex
	machines []fleet.Machine
	listErr  error
	prices   map[string]fleet.Money
	currency string           // that quotes say they are in
	answers  map[string]error // launch by type; others by machine
	hang     bool             // launches answer only when their time is over
	calls    []string
	launches []fleet.Launch
	clock    time.Time
}

func (c *cloud) did(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, what)
}

func (c *cloud) log() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := slices.Clone(c.calls)
	slices.Sort(out)
	return out
}

func (c *cloud) List(_ context.Context, scope, name string) ([]fleet.Machine, time.Time, error) {
	c.did("list " + scope + " " + name)
	return c.machines, c.clock, c.listErr
}

func (c *cloud) Quote(_ context.Context, offers []fleet.Offer) ([]fleet.Quote, error) {
	var out []fleet.Quote
	for _, o := range offers {
		c.did("quote " + o.Type)
		if p, ok := c.prices[o.Type]; ok {
			out = append(out, fleet.Quote{Offer: o.Key(), Price: p, Currency: c.currency})
		}
	}
	return out, nil
}

func (c *cloud) Launch(ctx context.Context, l fleet.Launch) ([]fleet.Machine, error) {
	c.did("launch " + l.Offer.Type)
	c.mu.Lock()
	c.launches = append(c.launches, l)
	c.mu.Unlock()
	if c.hang {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if err := c.answers[l.Offer.Type]; err != nil {
		return nil, err
	}
	return []fleet.Machine{{ID: "i-" + l.Token[:8], State: fleet.MachinePending, Type: l.Offer.Type, Tags: l.Tags}}, nil
}

func (c *cloud) act(what string, r fleet.Ref) error {
	c.did(what + " " + r.Machine)
	return c.answers[r.Machine]
}

func (c *cloud) Suspend(_ context.Context, r fleet.Ref) error   { return c.act("suspend", r) }
func (c *cloud) Resume(_ context.Context, r fleet.Ref) error    { return c.act("resume", r) }
func (c *cloud) Terminate(_ context.Context, r fleet.Ref) error { return c.act("terminate", r) }

type alerter struct {
	err   error
	hangs bool
	got   []fleet.Message
}

// keys are those of the messages that it got.
func (a *alerter) keys() (out []string) {
	for _, m := range a.got {
		out = append(out, m.Key)
	}
	return out
}

// channels gives a world one channel for each alerter, named a, b and so on, that takes every level.
func (s *setting) channels(alerters ...*alerter) {
	s.config.Channels = nil
	by := map[string]*alerter{}
	for i, a := range alerters {
		c := fleet.Channel{Name: string(rune('a' + i)), Kind: fleet.ChannelWebhook, Levels: fleet.Levels()}
		s.config.Channels, by[c.Name] = append(s.config.Channels, c), a
	}
	s.world.Alerters = map[fleet.ChannelKind]func(fleet.Channel) fleet.Alerter{
		fleet.ChannelWebhook: func(c fleet.Channel) fleet.Alerter { return by[c.Name] },
	}
}

func (a *alerter) Send(ctx context.Context, m fleet.Message) (string, error) {
	a.got = append(a.got, m)
	if a.hangs {
		<-ctx.Done()
		return "", ctx.Err()
	}
	return "200 OK", a.err
}

// setting is a world with one pool on one cloud, its queue in the job table.
type setting struct {
	world  tick.World
	store  *store
	object *object
	rows   *queues
	list   *queues
	cloud  *cloud
	config fleet.Config
}

var place = fleet.Place{Provider: "aws", Scope: "eu"}

func set(t *testing.T, changes ...func(*setting)) *setting {
	t.Helper()
	s := &setting{
		store:  &store{memory: fleet.Memory{Deployment: "dep", Now: noon}},
		object: &object{Object: fleet.Object{Name: "s3://bucket/scheduler.json", Modified: noon.Add(-time.Hour)}},
		rows:   &queues{states: []fleet.QueueState{{Name: "ocr"}}},
		list:   &queues{},
		cloud:  &cloud{prices: map[string]fleet.Money{}, answers: map[string]error{}, clock: noon},
		config: fleet.Config{
			Name: "prod", Currency: "USD", Timezone: "UTC", Mode: fleet.Hybrid, Interval: 60,
			Queues: []fleet.Queue{{Name: "ocr", Source: fleet.Source{Kind: fleet.SourcePostgres, Rows: true}}},
			Pools: []fleet.Pool{{
				Name: "ocr", Enabled: true, Automatic: true, MaxWorkers: 5, UpCooldown: 120, DownCooldown: 300, IdleMinutes: 10, DrainTimeout: 300,
				FallbackAfter: new(fleet.Seconds), Queues: []fleet.PoolQueue{{Name: "ocr", Depth: 5, Age: 300, DepthBelow: 2}},
				Offers: []fleet.Offer{{Place: place, Type: "c6i", Market: fleet.OnDemand}},
			}},
			Providers: []fleet.Provider{{Name: "aws", Scope: "eu", MaxInstances: 9}},
			Prices:    []fleet.Price{{Provider: "aws", Type: "c6i", Market: fleet.OnDemand, Price: fleet.Cent}},
			Workers:   fleet.WorkerRules{Heartbeat: 15, BootTimeout: 300, LostDatabase: 900, MaxLifetime: 43200},
			Limits:    fleet.Limits{Hourly: 5 * fleet.Unit, Daily: 50 * fleet.Unit},
		},
	}
	s.world = tick.World{
		Name: "prod", Objects: s.object, Parse: parse, Store: s.store, Limit: time.Minute, MinInterval: 60,
		Queues: map[fleet.SourceKind]fleet.Queues{fleet.SourcePostgres: s.rows, fleet.SourceRedis: s.list},
		Clouds: map[string]fleet.Cloud{"aws": {Compute: s.cloud, Traits: fleet.Traits{Idempotent: true, Visibility: 60, MaxBatch: 1}}},
	}
	for _, c := range changes {
		c(s)
	}
	if s.object.Bytes == nil {
		s.object.Bytes = marshal(t, s.config)
	}
	return s
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// busy is a backlog that is worth a machine.
func busy(s *setting) {
	s.rows.states = []fleet.QueueState{{Name: "ocr", Depth: 8, Oldest: 400}}
}

// good is a last good config that was stored before.
func good(t *testing.T) func(*setting) {
	return func(s *setting) { s.store.memory.LastGood = marshal(t, s.config) }
}

// drained is a worker that has acknowledged its drain, and its machine.
func drained(id string) func(*setting) {
	return func(s *setting) {
		at := noon.Add(-time.Minute)
		s.store.memory.Workers = append(s.store.memory.Workers, fleet.Worker{
			ID: id, Pool: "ocr", Place: place, Machine: "i-" + id, Status: fleet.Draining, Price: fleet.Cent, CostFrom: noon.Add(-time.Hour), BootAt: noon.Add(-time.Hour),
			Registered: noon.Add(-time.Hour), Heartbeat: noon, DrainAt: at, DrainAck: at, DrainWhy: "drain.stale", Changed: at,
		})
		s.cloud.machines = append(s.cloud.machines, fleet.Machine{ID: "i-" + id, State: fleet.MachineRunning, Tags: fleet.Tags{Name: "prod", Deployment: "dep", Pool: "ocr"}})
	}
}

func evaluate(t *testing.T, s *setting) (tick.Report, error) {
	t.Helper()
	return tick.Evaluate(t.Context(), s.world, noon)
}

func must(t *testing.T, s *setting) tick.Report {
	t.Helper()
	r, err := evaluate(t, s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if g, w := string(marshal(t, got)), string(marshal(t, want)); g != w && (g != "null" || w != "[]") && (g != "[]" || w != "null") {
		t.Errorf("%s: got %s, want %s", what, g, w)
	}
}
