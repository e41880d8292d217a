package decide

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"time"

	"sluice/core/fleet"
	"sluice/core/spend"
)

// ShadowReport is what hybrid mode would have done with queues as they were seen.
type ShadowReport struct {
	From     time.Time `json:"from,omitzero"`
	To       time.Time `json:"to,omitzero"`
	Samples  int       `json:"samples"`
	Currency string    `json:"currency"`
	// LimitReached are the days on which the daily limit would have ended it; the next day begins anew.
	LimitReached []string     `json:"daily_limit_reached,omitempty"`
	Pools        []ShadowPool `json:"pools"` // in the order of the config
}

// ShadowPool is one pool's part of it.
type ShadowPool struct {
	Pool     string `json:"pool"`
	Enabled  bool   `json:"cloud_enabled"` // if not, hybrid would have launched nothing either
	Launches int    `json:"launches"`
	// Machine is how long its machines would have been paid for, together.
	Machine fleet.Seconds `json:"machine_seconds"`
	// HasPrice: the config has a price for some offer of the pool. If not, Cost is zero and means nothing.
	HasPrice bool          `json:"has_price"`
	Cost     fleet.Money   `json:"cost"`
	Boot     fleet.Seconds `json:"boot_seconds"` // assumed
	// What the oldest job waited, over the readings in which jobs waited: as it was, and as it would have been.
	Longest       fleet.Seconds `json:"longest_wait_seconds"`
	P95           fleet.Seconds `json:"p95_wait_seconds"`
	LongestHybrid fleet.Seconds `json:"longest_wait_hybrid_seconds"`
	P95Hybrid     fleet.Seconds `json:"p95_wait_hybrid_seconds"`
}

// shadowBoot is how long a cloud's machine is assumed to boot where its provider's settings do not say.
const shadowBoot fleet.Seconds = 180

// standIn is the price of a pool's offers where none is known, so that launches can be counted all the same.
const standIn = fleet.Micro

// Shadow replays readings of queues, oldest first, through Decide in hybrid mode with machines that are only imagined: they
// boot, are busy while jobs wait in a queue of theirs, and otherwise idle. One VPS worker is assumed. The readings are
// those without their help, so the figures err towards more machines. A job is taken to wait until the first machine is
// there, and no longer.
func Shadow(c fleet.Config, samples []fleet.Sample) ShadowReport {
	sh := newShadow(c)
	samples = slices.SortedStableFunc(slices.Values(samples), func(a, b fleet.Sample) int { return a.At.Compare(b.At) })
	for _, s := range samples {
		sh.replay(s)
	}
	return sh.report(c, samples)
}

// shadow is an installation that is only imagined.
type shadow struct {
	config    fleet.Config
	quotes    []fleet.Quote
	traits    map[string]fleet.Traits
	pools     map[string]*shadowPool
	workers   []fleet.Worker
	ended     []fleet.Span
	override  *fleet.Override
	breached  string // the day on which the override was imposed
	breaches  []string
	lastTicks map[fleet.Function]time.Time
}

type shadowPool struct {
	ShadowPool
	queues  []fleet.PoolQueue
	memory  fleet.PoolMemory
	trigger fleet.Seconds // age of the oldest job when the first of the present machines was asked for
	was     []fleet.Seconds
	hybrid  []fleet.Seconds
}

func newShadow(c fleet.Config) *shadow {
	sh := &shadow{config: c, traits: map[string]fleet.Traits{}, pools: map[string]*shadowPool{}}
	sh.config.Mode, sh.config.Pools = fleet.Hybrid, slices.Clone(c.Pools)
	for _, p := range c.Providers {
		sh.traits[p.Name] = fleet.Traits{Idempotent: true, MaxBatch: math.MaxInt32}
	}
	known := prices(fleet.Snapshot{Config: c})
	for i := range sh.config.Pools {
		sh.add(&sh.config.Pools[i], known)
	}
	return sh
}

// add prepares a pool: offers without a price stand aside for those with one, or are all of the same tiny price.
func (sh *shadow) add(p *fleet.Pool, known map[string]fleet.Money) {
	sp := &shadowPool{queues: p.Queues, memory: fleet.PoolMemory{Pool: p.Name}}
	sp.Pool, sp.Enabled, sp.Boot = p.Name, p.Enabled, bootOf(sh.config, *p)
	sh.pools[p.Name] = sp
	sh.config.Workers.BootTimeout = max(sh.config.Workers.BootTimeout, 2*sp.Boot)
	priced := slices.DeleteFunc(slices.Clone(p.Offers), func(o fleet.Offer) bool { return known[o.Key()] == 0 })
	if sp.HasPrice = len(priced) > 0; sp.HasPrice {
		p.Offers = priced
		return
	}
	for _, o := range p.Offers {
		sh.quotes = append(sh.quotes, fleet.Quote{Offer: o.Key(), Price: standIn})
	}
}

