package fleettest

import (
	"encoding/json"
	"errors"
	"time"

	"sluice/core/fleet"
)

func historyCases() []storeCase {
	return []storeCase{
		{"ticks are listed newest first", ticksListed},
		{"lines are found by time, pool, tick and code", linesFound},
		{"a snapshot comes back as it was decided on", snapshotBack},
		{"samples are listed oldest first", samplesListed},
		{"workers are listed with their end and cost", workersListed},
	}
}

func ticksListed(b *bench) {
	start := b.recall().Now
	for range 3 {
		b.commit(func(_ fleet.Memory, p *fleet.Plan, _ *fleet.Record) { p.Spend.Rate = fleet.Cent })
	}
	got, err := b.History.Ticks(b.ctx, start.Add(-time.Minute), 2)
	if err != nil || len(got) != 2 || !got[0].Due.After(got[1].Due) || got[0].Function != fleet.Evaluate || got[0].Spend.Rate != fleet.Cent || got[0].Changed {
		b.Errorf("ticks %s, %v", text(b.T, got), err)
	}
}

func linesFound(b *bench) {
	start := b.recall().Now
	for _, pool := range []string{poolA, "bulk"} {
		b.commit(func(_ fleet.Memory, _ *fleet.Plan, r *fleet.Record) {
			r.Lines = []fleet.Line{
				{ID: id("up-" + pool), Event: "scale_up", Level: fleet.Info, Pool: pool, Worker: "w-" + pool, Message: "Scaling up", Facts: json.RawMessage(`{"steps":[{"why":{"code":"backlog.depth","queue":"q-` + pool + `"}}]}`)},
				{ID: id("tick-" + pool), Event: "tick", Level: fleet.Info, Message: "tick", Facts: json.RawMessage(`{"code":"idle"}`)},
			}
		})
	}
	count := func(f fleet.LineFilter) []fleet.LineRecord {
		if f.Limit == 0 {
			f.Limit = 100
		}
		f.Since = start.Add(-time.Minute)
		got, err := b.History.Lines(b.ctx, f)
		if err != nil {
			b.Fatalf("lines: %v", err)
		}
		return got
	}
	all := count(fleet.LineFilter{})
	if len(all) != 4 || all[0].At.Before(all[3].At) || all[3].Tick == "" {
		b.Fatalf("lines %s", text(b.T, all))
	}
	for name, f := range map[string]fleet.LineFilter{
		"pool": {Pool: poolA}, "tick": {Tick: all[0].Tick}, "code": {Code: "backlog.depth"}, "limit": {Limit: 2},
		"worker": {Worker: "w-bulk"}, "queue": {Queue: "q-bulk"},
	} {
		want := 2
		if name == "pool" || name == "worker" || name == "queue" {
			want = 1
		}
		if got := count(f); len(got) != want {
			b.Errorf("by %s: %s, want %d", name, text(b.T, got), want)
		}
	}
	if got := count(fleet.LineFilter{Code: "no.such.code"}); len(got) != 0 {
		b.Errorf("lines %s carry a code that nobody gave", text(b.T, got))
	}
}

func snapshotBack(b *bench) {
	var want fleet.Snapshot
	b.commit(func(m fleet.Memory, p *fleet.Plan, r *fleet.Record) {
		want = fleet.Snapshot{Version: 1, Function: fleet.Evaluate, Due: p.Due, Limit: 60, Memory: m, Queues: []fleet.QueueState{{Name: poolA, Depth: 12, Oldest: 40}}}
		r.Snapshot = &want
	})
	b.commit(func(_ fleet.Memory, _ *fleet.Plan, _ *fleet.Record) {})
	ticks, err := b.History.Ticks(b.ctx, want.Due.Add(-time.Hour), 10)
	if err != nil || len(ticks) != 2 || !ticks[1].Changed || ticks[0].Changed {
		b.Fatalf("ticks %s, %v", text(b.T, ticks), err)
	}
	got, plan, err := b.History.Snapshot(b.ctx, ticks[1].ID)
	if err != nil || !json.Valid(plan) {
		b.Fatalf("snapshot: %v, plan %q", err, plan)
	}
	b.want("snapshot", got, want)
	if _, _, err := b.History.Snapshot(b.ctx, ticks[0].ID); !errors.Is(err, fleet.ErrNotFound) {
		b.Errorf("a tick that changed nothing: %v, want ErrNotFound", err)
	}
}

func samplesListed(b *bench) {
	start := b.recall().Now
	for depth := range 3 {
		b.commit(func(_ fleet.Memory, _ *fleet.Plan, r *fleet.Record) {
			r.Samples = []fleet.QueueState{{Name: poolA, Depth: depth}}
		})
	}
	got, err := b.History.Samples(b.ctx, start.Add(-time.Minute))
	if err != nil || len(got) != 3 || got[0].Queues[0].Depth != 0 || got[2].Queues[0].Depth != 2 || !got[2].At.After(got[0].At) {
		b.Errorf("samples %s, %v", text(b.T, got), err)
	}
}

func workersListed(b *bench) {
	b.assign()
	gone, alive := b.running("gone"), b.running("alive")
	b.Advance(time.Hour)
	b.commit(func(m fleet.Memory, p *fleet.Plan, _ *fleet.Record) {
		p.Workers = []fleet.WorkerChange{changed(m, gone, "gone", end(fleet.Terminated))}
		p.Spans = []fleet.Span{{
			Worker: gone, Scope: scopeA, Machine: "i-gone", Last: true, Pool: poolA, Provider: cloud, Price: 4 * fleet.Cent, From: m.Now.Add(-time.Hour), To: m.Now,
		}}
	})
	got, err := b.History.Workers(b.ctx, b.recall().Now.Add(-time.Minute))
	if err != nil || len(got) != 2 {
		b.Fatalf("workers %s, %v", text(b.T, got), err)
	}
	for _, w := range got {
		switch w.ID {
		case gone:
			if w.EndWhy != "gone" || w.Ended.IsZero() || w.Cost < 4*fleet.Cent || w.Cost > 5*fleet.Cent {
				b.Errorf("ended worker %s", text(b.T, w))
			}
		case alive:
			if !w.Ended.IsZero() {
				b.Errorf("living worker %s", text(b.T, w))
			}
		}
	}
	b.Advance(time.Hour)
	if got, err = b.History.Workers(b.ctx, b.recall().Now.Add(-time.Minute)); err != nil || len(got) != 1 || got[0].ID != alive {
		b.Errorf("an hour later: %s, %v, want the living worker alone", text(b.T, got), err)
	}
}
