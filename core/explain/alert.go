package explain

import "sluice/core/fleet"

// Alerts are a plan's alerts with their title and facts filled in.
func Alerts(p fleet.Plan, c fleet.Config) []fleet.Alert {
	w := words{currency: c.Currency}
	out := make([]fleet.Alert, len(p.Alerts))
	for i, a := range p.Alerts {
		if a.Why != nil {
			a.Title = capital(w.reason(a.Why))
			a.Facts = append(facts{{"install", c.Name}}, w.reasonFacts(a.Why)...).raw()
		}
		out[i] = a
	}
	return out
}
