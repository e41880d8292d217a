package config

import (
	"slices"

	"sluice/core/fleet"
)

func (r *review) queue(name string, q Queue) {
	p := path{"queues", name}
	r.named(p, "queue", name)
	if q.BaselineWorkers > q.MaxWorkers {
		r.fail(p.key("baseline_workers"), "%d is above max_workers %d; expected at most %d", q.BaselineWorkers, q.MaxWorkers, q.MaxWorkers)
	}
	if q.CloudEnabled {
		r.allowed(p, q)
	}
	r.source(p, q.Source)
	if r.f.served(name) <= 1 {
		r.rules(p.key("scaling_rules"), q.ScalingRules)
		r.unreachable(p.key("scaling_rules"), q)
	}
	if q.Run.TimeoutSeconds >= r.f.Workers.MaxLifetimeHours*3600 && q.CloudEnabled {
		r.warn(p.key("run").key("timeout_seconds"), "a job may run for %d s, but no machine lives longer than max_lifetime_hours %d: such a job cannot finish in the cloud",
			q.Run.TimeoutSeconds, r.f.Workers.MaxLifetimeHours)
	}
}

// allowed checks that a queue that may use the cloud has one.
func (r *review) allowed(p path, q Queue) {
	if q.MaxWorkers == 0 {
		r.fail(p.key("max_workers"), "found 0 while cloud_enabled is true, so nothing could ever be started; expected at least 1, or cloud_enabled false")
	}
	if q.CloudProvider == nil {
		if len(r.f.enabled()) == 0 && r.switches() {
			r.fail(p.key("cloud_enabled"), "found true, but no provider is enabled; expected one with enabled true in cloud_providers, or cloud_enabled false")
		}
		return
	}
	r.usable(p.key("cloud_provider"), *q.CloudProvider)
}

// switches says that every provider's switch could be read.
func (r *review) switches() bool {
	return !slices.ContainsFunc([]string{"aws", "google", "ionos", "local"}, func(name string) bool { return !r.sound(path{"cloud_providers", name, "enabled"}) })
}

// usable checks that a provider that is named can be used.
func (r *review) usable(p path, name string) {
	c, ok := r.f.cloud(name)
	switch {
	case !r.sound(path{"cloud_providers", name, "enabled"}):
	case !ok:
		r.fail(p, "found %s, but cloud_providers has no %s; expected %s", quote(name), name, r.choices())
	case !c.enabled:
		r.fail(p, "found %s, but cloud_providers.%s.enabled is false; expected %s", quote(name), name, r.choices())
	}
}

func (r *review) choices() string {
	if names := r.f.enabled(); len(names) > 0 {
		return "an enabled provider: " + oneOf(names)
	}
	return "an enabled provider, and none is enabled"
}

// enabled are the names of enabled providers.
func (f File) enabled() []string {
	var out []string
	for _, c := range f.clouds() {
		if c.enabled {
			out = append(out, c.name)
		}
	}
	return out
}

func (r *review) source(p path, s Source) {
	p = p.key("source")
	if s.Kind != fleet.SourceRedis && s.Key != "" {
		r.fail(p.key("key"), "a key is of a Redis list, but the kind is %s; expected kind redis, or no key", s.Kind)
	}
	if s.Kind != fleet.SourceRabbitMQ && s.Queue != "" {
		r.fail(p.key("queue"), "a queue is of RabbitMQ, but the kind is %s; expected kind rabbitmq, or no queue", s.Kind)
	}
	if s.Kind == fleet.SourcePostgres && !s.JobRows {
		r.fail(p.key("job_rows"), "found false, but the jobs of kind postgres are rows of the job table; expected true")
	}
}

// rules checks one set of scaling rules.
func (r *review) rules(p path, s ScalingRules) {
	up, down := s.ScaleUp, s.ScaleDown
	if len(up.Steps) == 0 && down.QueueDepthBelow > up.QueueDepthThreshold {
		r.warn(p.key("scale_down").key("queue_depth_below"), "%d is above scale_up.queue_depth_threshold %d: the same depth may both add and remove a machine",
			down.QueueDepthBelow, up.QueueDepthThreshold)
	}
	if up.OldestJobAgeSeconds == nil && up.QueueDepthThreshold > 1 && len(up.Steps) == 0 && r.f.Mode != "cloud_first" {
		r.warn(p.key("scale_up").key("oldest_job_age_seconds"), "null: fewer than %d jobs may wait for ever", up.QueueDepthThreshold)
	}
	steps := p.key("scale_up").key("steps")
	for i, s := range up.Steps {
		r.step(steps.index(i), s)
		if i > 0 {
			r.ascending(steps.index(i), up.Steps[i-1], s)
		}
	}
}

