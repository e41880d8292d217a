package fleettest

import (
	"context"
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"sluice/core/fleet"
)

// StoreHarness is a fresh, migrated and empty database with the handles that the suite needs. Every
// test opens one of its own, so that tests run in parallel.
type StoreHarness struct {
	Store    fleet.Store
	History  fleet.History
	Requests fleet.Requests
	Workers  Workers
	// Advance moves the database's clock; a negative duration sets it back.
	Advance func(d time.Duration)
	// LoseCommit makes the connection break around the next COMMIT of Store.Transact: after the server
	// has applied it, or before it has seen it.
	LoseCommit func(applied bool)
}

// Workers is the worker's side of the database, which any language calls. Ids are UUIDs.
type Workers interface {
	Enqueue(ctx context.Context, j NewJob) (id string, err error)
	Register(ctx context.Context, r Registration) (Registered, error)
	// Heartbeat says known = false where the database has no such worker.
	Heartbeat(ctx context.Context, worker string) (b Beat, known bool, err error)
	Claim(ctx context.Context, worker string, queues []string, n int) ([]ClaimedJob, error)
	Extend(ctx context.Context, attempt string) (bool, error)
	Checkpoint(ctx context.Context, attempt string, data json.RawMessage) (bool, error)
	Complete(ctx context.Context, attempt string) (bool, error)
	// Fail answers queued or dead, and nothing where the attempt is no longer current.
	Fail(ctx context.Context, attempt, cause string) (string, error)
	Release(ctx context.Context, attempt string) (bool, error)
	Drained(ctx context.Context, worker string) (bool, error)
	Leave(ctx context.Context, worker string) (bool, error)
	Sweep(ctx context.Context) (int, error)
	// Job reads the row, as a test may.
	Job(ctx context.Context, id string) (JobRow, error)
}

// NewJob is what a host enqueues.
type NewJob struct {
	Queue    string
	Priority int           // 0 is the default, 5
	After    time.Duration // not due before then; zero is now
	Market   fleet.Market
}

// Registration is what a machine says of itself when it starts.
type Registration struct {
	Provider, Scope, Zone, Machine string
	Pool, Intent, Spec             string
	Type                           string
	Market                         fleet.Market
	Expires                        time.Time
}

// Registered is the answer; Wait means nothing was written, try again later.
type Registered struct {
	Worker string
	Beat
	Wait bool
}

// Beat is what a worker learns from its registration and from every heartbeat.
type Beat struct {
	Status     string
	Drain      bool
	Assignment json.RawMessage
}

// ClaimedJob is a job in hand.
type ClaimedJob struct {
	Attempt, Job, Queue string
	Number              int // of the attempt, from 1
	Checkpoint          json.RawMessage
}

// JobRow is what the table says of a job.
type JobRow struct {
	Status    string // queued, processing, completed, dead
	Attempts  int
	ClaimedBy string
}

// Store runs the conformance suite of fleet.Store, fleet.History and fleet.Requests. Points are those of the protocol.
func Store(t *testing.T, open func(t *testing.T) StoreHarness) {
	t.Helper()
	for name, cases := range map[string]func() []storeCase{
		"transaction": transactionCases,
		"intents":     intentCases,
		"workers":     workerCases,
		"derived":     derivedCases,
		"jobs":        jobCases,
		"books":       bookCases,
		"outbox":      outboxCases,
		"history":     historyCases,
	} {
		for _, c := range cases() {
			t.Run(name+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				c.run(newBench(t, open(t)))
			})
		}
	}
}

type storeCase struct {
	name string
	run  func(b *bench)
}

// bench is one test's database with short ways to do what most tests do.
type bench struct {
	*testing.T
	StoreHarness
	ctx context.Context
}

const (
	poolA  = "ocr"
	cloud  = "aws"
	scopeA = "eu-west-3"
	sizeA  = "c6i.xlarge"
)

func newBench(t *testing.T, h StoreHarness) *bench {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return &bench{T: t, StoreHarness: h, ctx: ctx}
}

// place is where the suite's machines are.
func place() fleet.Place { return fleet.Place{Provider: cloud, Scope: scopeA} }

// try runs one transaction whose due time is its now, a second after the last.
func (b *bench) try(build func(m fleet.Memory, p *fleet.Plan, r *fleet.Record)) error {
	b.Helper()
	b.Advance(time.Second)
	return b.Store.Transact(b.ctx, func(m fleet.Memory) (fleet.Plan, fleet.Record) {
		p := fleet.Plan{Function: fleet.Evaluate, Due: m.Now, Now: m.Now, Sightings: m.Sightings}
		r := fleet.Record{}
		build(m, &p, &r)
		return p, r
	})
}

