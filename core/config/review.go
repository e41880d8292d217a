package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// review looks at what the shape cannot say: combinations.
type review struct {
	f        File
	root     *node // complete
	bad      []path
	problems []Problem
	warnings []string
}

// fail tells of a problem at a path, unless the value there is known to be bad already.
func (r *review) fail(p path, format string, args ...any) {
	r.add(p, Problem{Message: fmt.Sprintf(format, args...)})
}

// unknown tells of a name that nothing has.
func (r *review) unknown(p path, what, name string, known []string) {
	pr := Problem{Message: fmt.Sprintf("no %s is named %s", what, quote(name)), Found: quote(name)}
	if len(known) > 0 {
		pr.Expected = oneOf(known)
	}
	pr = pr.meant(name, known)
	if pr.Nearest == "" && pr.Expected != "" && len(known) <= 20 {
		pr.Message += "; expected " + pr.Expected
	}
	r.add(p, pr)
}

func (r *review) add(p path, pr Problem) {
	if !r.sound(p) {
		return
	}
	pr.Path, pr.at = r.origin(p), r.position(p)
	r.problems = append(r.problems, pr)
}

func (r *review) warn(p path, format string, args ...any) {
	w := r.origin(p) + ": " + fmt.Sprintf(format, args...)
	if r.sound(p) && !slices.Contains(r.warnings, w) {
		r.warnings = append(r.warnings, w)
	}
}

// origin is where an inherited value stands, so that what is wrong there is told once.
func (r *review) origin(p path) string {
	if n := r.root.find(p); n != nil && n.at >= 0 && n.from != "" {
		return n.from
	}
	return p.String()
}

// sound says that nothing at, above or below a path was taken out.
func (r *review) sound(p path) bool {
	return !slices.ContainsFunc(r.bad, func(b path) bool { return b.begins(p) || p.begins(b) })
}

// position is where the value stands, or else the nearest object around it.
func (r *review) position(p path) int {
	for i := len(p); i > 0; i-- {
		if n := r.root.find(p[:i]); n != nil && n.at >= 0 {
			return n.at
		}
	}
	return r.root.at
}

// set says that the file has the key, or inherits it from another place of the file.
func (r *review) set(p path) bool {
	n := r.root.find(p)
	return n != nil && n.from != "default"
}

func (r *review) all() {
	r.general()
	r.limits()
	r.workers()
	for _, c := range r.f.clouds() {
		r.cloud(c)
	}
	for _, name := range slices.Sorted(maps.Keys(r.f.Queues)) {
		r.queue(name, r.f.Queues[name])
	}
	for _, v := range r.f.views() {
		r.pool(v)
	}
	r.sharing()
	r.routing()
	r.alerts()
}

// view is a pool as configured, or a queue that is a pool of its own.
type view struct {
	Pool
	name     string
	path     path
	implicit bool
}

// views are all pools by name.
func (f File) views() []view {
	var out []view
	pooled := map[string]bool{}
	for name, p := range f.Pools {
		out = append(out, view{Pool: p, name: name, path: path{"pools", name}})
		for _, q := range p.Queues {
			pooled[q] = true
		}
	}
	for name, q := range f.Queues {
		if !pooled[name] {
			out = append(out, view{Pool: q.pool(name), name: name, path: path{"queues", name}, implicit: true})
		}
	}
	slices.SortFunc(out, func(a, b view) int { return strings.Compare(a.name, b.name) })
	return out
}

// pool is a queue as a pool of its own.
func (q Queue) pool(name string) Pool {
	return Pool{Kind: "burst", Queues: []string{name}, MaxWorkers: &q.MaxWorkers, Urgency: &q.Urgency, ScalingRules: q.ScalingRules,
		OnIdle: "terminate", MaxSuspendedHours: 168, OnDemandFallbackSeconds: q.OnDemandFallbackSeconds, ProviderChoice: "listed"}
}

// queues are the pool's queues that exist.
func (v view) queues(f File) []Queue {
	var out []Queue
	for _, name := range v.Queues {
		if q, ok := f.Queues[name]; ok {
			out = append(out, q)
		}
	}
	return out
}

// enabled says that some queue of the pool may use the cloud.
func (v view) enabled(f File) bool {
	return slices.ContainsFunc(v.queues(f), func(q Queue) bool { return q.CloudEnabled })
}

// served counts the pools that name a queue.
func (f File) served(queue string) int {
	n := 0
	for _, p := range f.Pools {
		if slices.Contains(p.Queues, queue) {
			n++
		}
	}
	return n
}

// ceiling is the most machines a pool may have: its own, or a queue's that is smaller.
func (v view) ceiling(f File) int {
	most := *v.MaxWorkers
	if v.Kind == "packed" { // a queue's figure counts instances there
		return most
	}
	for _, name := range v.Queues {
		if q, ok := f.Queues[name]; ok && f.served(name) <= 1 {
			most = min(most, q.MaxWorkers)
		}
	}
	return most
}
