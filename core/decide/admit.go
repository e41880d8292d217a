package decide

import (
	"time"

	"sluice/core/fleet"
)

// jitter is by how much a schedule may fire early.
const jitter = 30 * time.Second

// admit says why this tick must do nothing; nil lets it go on.
func (d *decision) admit() fleet.Reason {
	last, due := d.s.Memory.LastDue[d.s.Function], d.plan.Due
	if !last.IsZero() && !due.After(last) {
		return fleet.SkipRepeated{Due: due, Last: last}
	}
	every := d.s.Config.Interval
	if d.s.Function == fleet.Evaluate && every > 60 && due.Sub(last) < every.Duration()-jitter {
		return fleet.SkipNotDue{Last: last, Interval: every}
	}
	return nil
}

// frozen says why nothing may grow or be asked for again: the config is broken, or older than one already seen.
func (d *decision) frozen() string {
	switch {
	case d.s.ConfigBroken != "":
		return d.s.ConfigBroken
	case d.s.ConfigAt.Before(d.s.Memory.ConfigAt):
		return "the config read is older than one already seen"
	}
	return ""
}
