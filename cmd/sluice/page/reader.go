package page

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"time"

	"sluice/core/config"
	"sluice/core/fleet"
)

const (
	queryTime   = 5 * time.Second  // no single query holds the page longer
	endedLately = 10 * time.Minute // how long an ended worker is shown
	linesKept   = 60
	sameFor     = 10 * time.Minute // what is said again within it is one line
	linesRead   = 300              // at most in one reading
)

// reader reads the database for all visitors. What grows slowly is read from where the last reading ended.
type reader struct {
	source  Source
	title   string
	samples samples
	lines   []lineView
	last    *tickView // the newest of either function
	spend   fleet.Spend
	broken  string
	mode    fleet.Mode // as the last tick had it
	good    []byte     // the config that parsed is of these bytes
	config  *fleet.Config
}

// reading is one moment of the database.
type reading struct {
	state   state
	at      time.Time // by the database's clock
	memory  fleet.Memory
	workers []fleet.WorkerRecord
}

// read asks for everything that is shown. Each query has a time of its own.
func (r *reader) read(ctx context.Context) (reading, error) {
	m, err := bounded(ctx, r.source.Recall)
	if err != nil {
		return reading{}, err
	}
	ticks, err := bounded(ctx, func(ctx context.Context) ([]fleet.TickRecord, error) {
		return r.source.Ticks(ctx, time.Time{}, 1)
	})
	if err != nil {
		return reading{}, err
	}
	if err := r.follow(ctx, m.Now, ticks); err != nil {
		return reading{}, err
	}
	workers, err := bounded(ctx, func(ctx context.Context) ([]fleet.WorkerRecord, error) {
		return r.source.Workers(ctx, m.Now.Add(-endedLately))
	})
	if err != nil {
		return reading{}, err
	}
	r.learn(m.LastGood)
	return reading{state: r.view(m, workers), at: m.Now, memory: m, workers: workers}, nil
}

// bounded asks one thing, for queryTime at most.
func bounded[T any](ctx context.Context, ask func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, queryTime)
	defer cancel()
	return ask(ctx)
}

// follow reads what a tick has written since the last reading: nothing where there was none.
func (r *reader) follow(ctx context.Context, now time.Time, ticks []fleet.TickRecord) error {
	if r.last != nil && (len(ticks) == 0 || ticks[0].At.Before(r.last.At)) {
		*r = reader{source: r.source, title: r.title} // emptied or restored: what was read is not its past
	}
	if len(ticks) == 0 || r.last != nil && r.last.ID == ticks[0].ID {
		return nil
	}
	lines, err := bounded(ctx, func(ctx context.Context) ([]fleet.LineRecord, error) {
		f := fleet.LineFilter{Limit: linesRead}
		if r.last != nil {
			f.Since = r.last.At
		}
		return r.source.Lines(ctx, f)
	})
	if err != nil {
		return err
	}
	samples, err := bounded(ctx, func(ctx context.Context) ([]fleet.Sample, error) {
		return r.source.Samples(ctx, r.samples.since(now))
	})
	if err != nil {
		return err
	}
	r.samples.add(samples)
	r.take(lines)
	t := ticks[0]
	r.last = &tickView{ID: t.ID, Function: t.Function, At: t.At, Message: t.Message}
	r.spend = t.Spend
	return nil
}

// take adds lines, newest first. A tick's own line says again what its decisions say, so it is not among them; it
// tells the mode and whether the config could be read.
func (r *reader) take(lines []fleet.LineRecord) {
	told := false
	for _, l := range lines {
		if l.Event == "tick" && !told {
			r.hear(l)
			told = true
		}
	}
	for _, l := range slices.Backward(lines) {
		if l.Event != "tick" && (r.last == nil || l.Tick != r.last.ID) { // a reading begins with the tick that the last one ended with
			r.put(l)
		}
	}
	r.lines = r.lines[:min(len(r.lines), linesKept)]
}

// put adds a line on top. One that says what was said a while ago takes the other's place, so that a limit that refuses
// on every tick does not push out all else.
func (r *reader) put(l fleet.LineRecord) {
	v := lineView{
		Key: l.ID, Times: 1, From: l.At,
		ID: l.ID, Tick: l.Tick, At: l.At, Event: l.Event, Level: l.Level, Pool: l.Pool, Worker: l.Worker, Message: l.Message,
	}
	i := slices.IndexFunc(r.lines, func(old lineView) bool {
		return old.Event == v.Event && old.Pool == v.Pool && old.Worker == v.Worker && old.Message == v.Message && v.At.Sub(old.At) <= sameFor
	})
	if i >= 0 {
		old := r.lines[i]
		if !old.At.Before(v.At) {
			return // read already
		}
		v.Key, v.Times, v.From = old.Key, old.Times+1, old.From
		r.lines = slices.Delete(r.lines, i, i+1)
	}
	r.lines = slices.Insert(r.lines, 0, v)
}

func (r *reader) hear(l fleet.LineRecord) {
	var facts struct {
		Mode   fleet.Mode `json:"mode"`
		Broken string     `json:"config_broken"`
	}
	if json.Unmarshal(l.Facts, &facts) == nil && facts.Mode != "" {
		r.mode, r.broken = facts.Mode, facts.Broken
	}
}

// learn reads the config that is in force, once for each that is stored. One that this program cannot read leaves the
// figures of the last tick.
func (r *reader) learn(stored []byte) {
	if len(stored) == 0 || bytes.Equal(stored, r.good) {
		return
	}
	r.good, r.config = stored, nil
	if p, err := config.Parse("the stored config", stored, config.Env{}); err == nil {
		r.config = &p.Config
	}
}

func (r *reader) view(m fleet.Memory, workers []fleet.WorkerRecord) state {
	s := state{
		Title: r.title, Empty: r.last == nil && len(m.LastGood) == 0, Tick: r.last, Late: r.late(m.Now), Broken: r.broken,
		Money: r.money(m), Queues: r.samples.view(m.Now), Workers: viewWorkers(m, workers, ""), Lines: append([]lineView{}, r.lines...),
	}
	if r.config != nil {
		s.Name = r.config.Name
	}
	if m.Override != nil {
		s.Override = &overrideView{Since: m.Override.At, Who: m.Override.Who, Why: m.Override.Why}
	}
	return s
}

func (r *reader) late(now time.Time) bool {
	if r.last == nil {
		return false
	}
	var c fleet.Config
	if r.config != nil {
		c = *r.config
	}
	return c.Late(r.last.At, now)
}
