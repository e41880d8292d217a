package sim

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"sluice/core/fleet"
)

// World is one installation and everything around it. Its time is what now says; everything random
// comes from its seed. It does nothing by itself: processes call its ports, and whoever drives it lets agents act.
type World struct {
	mu     sync.Mutex
	now    func() time.Time
	rng    *rand.Rand
	gate   func(Call) Verdict
	faults []*Fault
	events []Event

	db      *database
	lock    lock
	clouds  map[string]*account
	order   []string            // providers, in the order in which they were added
	lists   map[string][]string // job ids by Redis key
	object  object
	agents  map[string]*agent
	inbox   []fleet.Alert
	truth   truth
	serial  int
	dbAhead time.Duration // by how much the database's clock is ahead of now
}

// New makes an empty world with a fresh database, no config and no cloud.
func New(seed uint64, now func() time.Time) *World {
	w := &World{
		now:    func() time.Time { return now().UTC().Round(0) },
		rng:    rand.New(rand.NewPCG(seed, seed^0x9e3779b97f4a7c15)),
		clouds: map[string]*account{},
		lists:  map[string][]string{},
		agents: map[string]*agent{},
	}
	w.db = newDatabase(fleet.ID("sim", "deployment"))
	w.truth = truth{completed: map[string]int{}, enqueued: map[string]Job{}}
	return w
}

// SetGate makes every call of every process ask the gate before it goes on. The gate may block.
func (w *World) SetGate(gate func(Call) Verdict) { w.gate = gate }

// AdvanceDatabase sets the database's clock ahead of the world's, or back.
func (w *World) AdvanceDatabase(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dbAhead += d
}

// DatabaseNow is what the database's clock shows.
func (w *World) DatabaseNow() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.clock()
}

// clock is the database's; the caller holds the mutex.
func (w *World) clock() time.Time { return w.now().Add(w.dbAhead) }

func (w *World) id(kind string) string {
	w.serial++
	return fleet.ID("sim", kind, itoa(w.serial))
}

// Backup is the database as it was.
type Backup struct{ db *database }

// Backup keeps the database as it is now.
func (w *World) Backup() Backup {
	w.mu.Lock()
	defer w.mu.Unlock()
	return Backup{w.db.clone()}
}

// Restore puts an older database in the place of the present one. Open transactions end without effect.
func (w *World) Restore(b Backup) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.db = b.db.clone()
	w.lock.drop()
}

// Swap puts an empty database with another identity in the place of the present one.
func (w *World) Swap() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.db = newDatabase(w.id("deployment"))
	w.lock.drop()
}

// Process is one run of a function or a command: its ports fail for good once it has crashed.
type Process struct {
	w    *World
	name string
	dead bool // guarded by w.mu
}

// Process starts one.
func (w *World) Process(name string) *Process { return &Process{w: w, name: name} }

// Kill ends a process: no later call of it has an effect, and its transaction is rolled back.
func (p *Process) Kill() {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	p.dead = true
	p.w.lock.dropOf(p)
}

// Store is the database as this process reaches it; it is a History and a Requests too.
func (p *Process) Store() *Store { return &Store{p} }

// Objects is where the config lies.
func (p *Process) Objects() fleet.Objects { return objects{p} }

// Redis reads queues as Redis lists, with their jobs in the table.
func (p *Process) Redis() fleet.Queues { return queues{p, fleet.SourceRedis} }

// Table reads queues from the job table.
func (p *Process) Table() fleet.Queues { return queues{p, fleet.SourcePostgres} }

// Clouds are all that were added to the world.
func (p *Process) Clouds() map[string]fleet.Cloud {
	out := map[string]fleet.Cloud{}
	for name, a := range p.w.clouds {
		out[name] = fleet.Cloud{Compute: compute{p, a}, Traits: a.Traits}
	}
	return out
}

// Billing is what each cloud charges.
func (p *Process) Billing() map[string]fleet.Billing {
	out := map[string]fleet.Billing{}
	for name, a := range p.w.clouds {
		out[name] = billing{p, a}
	}
	return out
}

// Alerters deliver to Inbox.
func (p *Process) Alerters() map[fleet.ChannelKind]func(fleet.Channel) fleet.Alerter {
	open := func(fleet.Channel) fleet.Alerter { return alerter{p} }
	return map[fleet.ChannelKind]func(fleet.Channel) fleet.Alerter{fleet.ChannelLog: open, fleet.ChannelWebhook: open}
}

// pass asks for leave to make a call.
func (p *Process) pass(ctx context.Context, op Op, args string) Verdict {
	p.w.mu.Lock()
	dead := p.dead
	p.w.mu.Unlock()
	if dead {
		return Verdict{Err: ErrCrashed}
	}
	v := p.w.judge(Call{Ctx: ctx, Process: p.name, Op: op, Args: args})
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	switch {
	case v.Crash:
		p.dead = true
		if op != OpCommit { // its transaction ends where it is written or not
			p.w.lock.dropOf(p)
		}
		v.Err = ErrCrashed
	case p.dead && v.Err == nil: // killed while it waited
		v = Verdict{Err: ErrCrashed}
	case v.Err == nil && v.Effect && ctx.Err() != nil:
		v = Verdict{Err: ctx.Err()}
	}
	return v
}
