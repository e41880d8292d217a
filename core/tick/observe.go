package tick

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"sluice/core/fleet"
)

// How old a quote may be.
const (
	spotQuoteAge     = 15 * time.Minute
	onDemandQuoteAge = 24 * time.Hour
)

// observeTime bounds each list, reading, quote or bill.
const observeTime = 15 * time.Second

// observation is what was seen before the lock is taken.
type observation struct {
	snapshot fleet.Snapshot // without memory
	object   *fleet.Object
	quotes   []fleet.Quote // new ones
	skip     fleet.Reason
	failed   error // what could not be asked; the tick goes on
}

// load reads the database's clock and memory, and the config: the one that is there, or the last good
// one with nothing allowed to grow.
func load(ctx context.Context, w World, f fleet.Function, due time.Time) (observation, fleet.Memory, error) {
	o := observation{snapshot: fleet.Snapshot{Version: 1, Function: f, Due: due.UTC(), Limit: fleet.Seconds(w.Limit / time.Second), Traits: traits(w)}}
	m, err := w.Store.Recall(ctx)
	if err != nil {
		return o, m, fmt.Errorf("recall: %w", err)
	}
	obj, cfg, broken := read(ctx, w)
	switch {
	case broken == nil:
		o.object, o.snapshot.Config, o.snapshot.ConfigAt = obj, cfg, obj.Modified.UTC()
	case m.LastGood == nil && errors.Is(broken, fleet.ErrNotFound):
		o.skip = fleet.SkipNotConfigured{Where: strings.TrimSuffix(broken.Error(), ": "+fleet.ErrNotFound.Error())}
	case m.LastGood == nil:
		return o, m, fmt.Errorf("load config: %w", broken)
	default:
		if o.snapshot.Config, err = w.Parse("the last good config", m.LastGood); err != nil {
			return o, m, fmt.Errorf("load config: %w", errors.Join(broken, err))
		}
		o.snapshot.ConfigBroken, o.snapshot.ConfigAt = broken.Error(), m.ConfigAt
	}
	return o, m, nil
}

// read loads a config that this host can act on.
func read(ctx context.Context, w World) (*fleet.Object, fleet.Config, error) {
	obj, err := w.Objects.Get(ctx, "")
	if err != nil {
		return nil, fleet.Config{}, err
	}
	cfg, err := w.Parse(obj.Name, obj.Bytes)
	if err != nil {
		return nil, cfg, err
	}
	if keys := refused(w, cfg); len(keys) > 0 {
		return nil, cfg, fmt.Errorf("%s: this version cannot act on: %s", obj.Name, strings.Join(keys, "; "))
	}
	return &obj, cfg, nil
}

// refused names what the config asks for and this host cannot do. Ignoring it would be worse than stopping.
func refused(w World, c fleet.Config) []string {
	keys := slices.Clone(c.NotHonoured)
	for _, p := range c.Providers {
		if _, ok := w.Clouds[p.Name]; !ok {
			keys = append(keys, fmt.Sprintf("cloud_providers.%s.enabled: provider %q is not linked into this build", p.Name, p.Name))
		}
	}
	for _, q := range c.Queues {
		if w.Queues[q.Source.Kind] == nil {
			keys = append(keys, fmt.Sprintf("queues.%s.source.kind: %q is not connected here", q.Name, q.Source.Kind))
		}
	}
	if c.Interval < w.MinInterval {
		keys = append(keys, fmt.Sprintf("evaluation_interval_seconds: %d is below %d, the shortest that this host can keep", c.Interval, w.MinInterval))
	}
	return keys
}

func traits(w World) map[string]fleet.Traits {
	out := map[string]fleet.Traits{}
	for name, c := range w.Clouds {
		out[name] = c.Traits
	}
	return out
}

