package sim_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"sluice/core/fleet"
	"sluice/core/sim"
)

// setting is what a trial's world is like.
type setting struct {
	start          time.Duration // from the bubble's midnight
	length         time.Duration // of the part with faults
	quiet          int           // seconds between happenings, at most
	config         fleet.Config
	clouds         []sim.Cloud
	places         []fleet.Place // for the expiry step
	unlinked       []string
	vps            int
	databaseAhead  time.Duration // of the clouds, which keep time too
	scheduleAhead  time.Duration // of the function's host, whose clock may be anything
	reconcileEvery int           // minutes
	rates          map[string]float64
	happenings     []string
	poison         poison // what stays broken to the end
}

// poison is one thing that never works.
type poison struct {
	queue    string
	provider string
}

// verdict breaks every call of the poisoned provider.
func (p poison) verdict(c sim.Call) sim.Verdict {
	if p.provider != "" && providerOf(c) == p.provider {
		return sim.Fail(fleet.ErrUnavailable)
	}
	return sim.OK()
}

// callFaults are drawn for single calls, with how often at most.
var callFaults = map[string]float64{
	"delay": 0.05, "timeout": 0.01, "crash": 0.01, "commit_lost": 0.05, "list_error": 0.1, "queues_unreadable": 0.1, "write_error": 0.05,
	"alert_error": 0.3, "read_error": 0.03, "answer_lost": 0.3, "refused": 0.2, "throttled": 0.1, "not_found": 0.1, "call_error": 0.1,
	"schedule_gap": 0.05, "repeated_tick": 0.2, "stale_tick": 0.1, "future_tick": 0.03,
}

// allHappenings come over a world from outside.
var allHappenings = []string{
	"interrupt", "silence", "silence_all", "queue_poisoned", "provider_down", "config_older", "config_broken", "config_missing",
	"config_vps_only", "config_changed", "config_disabled", "config_unhonoured", "restore", "swap", "no_capacity", "slow_boot", "no_boot",
	"request_drain", "request_adopt", "request_resume", "foreign_machine", "poison_job", "late_bill", "hidden",
}

func generate(r *rand.Rand) setting {
	s := setting{
		start: time.Duration(r.IntN(24*3600)) * time.Second, length: time.Duration(6+r.IntN(16)) * time.Minute, quiet: 40 + r.IntN(80),
		rates: map[string]float64{}, reconcileEvery: 5 + r.IntN(10),
	}
	s.clouds = generateClouds(r)
	s.config = generateConfig(r, s.clouds)
	s.vps = min(r.IntN(4), 2)
	if r.IntN(3) == 0 {
		s.databaseAhead = time.Duration(r.IntN(120)-60) * time.Second
		s.scheduleAhead = time.Duration(r.IntN(7200)-3600) * time.Second
	}
	if r.IntN(2) == 0 {
		for _, p := range s.config.Providers {
			s.places = append(s.places, p.Place())
		}
	}
	s.faults(r)
	s.theme(r)
	return s
}

