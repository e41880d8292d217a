package sim_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing/synctest"
	"time"

	"sluice/core/fleet"
	"sluice/core/sim"
	"sluice/core/tick"
)

// How long a healed world may take to work everything off, and to end every machine. Back-offs and the
// breaker last up to an hour each.
const (
	workedOff = 4 * time.Hour
	allGone   = 40 * time.Minute
)

// calmDown is the second part: faults stop, work ends, and everything that was left behind must come right.
func (x *trial) calmDown() {
	x.settle()
	x.heal()
	if x.checks.amnesia { // in vps_only nobody looks for what no row knows: first it must have been seen
		x.minutes(12*time.Minute, func() bool { return false })
	}
	start, most := time.Now(), workedOff
	if !x.capable() {
		most = 10 * time.Minute
	}
	x.minutes(most, func() bool { return x.unfinished() == "" })
	if left := x.unfinished(); left != "" && x.failed == "" && most == workedOff && x.capable() {
		x.fail("progress: after %s of calm %s", time.Since(start), left)
	}
	x.empty()
	if x.failed == "" {
		x.books()
	}
}

// settle lets every process that still runs end.
func (x *trial) settle() {
	x.mu.Lock()
	x.calm = true
	x.mu.Unlock()
	for synctest.Wait(); x.letGo(); synctest.Wait() {
	}
	x.observe()
}

// letGo answers the first call that waits; false where none does.
func (x *trial) letGo() bool {
	x.mu.Lock()
	if len(x.waiting) == 0 {
		x.mu.Unlock()
		return false
	}
	slices.SortStableFunc(x.waiting, func(a, b *pending) int { return cmp.Compare(a.call.Key(), b.call.Key()) })
	p := x.waiting[0]
	x.waiting = x.waiting[1:]
	x.mu.Unlock()
	v := x.s.poison.verdict(p.call)
	if err := p.call.Ctx.Err(); err != nil {
		v = sim.Fail(err)
	}
	p.out <- v
	return true
}

// heal mends all but the poison.
func (x *trial) heal() {
	x.log("=== calm")
	for _, c := range x.s.clouds {
		x.w.Alter(c.Provider, func(now *sim.Cloud) { now.Capacity, now.Boot, now.NoBoot = map[string]int{}, c.Boot, 0 })
	}
	for _, q := range x.s.config.Queues {
		x.w.Poison(q.Name, "")
	}
	if x.s.poison.queue != "" {
		x.w.Poison(x.s.poison.queue, "WRONGTYPE")
	}
	x.down = map[string]time.Time{}
	x.s.config.Interval = 60
	if x.checks.amnesia && x.s.config.Mode == fleet.VPSOnly {
		// What nobody remembers is not looked for in vps_only: a team that suspects it looks once.
		x.s.config.Mode, x.s.config.Pools = fleet.Hybrid, slices.Clone(x.s.config.Pools)
		for i := range x.s.config.Pools {
			x.s.config.Pools[i].Enabled = false
		}
	}
	x.w.SetConfig(configBytes(x.s.config))
	x.nextTick = time.Now()
}

// minutes runs calm ticks until done, or for as long as it may take.
func (x *trial) minutes(most time.Duration, done func() bool) {
	end := time.Now().Add(most)
	for n := 0; x.failed == "" && time.Now().Before(end); n++ {
		x.calmTick(tick.Evaluate)
		if n%15 == 0 {
			x.calmTick(tick.Reconcile)
		}
		if n == 10 && len(x.w.Database().Sightings) > 1 {
			x.w.Ask(fleet.Request{ID: fmt.Sprint("adopt-", n, time.Now().Unix()), Kind: fleet.RequestAdopt, Target: "all", Who: "ann", Why: "restored"})
		}
		if done() {
			return
		}
		x.nextTick = x.nextTick.Add(time.Minute)
		x.agentsUntil(x.nextTick)
		x.w.Workers().Sweep()
	}
}

func (x *trial) calmTick(f entry) {
	x.ticks++
	name := fmt.Sprintf("calm-%03d", x.ticks)
	p := x.w.Process(name)
	due := x.nextTick.Add(x.s.scheduleAhead)
	var e ended
	var wg sync.WaitGroup
	wg.Go(func() {
		r, err := f(context.Background(), x.world(p), due)
		e = ended{name, r, err}
	})
	for synctest.Wait(); x.letGo(); synctest.Wait() {
	}
	wg.Wait()
	err := e.err
	x.log("%s: %s", name, outcomeText(e))
	if x.failing++; err == nil {
		x.failing = 0
	}
	if x.failing > 3 && x.s.poison.provider == "" {
		x.fail("progress: calm ticks fail again and again: %v", err)
	}
	for _, ev := range x.w.Events() {
		x.checks.event(ev)
	}
	x.checks.returned(e)
	x.checks.always()
}

