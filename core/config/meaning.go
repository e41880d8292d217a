package config

import (
	"fmt"
	"slices"
	"time"

	"sluice/core/fleet"
)

// typicalStart is what a cloud's machine usually needs from the call to its first job, where nothing better is known.
const typicalStart fleet.Seconds = 180

// meaning says in sentences what the settings come to.
func meaning(f File, c fleet.Config) []string {
	out := []string{modeMeans(c.Mode)}
	var closed []string
	for _, p := range c.Pools {
		if !p.Enabled {
			closed = append(closed, p.Name)
			continue
		}
		out = append(out, poolMeans(f, c, p)...)
	}
	if len(closed) > 0 {
		out = append(out, fmt.Sprintf("No machine is started for %s: cloud_enabled is false.", join(closed)))
	}
	out = append(out, fmt.Sprintf("Decisions are made every %d s, which adds to each wait.", c.Interval))
	return append(out, moneyMeans(c)...)
}

func modeMeans(m fleet.Mode) string {
	switch m {
	case fleet.Hybrid:
		return "Mode hybrid: the VPS holds the baseline, and machines are added when a queue rises."
	case fleet.CloudFirst:
		return "Mode cloud_first: a queue with work gets a machine without waiting for thresholds, and the baseline is held by cloud workers."
	case fleet.VPSOnly:
	}
	return "Mode vps_only: no cloud machine is ever started; what the cloud would have done is still worked out and recorded."
}

func poolMeans(f File, c fleet.Config, p fleet.Pool) []string {
	start := startTime(f, p)
	var out []string
	for _, q := range p.Queues {
		out = append(out, waitMeans(f, c.Mode, p, q, start))
	}
	if s := marketMeans(p); s != "" {
		out = append(out, s)
	}
	if s := drainMeans(f, p); s != "" {
		out = append(out, s)
	}
	if n := len(f.Pools[p.Name].Windows); n > 0 {
		out = append(out, fmt.Sprintf("Outside its %s the pool %s keeps %s ready: a job there waits for a machine to start, about %d s.", count(n, "window"), p.Name, count(p.MinReady, "machine"), start))
	}
	return out
}

// drainMeans names the jobs that may take longer than a machine that goes waits for them.
func drainMeans(f File, p fleet.Pool) string {
	var long []string
	for _, q := range p.Queues {
		if t := f.Queues[q.Name].Run.TimeoutSeconds; t > int(p.DrainTimeout) {
			long = append(long, fmt.Sprintf("%s (%d s)", q.Name, t))
		}
	}
	if len(long) == 0 {
		return ""
	}
	return fmt.Sprintf("A machine of the pool %s that goes waits %d s for its jobs; a job of %s may take longer, and then starts again elsewhere.", p.Name, p.DrainTimeout, join(long))
}

// waitMeans says how long a single job may wait.
func waitMeans(f File, mode fleet.Mode, p fleet.Pool, q fleet.PoolQueue, start fleet.Seconds) string {
	if !p.Automatic {
		return fmt.Sprintf("Only people start machines for %s: automatic is false.", q.Name)
	}
	lead := "A single " + q.Name + " job"
	if f.served(q.Name) > 1 {
		lead += " in the pool " + p.Name
	}
	if mode == fleet.Hybrid && q.Baseline > 0 {
		lead += " that the VPS does not get to"
	}
	if mode == fleet.VPSOnly {
		lead = "With the cloud allowed, a" + lead[1:]
	}
	depth, age := firstTrigger(q)
	switch {
	case p.MinReady > 0:
		return fmt.Sprintf("%s finds %s kept ready, unless others are being done there.", lead, count(p.MinReady, "machine"))
	case mode == fleet.CloudFirst:
		return fmt.Sprintf("%s waits for the next decision, then about %d s for a machine.", lead, start)
	case depth == 1:
		return fmt.Sprintf("%s asks for a machine at once, then waits about %d s for it.", lead, start)
	case age == 0:
		return fmt.Sprintf("%s starts no machine by itself: %s must wait.", lead, count(depth, "job"))
	}
	s := fmt.Sprintf("%s waits up to %d s, then about %d s for a machine", lead, age, start)
	if depth > 0 {
		s += fmt.Sprintf("; %d waiting jobs ask for one at once", depth)
	}
	return s + "."
}

// firstTrigger is the least depth and the least age that add a machine; zero for none.
func firstTrigger(q fleet.PoolQueue) (depth int, age fleet.Seconds) {
	if len(q.Steps) == 0 {
		return q.Depth, q.Age
	}
	for _, t := range q.Steps {
		if depth == 0 {
			depth = t.Depth
		}
		if age == 0 {
			age = t.Age
		}
	}
	return depth, age
}

// startTime is that of the slowest provider that the pool may use.
func startTime(f File, p fleet.Pool) fleet.Seconds {
	var slowest fleet.Seconds
	for _, o := range p.Offers {
		if o.Provider == "local" && f.CloudProviders.Local != nil {
			slowest = max(slowest, fleet.Seconds(f.CloudProviders.Local.BootSeconds))
		} else {
			slowest = max(slowest, typicalStart)
		}
	}
	return slowest
}

func marketMeans(p fleet.Pool) string {
	spot, onDemand := markets(p.Offers)
	switch {
	case spot == 0:
		return ""
	case p.FallbackAfter == nil || onDemand == 0:
		return fmt.Sprintf("The pool %s uses spot machines only: while there are none, its jobs wait.", p.Name)
	case *p.FallbackAfter == 0:
		return fmt.Sprintf("The pool %s uses spot machines, and on-demand at once where spot is refused.", p.Name)
	}
	return fmt.Sprintf("The pool %s uses spot machines, and on-demand after spot has been refused for %d s.", p.Name, *p.FallbackAfter)
}