// theme leads some worlds to where few would get by chance.
func (s *setting) theme(r *rand.Rand) {
	switch r.IntN(16) {
	case 0:
		s.suspends()
	case 1: // a day that ends with its limit reached, and somebody who lifts the override on the next
		s.start, s.length, s.config.Timezone = 23*time.Hour+20*time.Minute, 55*time.Minute, "UTC"
		s.config.Limits.Daily = 8 * fleet.Cent
		s.happenings = append(s.happenings, "request_resume")
	case 2: // answers that are lost while somebody else does the work, so that the machine is not wanted any more
		s.launches(r, fleet.Traits{Idempotent: r.IntN(2) == 0, Visibility: 180, MaxBatch: 1}, 0.6, 0)
		s.vps, s.config.Pools[0].MaxWorkers, s.config.Limits.Hourly = 1, 3, 12*fleet.Cent
	case 3: // answers that are lost at a cloud that cannot recognise repeats, and calls that take their time
		s.launches(r, fleet.Traits{Visibility: []fleet.Seconds{0, 180}[r.IntN(2)], MaxBatch: 1}, 0.6, 0.3)
		s.clouds[0].Flicker = 0.2
	case 4: // the same at one that can, but that shows what it made only when its tokens are forgotten
		s.launches(r, fleet.Traits{Idempotent: true, Visibility: 1200, MaxBatch: 1}, 0.85, 0.4)
		s.length = 25 * time.Minute
	case 5: // lost answers and refusals, where the next offer is dearer and the limit near
		s.launches(r, fleet.Traits{Idempotent: true, Visibility: 600, MaxBatch: 1}, 0.5, 0)
		s.rates["refused"], s.config.Limits.Hourly = 0.6, fleet.Money(12+r.IntN(20))*fleet.Cent
	}
	if r.IntN(4) == 0 {
		for i := range s.clouds {
			s.clouds[i].Flicker = 0.05
		}
	}
}

// suspends: machines are suspended and resumed all the time, while what they are launched from changes.
func (s *setting) suspends() {
	s.length, s.quiet, s.rates["crash"] = 30*time.Minute, 140, 0.01
	for i := range s.clouds {
		s.clouds[i].Traits.Suspends, s.clouds[i].Ending, s.clouds[i].Boot = true, 10*time.Second, 20*time.Second
	}
	for i := range s.config.Pools {
		p := &s.config.Pools[i]
		p.OnIdle, p.IdleMinutes, p.DownCooldown, p.MinReady = fleet.SuspendIdle, 1, 0, 0
	}
	s.config.Workers.MaxLifetime = 2 * 3600
	s.happenings = append(s.happenings, "config_changed")
}

// launches: one pool that wants more than it gets, two offers, one cloud of the given kind, a limit for a few machines.
func (s *setting) launches(r *rand.Rand, kind fleet.Traits, lost, slow float64) {
	s.vps, s.poison, s.happenings = 0, poison{}, nil
	s.rates = map[string]float64{"answer_lost": lost, "timeout": slow}
	s.clouds = s.clouds[:1]
	s.clouds[0].Traits = kind
	s.config.Providers, s.config.Prices, s.config.Pools, s.config.Queues = s.config.Providers[:1], nil, s.config.Pools[:1], s.config.Queues[:1]
	s.places = nil
	at, zero := s.config.Providers[0].Place(), fleet.Seconds(0)
	s.clouds[0].Prices = map[string]fleet.Money{sim.Key("small", fleet.Spot): 3 * fleet.Cent, sim.Key("small", fleet.OnDemand): 9 * fleet.Cent}
	p := &s.config.Pools[0]
	p.Enabled, p.Automatic, p.MaxWorkers, p.UpCooldown, p.FallbackAfter, p.Cheapest = true, true, 6, 0, &zero, true
	p.Offers = []fleet.Offer{{Place: at, Type: "small", Market: fleet.Spot}, {Place: at, Type: "small", Market: fleet.OnDemand}}
	p.Queues[0].Steps = []fleet.Tier{{Depth: 1, Workers: 4}}
	s.config.Limits = fleet.Limits{Hourly: fleet.Money(10+r.IntN(12)) * fleet.Cent, Daily: 100 * fleet.Unit}
	s.config.Mode, s.config.Providers[0].MaxInstances, s.quiet = fleet.Hybrid, 6, 60
}

