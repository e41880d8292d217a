package sim

import (
	"encoding/json"
	"time"

	"sluice/core/fleet"
)

// truth is what really happened, which no process can see.
type truth struct {
	completed map[string]int // by job: how often its completion was accepted
	enqueued  map[string]Job
	tries     int
	poisoned  map[string]string // queues that cannot be read, with the cause
	late      time.Duration     // of bills
	more      int               // percent that bills are above the prices
}

// EventKind is what kind of effect was had.
type EventKind string

// Kinds of event.
const (
	EventCommit EventKind = "commit"
	EventLaunch EventKind = "launch"
	EventResume EventKind = "resume"
	EventEnding EventKind = "ending" // a terminate or suspend call was accepted for the first time
)

// Event is an effect as it was had, whatever the caller learned of it.
type Event struct {
	Kind     EventKind
	At       time.Time
	Process  string
	Plan     *fleet.Plan
	Snapshot *fleet.Snapshot // that a commit keeps; nil where nothing changed
	Intent   string          // of a launch; of an ending the open intent about the machine, if there is one
	Token    string
	Launch   *fleet.Launch
	Machines []fleet.Machine
	Machine  string
	Err      error
	Busy     int  // jobs in hand on a machine that is ended
	Forced   bool // the intent says so
	Row      *fleet.Worker
}

func (w *World) note(e Event) {
	e.At = w.now()
	w.events = append(w.events, e)
}

// Events takes what has happened since it was last asked.
func (w *World) Events() []Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.events
	w.events = nil
	return out
}

// ending describes the end of a machine at the moment when the call is accepted.
func (w *World) ending(p *Process, m *Machine) Event {
	e := Event{Kind: EventEnding, Process: p.name, Machine: m.ID}
	if g := w.agents[m.ID]; g != nil {
		for _, h := range g.hands {
			if _, ok := w.db.current(h.Attempt); ok {
				e.Busy++
			}
		}
	}
	for id, in := range w.db.intents {
		if in.State == fleet.IntentOpen && in.Kind != fleet.KindLaunch && in.Ref.Machine == m.ID {
			e.Intent, e.Forced = id, in.Forced
		}
	}
	if row, ok := w.db.byMachine(m.Place, m.ID); ok {
		e.Row = &row.Worker
	}
	return e
}

// Rate is what all machines cost per hour now.
func (w *World) Rate() fleet.Money {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.settleMachines()
	var sum fleet.Money
	for _, a := range w.clouds {
		for _, m := range a.machines {
			if !m.Gone() {
				sum += a.rate(m, m.stored)
			}
		}
	}
	return sum
}

// Spent is what all machines cost between two times, minimum charges included.
func (w *World) Spent(from, to time.Time) fleet.Money {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.settleMachines()
	var sum fleet.Money
	for _, name := range w.order {
		sum += w.clouds[name].spent(from, to, w.now())
	}
	return sum
}

// Cost is what one machine cost in all.
func (w *World) Cost(machine string) fleet.Money {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.settleMachines()
	for _, a := range w.clouds {
		if m := a.find(machine); m != nil {
			return a.cost(m, time.Time{}, w.now().Add(time.Hour), w.now())
		}
	}
	return 0
}

func (a *account) spent(from, to, now time.Time) fleet.Money {
	var sum fleet.Money
	for _, m := range a.machines {
		sum += a.cost(m, from, to, now)
	}
	return sum
}

// cost is a machine's part of a time, each stretch charged as the provider counts.
func (a *account) cost(m *Machine, from, to, now time.Time) fleet.Money {
	stretches := m.cost
	if !m.Gone() {
		stretches = append(stretches[:len(stretches):len(stretches)], stretch{m.since, now, m.stored})
	}
	var sum fleet.Money
	for _, s := range stretches {
		s.to = a.charged(s)
		sum += a.rate(m, s.stored).For(earliest(s.to, to).Sub(latest(s.from, from)))
	}
	return sum
}

// rate is what a machine costs per hour.
func (a *account) rate(m *Machine, stored bool) fleet.Money {
	if !stored {
		return m.Price
	}
	return a.Stored[m.Type]
}

// charged is until when a stretch is charged. What a suspended machine keeps is charged as time passes.
func (a *account) charged(s stretch) time.Time {
	until := s.to
	if s.stored {
		return until
	}
	if step := a.Traits.Increment.Duration(); step > 0 {
		for until = s.from; until.Before(s.to); {
			until = until.Add(step)
		}
	}
	return latest(until, s.from.Add(a.Traits.MinCharge.Duration()))
}

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// Completed is how often the completion of a job was accepted.
func (w *World) Completed(job string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.truth.completed[job]
}

// Database is what the database remembers now, for those who look from outside.
func (w *World) Database() fleet.Memory {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.db.memory(w.clock())
}

// Inbox is what was delivered.
func (w *World) Inbox() []fleet.Alert {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]fleet.Alert(nil), w.inbox...)
}

func text(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}
