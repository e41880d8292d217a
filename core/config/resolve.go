package config

import (
	"encoding/json"
	"slices"

	"sluice/core/fleet"
)

// resolver turns a reviewed file into what decisions read.
type resolver struct {
	f    File
	root *node
}

func (r resolver) config() (fleet.Config, error) {
	f := r.f
	c := fleet.Config{Name: f.Name, Currency: f.Currency, ExchangeRates: f.rates(), Timezone: f.Timezone, Mode: f.Mode, Interval: fleet.Seconds(f.EvaluationIntervalSeconds),
		Workers: f.Workers.rules(), Limits: f.CostLimits.limits(), Channels: f.Alerts.resolve(), Page: f.Alerts.PageURL}
	for _, name := range sortedKeys(f.Queues) {
		c.Queues = append(c.Queues, f.Queues[name].resolve(name))
	}
	for _, v := range f.views() {
		p, err := r.pool(v)
		if err != nil {
			return c, err
		}
		c.Pools = append(c.Pools, p)
	}
	for _, cl := range f.clouds() {
		if !cl.enabled {
			continue
		}
		p, err := cl.resolve()
		if err != nil {
			return c, err
		}
		c.Providers = append(c.Providers, p)
		c.Prices = append(c.Prices, cl.known(f)...)
		c.Suspended = append(c.Suspended, cl.suspended(f)...)
	}
	c.NotHonoured = notHonoured(r.root, rootShape(), f)
	return c, nil
}

func (w Workers) rules() fleet.WorkerRules {
	return fleet.WorkerRules{
		Heartbeat:      fleet.Seconds(w.HeartbeatSeconds),
		BootTimeout:    fleet.Seconds(w.BootTimeoutSeconds),
		Visibility:     fleet.Seconds(w.VisibilityTimeoutSeconds),
		MaxAttempts:    w.MaxAttempts,
		RetryElsewhere: w.RetryElsewhere,
		LostDatabase:   fleet.Seconds(w.LostDatabaseMinutes) * 60,
		MaxLifetime:    fleet.Seconds(w.MaxLifetimeHours) * 3600,
	}
}

func (l CostLimits) limits() fleet.Limits {
	cents := func(n int) fleet.Money { return fleet.Money(n) * fleet.Cent }
	out := fleet.Limits{Hourly: cents(l.MaxHourlySpendCents), Daily: cents(l.MaxDailySpendCents), Alert: cents(l.AlertThresholdCents), Extras: cents(l.ExtrasCentsPerMachineHour)}
	if l.MaxPeriodSpendCents != nil {
		out.Period, out.PerPeriod = l.Period, cents(*l.MaxPeriodSpendCents)
	}
	return out
}

func (q Queue) resolve(name string) fleet.Queue {
	s := fleet.Source{Kind: q.Source.Kind, Key: q.Source.Key, Rows: q.Source.JobRows}
	if s.Kind == fleet.SourceRabbitMQ {
		s.Key = q.Source.Queue
	}
	return fleet.Queue{Name: name, Source: s, Run: fleet.Run{Command: q.Run.Command, Timeout: fleet.Seconds(q.Run.TimeoutSeconds),
		Slots: q.Run.SlotsPerWorker, StopGrace: fleet.Seconds(q.Run.StopGraceSeconds)}}
}

func (r resolver) pool(v view) (fleet.Pool, error) {
	p := fleet.Pool{Name: v.name, Enabled: v.enabled(r.f), Automatic: true, Urgency: *v.Urgency, MinReady: v.MinReady, MaxWorkers: v.ceiling(r.f),
		OnIdle: v.OnIdle, MaxSuspended: v.MaxSuspended, MaxSuspendedFor: fleet.Seconds(v.MaxSuspendedHours) * 3600,
		Cheapest: v.cheapest(r.f)}
	if p.Enabled {
		p.Offers = v.launchable(r.f)
	}
	p.FallbackAfter = v.fallback(p.Offers)
	rules := v.ScalingRules
	for i, name := range slices.Sorted(slices.Values(v.Queues)) {
		q := r.f.Queues[name]
		own, err := r.rules(v, name, q)
		if err != nil {
			return p, err
		}
		if i == 0 { // review has seen that what is the pool's is the same for all of its queues
			rules = own
		}
		p.Automatic = p.Automatic && q.Automatic
		p.Queues = append(p.Queues, own.queue(name, q))
	}
	p.UpCooldown, p.DownCooldown = fleet.Seconds(rules.ScaleUp.CooldownSeconds), fleet.Seconds(rules.ScaleDown.CooldownSeconds)
	p.IdleMinutes, p.DrainTimeout = rules.ScaleDown.IdleMinutes, fleet.Seconds(rules.ScaleDown.DrainTimeoutSeconds)
	return p, nil
}

// fallback is never where the file says so, and at once where there is no spot to wait for.
func (v view) fallback(offers []fleet.Offer) *fleet.Seconds {
	after := fleet.Seconds(0)
	if spot, _ := markets(offers); spot == 0 {
		return &after
	}
	if v.OnDemandFallbackSeconds == nil {
		return nil
	}
	after = fleet.Seconds(*v.OnDemandFallbackSeconds)
	return &after
}

// rules are a queue's rules in one of its pools.
func (r resolver) rules(v view, name string, q Queue) (ScalingRules, error) {
	if r.f.served(name) < 2 {
		return q.ScalingRules, nil
	}
	own := r.root.find(path{"queues", name, "scaling_rules"})
	merged := overlaid(r.root.find(v.path.key("scaling_rules")), own, v.path.key("scaling_rules"))
	var out ScalingRules
	b, err := json.Marshal(merged)
	if err != nil {
		return out, err
	}
	return out, json.Unmarshal(b, &out)
}

func (s ScalingRules) queue(name string, q Queue) fleet.PoolQueue {
	out := fleet.PoolQueue{Name: name, Baseline: q.BaselineWorkers, Depth: s.ScaleUp.QueueDepthThreshold, DepthBelow: s.ScaleDown.QueueDepthBelow}
	if age := s.ScaleUp.OldestJobAgeSeconds; age != nil {
		out.Age = fleet.Seconds(*age)
	}
	for _, t := range s.ScaleUp.Steps {
		out.Steps = append(out.Steps, fleet.Tier{Depth: t.QueueDepthThreshold, Age: fleet.Seconds(t.OldestJobAgeSeconds), Workers: t.Workers.Count, Max: t.Workers.Max, Alert: t.Alert})
	}
	return out
}