// commit is a try that must succeed.
func (b *bench) commit(build func(m fleet.Memory, p *fleet.Plan, r *fleet.Record)) {
	b.Helper()
	if err := b.try(build); err != nil {
		b.Fatalf("transact: %v", err)
	}
}

// assign lets workers of the suite's pools register: two attempts for each job, retried elsewhere.
func (b *bench) assign() {
	b.Helper()
	a := fleet.Assignment{
		Queues:    []fleet.Queue{{Name: poolA, Source: fleet.Source{Kind: fleet.SourcePostgres, Rows: true}}},
		Heartbeat: 15, Visibility: 600, MaxAttempts: 2, LostDatabase: 600, DrainTimeout: 300, RetryElsewhere: true,
	}
	b.commit(func(_ fleet.Memory, _ *fleet.Plan, r *fleet.Record) {
		r.Assignments = map[string]fleet.Assignment{poolA: a, "bulk": a, fleet.VPS: a}
	})
}

func (b *bench) recall() fleet.Memory {
	b.Helper()
	m, err := b.Store.Recall(b.ctx)
	if err != nil {
		b.Fatalf("recall: %v", err)
	}
	return m
}

// worker finds a worker that has not ended.
func (b *bench) worker(id string) fleet.Worker {
	b.Helper()
	for _, w := range b.recall().Workers {
		if w.ID == id {
			return w
		}
	}
	b.Fatalf("worker %s is not among the living", id)
	return fleet.Worker{}
}

func (b *bench) intent(id string) fleet.Intent {
	b.Helper()
	if in := find(b.recall(), id); in != nil {
		return *in
	}
	b.Fatalf("intent %s is neither open nor abandoned", id)
	return fleet.Intent{}
}

func find(m fleet.Memory, intent string) *fleet.Intent {
	for i := range m.Intents {
		if m.Intents[i].ID == intent {
			return &m.Intents[i]
		}
	}
	return nil
}

func (b *bench) pool(name string) fleet.PoolMemory {
	b.Helper()
	for _, p := range b.recall().Pools {
		if p.Pool == name {
			return p
		}
	}
	return fleet.PoolMemory{Pool: name}
}

// id is a UUID made of a word.
func id(word string) string { return fleet.ID("suite", word) }

func offer(market fleet.Market) fleet.Offer {
	return fleet.Offer{Place: place(), Type: sizeA, Market: market, Image: "ami-1"}
}

// launch is an intent for n machines, claimed by the tick that writes it.
func launch(word string, n int, now time.Time) fleet.Intent {
	return fleet.Intent{
		ID: id(word), Kind: fleet.KindLaunch, State: fleet.IntentOpen, Pool: poolA, Why: "backlog.depth", Count: n,
		Offers:  []fleet.Offer{offer(fleet.Spot), offer(fleet.OnDemand)},
		Prices:  []fleet.Money{4 * fleet.Cent, 10 * fleet.Cent},
		Reserve: 10 * fleet.Cent, MinFor: 60,
		Created: now, Changed: now, ClaimedUntil: now.Add(2 * time.Minute), Claim: "claim-" + word,
	}
}

// open stores a launch intent in a transaction of its own.
func (b *bench) open(word string, n int) fleet.Intent {
	b.Helper()
	var in fleet.Intent
	b.commit(func(m fleet.Memory, p *fleet.Plan, _ *fleet.Record) {
		in = launch(word, n, m.Now)
		p.Intents = []fleet.Intent{in}
	})
	return in
}

func claim(in fleet.Intent) fleet.Claim { return fleet.Claim{Intent: in.ID, Token: in.Claim} }

// attempt is the nth try of an intent, with its nth offer.
func attempt(in fleet.Intent, n int) fleet.Attempt {
	return fleet.Attempt{Ordinal: n, Calls: 1, Outcome: fleet.OutcomePending, Launch: &fleet.Launch{
		Token: id(in.ID + strconv.Itoa(n)), Count: in.Count, Offer: in.Offers[n], Tags: tags(in), Lifetime: 3600,
	}}
}

func tags(in fleet.Intent) fleet.Tags {
	return fleet.Tags{Name: "suite", Pool: in.Pool, Intent: in.ID, Spec: "spec-1"}
}

func (b *bench) begin(in fleet.Intent, n int) {
	b.Helper()
	if err := b.Store.Begin(b.ctx, claim(in), attempt(in, n)); err != nil {
		b.Fatalf("begin attempt %d: %v", n, err)
	}
}

func (b *bench) settle(in fleet.Intent, r fleet.Result) {
	b.Helper()
	if err := b.Store.Settle(b.ctx, claim(in), r); err != nil {
		b.Fatalf("settle: %v", err)
	}
}