// bootOf is the slowest boot among the providers of a pool, as far as their settings tell.
func bootOf(c fleet.Config, p fleet.Pool) fleet.Seconds {
	slowest := fleet.Seconds(0)
	for _, o := range p.Offers {
		prov, _ := c.Provider(o.Provider)
		var settings struct {
			Boot *fleet.Seconds `json:"boot_seconds"`
		}
		if json.Unmarshal(prov.Settings, &settings) != nil || settings.Boot == nil {
			return shadowBoot
		}
		slowest = max(slowest, *settings.Boot)
	}
	return slowest
}

// replay decides from one reading and carries the decision out at once.
func (sh *shadow) replay(s fleet.Sample) {
	queues := map[string]fleet.QueueState{}
	for _, q := range s.Queues {
		queues[q.Name] = q
	}
	sh.live(s.At, queues)
	sh.wait(queues)
	sh.carryOut(Decide(sh.snapshot(s)), queues)
}

// live is what became of the machines until now.
func (sh *shadow) live(now time.Time, queues map[string]fleet.QueueState) {
	for i := range sh.workers {
		w := &sh.workers[i]
		p := sh.pools[w.Pool]
		w.Heartbeat = now
		if ready := w.BootAt.Add(p.Boot.Duration()); w.Status == fleet.Provisioning && !now.Before(ready) {
			w.Status, w.Registered, w.IdleSince = fleet.Ready, ready, ready
		}
		_, waits, known := p.oldest(queues)
		switch {
		case w.Status != fleet.Ready || !known:
		case waits:
			w.Jobs, w.IdleSince = 1, now
		default:
			w.Jobs = 0
		}
	}
}

// oldest is the age of the pool's oldest job, whether any waits, and whether all of its queues were read.
func (p *shadowPool) oldest(queues map[string]fleet.QueueState) (age fleet.Seconds, waits, known bool) {
	known = true
	for _, q := range p.queues {
		st, ok := queues[q.Name]
		known = known && ok && st.Unknown == ""
		if st.Depth > 0 {
			age, waits = max(age, st.Oldest), true
		}
	}
	return age, waits && known, known
}

// wait notes how long the oldest job had waited, and would have.
func (sh *shadow) wait(queues map[string]fleet.QueueState) {
	for _, p := range sh.pools {
		age, waits, _ := p.oldest(queues)
		if !waits {
			continue
		}
		helped := age
		for _, w := range sh.workers {
			if w.Pool == p.Pool && w.Status == fleet.Ready {
				helped = min(age, p.trigger+p.Boot)
			}
		}
		p.was, p.hybrid = append(p.was, age), append(p.hybrid, helped)
	}
}

func (sh *shadow) snapshot(s fleet.Sample) fleet.Snapshot {
	m := fleet.Memory{Deployment: "shadow", Now: s.At, LastDue: sh.lastTicks, Override: sh.override, Ended: sh.ended}
	m.Workers = append(slices.Clone(sh.workers), vpsOf(sh.config, s.At))
	for _, p := range sh.config.Pools {
		m.Pools = append(m.Pools, sh.pools[p.Name].memory)
	}
	out := fleet.Snapshot{
		Version: 1, Function: fleet.Evaluate, Due: s.At, Limit: 60, Config: sh.config, Queues: s.Queues, Quotes: sh.quotes, Traits: sh.traits, Memory: m,
	}
	for _, p := range sh.config.Providers {
		out.Listings = append(out.Listings, sh.list(p.Place(), s.At))
	}
	return out
}

func (sh *shadow) list(p fleet.Place, now time.Time) fleet.Listing {
	l := fleet.Listing{Place: p, Begun: now}
	for _, w := range sh.workers {
		if w.Place == p {
			l.Machines = append(l.Machines, fleet.Machine{ID: w.Machine, State: fleet.MachineRunning, Tags: fleet.Tags{Deployment: "shadow"}})
		}
	}
	return l
}

func vpsOf(c fleet.Config, now time.Time) fleet.Worker {
	w := fleet.Worker{ID: fleet.VPS, Pool: fleet.VPS, Place: fleet.Place{Provider: fleet.VPS}, Machine: fleet.VPS, Status: fleet.Ready, Registered: now, Heartbeat: now}
	for _, q := range c.Queues {
		w.Queues = append(w.Queues, q.Name)
	}
	return w
}