// faults are none in some trials, one kind alone in others, and a handful or all in most.
func (s *setting) faults(r *rand.Rand) {
	names, odds := sortedFaults(), []float64{0, 0, 0.15, 0.4, 1}[r.IntN(5)]
	for _, name := range names {
		if r.Float64() < odds {
			s.rates[name] = callFaults[name] * (0.3 + 0.7*r.Float64())
		}
	}
	for _, h := range allHappenings {
		if r.Float64() < odds/2 {
			s.happenings = append(s.happenings, h)
		}
	}
	if odds == 0 && r.IntN(2) == 0 { // one fault alone
		if i := r.IntN(len(names) + len(allHappenings)); i < len(names) {
			s.rates[names[i]] = callFaults[names[i]]
		} else {
			s.happenings = []string{allHappenings[i-len(names)]}
		}
	}
	if s.scheduleAhead < 0 { // a schedule that is late would be skipped until it has caught up with one such tick
		delete(s.rates, "future_tick")
	}
	switch r.IntN(12) {
	case 0:
		s.poison.queue = s.config.Queues[0].Name
	case 1:
		if len(s.clouds) > 1 {
			s.poison.provider = s.clouds[0].Provider
		}
	}
}

func sortedFaults() []string {
	return slices.Sorted(keys(callFaults))
}

// disturbed says that something other than time and work acts on this world.
func (s setting) disturbed() bool {
	return len(s.rates)+len(s.happenings) > 0 || s.poison != poison{}
}

var sizes = []string{"small", "large"}

func generateClouds(r *rand.Rand) []sim.Cloud {
	var out []sim.Cloud
	for i := range 1 + r.IntN(2) {
		c := sim.Cloud{
			Provider: []string{"aws", "ionos"}[i], Scope: []string{"", "eu-1"}[r.IntN(2)], Boot: time.Duration(20+r.IntN(160)) * time.Second,
			Jitter: time.Duration(r.IntN(60)) * time.Second, Ending: time.Duration(r.IntN(90)) * time.Second, Quota: 20,
			Keeps: time.Duration(r.IntN(2)) * 10 * time.Minute, Prices: map[string]fleet.Money{}, Stored: map[string]fleet.Money{}, Capacity: map[string]int{},
			Traits: fleet.Traits{
				Idempotent: r.IntN(2) == 0, Visibility: []fleet.Seconds{0, 30, 60, 180}[r.IntN(4)], MinCharge: []fleet.Seconds{0, 60, 600}[r.IntN(3)],
				Increment: []fleet.Seconds{0, 1, 60, 3600}[r.IntN(4)], MaxBatch: 1 + r.IntN(3), Suspends: r.IntN(3) > 0, BoundsLifetime: r.IntN(2) == 0,
			},
		}
		if r.IntN(3) == 0 {
			c.Ahead = time.Duration(r.IntN(240)-120) * time.Second
		}
		for n, size := range sizes {
			c.Stored[size] = fleet.Money(r.IntN(3)) * fleet.Cent / 2
			c.Prices[sim.Key(size, fleet.Spot)] = fleet.Money(2+3*n+r.IntN(3)) * fleet.Cent
			c.Prices[sim.Key(size, fleet.OnDemand)] = fleet.Money(8+4*n+r.IntN(3)) * fleet.Cent
		}
		if r.IntN(6) == 0 {
			delete(c.Prices, sim.Key("large", fleet.Spot)) // no quote
		}
		out = append(out, c)
	}
	return out
}

