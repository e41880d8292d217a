package decide

import (
	"time"

	"sluice/core/fleet"
)

// silence is how long a registered worker may be without a heartbeat before it is unhealthy.
const silence = 2 * time.Minute

// health drains what cannot be trusted to work: machines that do not boot, workers that fell silent,
// those near their expiry, and idle ones launched from another spec than the config's.
func (d *decision) health() {
	shielded := d.shielded()
	for _, w := range d.workers {
		if !w.Cloud() || w.ended || w.ending != nil || w.Status == fleet.Suspended {
			continue
		}
		if w.Status == fleet.Draining {
			d.recovered(w)
			continue
		}
		if why := d.unfit(w, shielded); why != nil {
			d.drain(w, why)
		}
	}
}

func (d *decision) unfit(w *worker, shielded bool) fleet.Reason {
	p := d.poolBy[w.Pool]
	if d.expiresWithin(w, p.DrainTimeout.Duration()) {
		return fleet.DrainExpiry{Expires: w.Expires}
	}
	if in := d.launches[w.Intent]; in != nil && in.was == fleet.IntentAbandoned {
		return fleet.DrainAbandoned{Intent: in.ID}
	}
	if w.Status == fleet.Provisioning {
		if limit, age := bootLimit(d.s.Config, p.memory), d.now.Sub(w.BootAt); age >= limit {
			d.bootFailed(p)
			return fleet.DrainBoot{AfterS: seconds(age), Limit: seconds(limit)}
		}
		return nil
	}
	if quiet := d.quietFor(w); quiet >= d.silence() {
		w.silent = true
		if !shielded || quiet >= d.s.Config.Workers.LostDatabase.Duration()+d.silence() {
			return fleet.DrainUnhealthy{SilentS: seconds(quiet)}
		}
	}
	if d.stale(w, p) && !w.Busy() {
		return fleet.DrainStale{Spec: w.Spec, Want: firstSpec(p)}
	}
	return nil
}

// bootFailed opens the breaker, in words, when this failure is the one that does.
func (d *decision) bootFailed(p *pool) {
	p.memory.BootFailures++
	p.memory.LastFailure = d.now
	if p.memory.BootFailures == breakerAfter {
		d.alert(fleet.Warning, p.Name+"/"+d.hour(), fleet.BootFailing{Failures: p.memory.BootFailures})
	}
}

// recovered lets a worker claim again when what made it drain has passed: it registered late, or is heard of again.
func (d *decision) recovered(w *worker) {
	late := w.DrainWhy == fleet.DrainBoot{}.Code() || w.DrainWhy == fleet.DrainUnhealthy{}.Code()
	if late && d.heard(w) && !d.expiresWithin(w, d.poolBy[w.Pool].DrainTimeout.Duration()) {
		d.undrain(w)
	}
}

// shielded says that so many workers are silent at once that the fault is likely to be elsewhere: a
// database that was away, a network. Then nobody is drained for silence.
func (d *decision) shielded() bool {
	silent, of := 0, 0
	for _, w := range d.workers {
		if !w.Cloud() || w.ended || w.Status != fleet.Ready {
			continue
		}
		of++
		if d.quietFor(w) >= d.silence() {
			silent++
		}
	}
	if silent < 2 || silent*5 <= of {
		return false
	}
	why := fleet.AllUnhealthy{Silent: silent, Of: of}
	d.shield = why
	d.note(fleet.Critical, "", "", why)
	d.alert(fleet.Critical, d.hour(), why)
	return true
}

// quietFor is how long a worker was not heard of; registering is being heard.
func (d *decision) quietFor(w *worker) time.Duration {
	if w.Registered.After(w.Heartbeat) {
		return d.now.Sub(w.Registered)
	}
	return d.now.Sub(w.Heartbeat)
}

// heard says that a worker has registered and is heard of.
func (d *decision) heard(w *worker) bool {
	return !w.Registered.IsZero() && d.quietFor(w) < d.silence()
}

// expiresWithin says that at most this much is left of a worker's life.
func (d *decision) expiresWithin(w *worker, left time.Duration) bool {
	return !w.Expires.IsZero() && !d.now.Add(left).Before(w.Expires)
}

func (d *decision) silence() time.Duration {
	return max(silence, 4*d.s.Config.Workers.Heartbeat.Duration())
}

func (d *decision) stale(w *worker, p *pool) bool {
	return p.known && d.frozen() == "" && len(p.specs) > 0 && w.Spec != "" && !p.specs[w.Spec]
}

func firstSpec(p *pool) string {
	out := ""
	for s := range p.specs {
		if out == "" || s < out {
			out = s
		}
	}
	return out
}

// bootLimit follows observed boots: half as long again as the slowest of the last ten, never below the config's.
func bootLimit(c fleet.Config, m fleet.PoolMemory) time.Duration {
	return max(c.Workers.BootTimeout.Duration(), m.SlowestBoot.Duration()*3/2)
}

func seconds(d time.Duration) fleet.Seconds { return fleet.Seconds(d / time.Second) }

func ceilSeconds(t time.Duration) fleet.Seconds {
	return fleet.Seconds(max(0, (t+time.Second-1)/time.Second))
}