func (sh *shadow) carryOut(p fleet.Plan, queues map[string]fleet.QueueState) {
	if p.Skipped != nil {
		return
	}
	sh.lastTicks = map[fleet.Function]time.Time{fleet.Evaluate: p.Due}
	for _, c := range p.Workers {
		sh.alter(c, p.Now)
	}
	for _, in := range p.Intents {
		switch {
		case in.Kind == fleet.KindLaunch && in.State == fleet.IntentOpen:
			sh.start(in, queues)
		case in.Kind == fleet.KindTerminate:
			sh.stop(in.Worker, p.Now)
		}
	}
	sh.hold(p)
}

// alter applies a change of a row; a drain is acknowledged at once, since it ends no job that is not imagined.
func (sh *shadow) alter(c fleet.WorkerChange, now time.Time) {
	i := slices.IndexFunc(sh.workers, func(w fleet.Worker) bool { return w.ID == c.Worker.ID })
	if i < 0 {
		return
	}
	w := c.Worker
	if w.Status == fleet.Draining {
		w.DrainAck, w.Jobs = now, 0
		if forIdleness(w.DrainWhy) {
			sh.pools[w.Pool].memory.LastDown = now
		}
	}
	sh.workers[i] = w
}

func (sh *shadow) start(in fleet.Intent, queues map[string]fleet.QueueState) {
	p := sh.pools[in.Pool]
	if !slices.ContainsFunc(sh.workers, func(w fleet.Worker) bool { return w.Pool == in.Pool }) {
		p.trigger, _, _ = p.oldest(queues)
	}
	p.memory.LastUp = in.Created
	p.Launches += in.Count
	o := in.Offers[0]
	for i := range in.Count {
		id := in.ID + "/" + strconv.Itoa(i)
		sh.workers = append(sh.workers, fleet.Worker{
			ID: id, Pool: in.Pool, Place: o.Place, Machine: id, Type: o.Type, Market: o.Market, Price: in.Prices[0], Status: fleet.Provisioning, Slots: 1,
			CostFrom: in.Created, BootAt: in.Created, Changed: in.Created, Expires: in.Last().Launch.Tags.Expires,
		})
	}
}

func (sh *shadow) stop(worker string, now time.Time) {
	i := slices.IndexFunc(sh.workers, func(w fleet.Worker) bool { return w.ID == worker })
	if i < 0 {
		return
	}
	sh.pay(sh.workers[i], now)
	sh.ended = append(sh.ended, spend.Since(sh.workers[i], now))
	sh.ended = slices.DeleteFunc(sh.ended, func(s fleet.Span) bool { return now.Sub(s.To) > 50*time.Hour })
	sh.workers = slices.Delete(sh.workers, i, i+1)
}

// pay adds what a machine cost in all.
func (sh *shadow) pay(w fleet.Worker, until time.Time) {
	p, d := sh.pools[w.Pool], until.Sub(w.CostFrom)
	p.Machine += seconds(d)
	if p.HasPrice {
		p.Cost += w.Price.For(d)
	}
}

// hold keeps a breach of the daily limit until its day is over.
func (sh *shadow) hold(p fleet.Plan) {
	if p.Override != nil {
		sh.override, sh.breached = p.Override, p.Spend.Day
		sh.breaches = append(sh.breaches, p.Spend.Day)
	}
	if sh.override != nil && p.Spend.Day != sh.breached {
		sh.override = nil
	}
}

func (sh *shadow) report(c fleet.Config, samples []fleet.Sample) ShadowReport {
	out := ShadowReport{Samples: len(samples), Currency: c.Currency, LimitReached: sh.breaches, Pools: []ShadowPool{}}
	if len(samples) > 0 {
		out.From, out.To = samples[0].At, samples[len(samples)-1].At
	}
	for _, w := range sh.workers {
		sh.pay(w, out.To)
	}
	for _, p := range c.Pools {
		sp := sh.pools[p.Name]
		sp.Longest, sp.P95 = percentiles(sp.was)
		sp.LongestHybrid, sp.P95Hybrid = percentiles(sp.hybrid)
		out.Pools = append(out.Pools, sp.ShadowPool)
	}
	return out
}

// percentiles are the longest, and the one that 95 of 100 do not pass.
func percentiles(all []fleet.Seconds) (longest, p95 fleet.Seconds) {
	if len(all) == 0 {
		return 0, 0
	}
	sorted := slices.SortedFunc(slices.Values(all), func(a, b fleet.Seconds) int { return cmp.Compare(a, b) })
	return sorted[len(sorted)-1], sorted[(len(sorted)*95+99)/100-1]
}
