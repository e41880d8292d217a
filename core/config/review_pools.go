package config

import (
	"fmt"
	"slices"
	"time"

	"sluice/core/fleet"
)

func (r *review) pool(v view) {
	if !v.implicit {
		r.named(v.path, "pool", v.name)
		r.members(v)
		r.agreement(v)
		r.ceilings(v)
		r.idling(v)
		r.windows(v)
	}
	if v.enabled(r.f) {
		r.offered(v)
	}
	drain := v.ScalingRules.ScaleDown.DrainTimeoutSeconds
	if drain >= r.f.Workers.MaxLifetimeHours*3600 {
		r.fail(v.path.key("scaling_rules").key("scale_down").key("drain_timeout_seconds"), "%d is not below max_lifetime_hours %d, so no job would ever be claimed",
			drain, r.f.Workers.MaxLifetimeHours)
	}
}

func (r *review) members(v view) {
	if _, ok := r.f.Queues[v.name]; ok && r.f.served(v.name) == 0 {
		r.fail(v.path, "queue %s is named by no pool and so is a pool of its own with this name; expected it in queues here, or another name", quote(v.name))
	}
	for i, q := range v.Queues {
		p := v.path.key("queues").index(i)
		if _, ok := r.f.Queues[q]; !ok && r.sound(path{"queues", q}) {
			r.unknown(p, "queue", q, sortedKeys(r.f.Queues))
		}
		if slices.Index(v.Queues, q) < i {
			r.fail(p, "queue %s stands here twice", quote(q))
		}
	}
}

// agreement: machines of a pool serve all of its queues, so what is the pool's must be the same for each.
func (r *review) agreement(v view) {
	same := func(key string, of func(Queue) string) { r.agree(v, path{key}, of) }
	same("cloud_enabled", func(q Queue) string { return fmt.Sprint(q.CloudEnabled) })
	same("automatic", func(q Queue) string { return fmt.Sprint(q.Automatic) })
	if len(v.Offers) == 0 {
		same("cloud_provider", func(q Queue) string { return optional(q.CloudProvider) })
		same("spot_preferred", func(q Queue) string { return fmt.Sprint(q.SpotPreferred) })
		if !r.set(v.path.key("on_demand_fallback_seconds")) {
			same("on_demand_fallback_seconds", func(q Queue) string { return optional(q.OnDemandFallbackSeconds) })
		}
	}
	rule := func(group, key string, of func(ScalingRules) int) {
		r.agree(v, path{"scaling_rules", group, key}, func(q Queue) string { return fmt.Sprint(of(q.ScalingRules)) })
	}
	if slices.ContainsFunc(v.Queues, func(q string) bool { return r.f.served(q) > 1 }) {
		return
	}
	rule("scale_up", "cooldown_seconds", func(s ScalingRules) int { return s.ScaleUp.CooldownSeconds })
	rule("scale_down", "cooldown_seconds", func(s ScalingRules) int { return s.ScaleDown.CooldownSeconds })
	rule("scale_down", "idle_minutes", func(s ScalingRules) int { return s.ScaleDown.IdleMinutes })
	rule("scale_down", "drain_timeout_seconds", func(s ScalingRules) int { return s.ScaleDown.DrainTimeoutSeconds })
}

func optional[T any](v *T) string {
	if v == nil {
		return "null"
	}
	return fmt.Sprint(*v)
}

func (r *review) agree(v view, key path, of func(Queue) string) {
	for _, name := range v.Queues {
		first, a := r.f.Queues[v.Queues[0]]
		q, b := r.f.Queues[name]
		if a && b && of(first) != of(q) {
			r.fail(append(path{"queues", name}, key...), "found %s, but queue %s of the same pool %s has %s; machines of a pool serve all of its queues, so expected the same",
				of(q), quote(v.Queues[0]), quote(v.name), of(first))
		}
	}
}

func (r *review) ceilings(v view) {
	most := v.ceiling(r.f)
	if most < *v.MaxWorkers && r.set(v.path.key("max_workers")) {
		r.warn(v.path.key("max_workers"), "%d, but a queue of it allows %d: there will be at most %d machines", *v.MaxWorkers, most, most)
	}
	if v.MinReady > most {
		r.fail(v.path.key("min_ready"), "%d is above max_workers %d; expected at most %d", v.MinReady, most, most)
	}
	if v.MaxSuspended > most {
		r.fail(v.path.key("max_suspended"), "%d is above max_workers %d, of which it is a part; expected at most %d", v.MaxSuspended, most, most)
	}
	if v.MinReady > 0 && !v.enabled(r.f) {
		r.fail(v.path.key("min_ready"), "found %d, but no queue of the pool is cloud_enabled; expected 0, or a queue with cloud_enabled true", v.MinReady)
	}
	for _, name := range v.Queues {
		if q, ok := r.f.Queues[name]; ok && q.BaselineWorkers > *v.MaxWorkers && q.BaselineWorkers <= q.MaxWorkers {
			r.fail(path{"queues", name, "baseline_workers"}, "%d is above max_workers %d of pool %s; expected at most %d", q.BaselineWorkers, *v.MaxWorkers, quote(v.name), *v.MaxWorkers)
		}
	}
}

