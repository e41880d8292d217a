package explain

import (
	"fmt"

	"sluice/core/fleet"
)

func (words) kept(r fleet.Reason) string {
	switch r := r.(type) {
	case fleet.KeptBusy:
		return "busy with " + jobs(r.Jobs)
	case fleet.KeptBooting:
		return fmt.Sprintf("booting for %s, given up in %s", span(r.ForS), span(r.LeftS))
	case fleet.KeptIdle:
		return fmt.Sprintf("idle for %d of %s", r.Minutes, count(r.Limit, "minute", "minutes"))
	case fleet.KeptDepth:
		return fmt.Sprintf("queue %s still has %s, not below %d", r.Queue, jobs(r.Depth), r.Below)
	case fleet.KeptUnknown:
		return tail("its queue "+r.Queue+" could not be read", ": ", r.Cause)
	case fleet.KeptCooldown:
		return fmt.Sprintf("the last removal is too recent, %s left", span(r.LeftS))
	case fleet.KeptWanted:
		return fmt.Sprintf("removed, it would be launched again at once: %s wanted", count(r.Want, "worker is", "workers are"))
	case fleet.KeptMinCharge:
		return fmt.Sprintf("its minimum charge is paid for another %s", span(r.LeftS))
	case fleet.KeptDraining:
		if r.Acked {
			return fmt.Sprintf("draining with %s in hand, forced in %s", jobs(r.Jobs), span(r.LeftS))
		}
		return fmt.Sprintf("draining with %s in hand, not acknowledged yet, forced in %s", jobs(r.Jobs), span(r.LeftS))
	case fleet.KeptSuspended:
		return fmt.Sprintf("suspended for %s, ready to be resumed", span(r.ForS))
	case fleet.KeptEnding:
		return tail("its end was asked for and is awaited", ", intent ", r.Intent)
	}
	return ""
}

func (words) drained(r fleet.Reason) string {
	switch r := r.(type) {
	case fleet.DrainIdle:
		return "idle for " + minutes(r.Minutes)
	case fleet.DrainDry:
		return fmt.Sprintf("its queues were empty and its whole pool idle for %s", minutes(r.Minutes))
	case fleet.DrainMode:
		return tail(fmt.Sprintf("mode %s allows no cloud worker", r.Mode), ", override ", r.Override)
	case fleet.DrainNotEnabled:
		return "its pool is gone from the config or no longer uses the cloud"
	case fleet.DrainSurplus:
		return fmt.Sprintf("more run than the %d that may", r.Max)
	case fleet.DrainExpiry:
		return "its maximum lifetime ends at " + moment(r.Expires)
	case fleet.DrainStale:
		return fmt.Sprintf("launched from spec %s, the config's is %s", r.Spec, r.Want)
	case fleet.DrainUnhealthy:
		return "no heartbeat for " + span(r.SilentS)
	case fleet.DrainBoot:
		return fmt.Sprintf("not registered after %s, the limit is %s", span(r.AfterS), span(r.Limit))
	case fleet.DrainRequested:
		return tail(fmt.Sprintf("asked for by %s", r.Who), ": ", r.Why)
	case fleet.DrainAbandoned:
		return fmt.Sprintf("it answers launch %s, which was given up", r.Intent)
	}
	return ""
}

func (words) ended(r fleet.Reason) string {
	switch r := r.(type) {
	case fleet.Undrained:
		return tail("wanted again", ", it was draining: ", drainWord(r.Was))
	case fleet.DrainDone:
		return tail(fmt.Sprintf("drained in %s with nothing in hand, its machine is ended", span(r.ForS)), "; it was drained: ", drainWord(r.Why))
	case fleet.DrainForced:
		return tail(fmt.Sprintf("the drain took %s, its machine is ended by force and %s back to the queue", span(r.ForS), goBack(r.Jobs)),
			"; it was drained: ", drainWord(r.Why))
	case fleet.SuspendedLong:
		if r.Stale {
			return fmt.Sprintf("suspended for %s and launched from an older spec: its machine is ended", span(r.ForS))
		}
		return fmt.Sprintf("suspended for its whole allowance, %s: its machine is ended", span(r.ForS))
	case fleet.Gone:
		return goneWords(r)
	case fleet.Back:
		return fmt.Sprintf("machine %s is listed although its row had ended: it is live again, and costs", r.Machine)
	case fleet.NotListed:
		return fmt.Sprintf("not listed since %s; one list is not believed yet", moment(r.Since))
	case fleet.AllUnhealthy:
		return fmt.Sprintf("%d of %d workers are silent at once: the fault is suspected elsewhere, none is removed", r.Silent, r.Of)
	}
	return ""
}

// drainWord is the code of a drain's reason in a few words; the facts were told when the drain began.
func drainWord(code string) string {
	switch code {
	case "drain.idle", "drain.dry":
		return "idle"
	case "drain.mode":
		return "no cloud worker was allowed"
	case "drain.not_enabled":
		return "its pool was no longer enabled"
	case "drain.surplus":
		return "more ran than may"
	case "drain.expiry":
		return "its lifetime ended"
	case "drain.stale":
		return "its spec was stale"
	case "drain.unhealthy":
		return "its heartbeat had stopped"
	case "drain.boot_timeout":
		return "it had not registered in time"
	case "drain.requested":
		return "a person asked"
	case "drain.abandoned":
		return "its launch had been given up"
	}
	return code
}

func goBack(n int) string {
	if n == 1 {
		return "1 job goes"
	}
	return fmt.Sprintf("%d jobs go", n)
}

func goneWords(r fleet.Gone) string {
	how := "absent from two complete lists"
	if r.Terminal {
		how = "the provider lists it as ended"
	}
	if r.Asked {
		return "its machine is gone as asked: " + how
	}
	return "its machine is gone and nobody asked for it: " + how
}
