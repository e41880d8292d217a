package page

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"sluice/core/decide"
	"sluice/core/explain"
	"sluice/core/fleet"
)

const (
	ticksKept = 64  // told ones; they never change
	shownMost = 50  // of anything that a big deployment has thousands of
	storyMost = 400 // lines
)

// ticks tells stored ticks again, one at a time: a big snapshot takes a while and some memory.
type ticks struct {
	source Source
	mu     sync.Mutex
	told   map[string]*toldTick
	order  []string
}

// toldTick is a tick with everything that was thought on it. Words are explain's.
type toldTick struct {
	ID       string     `json:"id"`
	Currency string     `json:"currency,omitempty"`
	Verdict  string     `json:"verdict,omitempty"`
	Missing  string     `json:"missing,omitempty"` // why there is no more than the lines
	Pools    []toldPool `json:"pools"`
	Notes    []toldNote `json:"notes"`
	Lines    []toldLine `json:"lines"`
	Story    string     `json:"story,omitempty"`
}

type toldPool struct {
	Pool     string     `json:"pool"`
	Have     int        `json:"have"`
	Want     int        `json:"want"`
	Steps    []toldStep `json:"steps"`
	Rejected []toldWhy  `json:"rejected"`
	Kept     []toldWhy  `json:"kept"`
	Drained  []toldWhy  `json:"drained"`
	More     int        `json:"more"` // kept and drained ones that are not listed
	Ladder   []rung     `json:"ladder"`
}

type toldStep struct {
	From  int             `json:"from"`
	To    int             `json:"to"`
	Why   string          `json:"why"`
	Facts json.RawMessage `json:"facts"`
}

// toldWhy is an offer or a worker, and why.
type toldWhy struct {
	What  string          `json:"what"`
	Why   string          `json:"why"`
	Facts json.RawMessage `json:"facts"`
}

type toldNote struct {
	Level fleet.Level `json:"level"`
	toldWhy
}

type toldLine struct {
	ID      string          `json:"id"`
	Message string          `json:"message"`
	Facts   json.RawMessage `json:"facts,omitempty"`
}

// rung is one way to add capacity, and what came of it.
type rung struct {
	What  string  `json:"what"`
	Took  int     `json:"took"`
	Names string  `json:"names,omitempty"`
	Price float64 `json:"price,omitempty"` // per hour
}

func (t *ticks) tell(ctx context.Context, id string) (*toldTick, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if v, ok := t.told[id]; ok {
		return v, nil
	}
	v, err := t.read(ctx, id)
	if err != nil {
		return nil, err
	}
	if len(t.order) == ticksKept {
		delete(t.told, t.order[0])
		t.order = t.order[1:]
	}
	t.told[id], t.order = v, append(t.order, id)
	return v, nil
}

func (t *ticks) read(ctx context.Context, id string) (*toldTick, error) {
	lines, err := bounded(ctx, func(ctx context.Context) ([]fleet.LineRecord, error) {
		return t.source.Lines(ctx, fleet.LineFilter{Tick: id, Limit: linesRead})
	})
	if err != nil {
		return nil, err
	}
	if len(lines) == 0 {
		return nil, fmt.Errorf("read tick %q: %w", id, fleet.ErrNotFound)
	}
	v := &toldTick{ID: id, Pools: []toldPool{}, Notes: []toldNote{}}
	for _, l := range lines {
		v.Lines = append(v.Lines, toldLine{l.ID, l.Message, l.Facts})
	}
	s, stored, err := t.snapshot(ctx, id)
	switch {
	case errors.Is(err, fleet.ErrNotFound):
		v.Missing = "No snapshot was kept of this tick: it changed nothing, or it is older than 30 days."
		return v, nil
	case err != nil:
		return nil, err
	}
	return v, v.replay(s, stored)
}

func (t *ticks) snapshot(ctx context.Context, id string) (fleet.Snapshot, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, queryTime)
	defer cancel()
	return t.source.Snapshot(ctx, id)
}

