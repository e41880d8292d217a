package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"sluice/core/decide"
	"sluice/core/explain"
	"sluice/core/fleet"
	"sluice/core/tick"
	"sluice/functions/host"
)

// given is a config that is read from nowhere; nil stands for none.
type given struct {
	name   string
	object *fleet.Object
}

var _ fleet.Objects = given{}

// Get implements fleet.Objects.
func (g given) Get(context.Context, string) (fleet.Object, error) {
	if g.object == nil {
		return fleet.Object{}, fmt.Errorf("%s: %w", g.name, fleet.ErrNotFound)
	}
	return *g.object, nil
}

// act is what the next tick would do about a pool, a worker or a machine.
type act struct {
	About string `json:"about"`
	Does  string `json:"does"`
}

// planChange is what the next tick would do with either config.
type planChange struct {
	Same       bool        `json:"same"`
	Before     []act       `json:"before"`
	After      []act       `json:"after"`
	Cause      string      `json:"before_nothing,omitempty"` // why no tick is decided with the old one
	Rate       fleet.Money `json:"rate_now"`                 // per hour
	RateBefore fleet.Money `json:"rate_before"`              // once the tick has acted
	RateAfter  fleet.Money `json:"rate_after"`
	priced     bool        // with the old one a tick is decided
}

// comparePlans decides the next tick with either config, on one and the same view of the world.
func (a *app) comparePlans(ctx context.Context, target string, before, after side) (*planChange, error) {
	new := *after.object
	new.Modified = time.Now().UTC()
	old := before.object
	if old != nil && !new.Modified.After(old.Modified) {
		new.Modified = old.Modified.Add(time.Millisecond)
	}
	is, err := a.planWith(ctx, target, &new)
	if err != nil {
		return nil, fmt.Errorf("what the next tick would do cannot be computed: %w; nothing was written. Run this where the database can be reached, or go without with --without-plan", err)
	}
	if why := is.Snapshot.ConfigBroken; why != "" {
		return nil, errors.New("the next tick would refuse it: " + why)
	}
	was, err := a.planWith(ctx, target, old)
	c := &planChange{Cause: cause(was, err)}
	p := redecided(is.Snapshot)
	c.After, c.Rate, c.RateAfter = acts(p), is.Plan.Spend.Rate, p.Spend.Rate+p.Spend.Reserved
	if c.Cause == "" {
		p := redecided(aligned(was.Snapshot, is.Snapshot))
		c.Before, c.RateBefore, c.priced = acts(p), p.Spend.Rate+p.Spend.Reserved, true
	}
	c.Same = c.priced && slices.Equal(c.Before, c.After)
	return c, nil
}

// planWith is `sluice plan` as it would be were the config another.
func (a *app) planWith(ctx context.Context, target string, o *fleet.Object) (tick.Report, error) {
	options := a.options()
	options.Config = target
	config := fleet.Link{Objects: func(path string) fleet.Objects { return given{path, o} }}
	w, err := host.Open(ctx, options, append(links(), config)...)
	if err != nil {
		return tick.Report{}, err
	}
	defer w.Close()
	if err := w.Lost(); err != nil {
		return tick.Report{}, err
	}
	return tick.Plan(ctx, w.World, time.Now())
}

// cause is why no tick is decided with a config; empty where one is.
func cause(r tick.Report, err error) string {
	if err != nil {
		return "the tick fails: " + err.Error()
	}
	if why, ok := r.Plan.Skipped.(fleet.SkipNotConfigured); ok {
		return "nothing is done: " + explain.Reason(why)
	}
	return ""
}

// aligned gives one view what another has seen of the same things, since the world moves on between two looks.
func aligned(was, is fleet.Snapshot) fleet.Snapshot {
	if was.Memory.Deployment != is.Memory.Deployment {
		return was // another database
	}
	was.Memory = is.Memory
	for i, q := range was.Queues {
		j := slices.IndexFunc(is.Queues, func(o fleet.QueueState) bool { return o.Name == q.Name })
		if j >= 0 && source(was.Config, q.Name) == source(is.Config, q.Name) {
			was.Queues[i] = is.Queues[j]
		}
	}
	for i, l := range was.Listings {
		j := slices.IndexFunc(is.Listings, func(o fleet.Listing) bool { return o.Place == l.Place })
		if j >= 0 && was.Config.Name == is.Config.Name {
			was.Listings[i] = is.Listings[j]
		}
	}
	return was
}

func source(c fleet.Config, queue string) fleet.Source {
	for _, q := range c.Queues {
		if q.Name == queue {
			return q.Source
		}
	}
	return fleet.Source{}
}