// observe sees machines, queues and prices, in parallel, each with a deadline of its own. What
// cannot be seen is unknown, with its cause, and fails nothing else.
func observe(ctx context.Context, w World, f fleet.Function, due time.Time) (observation, error) {
	o, m, err := load(ctx, w, f, due)
	if err != nil || o.skip != nil {
		return o, err
	}
	cfg := o.snapshot.Config
	var wg sync.WaitGroup
	places := placesOf(cfg, m)
	o.snapshot.Listings = make([]fleet.Listing, len(places))
	for i, p := range places {
		wg.Go(func() { o.snapshot.Listings[i] = list(ctx, w, cfg, p, m.Now) })
	}
	wg.Go(func() { o.snapshot.Queues = queues(ctx, w, cfg.Queues) })
	wg.Go(func() { o.quotes = quote(ctx, w, cfg, m) })
	wg.Wait()
	return o, nil
}

// placesOf are those of the config, of live rows, of open intents and of orphans. Where nothing may be
// started and nothing is alive, no cloud is asked at all.
func placesOf(c fleet.Config, m fleet.Memory) []fleet.Place {
	set := map[fleet.Place]bool{}
	if c.Mode != fleet.VPSOnly {
		for _, p := range c.Providers {
			set[p.Place()] = true
		}
	}
	for _, w := range m.Workers {
		if w.Cloud() {
			set[w.Place] = true
		}
	}
	for _, in := range m.Intents {
		if in.Kind != fleet.KindLaunch {
			set[in.Ref.Place] = true
		}
		for _, a := range in.Attempts {
			if a.Launch != nil {
				set[a.Launch.Offer.Place] = true
			}
		}
	}
	for _, s := range m.Sightings {
		set[s.Place] = true
	}
	return sorted(set)
}

func sorted(set map[fleet.Place]bool) []fleet.Place {
	out := make([]fleet.Place, 0, len(set))
	for p := range set {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b fleet.Place) int { return cmp.Compare(a.String(), b.String()) })
	return out
}

func list(ctx context.Context, w World, c fleet.Config, p fleet.Place, begun time.Time) fleet.Listing {
	out := fleet.Listing{Place: p, Begun: begun}
	cloud, ok := w.Clouds[p.Provider]
	if !ok {
		out.Unknown = "this provider is not linked into this build"
		return out
	}
	ctx, cancel := context.WithTimeout(ctx, observeTime)
	defer cancel()
	machines, _, err := cloud.List(ctx, p.Scope, c.Name)
	if err != nil {
		out.Unknown = err.Error()
		return out
	}
	slices.SortFunc(machines, func(a, b fleet.Machine) int { return cmp.Compare(a.ID, b.ID) })
	out.Machines = machines
	return out
}