// replay decides the stored snapshot again: a plan as stored has codes and facts, and only a decided one has words.
func (v *toldTick) replay(s fleet.Snapshot, stored []byte) error {
	p := decide.Decide(s)
	agrees, err := decide.Same(stored, p)
	if err != nil {
		return err
	}
	v.Currency = s.Config.Currency
	v.Verdict = "Today's code decides the same."
	if !agrees {
		v.Verdict = "Today's code decides otherwise than was decided then; what is told here is today's. `sluice explain " + v.ID + " --json` shows both."
	}
	for _, pool := range p.Pools {
		v.Pools = append(v.Pools, tellPool(pool, p.Intents))
	}
	for _, n := range p.Notes[:min(len(p.Notes), shownMost)] {
		what := n.Pool
		if n.Worker != "" {
			what = n.Worker
		}
		v.Notes = append(v.Notes, toldNote{n.Level, tellWhy(what, n.Why)})
	}
	v.Story = shortened(explain.Story(p, s), v.ID)
	return nil
}

func shortened(story, id string) string {
	lines := strings.Split(strings.TrimRight(story, "\n"), "\n")
	if more := len(lines) - storyMost; more > 0 {
		lines = append(lines[:storyMost], fmt.Sprintf("… and %d lines more: sluice explain %s", more, id))
	}
	return strings.Join(lines, "\n")
}

func tellPool(p fleet.PoolPlan, intents []fleet.Intent) toldPool {
	v := toldPool{
		Pool: p.Pool, Have: p.Have, Want: p.Want, Ladder: ladder(p, intents),
		Steps: []toldStep{}, Rejected: []toldWhy{}, Kept: []toldWhy{}, Drained: []toldWhy{},
		More: max(0, len(p.Kept)-shownMost) + max(0, len(p.Drain)-shownMost),
	}
	for _, s := range p.Steps {
		w := tellWhy("", s.Why)
		v.Steps = append(v.Steps, toldStep{s.From, s.To, w.Why, w.Facts})
	}
	for _, r := range p.Rejected {
		v.Rejected = append(v.Rejected, tellWhy(r.Offer, r.Why))
	}
	for _, k := range p.Kept[:min(len(p.Kept), shownMost)] {
		v.Kept = append(v.Kept, tellWhy(k.Worker, k.Why))
	}
	for _, d := range p.Drain[:min(len(p.Drain), shownMost)] {
		v.Drained = append(v.Drained, tellWhy(d.Worker, d.Why))
	}
	return v
}

func tellWhy(what string, r fleet.Reason) toldWhy {
	facts, err := fleet.MarshalReason(r)
	if err != nil { // a reason is numbers and strings
		facts = []byte("{}")
	}
	return toldWhy{what, explain.Reason(r), facts}
}

// ladder is how capacity was added, cheapest and fastest first; nothing where none was.
func ladder(p fleet.PoolPlan, intents []fleet.Intent) []rung {
	if p.Launch+len(p.Undrain)+len(p.Resume) == 0 {
		return []rung{}
	}
	out := []rung{
		{What: "keep a worker that drains", Took: len(p.Undrain), Names: named(p.Undrain)},
		{What: "wake a suspended machine", Took: len(p.Resume), Names: named(p.Resume)},
	}
	if p.Launch == 0 || p.Offer == nil {
		return append(out, rung{What: "launch a machine", Took: p.Launch})
	}
	out = append(out, rung{What: "launch", Took: p.Launch, Names: p.Offer.Key(), Price: shownAmount(p.Price)})
	for _, in := range intents {
		if in.Kind != fleet.KindLaunch || in.Pool != p.Pool || len(in.Offers) == 0 || in.Offers[0].Key() != p.Offer.Key() {
			continue
		}
		for i, o := range in.Offers[1:] {
			r := rung{What: "if refused, launch", Names: o.Key()}
			if i+1 < len(in.Prices) {
				r.Price = shownAmount(in.Prices[i+1])
			}
			out = append(out, r)
		}
		break
	}
	return out
}

func named(ids []string) string {
	if more := len(ids) - shownMost; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(ids[:shownMost], ", "), more)
	}
	return strings.Join(ids, ", ")
}