func generateConfig(r *rand.Rand, clouds []sim.Cloud) fleet.Config {
	c := fleet.Config{
		Name: "sim", Currency: "USD", Timezone: []string{"UTC", "America/New_York", "Europe/Paris"}[r.IntN(3)],
		Mode:     []fleet.Mode{fleet.Hybrid, fleet.Hybrid, fleet.CloudFirst}[r.IntN(3)],
		Interval: []fleet.Seconds{60, 60, 60, 60, 120}[r.IntN(5)],
		Workers: fleet.WorkerRules{
			Heartbeat: 15, BootTimeout: 300, Visibility: 300, MaxAttempts: 3, RetryElsewhere: r.IntN(2) == 0, LostDatabase: 300,
			MaxLifetime: fleet.Seconds(20+r.IntN(60)) * 60,
		},
		Limits: generateLimits(r),
	}
	for _, cl := range clouds {
		c.Providers = append(c.Providers, fleet.Provider{
			Name: cl.Provider, Scope: cl.Scope, MaxInstances: 2 + r.IntN(6), Settings: json.RawMessage(`{"image":"v1"}`),
		})
	}
	for i := range 1 + r.IntN(3) {
		name := []string{"bulk", "media", "ocr"}[i]
		kind := []fleet.SourceKind{fleet.SourcePostgres, fleet.SourceRedis}[r.IntN(2)]
		c.Queues = append(c.Queues, fleet.Queue{Name: name, Source: fleet.Source{Kind: kind, Key: "queue:" + name, Rows: true}, Run: fleet.Run{Slots: 1 + r.IntN(2)}})
		c.Pools = append(c.Pools, generatePool(r, name, c.Providers))
	}
	if r.IntN(20) == 0 {
		c.Mode = fleet.VPSOnly
	}
	if len(clouds) > 1 { // one provider is asked for quotes, the prices of the other are the config's
		c.Prices = staticPrices(clouds[1])
	}
	for _, cl := range clouds { // what is not told costs as if it ran
		for _, size := range sizes[r.IntN(3)%2:] {
			c.Suspended = append(c.Suspended, fleet.SuspendedPrice{Provider: cl.Provider, Type: size, Price: cl.Stored[size]})
		}
	}
	return c
}

func staticPrices(cl sim.Cloud) (out []fleet.Price) {
	for _, size := range sizes {
		for _, m := range []fleet.Market{fleet.OnDemand, fleet.Spot} {
			if price, ok := cl.Prices[sim.Key(size, m)]; ok {
				out = append(out, fleet.Price{Provider: cl.Provider, Type: size, Market: m, Price: price})
			}
		}
	}
	return out
}

// generateLimits are loose in most worlds, and tight enough to matter in the others.
func generateLimits(r *rand.Rand) fleet.Limits {
	l := fleet.Limits{Hourly: fleet.Money(20+r.IntN(80)) * fleet.Cent, Daily: 100 * fleet.Unit, Alert: 80 * fleet.Unit}
	if r.IntN(3) == 0 {
		l.Daily = fleet.Money(3+r.IntN(20)) * fleet.Cent
		l.Alert = l.Daily / 2
	}
	if r.IntN(4) == 0 { // a week, of which some worlds see the end
		l.Period, l.PerPeriod = fleet.Week, l.Daily+fleet.Money(r.IntN(10))*fleet.Cent
	}
	return l
}

func generatePool(r *rand.Rand, queue string, providers []fleet.Provider) fleet.Pool {
	p := fleet.Pool{
		Name: queue, Enabled: r.IntN(30) > 0, Automatic: r.IntN(30) > 0, Urgency: r.IntN(3), MinReady: r.IntN(8) / 7, MaxWorkers: 2 + r.IntN(5),
		UpCooldown: fleet.Seconds(r.IntN(3) * 60), DownCooldown: fleet.Seconds(r.IntN(3) * 60), IdleMinutes: 1 + r.IntN(4),
		DrainTimeout: fleet.Seconds(60 + 60*r.IntN(4)), OnIdle: fleet.TerminateIdle, MaxSuspended: 2, MaxSuspendedFor: 1200, Cheapest: r.IntN(2) == 0,
	}
	if r.IntN(2) == 0 {
		p.OnIdle = fleet.SuspendIdle
	}
	if r.IntN(2) == 0 {
		wait := fleet.Seconds(r.IntN(3) * 180)
		p.FallbackAfter = &wait
	}
	q := fleet.PoolQueue{Name: queue, Baseline: r.IntN(2), Depth: 1 + r.IntN(4), Age: fleet.Seconds(r.IntN(3) * 120), DepthBelow: 1 + r.IntN(2)}
	if r.IntN(4) == 0 {
		q.Steps = []fleet.Tier{{Depth: 1, Workers: 1}, {Depth: 4, Age: 300, Workers: 2}, {Depth: 12, Max: true, Alert: fleet.Warning}}
	}
	p.Queues = []fleet.PoolQueue{q}
	for range 1 + r.IntN(3) {
		o := fleet.Offer{
			Place: providers[r.IntN(len(providers))].Place(), Type: sizes[r.IntN(len(sizes))],
			Market: []fleet.Market{fleet.Spot, fleet.OnDemand}[r.IntN(2)], Image: "v1",
		}
		if r.IntN(6) == 0 && o.Market == fleet.Spot {
			o.MaxPrice = 4 * fleet.Cent
		}
		if !slices.Contains(p.Offers, o) {
			p.Offers = append(p.Offers, o)
		}
	}
	return p
}

