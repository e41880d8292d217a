package config

import (
	"maps"
	"slices"
	"strings"

	"sluice/core/fleet"
)

// launchable is what a pool may launch, in order of preference.
func (v view) launchable(f File) []fleet.Offer {
	if len(v.Offers) > 0 {
		return v.listed(f)
	}
	var out []fleet.Offer
	for _, c := range f.clouds() {
		if only := v.provider(f); c.enabled && (only == "" || only == c.name) {
			out = append(out, c.offers(v.spotPreferred(f), f)...)
		}
	}
	return out
}

// listed are the pool's own offers of enabled providers.
func (v view) listed(f File) []fleet.Offer {
	var out []fleet.Offer
	for _, o := range v.Offers {
		c, ok := f.cloud(o.Provider)
		if !ok || !c.enabled {
			continue
		}
		zones, image := c.zones, c.image
		if len(o.Zones) > 0 {
			zones = o.Zones
		}
		if o.Image != "" {
			image = o.Image
		}
		out = append(out, c.listed(o.Market, o.InstanceTypes, zones, image, f)...)
	}
	return out
}

// provider is the one provider that the pool's queues ask for; review has seen that they agree.
func (v view) provider(f File) string {
	for _, q := range v.queues(f) {
		if q.CloudProvider != nil {
			return *q.CloudProvider
		}
	}
	return ""
}

func (v view) spotPreferred(f File) bool {
	return slices.ContainsFunc(v.queues(f), func(q Queue) bool { return q.SpotPreferred })
}

// cheapest says that price decides, not the order of the file.
func (v view) cheapest(f File) bool {
	return v.ProviderChoice == "cheapest" || len(v.Offers) == 0 && v.provider(f) == ""
}

func markets(offers []fleet.Offer) (spot, onDemand int) {
	for _, o := range offers {
		if o.Market == fleet.Spot {
			spot++
		} else {
			onDemand++
		}
	}
	return spot, onDemand
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func join(words []string) string { return strings.Join(words, ", ") }
