package decide

import (
	"encoding/json"
	"strconv"

	"sluice/core/fleet"
)

// Spec is the hash of what a machine is launched from: its type, its image and the provider's
// settings, without those that only say how many or at what price.
func Spec(o fleet.Offer, settings json.RawMessage) string {
	var m map[string]any
	if json.Unmarshal(settings, &m) == nil {
		forget(m)
	}
	canonical, _ := json.Marshal(m) // keys of a map are sorted
	return fleet.ID(o.Provider, o.Scope, o.Type, o.Image, string(canonical))[:13]
}

// forget drops what says how many or at what price, also of the types that the settings describe.
func forget(m map[string]any) {
	for _, k := range []string{
		"enabled", "max_instances", "prices", "price_per_hour", "suspended_price_per_hour", "currency", "spot_max_price", "spot_enabled", "preemptible",
	} {
		delete(m, k)
	}
	for _, v := range m {
		if sub, ok := v.(map[string]any); ok {
			forget(sub)
		}
	}
}

// specs are the hashes that a pool's machines may have.
func specs(c fleet.Config, p fleet.Pool) map[string]bool {
	out := map[string]bool{}
	for _, o := range p.Offers {
		prov, _ := c.Provider(o.Provider)
		out[Spec(o, prov.Settings)] = true
	}
	return out
}

// Stale says that a worker was launched from another spec than any offer of its pool has now. A pool or a
// spec that is not known is no reason to replace anything.
func Stale(c fleet.Config, w fleet.Worker) bool {
	p, ok := c.Pool(w.Pool)
	now := specs(c, p)
	return ok && w.Cloud() && w.Spec != "" && len(now) > 0 && !now[w.Spec]
}

// Attempt is the nth try of a launch intent (from 1): its request, under a token of its own.
func Attempt(c fleet.Config, deployment string, in fleet.Intent, n int) fleet.Attempt {
	o := in.Offers[n-1]
	prov, _ := c.Provider(o.Provider)
	return fleet.Attempt{
		Ordinal: n, First: in.Created, Calls: 1, Outcome: fleet.OutcomePending,
		Launch: &fleet.Launch{
			Token: fleet.ID(in.ID, "attempt", strconv.Itoa(n)), Count: in.Count, Offer: o,
			Lifetime: c.Workers.MaxLifetime, Settings: prov.Settings,
			Tags: fleet.Tags{
				Name: c.Name, Deployment: deployment, Pool: in.Pool, Intent: in.ID,
				Spec: Spec(o, prov.Settings), Expires: in.Created.Add(c.Workers.MaxLifetime.Duration()),
			},
		},
	}
}