// queues reads every source once. The demand of a Redis list is the smaller of its length and of the
// rows that can be claimed, because stale and repeated ids must not start machines.
func queues(ctx context.Context, w World, qs []fleet.Queue) []fleet.QueueState {
	byKind := map[fleet.SourceKind][]fleet.Queue{}
	for _, q := range qs {
		byKind[q.Source.Kind] = append(byKind[q.Source.Kind], q)
		if q.Source.Rows && q.Source.Kind != fleet.SourcePostgres {
			byKind[fleet.SourcePostgres] = append(byKind[fleet.SourcePostgres], q)
		}
	}
	seen := map[fleet.SourceKind]map[string]fleet.QueueState{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for kind, asked := range byKind {
		wg.Go(func() {
			got := readQueues(ctx, w.Queues[kind], asked)
			mu.Lock()
			defer mu.Unlock()
			seen[kind] = got
		})
	}
	wg.Wait()
	out := make([]fleet.QueueState, 0, len(qs))
	for _, q := range qs {
		st := seen[q.Source.Kind][q.Name]
		if q.Source.Rows && q.Source.Kind != fleet.SourcePostgres {
			st = smaller(st, seen[fleet.SourcePostgres][q.Name])
		}
		out = append(out, st)
	}
	return out
}

func readQueues(ctx context.Context, r fleet.Queues, asked []fleet.Queue) map[string]fleet.QueueState {
	ctx, cancel := context.WithTimeout(ctx, observeTime)
	defer cancel()
	out := map[string]fleet.QueueState{}
	cause := "no reader for this source is linked"
	if r != nil {
		got, err := r.Read(ctx, asked)
		for _, st := range got {
			if st.Unknown != "" { // whatever else it says means nothing
				st = fleet.QueueState{Name: st.Name, Unknown: st.Unknown}
			}
			out[st.Name] = st
		}
		if err != nil {
			cause = err.Error()
		} else {
			cause = "the source did not answer for it"
		}
	}
	for _, q := range asked {
		if _, ok := out[q.Name]; !ok {
			out[q.Name] = fleet.QueueState{Name: q.Name, Unknown: cause}
		}
	}
	return out
}

// smaller joins a list's length with what the job table knows. Either one unknown makes both so, but
// the table's age and running jobs still count where only the list is unknown.
func smaller(list, rows fleet.QueueState) fleet.QueueState {
	out := rows
	out.Unknown = strings.Join(slices.DeleteFunc([]string{list.Unknown, rows.Unknown}, func(s string) bool { return s == "" }), "; ")
	if list.Unknown == "" && list.Depth < rows.Depth {
		out.Depth, out.Priorities = list.Depth, nil
	}
	return out
}

// quote asks for prices that the config does not give and memory does not know fresh enough, only
// where a pool could grow.
func quote(ctx context.Context, w World, c fleet.Config, m fleet.Memory) []fleet.Quote {
	if c.Mode == fleet.VPSOnly {
		return nil
	}
	known := map[string]bool{}
	for _, q := range fresh(c, m, nil) {
		known[q.Offer] = true
	}
	ask := map[string][]fleet.Offer{}
	for _, p := range c.Pools {
		for _, o := range p.Offers {
			_, static := c.Price(o)
			if p.Enabled && !known[o.Key()] && !static {
				known[o.Key()] = true
				ask[o.Provider] = append(ask[o.Provider], o)
			}
		}
	}
	var out []fleet.Quote
	for _, name := range slices.Sorted(maps.Keys(ask)) {
		if cloud, ok := w.Clouds[name]; ok {
			ctx, cancel := context.WithTimeout(ctx, observeTime)
			got, err := cloud.Quote(ctx, ask[name])
			cancel()
			if err == nil { // without a price nothing is launched, and the decision says so
				out = append(out, c.Quoted(name, got)...)
			}
		}
	}
	for i := range out {
		out[i].At = m.Now
	}
	sortQuotes(out)
	return out
}

// fresh are the quotes that still hold: remembered ones that are young enough, and new ones.
func fresh(c fleet.Config, m fleet.Memory, fetched []fleet.Quote) []fleet.Quote {
	age := map[string]time.Duration{}
	for _, p := range c.Pools {
		for _, o := range p.Offers {
			age[o.Key()] = onDemandQuoteAge
			if o.Market == fleet.Spot {
				age[o.Key()] = spotQuoteAge
			}
		}
	}
	newest := map[string]fleet.Quote{}
	for _, q := range slices.Concat(m.Quotes, fetched) {
		if m.Now.Sub(q.At) < age[q.Offer] {
			newest[q.Offer] = q
		}
	}
	out := make([]fleet.Quote, 0, len(newest))
	for _, q := range newest {
		out = append(out, q)
	}
	sortQuotes(out)
	return out
}

func sortQuotes(qs []fleet.Quote) {
	slices.SortFunc(qs, func(a, b fleet.Quote) int { return cmp.Compare(a.Offer, b.Offer) })
}

// observeBills asks every provider that bills for yesterday and today.
func observeBills(ctx context.Context, w World, due time.Time) (observation, error) {
	o, m, err := load(ctx, w, fleet.Reconcile, due)
	if err != nil || o.skip != nil {
		return o, err
	}
	from := m.Now.UTC().Truncate(24*time.Hour).AddDate(0, 0, -1)
	names := make([]string, 0, len(w.Billing))
	for name := range w.Billing {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		got, err := charges(ctx, w.Billing[name], from, m.Now)
		if err == nil {
			got, err = o.snapshot.Config.Billed(name, got)
		}
		if err != nil {
			o.failed = errors.Join(o.failed, fmt.Errorf("ask %s for its charges: %w", name, err))
			continue
		}
		o.snapshot.Charges = append(o.snapshot.Charges, got...)
	}
	return o, nil
}

func charges(ctx context.Context, b fleet.Billing, from, to time.Time) ([]fleet.Bill, error) {
	ctx, cancel := context.WithTimeout(ctx, observeTime)
	defer cancel()
	return b.Charges(ctx, from, to)
}