// redecided is the plan of a tick that is due.
func redecided(s fleet.Snapshot) fleet.Plan {
	s.Memory.LastDue = nil
	return decide.Decide(s)
}

// acts tells a plan as pairs of what and how, so that two can be compared.
func acts(p fleet.Plan) []act {
	var out []act
	for _, pool := range p.Pools {
		out = append(out, act{"pool " + pool.Pool, poolDoes(pool)})
		for _, k := range pool.Kept {
			out = append(out, act{"worker " + k.Worker, "keep it: " + explain.Reason(k.Why)})
		}
		for _, d := range pool.Drain {
			out = append(out, act{"worker " + d.Worker, drains(d.Why)})
		}
	}
	for _, n := range p.Notes {
		if n.Worker != "" && strings.HasPrefix(n.Why.Code(), "drain.") {
			out = append(out, act{"worker " + n.Worker, drains(n.Why)})
		}
	}
	for _, i := range p.Intents {
		if i.Kind != fleet.KindLaunch && slices.ContainsFunc(p.Calls, func(c fleet.Call) bool { return c.Intent == i.ID }) {
			out = append(out, act{"machine " + i.Ref.Machine, string(i.Kind) + " it"})
		}
	}
	return out
}

// drains says of a machine whose launch settings are no longer the config's that another takes its place.
func drains(why fleet.Reason) string {
	if _, stale := why.(fleet.DrainStale); stale {
		return "replace it: " + explain.Reason(why)
	}
	return "drain it: " + explain.Reason(why)
}

func poolDoes(p fleet.PoolPlan) string {
	s := fmt.Sprintf("have %d, want %d", p.Have, p.Want)
	if p.Launch > 0 {
		s += fmt.Sprintf(", launch %d", p.Launch)
	}
	if p.Launch > 0 && p.Offer != nil {
		s += fmt.Sprintf(" (first %s at %s an hour)", p.Offer.Key(), p.Price)
	}
	if len(p.Resume) > 0 {
		s += ", resume " + strings.Join(p.Resume, " and ")
	}
	if len(p.Undrain) > 0 {
		s += ", un-drain " + strings.Join(p.Undrain, " and ")
	}
	for _, step := range slices.Backward(p.Steps) {
		if step.To < step.From {
			return s + "; held back: " + explain.Reason(step.Why)
		}
	}
	return s
}

func tellPlans(b *strings.Builder, c *planChange, currency string) {
	if c == nil {
		b.WriteString("\nWhat the next tick would do was not asked (--without-plan).\n")
		return
	}
	if c.Same {
		b.WriteString("\nThe next tick would do the same with either:\n")
		tellActs(b, c.After)
	} else {
		b.WriteString("\nWhat the next tick would do otherwise:\n")
		tellOtherwise(b, c)
	}
	fmt.Fprintf(b, "\nCost per hour: %s %s now", c.Rate, currency)
	if c.priced {
		fmt.Fprintf(b, ", %s after the next tick as it is", c.RateBefore)
	}
	fmt.Fprintf(b, ", %s after the next tick with it.\n", c.RateAfter)
}

func tellActs(b *strings.Builder, acts []act) {
	for _, x := range acts {
		fmt.Fprintf(b, "  %s: %s\n", x.About, x.Does)
	}
	if len(acts) == 0 {
		b.WriteString("  nothing\n")
	}
}

func tellOtherwise(b *strings.Builder, c *planChange) {
	if !c.priced {
		fmt.Fprintf(b, "  now %s\n  with it:\n", c.Cause)
		for _, x := range c.After {
			fmt.Fprintf(b, "    %s: %s\n", x.About, x.Does)
		}
		return
	}
	same := 0
	for _, about := range subjects(c) {
		was, is := does(c.Before, about), does(c.After, about)
		if was == is {
			same++
			continue
		}
		fmt.Fprintf(b, "  %s\n    now: %s\n    with it: %s\n", about, was, is)
	}
	if same > 0 {
		fmt.Fprintf(b, "  the same for %d more\n", same)
	}
}

// subjects are what either plan is about, each once.
func subjects(c *planChange) []string {
	var out []string
	for _, x := range slices.Concat(c.After, c.Before) {
		if !slices.Contains(out, x.About) {
			out = append(out, x.About)
		}
	}
	return out
}

func does(acts []act, about string) string {
	var all []string
	for _, x := range acts {
		if x.About == about {
			all = append(all, x.Does)
		}
	}
	if len(all) == 0 {
		return "nothing"
	}
	return strings.Join(all, "; ")
}
