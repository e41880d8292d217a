package page

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"sluice/core/fleet"
	"sluice/core/spend"
)

const (
	cardsShown = 12 // in each column
	poolsShown = 12
)

// Columns, in the order of a worker's life.
const (
	columnAsked     = "asked"
	columnBooting   = "booting"
	columnReady     = "ready"
	columnWorking   = "working"
	columnDraining  = "draining"
	columnSuspended = "suspended"
	columnEnded     = "ended"
)

func columns() []string {
	return []string{columnAsked, columnBooting, columnReady, columnWorking, columnDraining, columnSuspended, columnEnded}
}

func column(l fleet.Lifecycle) string {
	switch l {
	case fleet.LifeDeallocated:
		return columnAsked
	case fleet.LifeProvisioning, fleet.LifeWarming:
		return columnBooting
	case fleet.LifeReady, fleet.LifeCooldown:
		return columnReady
	case fleet.LifeProcessing:
		return columnWorking
	case fleet.LifeDraining:
		return columnDraining
	case fleet.LifeSuspended:
		return columnSuspended
	case fleet.LifeTerminated, fleet.LifeFailed:
	}
	return columnEnded
}

// viewWorkers counts all workers, and shows the first of each column that a search finds; an empty one finds all.
func viewWorkers(m fleet.Memory, workers []fleet.WorkerRecord, find string) workersView {
	b := board{find: strings.ToLower(strings.TrimSpace(find)), cards: map[string][]cardView{}, found: map[string]int{}, pools: map[string]map[string]int{}}
	for _, in := range m.Intents {
		if n := in.Unbound(); n > 0 {
			b.put(columnAsked, askedCard(in, n), n)
		}
	}
	for _, w := range workers {
		to := column(w.Lifecycle())
		b.put(to, workerCard(w), 1)
		if to != columnEnded {
			b.living++
		}
	}
	return b.view()
}

// board is where cards are put.
type board struct {
	find   string
	cards  map[string][]cardView
	found  map[string]int
	pools  map[string]map[string]int
	living int
}

func (b *board) put(to string, c cardView, n int) {
	if b.pools[c.Pool] == nil {
		b.pools[c.Pool] = map[string]int{}
	}
	b.pools[c.Pool][to] += n
	if !c.matches(b.find) {
		return
	}
	b.found[to] += n
	b.cards[to] = append(b.cards[to], c)
}

func (b *board) view() workersView {
	v := workersView{Total: b.living, Columns: []columnView{}, Pools: []poolCount{}}
	for _, id := range columns() {
		cards := b.cards[id]
		slices.SortStableFunc(cards, newerFirst)
		v.Columns = append(v.Columns, columnView{ID: id, Count: b.found[id], Cards: append([]cardView{}, cards[:min(len(cards), cardsShown)]...)})
		v.Match += b.found[id]
	}
	names := slices.Sorted(maps.Keys(b.pools))
	slices.SortStableFunc(names, func(x, y string) int { return cmp.Compare(sum(b.pools[y]), sum(b.pools[x])) })
	for i, name := range names {
		if i == poolsShown {
			v.More = len(names) - i
			break
		}
		v.Pools = append(v.Pools, poolCount{Pool: name, Counts: b.pools[name]})
	}
	return v
}

func newerFirst(a, b cardView) int {
	switch {
	case a.Since == nil || b.Since == nil:
		return 0
	case !a.Since.Equal(*b.Since):
		return b.Since.Compare(*a.Since)
	}
	return cmp.Compare(a.ID, b.ID)
}

func sum(counts map[string]int) int {
	n := 0
	for _, c := range counts {
		n += c
	}
	return n
}

func (c cardView) matches(find string) bool {
	if find == "" {
		return true
	}
	for _, text := range []string{c.ID, c.Pool, string(c.State), c.Place, c.Machine, c.Type, c.Why} {
		if strings.Contains(strings.ToLower(text), find) {
			return true
		}
	}
	return false
}

func askedCard(in fleet.Intent, n int) cardView {
	c := cardView{ID: in.ID, Pool: in.Pool, State: fleet.LifeDeallocated, Cloud: true, Price: shownAmount(in.Reserve), Since: known(in.Created), Why: in.Why, Count: n}
	if len(in.Offers) > 0 {
		c.Place, c.Type = in.Offers[0].String(), in.Offers[0].Type
	}
	return c
}

func workerCard(w fleet.WorkerRecord) cardView {
	c := cardView{
		ID: w.ID, Pool: w.Pool, State: w.Lifecycle(), Place: w.Place.String(), Machine: w.Machine, Type: w.Type,
		Jobs: w.Jobs, Slots: w.Slots, Cloud: w.Cloud(), Price: shownAmount(spend.Rate(w.Worker)), Cost: shownAmount(w.Cost),
		Since: known(w.Ended, w.DrainAt, w.Changed, w.BootAt), Heard: known(w.Heartbeat), Why: w.DrainWhy,
	}
	if !w.Ended.IsZero() {
		c.Heard, c.Why = nil, cmp.Or(w.EndWhy, w.DrainWhy)
	}
	return c
}