func (r *review) idling(v view) {
	idle := v.ScalingRules.ScaleDown.IdleMinutes
	if v.IdleMinutes != nil && *v.IdleMinutes != idle {
		r.fail(v.path.key("idle_minutes"), "found %d here and %d in scaling_rules.scale_down.idle_minutes; expected it once", *v.IdleMinutes, idle)
	}
	if v.OnIdle == fleet.SuspendIdle && v.MaxSuspended == 0 {
		r.warn(v.path.key("on_idle"), "suspend, but max_suspended is 0: machines are terminated")
	}
	if v.OnIdle == fleet.TerminateIdle && v.MaxSuspended > 0 {
		r.warn(v.path.key("max_suspended"), "not used while on_idle is terminate")
	}
	if slices.ContainsFunc(v.Queues, func(q string) bool { return r.f.served(q) > 1 }) { // else its queues have the same rules
		r.rules(v.path.key("scaling_rules"), v.ScalingRules)
	}
}

func (r *review) windows(v view) {
	for i, w := range v.Windows {
		p := v.path.key("windows").index(i)
		if w.Timezone != "" {
			r.zone(p.key("timezone"), w.Timezone)
		}
		if w.From == w.To {
			r.fail(p.key("to"), "found the same time as from; expected a later one, or an earlier one of the next day")
		}
		if w.MinReady > v.ceiling(r.f) {
			r.fail(p.key("min_ready"), "%d is above max_workers %d", w.MinReady, v.ceiling(r.f))
		}
		for j, d := range w.ExceptDates {
			if _, err := time.Parse(time.DateOnly, string(d)); err != nil {
				r.fail(p.key("except_dates").index(j), "found %s, which is no day of the calendar", quote(string(d)))
			}
		}
	}
}

// offered checks that a pool that may use the cloud has something to launch.
func (r *review) offered(v view) {
	if !r.switches() || !r.sound(v.path.key("offers")) {
		return
	}
	for i, o := range v.Offers {
		r.offer(v.path.key("offers").index(i), o, v)
	}
	if len(v.Offers) > 0 && !slices.ContainsFunc(v.Offers, func(o Offer) bool { return slices.Contains(r.f.enabled(), o.Provider) }) {
		r.fail(v.path.key("offers"), "no offer is of an enabled provider; expected %s", r.choices())
	}
	r.fallback(v)
}

func (r *review) fallback(v view) {
	spot, onDemand := markets(v.launchable(r.f))
	p, never := v.path.key("on_demand_fallback_seconds"), v.OnDemandFallbackSeconds == nil
	switch {
	case never && spot == 0 && onDemand > 0 && (len(v.Offers) > 0 || v.spotPreferred(r.f)):
		r.fail(p, "found null, which never allows on-demand, but nothing else is offered; expected a number of seconds, or spot machines")
	case len(v.Offers) > 0 && onDemand == 0 && !never && *v.OnDemandFallbackSeconds > 0:
		r.warn(p, "not used, because no on_demand offer is listed")
	}
}

func (r *review) offer(p path, o Offer, v view) {
	c, ok := r.f.cloud(o.Provider)
	if !ok {
		r.fail(p.key("provider"), "found %s, but cloud_providers has no %s; expected %s", quote(o.Provider), o.Provider, r.choices())
		return
	}
	if !c.enabled {
		r.warn(p, "skipped, because %s is not enabled", o.Provider)
		return
	}
	if o.Market == fleet.Spot && !c.spot {
		r.fail(p.key("market"), "found \"spot\", but %s; expected on_demand", c.noSpot())
	}
	for i, t := range o.InstanceTypes {
		if c.name == "ionos" && c.block.(*IONOS).ServerTypes[t].Cores == 0 && r.sound(path{"cloud_providers", "ionos", "server_types", t}) {
			r.unknown(p.key("instance_types").index(i), "entry of cloud_providers.ionos.server_types", t, sortedKeys(c.block.(*IONOS).ServerTypes))
		}
		if c.name == "local" && t != localType {
			r.unknown(p.key("instance_types").index(i), "type of machine here", t, []string{localType})
		}
	}
	r.placeholders(r.root.find(p), p, c.name)
	for _, name := range v.Queues {
		if q := r.f.Queues[name]; q.CloudProvider != nil && *q.CloudProvider != o.Provider {
			r.fail(p.key("provider"), "found %s, but queue %s says cloud_provider %s; expected the same", quote(o.Provider), quote(name), *q.CloudProvider)
		}
	}
}

func (c cloud) noSpot() string {
	if c.spotKey == "enabled" {
		return c.name + " sells no spot machines"
	}
	return fmt.Sprintf("cloud_providers.%s.%s is false", c.name, c.spotKey)
}
