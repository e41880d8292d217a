package config

import (
	"slices"
	"strings"
)

// cloud checks the block of an enabled provider; while it is disabled, anything of the right shape will do.
func (r *review) cloud(c cloud) {
	if !c.enabled {
		return
	}
	p := path{"cloud_providers", c.name}
	r.placeholders(r.root.find(p), p, c.name)
	switch c.name {
	case "aws":
		r.aws(p, r.f.CloudProviders.AWS)
	case "google":
		r.google(p, r.f.CloudProviders.Google)
	case "ionos":
		r.ionos(p, r.f.CloudProviders.IONOS)
	}
	if len(c.types) == 0 {
		r.needs(p, c.name, c.typesKey, "")
	}
	if c.most == 0 {
		r.fail(p.key("max_instances"), "found 0 while %s is enabled, so nothing could ever be started there; expected at least 1, or enabled false", c.name)
	}
	if _, ok := r.f.ExchangeRates[c.currency]; !ok && c.currency != r.f.Currency {
		r.fail(p.key("currency"), "%s bills in %s and the config counts in %s; expected what one %s is worth in exchange_rates.%s, or the same currency",
			c.name, c.currency, r.f.Currency, c.currency, c.currency)
	}
	r.prices(p, c)
	r.blanks(p, c)
}

func (r *review) needs(p path, cloud, key, value string) {
	if value == "" {
		r.fail(p.key(key), "missing; %s is enabled and needs it", cloud)
	}
}

func (r *review) aws(p path, a *AWS) {
	r.needs(p, "aws", "region", a.Region)
	r.needs(p, "aws", "ami_id", a.AMIID)
	if a.SpotMaxPrice != "" && zero(a.SpotMaxPrice) {
		r.fail(p.key("spot_max_price"), "found 0, at which no machine is sold; expected a price, or nothing for no cap")
	}
	if a.SpotMaxPrice != "" && !a.SpotEnabled {
		r.warn(p.key("spot_max_price"), "not used while spot_enabled is false")
	}
	r.eclipsed(p, "instance_type", a.InstanceType, "instance_types", a.InstanceTypes)
}

// eclipsed warns of a single value that its list does not have.
func (r *review) eclipsed(p path, key, one, listKey string, list []string) {
	if one != "" && len(list) > 0 && !slices.Contains(list, one) {
		r.warn(p.key(key), "not used, because %s does not contain it", listKey)
	}
}

func (r *review) google(p path, g *Google) {
	r.needs(p, "google", "image", g.Image)
	if len(several(g.Zones, g.Zone)) == 0 {
		r.needs(p, "google", "zone", "")
	}
	r.eclipsed(p, "zone", g.Zone, "zones", g.Zones)
	r.eclipsed(p, "machine_type", g.MachineType, "machine_types", g.MachineTypes)
}

func (r *review) ionos(p path, i *IONOS) {
	r.needs(p, "ionos", "datacenter_id", i.DatacenterID)
	r.needs(p, "ionos", "image", i.Image)
	if _, ok := i.ServerTypes[i.ServerType]; !ok && i.ServerType != "" && r.sound(p.key("server_types").key(i.ServerType)) {
		r.unknown(p.key("server_type"), "entry of server_types", i.ServerType, sortedKeys(i.ServerTypes))
	}
}

// prices checks the keys of a price list.
func (r *review) prices(p path, c cloud) {
	if c.name != "aws" && c.name != "google" {
		return
	}
	for _, key := range sortedKeys(c.prices) {
		t, market, has := strings.Cut(key, ":")
		if t == "" || has && market != "spot" && market != "suspended" {
			r.fail(p.key("prices").key(key), `found the key %s, expected TYPE for on-demand, TYPE:spot or TYPE:suspended`, quote(key))
		}
	}
}

// blanks finds empty names in lists, which no cloud knows.
func (r *review) blanks(p path, c cloud) {
	for i, t := range c.types {
		if t == "" {
			r.fail(p.key(c.typesKey+"s").index(i), "found an empty text, expected the name of a machine type")
		}
	}
}

// placeholders finds what the template left to be filled in.
func (r *review) placeholders(n *node, p path, cloud string) {
	switch {
	case n == nil:
	case n.kind == text && placeholder(n.text):
		r.fail(p, "still the placeholder %s; expected the real value, because %s is enabled", quote(n.text), cloud)
	case n.kind == list:
		for i, v := range n.items {
			r.placeholders(v, p.index(i), cloud)
		}
	case n.kind == object:
		for _, m := range n.members {
			r.placeholders(m.value, p.key(m.name), cloud)
		}
	}
}

func placeholder(s string) bool {
	return strings.Contains(s, "...") || strings.Contains(s, "…") || strings.HasPrefix(s, "<") || strings.EqualFold(s, "changeme") || strings.EqualFold(s, "todo")
}

func zero(p Price) bool { return strings.Trim(string(p), "0.") == "" }