func (r *review) step(p path, s Step) {
	if s.QueueDepthThreshold == 0 && s.OldestJobAgeSeconds == 0 {
		r.fail(p, "a step needs queue_depth_threshold or oldest_job_age_seconds, or it is never reached")
	}
}

// unreachable warns of steps that ask for more than there may be.
func (r *review) unreachable(p path, q Queue) {
	for i, s := range q.ScalingRules.ScaleUp.Steps {
		if q.CloudEnabled && s.Workers.Count > q.MaxWorkers {
			r.warn(p.key("scale_up").key("steps").index(i).key("workers"), "%d workers are asked for, but at most %d are allowed", s.Workers.Count, q.MaxWorkers)
		}
	}
}

func (r *review) ascending(p path, last, s Step) {
	r.above(p.key("queue_depth_threshold"), last.QueueDepthThreshold, s.QueueDepthThreshold)
	r.above(p.key("oldest_job_age_seconds"), last.OldestJobAgeSeconds, s.OldestJobAgeSeconds)
	if last.Workers.Max || !s.Workers.Max && s.Workers.Count <= last.Workers.Count {
		r.fail(p.key("workers"), "found %s after a step with %s; expected steps that ask for more and more", s.Workers, last.Workers)
	}
}

func (r *review) above(p path, last, next int) {
	if last > 0 && next > 0 && next <= last {
		r.fail(p, "%d is not above the %d of the step before; expected ascending steps", next, last)
	}
}

// sharing checks queues that several pools serve.
func (r *review) sharing() {
	for _, name := range sortedKeys(r.f.Queues) {
		if r.f.served(name) < 2 {
			continue
		}
		var pools []string
		for pool, p := range r.f.Pools {
			if slices.Contains(p.Queues, name) {
				pools = append(pools, pool)
			}
		}
		slices.Sort(pools)
		if len(r.f.Routing) == 0 && r.sound(path{"routing"}) {
			r.fail(path{"queues", name}, "the pools %s all serve this queue; expected one pool, or rules in routing that say which job goes where", join(pools))
		}
		if r.f.Queues[name].Source.Kind != fleet.SourcePostgres {
			r.fail(path{"queues", name, "source", "kind"}, "found %s, but the jobs of this queue go to several pools; expected postgres", quote(string(r.f.Queues[name].Source.Kind)))
		}
	}
}

func (r *review) routing() {
	pools := sortedKeys(r.f.Pools)
	for i, rule := range r.f.Routing {
		p := path{"routing"}.index(i)
		r.rule(p, rule, pools)
		if last := i == len(r.f.Routing)-1; rule.When.everything() != last {
			if last {
				r.fail(p.key("when"), "the last rule must match everything; expected {}")
			} else {
				r.fail(p.key("when"), "this rule matches everything, so the rules after it are never reached; expected it last")
			}
		}
	}
}

func (w When) everything() bool { return w == When{} }

func (r *review) rule(p path, rule Rule, pools []string) {
	w := rule.When
	q, known := r.f.Queues[w.Queue]
	if w.Queue != "" && !known && r.sound(path{"queues", w.Queue}) {
		r.unknown(p.key("when").key("queue"), "queue", w.Queue, sortedKeys(r.f.Queues))
	}
	for i, name := range rule.To {
		pool, ok := r.f.Pools[name]
		if !ok && r.sound(path{"pools", name}) && !r.implicit(name) {
			r.unknown(p.key("to").index(i), "pool", name, pools)
		}
		if ok && known && !slices.Contains(pool.Queues, w.Queue) {
			r.fail(p.key("to").index(i), "pool %s does not serve queue %s; expected a pool that does", quote(name), quote(w.Queue))
		}
	}
	if known && q.Source.Kind != fleet.SourcePostgres && len(rule.To) > 1 {
		r.fail(path{"queues", w.Queue, "source", "kind"}, "found %s, but rule %s sends its jobs to several pools; expected postgres", quote(string(q.Source.Kind)), quote(rule.Name))
	}
	r.ordered(p.key("when").key("priority_min"), w.PriorityMin, w.PriorityMax)
	r.ordered(p.key("when").key("expected_minutes_min"), w.ExpectedMinutesMin, w.ExpectedMinutesMax)
}

// implicit says that a queue is a pool of its own.
func (r *review) implicit(name string) bool {
	_, ok := r.f.Queues[name]
	return ok && r.f.served(name) == 0
}

func (r *review) ordered(p path, least, most *int) {
	if least != nil && most != nil && *least > *most {
		r.fail(p, "%d is above its maximum %d, so nothing matches", *least, *most)
	}
}
