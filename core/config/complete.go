package config

import (
	"encoding/json"
	"slices"
	"strconv"
)

// Env is what the settings depend on outside the file.
type Env struct {
	// RedisURLSet says that REDIS_URL is set: then queues without a source are Redis lists.
	RedisURLSet bool
}

// complete fills in everything that the file leaves out, so that the tree says all that holds.
func complete(root *node, s *shape, env Env) {
	hasRedis := env.RedisURLSet || root.find(path{"connections", "redis", "url"}).given()
	fill(root, s)
	for _, m := range root.get("queues").entries() {
		completeSource(m.name, m.value.get("source"), hasRedis)
	}
	completePools(root)
}

// given says that the value is there and not null.
func (n *node) given() bool { return n != nil && n.kind != null }

// entries are the members of an object that may be missing.
func (n *node) entries() []member {
	if n == nil {
		return nil
	}
	return n.members
}

// fill adds defaults, and objects that only hold defaults.
func fill(n *node, s *shape) {
	for _, v := range n.items {
		fill(v, s.Items)
	}
	if n.kind != object {
		return
	}
	for _, m := range n.members {
		if sub := s.at(m.name); !sub.Inherited {
			fill(m.value, sub)
		}
	}
	for _, key := range s.keys() {
		if n.get(key) != nil {
			continue
		}
		switch sub := s.Properties[key]; {
		case sub.Default != nil:
			n.set(key, made(sub.Default, "default"))
		case sub.made():
			v := &node{kind: object, at: -1, from: "default"}
			fill(v, sub)
			n.set(key, v)
		}
	}
}

func completeSource(name string, source *node, hasRedis bool) {
	if source.get("kind") == nil {
		if hasRedis {
			source.set("kind", word("redis", "a Redis URL is set"))
		} else {
			source.set("kind", word("postgres", "no Redis URL is set"))
		}
	}
	switch source.get("kind").text {
	case "redis":
		source.orElse("key", word("queue:"+name, "default"))
	case "rabbitmq":
		source.orElse("queue", word(name, "default"))
	}
}

func word(s, from string) *node { return &node{kind: text, text: s, at: -1, from: from} }

func (n *node) orElse(key string, v *node) {
	if n.get(key) == nil {
		n.set(key, v)
	}
}

// completePools merges rules from the top down and gives pools what they have from their queues.
func completePools(root *node) {
	top, queues := root.get("scaling_rules"), root.get("queues")
	for _, m := range queues.entries() {
		completeCeiling(m, poolsOf(root, m.name))
	}
	for _, m := range root.get("pools").entries() {
		completePool(m, top, queues)
	}
	for _, m := range queues.entries() {
		own, pools := m.value.get("scaling_rules"), poolsOf(root, m.name)
		switch len(pools) {
		case 0:
			m.value.set("scaling_rules", overlaid(top, own, path{"scaling_rules"}))
		case 1:
			m.value.set("scaling_rules", overlaid(pools[0].value.get("scaling_rules"), own, path{"pools", pools[0].name, "scaling_rules"}))
		default: // the rules of several pools cannot be written into one queue
			m.value.orElse("scaling_rules", &node{kind: object, at: -1})
		}
	}
}

// completeCeiling gives a queue that sets none the ceilings of its pools together.
func completeCeiling(queue member, pools []member) {
	if len(pools) == 0 || queue.value.get("max_workers").from != "default" {
		return
	}
	sum := 0
	for _, p := range pools {
		v := p.value.get("max_workers")
		if v == nil {
			return
		}
		sum += v.integer()
	}
	from := path{"pools", pools[0].name, "max_workers"}.String()
	if len(pools) > 1 {
		from = "the max_workers of its pools together"
	}
	queue.value.set("max_workers", made([]byte(strconv.Itoa(sum)), from))
}

func completePool(m member, top, queues *node) {
	pool := m.value
	own := pool.get("scaling_rules")
	if short := pool.get("idle_minutes"); short != nil && own.find(path{"scale_down", "idle_minutes"}) == nil {
		if own == nil {
			own = &node{kind: object, at: short.at}
		}
		v := *short
		v.from = path{"pools", m.name, "idle_minutes"}.String()
		own.object("scale_down").set("idle_minutes", &v)
	}
	pool.set("scaling_rules", overlaid(top, own, path{"scaling_rules"}))
	pool.orElse("max_workers", smallest(queues, pool.names("queues"), "max_workers"))
	pool.orElse("urgency", smallest(queues, pool.names("queues"), "urgency"))
	pool.orElse("on_demand_fallback_seconds", fallback(pool, queues))
}

// smallest is the least figure that queues have.
func smallest(queues *node, names []string, key string) *node {
	var best *node
	for _, q := range names {
		v := queues.find(path{q, key})
		if v != nil && (best == nil || v.integer() < best.integer()) {
			best = v.inherited(path{"queues", q, key})
		}
	}
	if best == nil { // its queues are unknown, which is told elsewhere
		return made([]byte("1"), "default")
	}
	if best.from == "default" {
		best.at = -1
	}
	return best
}

// fallback is that of the pool's queues where its offers are theirs as well.
func fallback(pool, queues *node) *node {
	if pool.get("offers") == nil {
		for _, q := range pool.names("queues") {
			if v := queues.find(path{q, "on_demand_fallback_seconds"}); v != nil {
				return v.inherited(path{"queues", q, "on_demand_fallback_seconds"})
			}
		}
	}
	return made([]byte("0"), "default")
}

func (n *node) integer() int {
	i, err := strconv.Atoi(n.text)
	if err != nil {
		return 0
	}
	return i
}

// names are the texts of a list.
func (n *node) names(key string) []string {
	v := n.get(key)
	if v == nil {
		return nil
	}
	out := make([]string, len(v.items))
	for i, item := range v.items {
		out[i] = item.text
	}
	return out
}

// poolsOf are the pools that name a queue.
func poolsOf(root *node, queue string) []member {
	var out []member
	for _, m := range root.get("pools").entries() {
		if slices.Contains(m.value.names("queues"), queue) {
			out = append(out, m)
		}
	}
	return out
}

// decode reads a complete tree into the types.
func decode(root *node) (File, error) {
	var f File
	b, err := json.Marshal(root)
	if err != nil {
		return f, err
	}
	return f, json.Unmarshal(b, &f)
}

// MarshalJSON implements json.Marshaler.
func (t TierWorkers) MarshalJSON() ([]byte, error) {
	if t.Max {
		return []byte(`"max"`), nil
	}
	return json.Marshal(t.Count)
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *TierWorkers) UnmarshalJSON(b []byte) error {
	if string(b) == `"max"` {
		*t = TierWorkers{Max: true}
		return nil
	}
	*t = TierWorkers{}
	return json.Unmarshal(b, &t.Count)
}

// String is as it is written.
func (t TierWorkers) String() string {
	if t.Max {
		return `"max"`
	}
	return strconv.Itoa(t.Count)
}