func (x *trial) agentsUntil(until time.Time) {
	for time.Now().Before(until) {
		for _, a := range x.w.Due() {
			x.w.Act(a)
		}
		next := earlier(until, x.w.NextDue())
		time.Sleep(max(time.Second, time.Until(next)))
	}
}

// open is how many jobs are neither done nor dead.
func (x *trial) open() int {
	n := 0
	for _, j := range x.w.Jobs() {
		if j.Status == "queued" || j.Status == "processing" {
			n++
		}
	}
	return n
}

// unfinished says which work is left.
func (x *trial) unfinished() string {
	n, first := 0, sim.JobState{}
	for _, j := range x.w.Jobs() {
		if j.Queue != x.s.poison.queue && (j.Status == "queued" || j.Status == "processing") {
			n, first = n+1, j
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d jobs are neither done nor dead, one is %+v", n, len(x.w.Jobs()), first)
}

// capable says that there is somebody who must work everything off: a VPS, or clouds that every rule allows.
func (x *trial) capable() bool {
	c := x.s.config
	if x.s.vps > 0 {
		return true
	}
	if c.Mode == fleet.VPSOnly || c.Limits.Hourly < 60*fleet.Cent || c.Limits.Daily < fleet.Unit || x.s.poison.provider != "" || x.w.Database().Override != nil {
		return false
	}
	return len(c.Pools) == 1 && x.serves(c.Pools[0]) // with more, the floors of one may leave no room for another
}

// serves says that a pool would start a machine for a single job, sooner or later.
func (x *trial) serves(p fleet.Pool) bool {
	q := p.Queues[0]
	triggers := len(q.Steps) > 0 || q.Depth == 1 || q.Age > 0 || x.s.config.Mode == fleet.CloudFirst
	prefersSpot := slices.ContainsFunc(p.Offers, func(o fleet.Offer) bool { return o.Market == fleet.Spot })
	can := slices.ContainsFunc(p.Offers, func(o fleet.Offer) bool {
		price := x.price(o)
		return price > 0 && (o.MaxPrice == 0 || price <= o.MaxPrice) && (!prefersSpot || o.Market == fleet.Spot)
	})
	return p.Enabled && p.Automatic && triggers && can
}

func (x *trial) price(o fleet.Offer) fleet.Money {
	for _, c := range x.s.clouds {
		if c.Provider == o.Provider {
			return c.Prices[sim.Key(o.Type, o.Market)]
		}
	}
	return 0
}

// empty allows no cloud any more: no machine may be left (invariant 4), but where its provider never answers.
func (x *trial) empty() {
	if x.failed != "" {
		return
	}
	x.log("=== vps only")
	c := x.s.config
	c.Mode = fleet.VPSOnly
	x.w.SetConfig(configBytes(c))
	x.minutes(allGone, func() bool { return x.left() == "" && x.forgotten() })
	if x.failed == "" && x.s.poison.provider == "" && !x.forgotten() {
		x.fail("progress: %s after the last machine ended the database still has %s", allGone, text(x.w.Database().Workers))
	}
	if left := x.left(); left != "" && x.failed == "" {
		x.fail("invariant 4: %s after %s without work, faults or permission", left, allGone)
	}
}

// forgotten says that the database knows of nothing that costs any more.
func (x *trial) forgotten() bool {
	m := x.w.Database()
	return len(m.Intents)+len(m.Sightings) == 0 && !slices.ContainsFunc(m.Workers, fleet.Worker.Cloud)
}

func (x *trial) left() string {
	for _, m := range x.w.Machines() {
		if !m.Gone() && m.Place.Provider != x.s.poison.provider {
			return fmt.Sprintf("machine %s of pool %s is left (%s)", m.ID, m.Tags.Pool, m.State)
		}
	}
	return ""
}

// books: what the ledger has of a machine covers what it truly cost.
func (x *trial) books() {
	if x.checks.amnesia || x.s.poison.provider != "" {
		return
	}
	booked := map[string]fleet.Money{}
	for _, s := range x.w.Database().Ended {
		charged := s.To.Sub(s.From)
		if step := s.Increment.Duration(); step > 0 && charged%step > 0 {
			charged += step - charged%step
		}
		booked[s.Machine] += s.Price.For(max(charged, s.MinCharge.Duration()))
	}
	for _, m := range x.w.Machines() {
		cost := x.w.Cost(m.ID)
		if b, ok := booked[m.ID]; ok && b < cost {
			x.fail("books: machine %s cost %s, the ledger has %s", m.ID, cost, b)
		} else if !ok && !x.checks.interrupted[m.ID] {
			x.fail("books: machine %s cost %s and is not in the ledger", m.ID, cost)
		}
	}
}
