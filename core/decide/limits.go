package decide

import (
	"time"

	"sluice/core/fleet"
)

// The breaker: after this many machines in a row that never registered, launches of a pool stop,
// with one probe per back-off.
const (
	breakerAfter = 3
	breakerFirst = 5 * time.Minute
	breakerMost  = time.Hour
)

// limit lowers want, in a fixed order; each limit that bites leaves a step. Money comes last, when
// machines are asked for (see grow).
func (d *decision) limit(f *fold) {
	d.limitMode(f)
	d.limitCeiling(f)
	d.limitCooldown(f)
	d.limitBreaker(f)
}

// limitMode allows no cloud worker at all, or no more than there are.
func (d *decision) limitMode(f *fold) {
	var why fleet.Reason
	switch o := d.override(); {
	case o != nil:
		why = fleet.LimitOverride{ID: o.ID, Since: o.At, Why: o.Why}
	case d.s.Config.Mode == fleet.VPSOnly:
		why = fleet.LimitMode{Mode: fleet.VPSOnly}
	case !f.known || !f.Enabled:
		why = fleet.LimitNotEnabled{Pool: f.Name}
	}
	if why != nil {
		if f.want > 0 || f.have() > 0 {
			f.step(0, why)
		}
		return
	}
	have := f.have()
	if cause := d.frozen(); cause != "" && f.want > have {
		f.step(have, fleet.LimitFrozen{Cause: cause})
	}
	if !f.Automatic && f.want > have {
		f.step(have, fleet.LimitManual{})
	}
}

// limitCeiling keeps to max_workers: over the VPS, and everything booting, claiming, draining,
// suspended, given up but possibly there.
func (d *decision) limitCeiling(f *fold) {
	have := f.have()
	room := max(0, f.MaxWorkers-f.total())
	most := max(0, min(f.MaxWorkers-f.vps, have+len(d.undrainable(f))+len(d.resumable(f))+room))
	if f.want > most {
		f.step(most, fleet.LimitCeiling{
			Max: f.MaxWorkers, VPS: f.vps, Active: have, Draining: len(f.draining), Suspended: len(f.suspended),
		})
	}
}

// limitCooldown lets one scale-up settle before the next. Replacing what was lost is no scale-up,
// and taking back a worker that drains costs nothing.
func (d *decision) limitCooldown(f *fold) {
	have := f.have()
	if f.want <= have || f.memory.LastUp.IsZero() {
		return
	}
	left := ceilSeconds(f.memory.LastUp.Add(f.UpCooldown.Duration()).Sub(d.now))
	most := have + max(f.memory.Lost, len(d.undrainable(f)))
	if left > 0 && f.want > most {
		f.step(most, fleet.LimitCooldown{Direction: "up", Last: f.memory.LastUp, LeftS: left})
	}
}

// limitBreaker stops launches of a pool whose machines keep failing to boot.
func (d *decision) limitBreaker(f *fold) {
	have := f.have()
	if f.want <= have || f.memory.BootFailures < breakerAfter {
		return
	}
	until := f.memory.LastFailure.Add(backoff(breakerFirst, breakerMost, f.memory.BootFailures-breakerAfter))
	probes := 0
	if !d.now.Before(until) && f.boots() == 0 {
		probes = 1
	}
	if most := have + probes + len(d.undrainable(f)); f.want > most {
		f.step(most, fleet.LimitBreaker{Failures: f.memory.BootFailures, Until: until})
	}
}

// backoff doubles from first, n times, up to most.
func backoff(first, most time.Duration, n int) time.Duration {
	for ; n > 0 && first < most; n-- {
		first *= 2
	}
	return min(first, most)
}
