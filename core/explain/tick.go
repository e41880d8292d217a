package explain

import (
	"fmt"
	"slices"
	"strings"

	"sluice/core/fleet"
)

// Results of a tick as its line names them.
const (
	resultSkipped = "skipped"
	resultNothing = "nothing_to_do"
	resultActed   = "acted"
)

// tick is the one line that every tick has.
func (w words) tick(p fleet.Plan, c fleet.Config) fleet.Line {
	l := fleet.Line{Event: "tick", Level: fleet.Info}
	if p.Skipped != nil {
		l.Message = "Skipped: " + w.reason(p.Skipped)
		l.Facts = facts{{"result", resultSkipped}, {"why", []facts{w.reasonFacts(p.Skipped)}}}.raw()
		return l
	}
	result, message := outcome(p)
	l.Message = message
	f := facts{{"result", result}, {"mode", c.Mode}}
	if broken := brokenConfig(p); broken != "" {
		l.Level, l.Message = fleet.Warning, message+"; the config cannot be read, the last good one holds and nothing grows"
		f.add("config_broken", broken)
	}
	if p.Override != nil {
		f.add("override", p.Override.ID)
	}
	if len(p.Pools) > 0 {
		f.add("pools", w.poolStates(p.Pools))
	}
	f.add("machines", have(p.Pools))
	f.addIf("calls", len(p.Calls))
	f.add(w.currencyKey(), w.spend(p.Spend))
	l.Facts = f.raw()
	return l
}

// brokenConfig is why the config could not be read; the plan carries it in its alert.
func brokenConfig(p fleet.Plan) string {
	for _, a := range p.Alerts {
		if why, ok := a.Why.(fleet.ConfigBroken); ok {
			return why.Cause
		}
	}
	return ""
}

// outcome says in a word and in a sentence what the tick did.
func outcome(p fleet.Plan) (result, message string) {
	did := deeds(p)
	if len(did) > 0 {
		return resultActed, strings.Join(did, "; ")
	}
	if p.Function == fleet.Reconcile {
		return resultNothing, "Nothing to do: the books hold"
	}
	return resultNothing, fmt.Sprintf("Nothing to do: %s as wanted, %s",
		count(len(p.Pools), "pool", "pools"), machines(have(p.Pools)))
}

// deeds lists what a tick changes, the pools first.
func deeds(p fleet.Plan) []string {
	var did []string
	for _, pool := range p.Pools {
		if grows(pool) || len(pool.Drain) > 0 {
			did = append(did, poolDeed(pool))
		}
	}
	ended := 0
	for _, i := range p.Intents {
		if i.Kind == fleet.KindTerminate && i.State == fleet.IntentOpen && isNew(p, i) {
			ended++
		}
	}
	if ended > 0 {
		did = append(did, "end "+machines(ended))
	}
	if p.Override != nil {
		did = append(did, "hold the mode at vps_only")
	}
	if p.Lifted {
		did = append(did, "lift the override")
	}
	if len(did) == 0 && len(p.Calls) > 0 {
		did = append(did, "repeat "+count(len(p.Calls), "call", "calls"))
	}
	return did
}

// isNew says that this tick makes the intent's first call.
func isNew(p fleet.Plan, i fleet.Intent) bool {
	return slices.ContainsFunc(p.Calls, func(c fleet.Call) bool { return c.Intent == i.ID && !c.Repeat })
}

func poolDeed(p fleet.PoolPlan) string {
	parts := []string{fmt.Sprintf("%s %d → %d", p.Pool, p.Have, p.Want)}
	for _, x := range []struct {
		n    int
		what string
	}{{len(p.Undrain), "un-drain"}, {len(p.Resume), "resume"}, {p.Launch, "launch"}, {len(p.Drain), "drain"}} {
		if x.n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", x.what, x.n))
		}
	}
	return parts[0] + " (" + strings.Join(parts[1:], ", ") + ")"
}

func have(pools []fleet.PoolPlan) int {
	n := 0
	for _, p := range pools {
		n += p.Have
	}
	return n
}

// poolStates tells each pool in a few figures, under its name.
func (w words) poolStates(pools []fleet.PoolPlan) facts {
	var f facts
	for _, p := range pools {
		f.add(p.Pool, w.poolState(p))
	}
	return f
}

func (w words) poolState(p fleet.PoolPlan) facts {
	f := facts{{"have", p.Have}, {"want", p.Want}}
	if heldByMode(p) {
		f.add("want_hybrid", p.Hybrid)
	}
	depth, oldest := figures(p.Steps)
	f.add("depth", depth)
	f.addIf("oldest_s", oldest)
	why := telling(p)
	if why == nil {
		return f
	}
	f.add("why", why.Code())
	for _, x := range w.reasonFacts(why)[1:] {
		if x.key != "depth" && x.key != "oldest_s" && x.key != "queue" {
			f = append(f, x)
		}
	}
	return f
}

// heldByMode says that the mode or the override keeps a pool from what hybrid mode would want.
func heldByMode(p fleet.PoolPlan) bool {
	return p.Hybrid != p.Want && slices.ContainsFunc(p.Steps, func(s fleet.Step) bool {
		switch s.Why.(type) {
		case fleet.LimitMode, fleet.LimitOverride:
			return true
		}
		return false
	})
}

// telling is the reason that best answers why a pool is as it is: what cut it, else what keeps its
// workers, else what was said about its demand.
func telling(p fleet.PoolPlan) fleet.Reason {
	if cut := lastCut(p); cut != nil {
		return cut
	}
	if why, ok := demandStep(p); ok {
		return why
	}
	if p.Have > 0 && len(p.Kept) > 0 {
		return p.Kept[0].Why
	}
	if n := len(p.Steps); n > 0 {
		return p.Steps[n-1].Why
	}
	return nil
}

// figures are a pool's depth over its queues and the age of its oldest job, as its steps have them.
func figures(steps []fleet.Step) (depth int, oldest fleet.Seconds) {
	seen := map[string]bool{}
	for _, s := range steps {
		queue, d, o, ok := reading(s.Why)
		if !ok || seen[queue] {
			continue
		}
		seen[queue] = true
		depth, oldest = depth+d, max(oldest, o)
	}
	return depth, oldest
}

// reading is what a reason says of one queue.
func reading(r fleet.Reason) (queue string, depth int, oldest fleet.Seconds, ok bool) {
	switch r := r.(type) {
	case fleet.BacklogDepth:
		return r.Queue, r.Depth, r.Oldest, true
	case fleet.BacklogAge:
		return r.Queue, r.Depth, r.Oldest, true
	case fleet.BacklogStep:
		return r.Queue, r.Depth, r.Oldest, true
	case fleet.Awaiting:
		return r.Queue, r.Depth, r.Oldest, true
	case fleet.BelowThreshold:
		return r.Queue, r.Depth, r.Oldest, true
	}
	return "", 0, 0, false
}
