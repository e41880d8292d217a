package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"sluice/core/fleet"
)

// queueTold is how far back a queue's story goes.
const queueTold = 3 * time.Hour

// queueStory is how a queue was in the last hours, and what was decided for it.
type queueStory struct {
	Queue    string             `json:"queue"`
	Pools    []string           `json:"pools"`    // that serve it
	Readings []fleet.Sample     `json:"readings"` // oldest first; there is one at least
	Lines    []fleet.LineRecord `json:"lines"`    // newest first
	now      time.Time
}

func (a *app) explainQueue(ctx context.Context, db fleet.Database, m fleet.Memory, name string) error {
	s := queueStory{Queue: name, Pools: []string{}, now: m.Now}
	since := m.Now.Add(-queueTold)
	samples, err := db.Samples(ctx, since)
	if err != nil {
		return err
	}
	lines, err := db.Lines(ctx, fleet.LineFilter{Since: since, Queue: name})
	if err != nil {
		return err
	}
	s.Readings, s.Lines = readingsOf(samples, name), append([]fleet.LineRecord{}, question{limit: 10}.pick(lines)...)
	if c, err := a.currentConfig(ctx, m); err == nil {
		s.Pools = servedBy(c, name)
	}
	if a.asJSON {
		return a.writeJSON(s)
	}
	return a.say("%s", s)
}

// String tells it.
func (s queueStory) String() string {
	var b strings.Builder
	first, last := s.Readings[0], s.Readings[len(s.Readings)-1]
	_, _ = fmt.Fprintf(&b, "Queue %s: %s, %s ago\n", s.Queue, queueWords(last.Queues[0]), ago(s.now, last.At))
	_, _ = fmt.Fprintf(&b, "Depth over %s: %s\n", last.At.Sub(first.At).Truncate(time.Second), sparkline(s.Readings))
	if len(s.Pools) == 0 {
		_, _ = fmt.Fprintf(&b, "No pool of the config serves it: the VPS alone does.\n")
	} else {
		_, _ = fmt.Fprintf(&b, "Served by the VPS and pool %s; `sluice plan` tells what the next tick would do.\n", strings.Join(s.Pools, ", "))
	}
	if len(s.Lines) == 0 {
		_, _ = fmt.Fprintf(&b, "\nNothing was decided for it in the last %d hours.", int(queueTold.Hours()))
	}
	for _, l := range s.Lines {
		_, _ = fmt.Fprintf(&b, "\n%s  %s (tick %s)", l.At.UTC().Format(time.DateTime), l.Message, l.Tick)
	}
	return b.String()
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
