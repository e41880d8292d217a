package config

import (
	"slices"
	"strconv"
	"strings"

	"sluice/core/fleet"
)

// notHonoured lists what is set and would matter, but is not acted on by this version. A default does not count, nor what stands in a disabled block.
func notHonoured(root *node, s *shape, f File) []string {
	h := honour{f: f}
	h.walk(root, s, nil)
	for _, name := range sortedKeys(f.Queues) {
		if f.Queues[name].Source.Kind == fleet.SourceRabbitMQ {
			h.paths = append(h.paths, path{"queues", name, "source", "kind"}.String())
		}
	}
	for _, name := range sortedKeys(f.Alerts.Channels) {
		if f.Alerts.Channels[name].Kind == string(fleet.ChannelSNS) {
			h.paths = append(h.paths, path{"alerts", "channels", name, "kind"}.String())
		}
	}
	slices.Sort(h.paths)
	return slices.Compact(h.paths)
}

type honour struct {
	f     File
	paths []string
}

func (h *honour) walk(n *node, s *shape, p path) {
	if s.NotHonoured {
		if !n.inheritedFrom() && h.differs(n, s) && h.matters(p) {
			h.paths = append(h.paths, p.String())
		}
		return
	}
	if h.disabled(p) {
		return
	}
	for _, m := range n.members {
		h.walk(m.value, s.at(m.name), p.key(m.name))
	}
	for i, v := range n.items {
		h.walk(v, s.Items, p.index(i))
	}
}

// inheritedFrom says that the value is set elsewhere in the file, and is listed there.
func (n *node) inheritedFrom() bool { return n.from != "" && n.from != "default" }

// differs says that the value is not what would hold without it.
func (h *honour) differs(n *node, s *shape) bool {
	if s.Default != nil {
		return !n.equal(made(s.Default, ""))
	}
	switch n.kind {
	case null:
		return false
	case object, list:
		empty := &node{kind: n.kind}
		if n.kind == object {
			fill(empty, s)
		}
		return !n.bare().equal(empty.bare())
	case text:
		return n.text != ""
	case boolean, number:
	}
	return true
}

// bare is the value with sorted keys and without empty lists and objects, so that spelling out nothing says nothing.
func (n *node) bare() *node {
	out := &node{kind: n.kind, text: n.text}
	for _, v := range n.items {
		out.items = append(out.items, v.bare())
	}
	for _, m := range n.members {
		v := m.value.bare()
		if v.kind == list && len(v.items) == 0 || v.kind == object && len(v.members) == 0 || v.kind == null {
			continue
		}
		out.members = append(out.members, member{name: m.name, value: v})
	}
	slices.SortFunc(out.members, func(a, b member) int { return strings.Compare(a.name, b.name) })
	return out
}

// disabled says that nothing below a path has an effect.
func (h *honour) disabled(p path) bool {
	if len(p) == 2 && p[0] == "cloud_providers" {
		return !slices.Contains(h.f.enabled(), p[1])
	}
	if len(p) == 4 && p[0] == "pools" && p[2] == "offers" {
		i, err := strconv.Atoi(strings.Trim(p[3], "[]"))
		return err == nil && !slices.Contains(h.f.enabled(), h.f.Pools[p[1]].Offers[i].Provider)
	}
	return false
}

// matters says that a key could have an effect.
func (h *honour) matters(p path) bool {
	enabled := h.f.enabled()
	switch p.String() {
	case "connections.rabbitmq.management_url", "connections.rabbitmq.worker_url", "connections.rabbitmq.vhost", "connections.rabbitmq.ca":
		return slices.ContainsFunc(sortedKeys(h.f.Queues), func(q string) bool { return h.f.Queues[q].Source.Kind == fleet.SourceRabbitMQ })
	case "connections.redis.ca":
		return slices.ContainsFunc(sortedKeys(h.f.Queues), func(q string) bool { return h.f.Queues[q].Source.Kind == fleet.SourceRedis })
	case "billing.aws_cost_explorer_hours":
		return slices.Contains(enabled, "aws")
	case "billing.google_billing_export":
		return slices.Contains(enabled, "google")
	case "billing.ionos_billing_hours":
		return slices.Contains(enabled, "ionos")
	case "alerts.repeat_minutes":
		return len(h.f.Alerts.Channels) > 0
	}
	return true
}
