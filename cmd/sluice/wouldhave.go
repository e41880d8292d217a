package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"sluice/core/config"
	"sluice/core/decide"
	"sluice/core/fleet"
	"sluice/functions/host"
)

// wouldHave tells what hybrid mode would have done with the queues as they were: a trial before any money is spent.
func (a *app) wouldHave(ctx context.Context, q question) error {
	db, err := a.past(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	m, err := db.Recall(ctx)
	if err != nil {
		return err
	}
	c, err := a.currentConfig(ctx, m)
	if err != nil {
		return err
	}
	samples, err := db.Samples(ctx, m.Now.Add(-q.since))
	if err != nil {
		return err
	}
	report := decide.Shadow(c, samples)
	if a.asJSON {
		return a.writeJSON(report)
	}
	return a.tellShadow(report)
}

// currentConfig is the one that is named, else the last that a tick ran with.
func (a *app) currentConfig(ctx context.Context, m fleet.Memory) (fleet.Config, error) {
	if path := a.options().ConfigPath(); path != "" {
		return a.parseConfig(ctx, path)
	}
	if m.LastGood == nil {
		return fleet.Config{}, errors.New("no tick has run with a config yet: name one with --config or SLUICE_CONFIG")
	}
	p, err := config.Parse("the last good config", m.LastGood, config.Env{RedisURLSet: a.env(host.EnvRedis) != ""})
	return p.Config, err
}

func (a *app) tellShadow(r decide.ShadowReport) error {
	if r.Samples == 0 {
		return a.say("No reading of the queues is that young. Ticks store one each: let some run, in any mode, or look further back with --since.")
	}
	err := a.say("Hybrid mode, from %s to %s UTC, %d readings of the queues:\n", r.From.UTC().Format(time.DateTime), r.To.UTC().Format(time.DateTime), r.Samples)
	rows := make([][]string, len(r.Pools))
	for i, p := range r.Pools {
		rows[i] = []string{
			p.Pool, strconv.Itoa(p.Launches), fmt.Sprintf("%.1f", float64(p.Machine)/3600), shadowCost(p, r.Currency),
			wait(p.Longest), wait(p.LongestHybrid), wait(p.P95), wait(p.P95Hybrid),
		}
	}
	head := []string{"POOL", "LAUNCHES", "HOURS", "COST", "LONGEST WAIT", "WITH HYBRID", "P95 WAIT", "WITH HYBRID"}
	return errors.Join(err, a.table(head, rows), a.say("%s", shadowRemarks(r)))
}

func shadowCost(p decide.ShadowPool, currency string) string {
	switch {
	case !p.Enabled:
		return "not cloud_enabled"
	case !p.HasPrice:
		return "no price known"
	}
	return fmt.Sprintf("%.2f %s", p.Cost.Float(), currency)
}

func wait(s fleet.Seconds) string { return s.Duration().String() }

// shadowRemarks are what a reader must know before believing the figures.
func shadowRemarks(r decide.ShadowReport) string {
	var b strings.Builder
	for _, p := range r.Pools {
		if p.Enabled && !p.HasPrice {
			fmt.Fprintf(&b, "\nPool %s has offers without a known price: its cost is not in here. Name prices in the config to see it.", p.Pool)
		}
	}
	if len(r.LimitReached) > 0 {
		fmt.Fprintf(&b, "\nThe daily limit would have ended it on %s.", strings.Join(r.LimitReached, ", "))
	}
	b.WriteString("\nThe queues are those of a world without these machines, so that the launches err towards too many.")
	return b.String()
}
