package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"sluice/core/fleet"
)

// toldSince is how far back a worker or a tick is looked for by the beginning of its id: as long as snapshots are kept.
const toldSince = 30 * 24 * time.Hour

// shortest is the least of an id that is looked for.
const shortest = 6

// found is what a person's word stands for: one of a tick, a worker or a queue.
type found struct {
	tick   string
	worker *fleet.WorkerRecord
	queue  string
}

// find looks a word up among ids, machines and queues.
func find(ctx context.Context, db fleet.Database, m fleet.Memory, word string) (found, error) {
	workers, err := db.Workers(ctx, m.Now.Add(-toldSince))
	if err != nil {
		return found{}, err
	}
	ticks, err := db.Ticks(ctx, m.Now.Add(-toldSince), 0)
	if err != nil {
		return found{}, err
	}
	samples, err := db.Samples(ctx, m.Now.Add(-queueTold))
	if err != nil {
		return found{}, err
	}
	var all []found
	var names []string
	for i, w := range workers {
		if w.Machine == word || hasID(w.ID, word) {
			all, names = append(all, found{worker: &workers[i]}), append(names, "worker "+w.ID)
		}
	}
	for _, t := range ticks {
		if hasID(t.ID, word) {
			all, names = append(all, found{tick: t.ID}), append(names, "tick "+t.ID)
		}
	}
	for _, s := range slices.Backward(samples) {
		if slices.ContainsFunc(s.Queues, func(q fleet.QueueState) bool { return q.Name == word }) {
			all, names = append(all, found{queue: word}), append(names, "queue "+word)
			break
		}
	}
	switch len(all) {
	case 1:
		return all[0], nil
	case 0:
		return found{}, fmt.Errorf("explain %s: no tick, worker, machine or queue of that name: `sluice decisions`, `sluice workers --since 7d` and `sluice status` list them", word)
	}
	const named = 5
	more := ""
	if len(names) > named {
		names, more = names[:named], fmt.Sprintf(" and %d more", len(names)-named)
	}
	return found{}, fmt.Errorf("explain %s: that may be %s%s: write more of the id", word, strings.Join(names, ", "), more)
}

func hasID(id, word string) bool {
	return len(word) >= shortest && strings.HasPrefix(id, strings.ToLower(word))
}

// explainWorker tells a worker's life from the tick that asked for it.
func (a *app) explainWorker(ctx context.Context, db fleet.Database, m fleet.Memory, w fleet.WorkerRecord) error {
	lines, err := db.Lines(ctx, fleet.LineFilter{Worker: w.ID})
	if err != nil {
		return err
	}
	slices.Reverse(lines)
	asked, err := askedFor(ctx, db, w)
	if err != nil {
		return err
	}
	if a.asJSON {
		return a.writeJSON(struct {
			Worker workerRow          `json:"worker"`
			Asked  *fleet.LineRecord  `json:"asked_for,omitempty"`
			Lines  []fleet.LineRecord `json:"lines"`
		}{workerRow{w, w.Lifecycle()}, asked, append([]fleet.LineRecord{}, lines...)})
	}
	var b strings.Builder
	say := func(at time.Time, format string, args ...any) {
		if !at.IsZero() {
			_, _ = fmt.Fprintf(&b, "%s  %s\n", at.UTC().Format(time.DateTime), fmt.Sprintf(format, args...))
		}
	}
	_, _ = fmt.Fprintf(&b, "Worker %s of pool %s: machine %s at %s%s\n\n", w.ID, w.Pool, w.Machine, w.Place, tail(w.Type, string(w.Market)))
	if asked != nil {
		say(asked.At, "%s (tick %s)", asked.Message, asked.Tick)
	}
	if w.Cloud() {
		say(w.BootAt, "launched or resumed")
	}
	if boot := w.Registered.Sub(w.BootAt); w.Cloud() && !w.BootAt.IsZero() && boot > 0 {
		say(w.Registered, "registered, %s after that", boot.Truncate(time.Second))
	} else {
		say(w.Registered, "registered")
	}
	for _, l := range lines {
		say(l.At, "%s", l.Message)
	}
	say(w.Ended, "ended%s", tail(w.EndWhy))
	if w.Ended.IsZero() {
		_, _ = fmt.Fprintf(&b, "\nNow: %s, %d of %d slots at work, heard %s ago\n", w.Lifecycle(), w.Jobs, w.Slots, ago(m.Now, w.Heartbeat))
	}
	_, _ = fmt.Fprintf(&b, "Cost: %s, at %s per hour", w.Cost, w.Price)
	return a.say("%s", b.String())
}

// askedFor is the line of the pool that wanted this machine: the last growth before it began to cost.
func askedFor(ctx context.Context, db fleet.Database, w fleet.WorkerRecord) (*fleet.LineRecord, error) {
	if !w.Cloud() || w.BootAt.IsZero() {
		return nil, nil
	}
	const before = 15 * time.Minute // as long as a launch is repeated
	lines, err := db.Lines(ctx, fleet.LineFilter{Since: w.BootAt.Add(-before), Pool: w.Pool})
	if err != nil {
		return nil, err
	}
	for _, l := range lines { // newest first
		if l.Event == "scale_up" && !l.At.After(w.BootAt.Add(time.Second)) {
			return &l, nil
		}
	}
	return nil, nil
}