// happen lets something come over the world: mostly work.
func (x *trial) happen() {
	if slices.Contains(x.s.happenings, "request_resume") && x.chance(0.3) && x.befall("request_resume") {
		x.seen.fault("request_resume")
		x.log("*** request_resume")
		return
	}
	if len(x.s.happenings) == 0 || x.chance(0.5) {
		x.arrive()
		return
	}
	name := x.s.happenings[x.rng.IntN(len(x.s.happenings))]
	if x.befall(name) {
		x.seen.fault(name)
		x.log("*** %s", name)
	}
}

func (x *trial) arrive() {
	if x.open() > 25 {
		return // nobody could work that off
	}
	q := x.s.config.Queues[x.rng.IntN(len(x.s.config.Queues))].Name
	n := 1 + x.rng.IntN(8)
	x.log("%d jobs for %s", n, q)
	for range n {
		j := sim.Job{Queue: q, Priority: 1 + x.rng.IntN(10), Work: time.Duration(5+x.rng.IntN(150)) * time.Second}
		switch x.rng.IntN(12) {
		case 0:
			j.Work = 8 * time.Minute // longer than any drain
		case 1:
			j.After = time.Duration(x.rng.IntN(600)) * time.Second
		case 2:
			j.Fails = 1
		}
		x.w.Enqueue(j)
	}
}

// befall does one happening; false where it would mean nothing now.
func (x *trial) befall(name string) bool {
	switch {
	case strings.HasPrefix(name, "config_"):
		return x.befallConfig(name)
	case strings.HasPrefix(name, "request_"):
		return x.befallRequest(name)
	}
	cloud := x.s.clouds[x.rng.IntN(len(x.s.clouds))].Provider
	queue := x.s.config.Queues[x.rng.IntN(len(x.s.config.Queues))].Name
	switch name {
	case "interrupt":
		m := x.anyMachine()
		if m == "" {
			return false
		}
		x.w.Interrupt(m)
		x.checks.interrupted[m] = true
	case "hidden":
		m := x.anyMachine()
		if m == "" {
			return false
		}
		x.w.Hide(m, time.Duration(1+x.rng.IntN(8))*time.Minute)
		x.checks.amnesia, x.checks.lied = true, true // nobody can count what is not shown
	case "silence":
		if a := x.w.Agents(); len(a) > 0 {
			x.w.Silence(a[x.rng.IntN(len(a))], time.Duration(1+x.rng.IntN(10))*time.Minute)
		}
	case "silence_all":
		for _, a := range x.w.Agents() {
			x.w.Silence(a, 4*time.Minute)
		}
	case "queue_poisoned":
		x.w.Poison(queue, []string{"", "WRONGTYPE"}[x.rng.IntN(2)])
	case "provider_down":
		x.down[cloud] = time.Now().Add(time.Duration(1+x.rng.IntN(10)) * time.Minute)
	case "no_capacity":
		n := x.rng.IntN(3)
		x.w.Alter(cloud, func(c *sim.Cloud) { c.Capacity[sim.Key(sizes[x.rng.IntN(2)], fleet.Spot)] = n })
	case "slow_boot":
		x.w.Alter(cloud, func(c *sim.Cloud) { c.Boot = time.Duration(4+x.rng.IntN(4)) * time.Minute })
	case "no_boot":
		x.w.Alter(cloud, func(c *sim.Cloud) { c.NoBoot = []float64{0, 0.5, 1}[x.rng.IntN(3)] })
	case "poison_job":
		x.w.Enqueue(sim.Job{Queue: queue, Work: 20 * time.Second, Crashes: x.rng.IntN(4), Fails: 9})
	case "late_bill":
		x.w.Bills(time.Hour, x.rng.IntN(40))
	case "foreign_machine":
		x.foreign(cloud)
	case "restore", "swap":
		return x.befallDatabase(name)
	}
	return true
}

