package decide

import (
	"cmp"
	"maps"
	"slices"

	"sluice/core/fleet"
	"sluice/core/spend"
)

// named is how many pools a refusal names.
const named = 5

// heldBy adds to a limit of money the pools that hold it.
func (d *decision) heldBy(why fleet.Reason) fleet.Reason {
	switch r := why.(type) {
	case fleet.LimitHourly:
		r.HeldBy = dearest(d.running())
		return r
	case fleet.LimitDaily:
		r.HeldBy = dearest(d.spentToday())
		return r
	}
	return why
}

// running is what each pool costs an hour, with what this decision has just reserved for it.
func (d *decision) running() map[string]fleet.Money {
	if d.rates == nil {
		d.rates = map[string]fleet.Money{}
		for _, w := range d.workers {
			if !w.ended {
				d.rates[w.Pool] += spend.Rate(w.Worker)
			}
		}
		for _, in := range d.intents {
			if !in.fresh {
				d.rates[in.Pool] += in.Reserve * fleet.Money(in.Unbound())
			}
		}
	}
	out := maps.Clone(d.rates)
	for _, in := range d.intents {
		if in.fresh {
			out[in.Pool] += in.Reserve * fleet.Money(in.Unbound())
		}
	}
	return out
}

// spentToday is what each pool has cost since midnight.
func (d *decision) spentToday() map[string]fleet.Money {
	if d.spent == nil {
		d.spent = map[string]fleet.Money{}
		_, from, to, _ := spend.Day(d.now, d.s.Config.Timezone) // the zone was checked when the config was parsed
		for _, l := range spend.Lines(d.remembered().Memory, d.now) {
			d.spent[l.Pool] += l.Between(from, to)
		}
	}
	return d.spent
}

// dearest are the pools with the largest sums.
func dearest(sums map[string]fleet.Money) []string {
	pools := slices.DeleteFunc(slices.Sorted(maps.Keys(sums)), func(p string) bool { return p == "" || sums[p] <= 0 })
	slices.SortStableFunc(pools, func(a, b string) int { return cmp.Compare(sums[b], sums[a]) })
	return first(pools, named)
}