func tail(parts ...string) string {
	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
	if len(parts) == 0 {
		return ""
	}
	return ", " + strings.Join(parts, ", ")
}

// queueTold is how far back a queue's story goes.
const queueTold = 3 * time.Hour

// explainQueue tells how a queue was, and what was decided for it.
func (a *app) explainQueue(ctx context.Context, db fleet.Database, m fleet.Memory, name string) error {
	since := m.Now.Add(-queueTold)
	samples, err := db.Samples(ctx, since)
	if err != nil {
		return err
	}
	lines, err := db.Lines(ctx, fleet.LineFilter{Since: since, Queue: name})
	if err != nil {
		return err
	}
	lines = question{limit: 10}.pick(lines)
	readings := readingsOf(samples, name)
	pools := []string{}
	if c, err := a.currentConfig(ctx, m); err == nil {
		pools = servedBy(c, name)
	}
	if a.asJSON {
		return a.writeJSON(struct {
			Queue    string             `json:"queue"`
			Pools    []string           `json:"pools"`
			Readings []fleet.Sample     `json:"readings"`
			Lines    []fleet.LineRecord `json:"lines"`
		}{name, pools, readings, append([]fleet.LineRecord{}, lines...)})
	}
	var b strings.Builder
	last := readings[len(readings)-1]
	_, _ = fmt.Fprintf(&b, "Queue %s: %s, %s ago\n", name, queueWords(last.Queues[0]), ago(m.Now, last.At))
	_, _ = fmt.Fprintf(&b, "Depth over %s: %s\n", last.At.Sub(readings[0].At).Truncate(time.Second), sparkline(readings))
	if len(pools) == 0 {
		_, _ = fmt.Fprintf(&b, "No pool of the config serves it: the VPS alone does.\n")
	} else {
		_, _ = fmt.Fprintf(&b, "Served by the VPS and pool %s; `sluice plan` tells what the next tick would do.\n", strings.Join(pools, ", "))
	}
	if len(lines) == 0 {
		_, _ = fmt.Fprintf(&b, "\nNothing was decided for it in the last %s.", queueTold)
	}
	for _, l := range lines {
		_, _ = fmt.Fprintf(&b, "\n%s  %s (tick %s)", l.At.UTC().Format(time.DateTime), l.Message, l.Tick)
	}
	return a.say("%s", b.String())
}

func queueWords(q fleet.QueueState) string {
	if q.Unknown != "" {
		return "cannot be read: " + q.Unknown
	}
	oldest := fmt.Sprintf(", the oldest for %s", q.Oldest.Duration())
	if q.NoAge || q.Depth == 0 {
		oldest = ""
	}
	return fmt.Sprintf("%d waiting%s, %d running", q.Depth, oldest, q.Running)
}

// readingsOf are the samples of one queue, oldest first.
func readingsOf(samples []fleet.Sample, name string) []fleet.Sample {
	var out []fleet.Sample
	for _, s := range samples {
		if i := slices.IndexFunc(s.Queues, func(q fleet.QueueState) bool { return q.Name == name }); i >= 0 {
			out = append(out, fleet.Sample{At: s.At, Queues: s.Queues[i : i+1]})
		}
	}
	return out
}

func servedBy(c fleet.Config, queue string) []string {
	pools := []string{}
	for _, p := range c.Pools {
		if slices.ContainsFunc(p.Queues, func(q fleet.PoolQueue) bool { return q.Name == queue }) {
			pools = append(pools, p.Name)
		}
	}
	return pools
}

// sparkline draws depths in at most 30 columns, each the highest of its share; a reading that failed is a question mark.
func sparkline(readings []fleet.Sample) string {
	const columns = 30
	bars := []rune("▁▂▃▄▅▆▇█")
	n := min(columns, len(readings))
	tops, most := make([]int, n), 0
	for i := range tops {
		tops[i] = -1
	}
	for i, r := range readings {
		if q := r.Queues[0]; q.Unknown == "" {
			tops[i*n/len(readings)] = max(tops[i*n/len(readings)], q.Depth)
			most = max(most, q.Depth)
		}
	}
	var b strings.Builder
	for _, top := range tops {
		switch {
		case top < 0:
			b.WriteByte('?')
		case most == 0:
			b.WriteRune(bars[0])
		default:
			b.WriteRune(bars[top*(len(bars)-1)/most])
		}
	}
	return fmt.Sprintf("%s  (at most %d)", b.String(), most)
}

// explainQuiet tells a tick that kept no snapshot: its lines are all that is known of it.
func (a *app) explainQuiet(ctx context.Context, db fleet.Database, tick string) error {
	lines, err := db.Lines(ctx, fleet.LineFilter{Tick: tick})
	if err != nil {
		return err
	}
	if len(lines) == 0 {
		return errors.New("explain tick " + tick + ": it is known, and nothing is kept of it any more")
	}
	if a.asJSON {
		return a.writeJSON(struct {
			Tick  string             `json:"tick"`
			Lines []fleet.LineRecord `json:"lines"`
		}{tick, lines})
	}
	var b strings.Builder
	_, _ = fmt.Fprintf(&b, "Tick %s of %s UTC changed nothing, so what it saw was not kept. It said:", tick, lines[0].At.UTC().Format(time.DateTime))
	for _, l := range lines {
		_, _ = fmt.Fprintf(&b, "\n  %s", l.Message)
	}
	return a.say("%s", b.String())
}
