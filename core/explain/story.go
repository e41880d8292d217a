package explain

import (
	"fmt"
	"strings"

	"sluice/core/fleet"
)

// Story tells a whole plan to a person: what was seen, what each rule made of it, and what follows.
// Continuation lines are indented, so that a terminal can wrap them.
func Story(p fleet.Plan, s fleet.Snapshot) string {
	t := teller{words: words{currency: s.Config.Currency}}
	t.line(0, "%s of %s, decided at %s", p.Function, moment(p.Due), moment(p.Now))
	if p.Skipped != nil {
		t.line(0, "Skipped: %s.", t.reason(p.Skipped))
		return t.String()
	}
	t.situation(p, s)
	for _, pool := range p.Pools {
		t.pool(pool)
	}
	t.notes(p.Notes)
	t.acts(p)
	_, message := outcome(p)
	t.line(0, "In short: %s.", message)
	return t.String()
}

type teller struct {
	words
	strings.Builder
}

func (t *teller) line(indent int, format string, args ...any) {
	t.WriteString(strings.Repeat("  ", indent))
	fmt.Fprintf(&t.Builder, format, args...)
	t.WriteByte('\n')
}

func (t *teller) situation(p fleet.Plan, s fleet.Snapshot) {
	t.line(0, "Mode %s%s; %s per hour now%s, %s today%s.", s.Config.Mode, held(s.Memory.Override),
		t.money(p.Spend.Rate), ofLimit(p.Spend.Hourly), t.money(p.Spend.Today), ofLimit(p.Spend.Daily))
	if period := p.Spend.Period; period.Name != "" {
		t.line(0, "In %s: %s%s.", period.Name, t.money(period.Spent), ofLimit(period.Limit))
	}
	if at := Forecast(p.Spend); at != "" {
		t.line(0, "%s.", capital(at))
	}
	if s.ConfigBroken != "" {
		t.line(0, "The config is broken: %s.", s.ConfigBroken)
	}
	for _, q := range s.Queues {
		t.line(0, "%s", queueLine(q))
	}
	for _, l := range s.Listings {
		t.line(0, "%s", listingLine(l))
	}
}

func held(o *fleet.Override) string {
	if o == nil {
		return ""
	}
	return ", held at vps_only since " + moment(o.At) + " (" + o.Why + ")"
}

func ofLimit(m fleet.Money) string {
	if m == 0 {
		return ""
	}
	return " of " + amount(m)
}

func queueLine(q fleet.QueueState) string {
	if q.Unknown != "" {
		return "Queue " + q.Name + ": unknown, " + q.Unknown
	}
	age := fmt.Sprintf("the oldest waits for %s", span(q.Oldest))
	switch {
	case q.Depth == 0:
		age = "none waits"
	case q.NoAge:
		age = "their age is unknown"
	}
	return fmt.Sprintf("Queue %s: %s waiting, %d running, %s", q.Name, jobs(q.Depth), q.Running, age)
}

func listingLine(l fleet.Listing) string {
	if !l.Complete() {
		return "Place " + l.Place.String() + ": could not be listed, " + l.Unknown
	}
	return "Place " + l.Place.String() + ": " + machines(len(l.Machines)) + " listed"
}

func (t *teller) pool(p fleet.PoolPlan) {
	t.line(0, "")
	t.line(0, "Pool %s: have %d, want %d%s", p.Pool, p.Have, p.Want, shadow(p))
	for _, s := range p.Steps {
		t.line(1, "%s %s", arrow(s), t.reason(s.Why))
	}
	for _, r := range p.Rejected {
		t.line(1, "not %s: %s", r.Offer, t.reason(r.Why))
	}
	for _, k := range p.Kept {
		t.line(1, "keep %s: %s", k.Worker, t.reason(k.Why))
	}
	for _, id := range p.Undrain {
		t.line(1, "un-drain %s", id)
	}
	for _, id := range p.Resume {
		t.line(1, "resume %s", id)
	}
	if p.Launch > 0 {
		t.line(1, "launch %s", t.launch(p))
	}
	for _, d := range p.Drain {
		t.line(1, "drain %s: %s", d.Worker, t.reason(d.Why))
	}
}

func shadow(p fleet.PoolPlan) string {
	if !heldByMode(p) {
		return ""
	}
	return fmt.Sprintf(" (hybrid would want %d)", p.Hybrid)
}

func arrow(s fleet.Step) string {
	if s.From == s.To {
		return fmt.Sprintf("%d:", s.To)
	}
	return fmt.Sprintf("%d → %d:", s.From, s.To)
}

func (t *teller) launch(p fleet.PoolPlan) string {
	if p.Offer == nil {
		return machines(p.Launch)
	}
	return fmt.Sprintf("%s, first %s at %s per hour", machines(p.Launch), p.Offer.Key(), t.money(p.Price))
}

func (t *teller) notes(notes []fleet.Note) {
	if len(notes) == 0 {
		return
	}
	t.line(0, "")
	for _, n := range notes {
		t.line(0, "%s: %s", n.Level, t.note(n).Message)
	}
}

// acts lists the calls that follow, which the pools alone do not show.
func (t *teller) acts(p fleet.Plan) {
	t.line(0, "")
	kinds := map[string]fleet.Intent{}
	for _, i := range p.Intents {
		kinds[i.ID] = i
	}
	for _, c := range p.Calls {
		t.line(0, "%s", call(c, kinds[c.Intent]))
	}
}

func call(c fleet.Call, i fleet.Intent) string {
	again := ""
	if c.Repeat {
		again = ", again under the same token"
	}
	if i.Kind == fleet.KindLaunch {
		return fmt.Sprintf("Call: launch of %s for %s, intent %s%s", machines(i.Count), i.Pool, i.ID, again)
	}
	return fmt.Sprintf("Call: %s of %s %s, intent %s%s", i.Kind, i.Ref.Place, i.Ref.Machine, i.ID, again)
}
