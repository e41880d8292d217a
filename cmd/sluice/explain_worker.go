package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"sluice/core/fleet"
)

// workerStory is a worker's life from the tick that asked for it.
type workerStory struct {
	Worker workerRow          `json:"worker"`
	Asked  *fleet.LineRecord  `json:"asked_for,omitempty"`
	Lines  []fleet.LineRecord `json:"lines"` // about it, oldest first
	now    time.Time
}

func (a *app) explainWorker(ctx context.Context, db fleet.Database, m fleet.Memory, w fleet.WorkerRecord) error {
	s := workerStory{Worker: workerRow{w, w.Lifecycle()}, Lines: []fleet.LineRecord{}, now: m.Now}
	lines, err := db.Lines(ctx, fleet.LineFilter{Worker: w.ID})
	if err != nil {
		return err
	}
	s.Lines = append(s.Lines, lines...)
	slices.Reverse(s.Lines)
	if s.Asked, err = askedFor(ctx, db, w); err != nil {
		return err
	}
	if a.asJSON {
		return a.writeJSON(s)
	}
	return a.say("%s", s)
}

// String tells it.
func (s workerStory) String() string {
	w := s.Worker
	var b strings.Builder
	say := func(at time.Time, format string, args ...any) {
		if !at.IsZero() {
			_, _ = fmt.Fprintf(&b, "%s  %s\n", at.UTC().Format(time.DateTime), fmt.Sprintf(format, args...))
		}
	}
	_, _ = fmt.Fprintf(&b, "Worker %s of pool %s: machine %s at %s%s\n\n", w.ID, w.Pool, w.Machine, w.Place, tail(w.Type, string(w.Market)))
	if s.Asked != nil {
		say(s.Asked.At, "%s (tick %s)", s.Asked.Message, s.Asked.Tick)
	}
	after := ""
	if w.Cloud() {
		say(w.BootAt, "launched or resumed")
		if boot := w.Registered.Sub(w.BootAt); !w.BootAt.IsZero() && boot > 0 {
			after = fmt.Sprintf(", %s after that", boot.Truncate(time.Second))
		}
	}
	say(w.Registered, "registered%s", after)
	for _, l := range s.Lines {
		say(l.At, "%s", l.Message)
	}
	say(w.Ended, "ended%s", tail(w.EndWhy))
	if w.Ended.IsZero() {
		heard := "never heard of"
		if !w.Heartbeat.IsZero() {
			heard = "heard of " + ago(s.now, w.Heartbeat) + " ago"
		}
		_, _ = fmt.Fprintf(&b, "\nNow: %s, %d of %d slots at work, %s\n", w.Lifecycle, w.Jobs, w.Slots, heard)
	}
	_, _ = fmt.Fprintf(&b, "Cost: %s, at %s per hour", w.Cost, w.Price)
	return b.String()
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
