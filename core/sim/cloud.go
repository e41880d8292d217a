package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sluice/core/fleet"
)

// Cloud is a provider's account and its ways.
type Cloud struct {
	Provider string
	Scope    string
	Traits   fleet.Traits
	// Prices per hour by type and market, as Key writes them; an offer without has no quote.
	Prices map[string]fleet.Money
	// Stored is what a suspended machine of a type costs per hour.
	Stored map[string]fleet.Money
	// Capacity is how many more machines can be had of a type and market; without an entry: no end of them.
	Capacity map[string]int
	Quota    int           // machines at once; 0 is no limit
	Boot     time.Duration // from the call to the first step of the agent
	Jitter   time.Duration // more, at random
	Ending   time.Duration // from terminate to gone, and from suspend to suspended
	Keeps    time.Duration // for how long a machine that is gone is still listed
	Ahead    time.Duration // of its clock, before the world's
	NoBoot   float64       // share of machines whose agent never starts
	Flicker  float64       // how often a list that claims to be complete misses a machine, though never twice running or within five minutes
}

// Key names a price or a capacity.
func Key(kind string, market fleet.Market) string { return kind + "/" + string(market) }

// tokens are forgotten after this long: what a provider promises is at least fifteen minutes.
const tokenLife = 15 * time.Minute

type account struct {
	Cloud
	machines []*Machine
	tokens   map[string]token
}

type token struct {
	launch   fleet.Launch
	at       time.Time
	machines []*Machine
}

// Machine is a machine as it truly is.
type Machine struct {
	fleet.Machine
	Place   fleet.Place
	Token   string
	Price   fleet.Money // per hour while it is not suspended
	Created time.Time
	Visible time.Time // listed from then on
	Boots   time.Time // its agent starts; zero: never
	EndsAt  time.Time // a terminate call was accepted
	Sleeps  time.Time // a suspend call was accepted
	Ended   time.Time // it costs nothing from then on
	hidden  time.Time // until then lists do not show it, whatever they promise
	missed  time.Time // when a list last missed it
	shown   time.Time // when a list last showed it
	stored  bool      // it is suspended: only what it keeps costs
	since   time.Time // when it began to run, or to be suspended
	cost    []stretch // what it cost before
}

type stretch struct {
	from, to time.Time
	stored   bool
}

// turn ends the stretch in which it ran, or was suspended.
func (m *Machine) turn(at time.Time, stored bool) {
	m.cost = append(m.cost, stretch{m.since, at, m.stored})
	m.since, m.stored = at, stored
}

// Gone says that it costs nothing any more.
func (m *Machine) Gone() bool { return !m.Ended.IsZero() }

// AddCloud adds a provider.
func (w *World) AddCloud(c Cloud) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clouds[c.Provider] = &account{Cloud: c, tokens: map[string]token{}}
	w.order = append(w.order, c.Provider)
}

// Alter changes a provider's ways.
func (w *World) Alter(provider string, change func(c *Cloud)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(&w.clouds[provider].Cloud)
}

// Machines lists every machine that ever was, in the order of their launch.
func (w *World) Machines() []Machine {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.settleMachines()
	var out []Machine
	for _, name := range w.order {
		for _, m := range w.clouds[name].machines {
			out = append(out, *m)
		}
	}
	return out
}

// Interrupt takes a machine away without having been asked, as spot machines and broken hosts go.
func (w *World) Interrupt(machine string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.settleMachines()
	for _, a := range w.clouds {
		for _, m := range a.machines {
			if m.ID == machine && !m.Gone() {
				w.stop(m, w.now())
			}
		}
	}
}

// Hide keeps a machine out of lists that claim to be complete, which no provider should do.
func (w *World) Hide(machine string, d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range w.clouds {
		if m := a.find(machine); m != nil {
			m.hidden = w.now().Add(d)
		}
	}
}

// settleMachines lets time have had its effect on every machine; the caller holds the mutex.
func (w *World) settleMachines() {
	now := w.now()
	for _, name := range w.order {
		a := w.clouds[name]
		for _, m := range a.machines {
			w.settleMachine(a, m, now)
		}
	}
}