// machine is what the cloud answers for an intent.
func machine(name string, in fleet.Intent) fleet.Machine {
	return fleet.Machine{ID: name, State: fleet.MachinePending, Zone: "eu-west-3a", Type: sizeA, Market: fleet.Spot, Tags: tags(in)}
}

// launched is an intent that was answered with machines.
func (b *bench) launched(word string, machines ...string) fleet.Intent {
	b.Helper()
	in := b.open(word, len(machines))
	b.begin(in, 0)
	r := fleet.Result{Outcome: fleet.OutcomeDone, State: fleet.IntentDone}
	for _, m := range machines {
		r.Machines = append(r.Machines, machine(m, in))
	}
	b.settle(in, r)
	return in
}

// register lets a machine of the suite's place register and must not be told to wait.
func (b *bench) register(name, intent string) Registered {
	b.Helper()
	r, err := b.Workers.Register(b.ctx, Registration{
		Provider: cloud, Scope: scopeA, Zone: "eu-west-3a", Machine: name, Pool: poolA, Intent: intent, Spec: "spec-1", Type: sizeA, Market: fleet.Spot,
	})
	if err != nil || r.Wait {
		b.Fatalf("register %s: wait=%v, %v", name, r.Wait, err)
	}
	return r
}

// running is a worker that was launched and has registered.
func (b *bench) running(word string) string {
	b.Helper()
	in := b.launched("launch-"+word, "i-"+word)
	return b.register("i-"+word, in.ID).Worker
}

// vps is the registered worker of the VPS.
func (b *bench) vps() string {
	b.Helper()
	r, err := b.Workers.Register(b.ctx, Registration{Provider: fleet.VPS, Machine: "vps-1", Pool: fleet.VPS})
	if err != nil || r.Wait {
		b.Fatalf("register the vps: wait=%v, %v", r.Wait, err)
	}
	return r.Worker
}

// change writes a worker's row as edit makes it, guarded by its status when it was read.
func (b *bench) change(worker, why string, edit func(w *fleet.Worker, now time.Time)) {
	b.Helper()
	b.commit(func(m fleet.Memory, p *fleet.Plan, _ *fleet.Record) {
		p.Workers = []fleet.WorkerChange{changed(m, worker, why, edit)}
	})
}

func changed(m fleet.Memory, worker, why string, edit func(w *fleet.Worker, now time.Time)) fleet.WorkerChange {
	for _, w := range m.Workers {
		if w.ID == worker {
			c := fleet.WorkerChange{From: w.Status, Worker: w, Why: why}
			edit(&c.Worker, m.Now)
			return c
		}
	}
	return fleet.WorkerChange{From: "nobody", Worker: fleet.Worker{ID: worker}}
}

func drain(why string) func(*fleet.Worker, time.Time) {
	return func(w *fleet.Worker, now time.Time) {
		w.Status, w.DrainAt, w.DrainWhy, w.DrainAck = fleet.Draining, now, why, time.Time{}
	}
}

func end(s fleet.Status) func(*fleet.Worker, time.Time) {
	return func(w *fleet.Worker, _ time.Time) { w.Status = s }
}

func (b *bench) enqueue(j NewJob) string {
	b.Helper()
	if j.Queue == "" {
		j.Queue = poolA
	}
	job, err := b.Workers.Enqueue(b.ctx, j)
	if err != nil {
		b.Fatalf("enqueue: %v", err)
	}
	return job
}

func (b *bench) claim(worker string, n int) []ClaimedJob {
	b.Helper()
	got, err := b.Workers.Claim(b.ctx, worker, []string{poolA}, n)
	if err != nil {
		b.Fatalf("claim: %v", err)
	}
	return got
}

// claimOne claims the one job that must be there.
func (b *bench) claimOne(worker string) ClaimedJob {
	b.Helper()
	got := b.claim(worker, 1)
	if len(got) != 1 {
		b.Fatalf("claimed %d jobs, want 1", len(got))
	}
	return got[0]
}

func (b *bench) job(id string) JobRow {
	b.Helper()
	j, err := b.Workers.Job(b.ctx, id)
	if err != nil {
		b.Fatalf("read job: %v", err)
	}
	return j
}

// want compares as JSON, as a snapshot would store it.
func (b *bench) want(what string, got, want any) {
	b.Helper()
	g, w := text(b.T, got), text(b.T, want)
	if g != w {
		b.Errorf("%s:\n got %s\nwant %s", what, g, w)
	}
}

func text(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// near allows a real database the time that a test takes.
func (b *bench) near(what string, got, want time.Time) {
	b.Helper()
	if d := got.Sub(want).Abs(); d > 10*time.Second {
		b.Errorf("%s: got %v, want about %v", what, got, want)
	}
	if got.Location() != time.UTC {
		b.Errorf("%s: %v is not in UTC", what, got)
	}
}
