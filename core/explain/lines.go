package explain

import (
	"strconv"
	"strings"

	"sluice/core/fleet"
)

// Lines are a plan as it is logged and stored: one line per decision, then one named tick that
// names every pool. Equal plans have equal lines.
func Lines(p fleet.Plan, c fleet.Config) []fleet.Line {
	w := words{currency: c.Currency}
	var lines []fleet.Line
	if p.Skipped == nil {
		for _, pool := range p.Pools {
			lines = append(lines, w.poolLines(pool, p.Spend)...)
		}
		for _, n := range p.Notes {
			lines = append(lines, w.note(n))
		}
	}
	lines = append(lines, w.tick(p, c))
	for i := range lines {
		lines[i].ID = lineID(p, i, lines[i])
	}
	return lines
}

// lineID is the same whenever the same plan is explained.
func lineID(p fleet.Plan, i int, l fleet.Line) string {
	id := fleet.ID(string(p.Function), p.Due.UTC().String(), p.Now.UTC().String(), strconv.Itoa(i), l.Event, l.Pool, l.Worker)
	return "d-" + strings.ReplaceAll(id, "-", "")[:12]
}

func (w words) poolLines(p fleet.PoolPlan, s fleet.Spend) []fleet.Line {
	var lines []fleet.Line
	if grows(p) {
		lines = append(lines, w.scaleUp(p, s))
	} else if cut, ok := refusal(p); ok {
		lines = append(lines, w.refused(p, s, cut))
	}
	for _, d := range p.Drain {
		lines = append(lines, w.scaleDown(p.Pool, facts{{"have", p.Have}, {"want", p.Want}}, d))
	}
	return lines
}

func grows(p fleet.PoolPlan) bool { return p.Launch+len(p.Resume)+len(p.Undrain) > 0 }

func (w words) scaleUp(p fleet.PoolPlan, s fleet.Spend) fleet.Line {
	f := facts{{"have", p.Have}, {"want", p.Want}, {"launch", p.Launch}}
	if len(p.Resume) > 0 {
		f.add("resume", p.Resume)
	}
	if len(p.Undrain) > 0 {
		f.add("undrain", p.Undrain)
	}
	f.add("why", w.steps(p.Steps))
	if p.Offer != nil {
		f.add("offer", w.offerFacts(*p.Offer, p.Price))
	}
	if len(p.Rejected) > 0 {
		f.add("rejected", w.rejected(p.Rejected))
	}
	f.add(w.currencyKey(), w.spend(s))
	return fleet.Line{
		Event: "scale_up", Level: fleet.Info, Pool: p.Pool, Facts: f.raw(),
		Message: "Scaling up " + p.Pool + ": " + w.demandOf(p),
	}
}

// demandOf says what made a pool want more; for a backlog just its figures, as the log always had them.
func (w words) demandOf(p fleet.PoolPlan) string {
	why, ok := demandStep(p)
	if !ok {
		return "wanted " + strconv.Itoa(p.Want) + ", have " + strconv.Itoa(p.Have)
	}
	if depth, oldest, ok := backlog(why); ok {
		return queueFigures(depth, oldest)
	}
	return w.reason(why)
}

// demandStep is the first step that reaches the highest count.
func demandStep(p fleet.PoolPlan) (fleet.Reason, bool) {
	var why fleet.Reason
	top := p.Have
	for _, s := range p.Steps {
		if s.To > s.From && s.To > top {
			why, top = s.Why, s.To
		}
	}
	return why, why != nil
}

func backlog(r fleet.Reason) (depth int, oldest fleet.Seconds, ok bool) {
	switch r := r.(type) {
	case fleet.BacklogDepth:
		return r.Depth, r.Oldest, true
	case fleet.BacklogAge:
		return r.Depth, r.Oldest, true
	case fleet.BacklogStep:
		return r.Depth, r.Oldest, true
	}
	return 0, 0, false
}

// refusal is the limit that keeps a pool from growing although it wants to. The mode and a cooldown
// refuse nothing that was asked for: the tick line tells of them.
func refusal(p fleet.PoolPlan) (fleet.Reason, bool) {
	if _, ok := demandStep(p); !ok {
		return nil, false
	}
	cut := lastCut(p)
	switch cut.(type) {
	case nil, fleet.LimitMode, fleet.LimitNotEnabled, fleet.LimitManual, fleet.LimitCooldown:
		return nil, false
	}
	return cut, true
}

// lastCut is the last step that lowered the count; nil where none did.
func lastCut(p fleet.PoolPlan) fleet.Reason {
	var cut fleet.Reason
	for _, s := range p.Steps {
		if s.To < s.From {
			cut = s.Why
		}
	}
	return cut
}

func (w words) refused(p fleet.PoolPlan, s fleet.Spend, cut fleet.Reason) fleet.Line {
	f := facts{{"have", p.Have}, {"want", p.Want}, {"launch", 0}, {"why", w.steps(p.Steps)}}
	if len(p.Rejected) > 0 {
		f.add("rejected", w.rejected(p.Rejected))
	}
	f.add(w.currencyKey(), w.spend(s))
	return fleet.Line{
		Event: "scale_up_refused", Level: refusalLevel(cut), Pool: p.Pool, Facts: f.raw(),
		Message: "Not scaling up " + p.Pool + ": " + w.reason(cut),
	}
}

// refusalLevel: a pool at its own maximum is as configured, all else keeps work waiting that should not wait.
func refusalLevel(cut fleet.Reason) fleet.Level {
	if _, full := cut.(fleet.LimitCeiling); full {
		return fleet.Info
	}
	return fleet.Warning
}

func (w words) scaleDown(pool string, counts facts, d fleet.Drained) fleet.Line {
	f := append(counts, fact{"why", []facts{w.reasonFacts(d.Why)}})
	return fleet.Line{
		Event: "scale_down", Level: drainLevel(d.Why), Pool: pool, Worker: d.Worker, Facts: f.raw(),
		Message: "Scaling down worker " + d.Worker + ": " + w.reason(d.Why),
	}
}

func drainLevel(why fleet.Reason) fleet.Level {
	switch why.(type) {
	case fleet.DrainUnhealthy, fleet.DrainBoot, fleet.DrainAbandoned:
		return fleet.Warning
	}
	return fleet.Info
}

// note is a line whose event is its reason's code. A worker that drains is scaled down, whoever's pool it is in.
func (w words) note(n fleet.Note) fleet.Line {
	if n.Worker != "" && w.drained(n.Why) != "" {
		return w.scaleDown(n.Pool, nil, fleet.Drained{Worker: n.Worker, Why: n.Why})
	}
	message := capital(w.reason(n.Why))
	switch {
	case n.Worker != "":
		message = "Worker " + n.Worker + ": " + w.reason(n.Why)
	case n.Pool != "":
		message = "Pool " + n.Pool + ": " + w.reason(n.Why)
	}
	return fleet.Line{
		Event: Event(n.Why), Level: n.Level, Pool: n.Pool, Worker: n.Worker, Message: message,
		Facts: facts{{"why", []facts{w.reasonFacts(n.Why)}}}.raw(),
	}
}

// Event is what a line about a reason alone is called: its code with underscores.
func Event(r fleet.Reason) string { return strings.ReplaceAll(r.Code(), ".", "_") }