func (w *World) settleMachine(a *account, m *Machine, now time.Time) {
	if m.Gone() {
		return
	}
	expires := m.Tags.Expires.Add(-w.dbAhead) // a timer of the provider's, set at launch
	switch {
	case !m.EndsAt.IsZero() && !now.Before(m.EndsAt):
		w.stop(m, m.EndsAt)
	case a.Traits.BoundsLifetime && !m.Tags.Expires.IsZero() && !now.Before(expires):
		w.stop(m, expires)
	case !m.Sleeps.IsZero() && m.State == fleet.MachineStopping && !now.Before(m.Sleeps):
		m.State = fleet.MachineSuspended
		m.turn(m.Sleeps, true)
	case m.State == fleet.MachinePending && !now.Before(m.Created.Add(a.Boot/2)):
		m.State = fleet.MachineRunning
	}
}

// stop ends a machine and what ran on it.
func (w *World) stop(m *Machine, at time.Time) {
	m.turn(at, m.stored)
	m.State, m.Ended = fleet.MachineGone, at
	delete(w.agents, m.ID)
}

// compute is one cloud as one process reaches it.
type compute struct {
	p *Process
	a *account
}

var _ fleet.Compute = compute{}

// act passes the gate, lets the effect happen under the mutex, and answers as the verdict says.
func (c compute) act(ctx context.Context, op Op, args string, effect func() error) error {
	v := c.p.pass(ctx, op, c.a.Provider+" "+args)
	if v.Effect {
		c.p.w.mu.Lock()
		c.p.w.settleMachines()
		err := effect()
		c.p.w.mu.Unlock()
		if v.Err == nil {
			v.Err = err
		}
	}
	if v.Err != nil {
		return fmt.Errorf("%s at %s: %w", op, c.a.Provider, v.Err)
	}
	return nil
}

// List implements fleet.Compute.
func (c compute) List(ctx context.Context, scope, name string) (out []fleet.Machine, at time.Time, err error) {
	err = c.act(ctx, OpList, scope, func() error {
		now := c.p.w.now()
		at = now.Add(c.a.Ahead)
		for _, m := range c.a.machines {
			if m.Place.Scope == scope && m.Tags.Name == name && c.p.w.shows(c.a, m, now) {
				out = append(out, m.Machine)
			}
		}
		return nil
	})
	if err != nil {
		return nil, time.Time{}, err
	}
	return out, at, nil
}

// shows says that a list begun now has the machine in it.
func (w *World) shows(a *account, m *Machine, now time.Time) bool {
	if now.Before(m.Visible) || now.Before(m.hidden) || m.Gone() && now.Sub(m.Ended) >= a.Keeps {
		return false
	}
	if a.Flicker > 0 && now.Sub(m.missed) > 5*time.Minute && !m.shown.Before(m.missed) && w.rng.Float64() < a.Flicker {
		m.missed = now
		return false
	}
	m.shown = now
	return true
}

