package page

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"sluice/core/fleet"
)

// maxVisitors bounds the open streams; each costs a connection.
const maxVisitors = 500

var errFull = errors.New("too many visitors: close one of the other pages, or come back later")

// feed reads for all visitors at once, and not at all while there are none.
type feed struct {
	read     func(context.Context) (reading, error)
	controls []Control
	every    time.Duration
	report   func(error)
	asked    chan struct{} // somebody wants a reading now

	mu       sync.Mutex
	visitors map[chan struct{}]struct{}
	latest   reading
	body     []byte // the state as JSON
	version  int    // of the body
	begun    bool
	readAt   time.Time // of the last reading that came to something; this machine's clock, for spans only
	lost     error
	lostAt   time.Time
}

func newFeed(o Options) *feed {
	r := &reader{source: o.Source, title: o.Title}
	nothing := state{Title: o.Title, Queues: queuesView{Shown: []queueView{}}, Workers: viewWorkers(fleet.Memory{}, nil, ""), Lines: []lineView{}}
	return &feed{
		latest: reading{state: nothing},
		read:   r.read, controls: o.Controls, every: o.Every, report: o.Report,
		asked: make(chan struct{}, 1), visitors: map[chan struct{}]struct{}{},
	}
}

// run is the one reader, until the context ends.
func (f *feed) run(ctx context.Context) {
	timer := time.NewTicker(f.every)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.asked:
		case <-timer.C:
			if f.alone() {
				continue
			}
		}
		got, err := f.read(ctx)
		if ctx.Err() == nil {
			f.keep(got, err, time.Now())
		}
	}
}

func (f *feed) alone() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.visitors) == 0
}

// ask has the next reading done now rather than later.
func (f *feed) ask() {
	select {
	case f.asked <- struct{}{}:
	default: // it is asked for already
	}
}

// keep takes a reading up and wakes all visitors.
func (f *feed) keep(got reading, err error, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begun = true
	if (err == nil) != (f.lost == nil) {
		f.report(err)
		f.lostAt = now
	}
	f.lost = err
	if err == nil {
		f.latest, f.readAt = got, now
	}
	s := f.latest.state
	s.Controls = viewControls(f.controls)
	body, jsonErr := json.Marshal(s)
	if jsonErr == nil && !bytes.Equal(body, f.body) { // a state always marshals
		f.body, f.version = body, f.version+1
	}
	for wake := range f.visitors {
		select {
		case wake <- struct{}{}:
		default: // it is awake, and will find the newest
		}
	}
}

// envelope is one event: how old the state is, and the state itself where it has changed.
type envelope struct {
	At      *time.Time      `json:"at,omitempty"` // by the database's clock; none before the first reading
	Age     int64           `json:"age_seconds"`  // of the reading
	Every   float64         `json:"every_seconds"`
	Trouble *troubleView    `json:"trouble,omitempty"`
	State   json.RawMessage `json:"state,omitempty"`
}

// next is what a visitor who has seen a version is sent; nothing before the first reading.
func (f *feed) next(seen int, now time.Time) (e envelope, version int, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.begun {
		return envelope{}, seen, false
	}
	e = envelope{Every: f.every.Seconds()}
	if !f.readAt.IsZero() {
		at := f.latest.at.UTC()
		e.At, e.Age = &at, int64(now.Sub(f.readAt)/time.Second)
	}
	if f.lost != nil {
		e.Trouble = trouble(f.lost, f.lostAt, now)
	}
	if seen != f.version {
		e.State = f.body
	}
	return e, f.version, true
}

// join adds a visitor and has a reading made for it.
func (f *feed) join() (wake chan struct{}, leave func(), err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.visitors) >= maxVisitors {
		return nil, nil, errFull
	}
	wake = make(chan struct{}, 1)
	if len(f.visitors) == 0 {
		f.begun = false // what was read for earlier visitors is old by now
		f.ask()
	} else {
		wake <- struct{}{}
	}
	f.visitors[wake] = struct{}{}
	return wake, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.visitors, wake)
	}, nil
}

// search finds workers among those of the last reading.
func (f *feed) search(find string) workersView {
	f.mu.Lock()
	m, workers := f.latest.memory, f.latest.workers
	f.mu.Unlock()
	return viewWorkers(fleet.Memory{Intents: m.Intents}, workers, find)
}