func moneyMeans(c fleet.Config) []string {
	hours := c.Workers.MaxLifetime.Duration()
	hourly, unknown := WorstHour(c)
	amount := func(m fleet.Money) string { return m.String() + " " + c.Currency }
	stop := fmt.Sprintf("the limits stop it at %s an hour and %s a day.", amount(c.Limits.Hourly), amount(c.Limits.Daily))
	bill := fmt.Sprintf("%s an hour, %s a day and %s over a whole lifetime of %d h; ", amount(hourly), amount(hourly.For(24*time.Hour)), amount(hourly.For(hours)), int(hours.Hours()))
	switch {
	case !slices.ContainsFunc(c.Pools, func(p fleet.Pool) bool { return p.Enabled }):
		bill = "Nothing can be started, so there is nothing to pay; " + stop
	case unknown > 0 && hourly == 0:
		bill = fmt.Sprintf("What every machine at its maximum would cost is not known, since no price is; %s", stop)
	case unknown > 0:
		bill = fmt.Sprintf("With every machine at its maximum the bill would be at least %s%s %s without a known price may cost more.", bill, stop, count(unknown, "offer"))
	default:
		bill = "With every machine at its maximum the bill would be " + bill + stop
	}
	return []string{bill, fmt.Sprintf("The day of the daily limit ends at midnight in %s; an alert comes at %s.", c.Timezone, amount(c.Limits.Alert)) + periodMeans(c)}
}

func periodMeans(c fleet.Config) string {
	if c.Limits.Period == "" {
		return ""
	}
	return fmt.Sprintf(" No %s costs more than %s %s.", c.Limits.Period, c.Limits.PerPeriod, c.Currency)
}

// WorstHour is an upper bound of the run rate, and how many offers it leaves out for want of a price: no more than pools allow at their dearest offers, nor than providers allow at theirs.
func WorstHour(c fleet.Config) (fleet.Money, int) {
	unknown := 0
	var byPool fleet.Money
	dearest := map[string]fleet.Money{}
	for _, p := range c.Pools {
		if !p.Enabled {
			continue
		}
		var top fleet.Money
		for _, o := range p.Offers {
			price, known := c.Price(o)
			if !known {
				unknown++
				continue
			}
			top = max(top, price+c.Limits.Extras)
			dearest[o.Provider] = max(dearest[o.Provider], price+c.Limits.Extras)
		}
		byPool += top * fleet.Money(p.MaxWorkers)
	}
	var byProvider fleet.Money
	for _, p := range c.Providers {
		byProvider += dearest[p.Name] * fleet.Money(p.MaxInstances)
	}
	return min(byPool, byProvider), unknown
}

// doubts are offers that may never be taken.
func doubts(c fleet.Config) []string {
	unpriced := map[string][]string{}
	var out []string
	for _, p := range c.Pools {
		for _, o := range p.Offers {
			price, known := c.Price(o)
			what := fmt.Sprintf("%s (%s)", o.Type, o.Market)
			if !known && !slices.Contains(unpriced[o.Provider], what) {
				unpriced[o.Provider] = append(unpriced[o.Provider], what)
			}
			if known && o.MaxPrice > 0 && price > o.MaxPrice {
				out = append(out, fmt.Sprintf("cloud_providers.%s.spot_max_price: %s is below the price of %s, which is %s, so it would never be launched", o.Provider, o.MaxPrice, what, price))
			}
		}
	}
	out = append(out, unstored(c)...)
	for _, provider := range sortedKeys(unpriced) {
		out = append(out, fmt.Sprintf("cloud_providers.%s: no price is known of %s; an unknown price is not free, so nothing of it is launched until the provider quotes one", provider, join(unpriced[provider])))
	}
	if bound, _ := Unattended(c); bound > c.Limits.Daily {
		out = append(out, fmt.Sprintf("limits: were the scheduler and the database gone at once, machines could cost up to %s %s until their lifetime ends them, which is more than the daily limit of %s; workers.max_lifetime_hours or lower maxima bound it", bound, c.Currency, c.Limits.Daily))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// unstored names machines that are kept suspended at a price that nobody told.
func unstored(c fleet.Config) []string {
	var out []string
	for _, p := range c.Pools {
		for _, o := range p.Offers {
			price, runs := c.Price(o)
			if _, known := c.SuspendedPrice(o.Provider, o.Type); p.OnIdle == fleet.SuspendIdle && p.MaxSuspended > 0 && !known && (!runs || price > 0) {
				out = append(out, fmt.Sprintf("cloud_providers.%s: no price is known of a suspended %s, so it counts as if it ran", o.Provider, o.Type))
			}
		}
	}
	return out
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Unattended is an upper bound of what would still be spent were the scheduler and the database gone at once: every
// machine at its maximum until its lifetime ends it. What has no known price is not in it, and neither is what goes on
// costing on a provider whose machines, once they have shut themselves down, are billed until somebody deletes them.
func Unattended(c fleet.Config) (bound fleet.Money, unbounded []string) {
	hourly, _ := WorstHour(c)
	for _, p := range c.Providers {
		if p.Name == "ionos" && p.MaxInstances > 0 {
			unbounded = append(unbounded, p.Name)
		}
	}
	return hourly.For(c.Workers.MaxLifetime.Duration()), unbounded
}