// Quote implements fleet.Compute.
func (c compute) Quote(ctx context.Context, offers []fleet.Offer) (out []fleet.Quote, err error) {
	err = c.act(ctx, OpQuote, "", func() error {
		for _, o := range offers {
			if price, ok := c.a.Prices[Key(o.Type, o.Market)]; ok {
				out = append(out, fleet.Quote{Offer: o.Key(), Price: price, At: c.p.w.clock()})
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Launch implements fleet.Compute.
func (c compute) Launch(ctx context.Context, l fleet.Launch) (out []fleet.Machine, err error) {
	err = c.act(ctx, OpLaunch, l.Tags.Intent, func() error {
		machines, err := c.p.w.launch(c.a, l)
		for _, m := range machines {
			out = append(out, m.Machine)
		}
		c.p.w.note(Event{Kind: EventLaunch, Process: c.p.name, Intent: l.Tags.Intent, Token: l.Token, Launch: &l, Machines: out, Err: err})
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (w *World) launch(a *account, l fleet.Launch) ([]*Machine, error) {
	now := w.now()
	if t, ok := a.tokens[l.Token]; ok && a.Traits.Idempotent && now.Sub(t.at) <= tokenLife {
		if text(t.launch) != text(l) {
			return nil, fmt.Errorf("%w: another request under a token that was used", fleet.ErrBadRequest)
		}
		return t.machines, nil
	}
	n, err := a.room(l)
	if err != nil {
		return nil, err
	}
	var made []*Machine
	for range n {
		made = append(made, w.boot(a, l, now))
	}
	a.tokens[l.Token] = token{l, now, made}
	return made, nil
}

// room is how many of the machines asked for can be had.
func (a *account) room(l fleet.Launch) (int, error) {
	price, known := a.Prices[Key(l.Offer.Type, l.Offer.Market)]
	n := l.Count
	switch {
	case l.Count < 1 || l.Count > max(1, a.Traits.MaxBatch) || !known || price <= 0:
		return 0, fmt.Errorf("%w: %d of %s", fleet.ErrBadRequest, l.Count, l.Offer.Key())
	case a.Quota > 0 && a.alive() >= a.Quota:
		return 0, fleet.ErrQuota
	case a.Quota > 0:
		n = min(n, a.Quota-a.alive())
	}
	left, bounded := a.Capacity[Key(l.Offer.Type, l.Offer.Market)]
	if !bounded {
		return n, nil
	}
	if left <= 0 {
		return 0, fleet.ErrNoCapacity
	}
	n = min(n, left)
	a.Capacity[Key(l.Offer.Type, l.Offer.Market)] = left - n
	return n, nil
}

func (a *account) alive() int {
	n := 0
	for _, m := range a.machines {
		if !m.Gone() {
			n++
		}
	}
	return n
}

// boot makes one machine, and the agent that will start on it.
func (w *World) boot(a *account, l fleet.Launch, now time.Time) *Machine {
	m := &Machine{
		Machine: fleet.Machine{
			ID: "m-" + w.id("machine")[:8], State: fleet.MachinePending, Zone: l.Offer.Zone, Type: l.Offer.Type, Market: l.Offer.Market,
			Launched: now.Add(a.Ahead), Tags: l.Tags,
		},
		Place: fleet.Place{Provider: a.Provider, Scope: l.Offer.Scope}, Token: l.Token,
		Price: a.Prices[Key(l.Offer.Type, l.Offer.Market)], Created: now, since: now,
		Visible: now.Add(w.upTo(a.Traits.Visibility.Duration())),
	}
	if w.rng.Float64() >= a.NoBoot {
		m.Boots = now.Add(a.Boot + w.upTo(a.Jitter))
		w.agents[m.ID] = &agent{name: m.ID, machine: m, next: m.Boots}
	}
	a.machines = append(a.machines, m)
	return m
}

// upTo is a random duration in whole seconds.
func (w *World) upTo(d time.Duration) time.Duration {
	if d < time.Second {
		return 0
	}
	return time.Duration(w.rng.Int64N(int64(d/time.Second)+1)) * time.Second
}

func (a *account) find(id string) *Machine {
	i := slices.IndexFunc(a.machines, func(m *Machine) bool { return m.ID == id })
	if i < 0 {
		return nil
	}
	return a.machines[i]
}

// Terminate implements fleet.Compute.
func (c compute) Terminate(ctx context.Context, r fleet.Ref) error {
	return c.act(ctx, OpTerminate, r.Machine, func() error {
		m := c.a.find(r.Machine)
		if m == nil || m.Gone() {
			return fleet.ErrNotFound
		}
		if m.EndsAt.IsZero() {
			c.p.w.note(c.p.w.ending(c.p, m))
			m.EndsAt = c.p.w.now().Add(c.a.Ending)
			m.State = fleet.MachineStopping
			delete(c.p.w.agents, m.ID) // its processes are killed at once, its bill ends later
		}
		return nil
	})
}

// Suspend implements fleet.Compute.
func (c compute) Suspend(ctx context.Context, r fleet.Ref) error {
	return c.act(ctx, OpSuspend, r.Machine, func() error {
		m := c.a.find(r.Machine)
		switch {
		case m == nil || m.Gone():
			return fleet.ErrNotFound
		case !c.a.Traits.Suspends:
			return fleet.ErrBadRequest
		case !m.EndsAt.IsZero() || m.State == fleet.MachineSuspended || m.State == fleet.MachineStopping:
			return nil
		}
		c.p.w.note(c.p.w.ending(c.p, m))
		m.State, m.Sleeps = fleet.MachineStopping, c.p.w.now().Add(c.a.Ending)
		return nil
	})
}

// Resume implements fleet.Compute.
func (c compute) Resume(ctx context.Context, r fleet.Ref) error {
	return c.act(ctx, OpResume, r.Machine, func() error {
		m := c.a.find(r.Machine)
		switch {
		case m == nil || m.Gone() || !m.EndsAt.IsZero():
			return fleet.ErrNotFound
		case m.State == fleet.MachineStopping:
			return fleet.ErrUnavailable // not yet suspended: the call is not accepted
		case m.State != fleet.MachineSuspended:
			return nil
		}
		now := c.p.w.now()
		m.turn(now, false)
		m.State, m.Sleeps = fleet.MachineRunning, time.Time{}
		if g := c.p.w.agents[m.ID]; g != nil {
			g.next = now.Add(c.a.Boot / 4)
		}
		c.p.w.note(Event{Kind: EventResume, Process: c.p.name, Machine: m.ID})
		return nil
	})
}
