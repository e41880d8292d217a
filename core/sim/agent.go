package sim

import (
	"slices"
	"time"

	"sluice/core/fleet"
)

// agent is what runs on a machine, or on the VPS: it registers, says that it lives, claims and works.
type agent struct {
	name    string
	machine *Machine // nil on the VPS
	next    time.Time
	beat    time.Time // last heartbeat that was answered
	worker  string
	rules   *fleet.Assignment
	drain   bool
	hands   []hand
	silent  time.Time // until then the database is out of its reach
	dead    bool      // it crashed: the machine runs on without it
}

// hand is a job being worked at.
type hand struct {
	Claimed
	done time.Time
	end  string // completed, failed or crashed
}

// beats is how often an agent says that it lives.
const beats = 15 * time.Second

// AddVPS starts the agent of a VPS.
func (w *World) AddVPS(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.agents[name] = &agent{name: name, next: w.now()}
}

// Silence keeps the agent of a machine, or of the VPS, from the database for a time.
func (w *World) Silence(name string, d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if g := w.agents[name]; g != nil {
		g.silent = w.now().Add(d)
	}
}

// Due lists the agents that would act now, sorted.
func (w *World) Due() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.settleMachines()
	now := w.now()
	var out []string
	for _, name := range sortedKeys(w.agents) {
		if g := w.agents[name]; g.awake() && !now.Before(g.next) {
			out = append(out, name)
		}
	}
	return out
}

// NextDue is when the next agent would act; zero where none will.
func (w *World) NextDue() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.settleMachines()
	var first time.Time
	for _, g := range w.agents {
		if g.awake() && (first.IsZero() || g.next.Before(first)) {
			first = g.next
		}
	}
	return first
}

// Agents lists all that run, sorted.
func (w *World) Agents() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.settleMachines()
	return sortedKeys(w.agents)
}

// Busy says how many jobs an agent works at.
func (w *World) Busy(name string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if g := w.agents[name]; g != nil {
		return len(g.hands)
	}
	return 0
}

func (g *agent) awake() bool {
	return !g.dead && (g.machine == nil || g.machine.State == fleet.MachinePending || g.machine.State == fleet.MachineRunning)
}

// Act lets one agent do what is due: end jobs, say that it lives, and claim.
func (w *World) Act(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.settleMachines()
	g := w.agents[name]
	now := w.now()
	if g == nil || !g.awake() || now.Before(g.next) {
		return
	}
	g.next = now.Add(beats)
	if now.Before(g.silent) {
		w.lost(g, now)
		return
	}
	if !w.hello(g, now) {
		return
	}
	if !w.finishDue(g, now) {
		g.crash(now)
		return
	}
	w.takeWork(g, now)
	for _, h := range g.hands {
		if h.done.Before(g.next) {
			g.next = latest(h.done, now.Add(time.Second))
		}
	}
}

// lost ends an agent that has been without the database for longer than it may.
func (w *World) lost(g *agent, now time.Time) {
	if g.rules != nil && now.Sub(g.beat) > g.rules.LostDatabase.Duration() {
		g.crash(now)
	}
}

// crash ends an agent and its jobs. On the VPS somebody restarts it.
func (g *agent) crash(now time.Time) {
	g.hands = nil
	if g.machine == nil {
		g.next, g.rules = now.Add(time.Minute), nil
		return
	}
	g.dead = true
}

// hello registers or sends a heartbeat, and obeys a drain.
func (w *World) hello(g *agent, now time.Time) bool {
	b, known := Beat{}, false
	if g.worker != "" {
		b, known = w.heartbeat(g.worker)
	}
	if !known {
		b = w.register(w.registration(g))
		if b.Wait {
			g.worker = ""
			return false
		}
		g.worker = b.Worker
	}
	g.beat, g.rules, g.drain = now, b.Assignment, b.Drain
	if g.drain {
		w.drained(g.worker)
	}
	return g.rules != nil
}

func (w *World) registration(g *agent) Registration {
	if g.machine == nil {
		return Registration{Place: fleet.Place{Provider: fleet.VPS}, Machine: g.name, Pool: fleet.VPS}
	}
	m := g.machine
	return Registration{
		Place: m.Place, Zone: m.Zone, Machine: m.ID, Pool: m.Tags.Pool, Intent: m.Tags.Intent, Spec: m.Tags.Spec,
		Type: m.Type, Market: m.Market, Expires: m.Tags.Expires,
	}
}

// finishDue ends what is done and keeps the rest in hand; false where a job took the agent with it.
func (w *World) finishDue(g *agent, now time.Time) bool {
	alive := true
	g.hands = slices.DeleteFunc(g.hands, func(h hand) bool {
		if now.Before(h.done) {
			return !w.extend(h.Attempt)
		}
		switch h.end {
		case "crashed":
			alive = false
		case "failed":
			w.finishAttempt(h.Attempt, "failed")
		default:
			w.complete(h.Attempt)
		}
		return true
	})
	return alive
}

// takeWork claims while there is room. The database decides whether it may.
func (w *World) takeWork(g *agent, now time.Time) {
	for _, q := range g.rules.Queues {
		room := max(1, q.Run.Slots) - g.inHand(q.Name)
		for _, c := range w.claim(g.worker, []string{q.Name}, max(0, room)) {
			g.hands = append(g.hands, w.work(c, now))
		}
	}
}

func (g *agent) inHand(queue string) int {
	n := 0
	for _, h := range g.hands {
		if h.Queue == queue {
			n++
		}
	}
	return n
}

func (w *World) work(c Claimed, now time.Time) hand {
	j := w.truth.enqueued[c.Job]
	h := hand{Claimed: c, done: now.Add(j.Work), end: "completed"}
	w.truth.tries++
	switch {
	case c.Number <= j.Crashes:
		h.end = "crashed"
	case c.Number <= j.Fails:
		h.end = "failed"
	}
	return h
}