func (x *trial) anyMachine() string {
	for _, m := range x.w.Machines() {
		if !m.Gone() && x.chance(0.5) {
			return m.ID
		}
	}
	return ""
}

// foreign is a machine with our name that another installation's database asked for.
func (x *trial) foreign(cloud string) {
	i := slices.IndexFunc(x.s.config.Providers, func(p fleet.Provider) bool { return p.Name == cloud })
	l := fleet.Launch{
		Token: fmt.Sprint("foreign-", x.rng.Int()), Count: 1, Lifetime: 3600,
		Offer: fleet.Offer{Place: x.s.config.Providers[i].Place(), Type: "small", Market: fleet.OnDemand},
		Tags:  fleet.Tags{Name: "sim", Deployment: "another", Pool: "ocr", Intent: "another", Spec: "another", Expires: x.w.DatabaseNow().Add(time.Hour)},
	}
	x.w.Outside(cloud, l)
	x.checks.amnesia = true // nobody can have counted it when it was made
}

func (x *trial) befallDatabase(name string) bool {
	if name == "swap" {
		x.w.Swap()
		x.checks.amnesia = true
		return true
	}
	if len(x.backups) == 0 || x.chance(0.5) {
		x.backups = append(x.backups, x.w.Backup())
		return false
	}
	x.w.Restore(x.backups[x.rng.IntN(len(x.backups))])
	x.checks.amnesia = true
	return true
}

func (x *trial) befallConfig(name string) bool {
	c := x.s.config
	switch name {
	case "config_older":
		x.w.RevertConfig()
		return true
	case "config_broken":
		x.w.SetConfig([]byte(`{"mode": `))
		return true
	case "config_missing":
		x.w.RemoveConfig()
		return true
	case "config_vps_only":
		c.Mode = fleet.VPSOnly
	case "config_changed":
		c.Providers = slices.Clone(c.Providers)
		for i := range c.Providers {
			c.Providers[i].Settings = json.RawMessage(fmt.Sprintf(`{"image":"v%d"}`, x.rng.IntN(2)+1))
		}
		c.Pools = slices.Clone(c.Pools)
		c.Pools[0].MaxWorkers = max(1, c.Pools[0].MaxWorkers-x.rng.IntN(3))
	case "config_disabled":
		c.Pools = slices.Clone(c.Pools)
		if x.chance(0.5) || len(c.Pools) == 1 {
			c.Pools[0].Enabled = false
		} else {
			c.Pools = c.Pools[1:]
		}
	case "config_unhonoured":
		c.NotHonoured = []string{"routing"}
	}
	if x.chance(0.6) { // and back
		c = x.s.config
	}
	x.w.SetConfig(configBytes(c))
	return true
}

func (x *trial) befallRequest(name string) bool {
	r := fleet.Request{ID: fmt.Sprint("ask-", x.rng.Int()), Who: "ann", Why: "test"}
	m := x.w.Database()
	switch name {
	case "request_drain":
		if len(m.Workers) == 0 {
			return false
		}
		r.Kind, r.Target = fleet.RequestDrain, m.Workers[x.rng.IntN(len(m.Workers))].ID
	case "request_adopt":
		r.Kind, r.Target = fleet.RequestAdopt, "all"
	case "request_resume":
		if m.Override == nil {
			return false
		}
		r.Kind = fleet.RequestResume
	}
	x.w.Ask(r)
	return true
}
