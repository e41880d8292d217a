package tick_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sluice/core/decide"
	"sluice/core/fleet"
	"sluice/core/tick"
)

func TestATickLaunchesWhatWasDecided(t *testing.T) {
	t.Parallel()
	s := set(t, busy)
	r := must(t, s)
	same(t, "calls", s.cloud.log(), []string{"launch c6i", "list eu prod"})
	in := r.Plan.Intents[0]
	if res := s.store.settled[in.ID]; res.Outcome != fleet.OutcomeDone || res.State != fleet.IntentDone || len(res.Machines) != 1 {
		t.Errorf("the answer is written down: %+v", res)
	}
	if len(s.store.records) != 1 || s.store.records[0].Snapshot == nil || s.store.records[0].Config == nil || len(r.Lines) == 0 {
		t.Error("a tick that changes something keeps its snapshot, and each tick its lines")
	}
}

func TestAConfigThatCannotBeActedOn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		broken func(*setting)
		says   string
	}{
		{"keys that this version does not act on", func(s *setting) { s.config.NotHonoured = []string{"routing[0].to"} }, "routing[0].to"},
		{"a provider that is not linked", func(s *setting) { delete(s.world.Clouds, "aws") }, `cloud_providers.aws.enabled: provider "aws" is not linked`},
		{"a source that is not connected", func(s *setting) { s.config.Queues[0].Source.Kind = fleet.SourceRabbitMQ }, "queues.ocr.source.kind"},
		{"an interval that the host cannot keep", func(s *setting) { s.config.Interval = 30 }, "evaluation_interval_seconds: 30 is below 60"},
		{"bytes that are no config", func(s *setting) { s.object.Bytes = []byte("{") }, "s3://bucket/scheduler.json"},
		{"an object that cannot be read", func(s *setting) { s.object.err = errDown }, "connection refused"},
		{"an object that is gone", func(s *setting) { s.object.err = fmt.Errorf("s3://bucket/scheduler.json: %w", fleet.ErrNotFound) }, "not found"},
	} {
		t.Run(c.name+": the last good one holds and nothing grows", func(t *testing.T) {
			t.Parallel()
			s := set(t, busy, good(t), drained("a"), c.broken)
			r, _ := evaluate(t, s)
			if !strings.Contains(r.Snapshot.ConfigBroken, c.says) || len(r.Plan.Pools) != 1 || r.Plan.Pools[0].Launch != 0 {
				t.Errorf("broken %q, pools %s", r.Snapshot.ConfigBroken, marshal(t, r.Plan.Pools))
			}
			if !slices.ContainsFunc(r.Plan.Alerts, func(a fleet.Alert) bool {
				return a.Level == fleet.Critical && strings.HasPrefix(a.Key, "config.broken/") && a.Title != ""
			}) {
				t.Errorf("no critical alert: %s", marshal(t, r.Plan.Alerts))
			}
			if rec := s.store.records[0]; rec.Config != nil || rec.Assignments != nil {
				t.Error("a config that is broken is not kept as the last good one")
			}
			if linked := s.world.Clouds["aws"].Compute != nil; linked && !slices.Contains(s.cloud.log(), "terminate i-a") {
				t.Errorf("what ends goes on ending: %v", s.cloud.log())
			}
		})
		if c.name == "an object that is gone" {
			continue
		}
		t.Run(c.name+": without a last good one the tick fails visibly", func(t *testing.T) {
			t.Parallel()
			s := set(t, busy, c.broken)
			if _, err := evaluate(t, s); err == nil || !strings.Contains(err.Error(), c.says) || !strings.HasPrefix(err.Error(), "load config: ") {
				t.Errorf("error %v, want one that says %q", err, c.says)
			}
			if len(s.cloud.log())+len(s.store.plans) != 0 {
				t.Errorf("nothing was done: %v", s.cloud.log())
			}
		})
	}
}

func TestALastGoodConfigThatNoLongerParsesIsAFailure(t *testing.T) {
	t.Parallel()
	s := set(t, func(s *setting) { s.object.err, s.store.memory.LastGood = errDown, []byte("{") })
	if _, err := evaluate(t, s); err == nil || !errors.Is(err, errDown) || !strings.Contains(err.Error(), "the last good config") {
		t.Errorf("error %v", err)
	}
}

func TestNotConfiguredYetSucceedsAndSaysSo(t *testing.T) {
	t.Parallel()
	s := set(t, func(s *setting) { s.object.err = fmt.Errorf("s3://bucket/scheduler.json: %w", fleet.ErrNotFound) })
	r := must(t, s)
	skip, ok := r.Plan.Skipped.(fleet.SkipNotConfigured)
	if !ok || skip.Where != "s3://bucket/scheduler.json" || len(r.Lines) != 1 || !strings.Contains(r.Lines[0].Message, "s3://bucket/scheduler.json") {
		t.Errorf("skipped %+v, lines %s", r.Plan.Skipped, marshal(t, r.Lines))
	}
	if len(s.store.plans)+len(s.cloud.log()) != 0 {
		t.Error("nothing is written and nothing is asked")
	}
}

func TestAConfigOlderThanOneSeenIsNotKept(t *testing.T) {
	t.Parallel()
	s := set(t, busy, func(s *setting) { s.store.memory.ConfigAt = noon.Add(-time.Minute) })
	r := must(t, s)
	if rec := s.store.records[0]; rec.Config != nil || rec.Assignments != nil || r.Plan.Pools[0].Launch != 0 {
		t.Errorf("record %+v, launch %d", rec.Config, r.Plan.Pools[0].Launch)
	}
}

func TestVPSOnlyWithNothingAliveAsksNoCloud(t *testing.T) {
	t.Parallel()
	vpsOnly := func(s *setting) { s.config.Mode = fleet.VPSOnly }
	s := set(t, busy, vpsOnly)
	s.config.Prices = nil
	r := must(t, s)
	same(t, "calls", s.cloud.log(), []string{})
	if r.Plan.Pools[0].Hybrid != 1 {
		t.Errorf("what hybrid would want is still computed: %s", marshal(t, r.Plan.Pools))
	}
	alive := set(t, vpsOnly, drained("a"))
	must(t, alive)
	same(t, "calls with one alive", alive.cloud.log(), []string{"list eu prod", "terminate i-a"})
	asked := set(t, vpsOnly, func(s *setting) {
		s.store.memory.Intents = []fleet.Intent{{
			ID: "in", Kind: fleet.KindLaunch, State: fleet.IntentOpen, Pool: "ocr", Count: 1, Created: noon.Add(-time.Minute), ClaimedUntil: noon.Add(time.Minute),
			Attempts: []fleet.Attempt{{Ordinal: 1, First: noon, Launch: &fleet.Launch{Offer: fleet.Offer{Place: place}}}},
		}}
	})
	must(t, asked)
	same(t, "calls with a launch open", asked.cloud.log(), []string{"list eu prod"})
}

func TestARedisListCountsForWhatTheTableKnows(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name             string
		list, rows, want fleet.QueueState
	}{
		{"stale ids start no machine", fleet.QueueState{Depth: 40}, fleet.QueueState{Depth: 3, Oldest: 9, Running: 2}, fleet.QueueState{Depth: 3, Oldest: 9, Running: 2}},
		{"rows that are not in the list are not counted", fleet.QueueState{Depth: 1}, fleet.QueueState{Depth: 3, Oldest: 9, Running: 2, Priorities: []fleet.PriorityState{{Priority: 1, Depth: 3}}}, fleet.QueueState{Depth: 1, Oldest: 9, Running: 2}},
		{"a list that cannot be read leaves the table's figures for age", fleet.QueueState{Unknown: "refused", Depth: 99}, fleet.QueueState{Depth: 3, Oldest: 9}, fleet.QueueState{Unknown: "refused", Depth: 3, Oldest: 9}},
		{"a table that cannot be read leaves nothing", fleet.QueueState{Depth: 40}, fleet.QueueState{Unknown: "locked", Depth: 7, Oldest: 999}, fleet.QueueState{Unknown: "locked"}},
		{"both causes are told", fleet.QueueState{Unknown: "refused"}, fleet.QueueState{Unknown: "locked"}, fleet.QueueState{Unknown: "refused; locked"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.list.Name, c.rows.Name, c.want.Name = "ocr", "ocr", "ocr"
			s := set(t, func(s *setting) {
				s.config.Queues[0].Source.Kind = fleet.SourceRedis
				s.list.states, s.rows.states = []fleet.QueueState{c.list}, []fleet.QueueState{c.rows}
			})
			r := must(t, s)
			same(t, "queues", r.Snapshot.Queues, []fleet.QueueState{c.want})
		})
	}
	alone := set(t, func(s *setting) {
		s.config.Queues[0].Source = fleet.Source{Kind: fleet.SourceRedis}
		s.list.states = []fleet.QueueState{{Name: "ocr", Depth: 40, NoAge: true}}
	})
	same(t, "a list whose jobs are not in the table", must(t, alone).Snapshot.Queues, []fleet.QueueState{{Name: "ocr", Depth: 40, NoAge: true}})
	if len(alone.rows.asked) != 0 {
		t.Error("the table is not asked for it")
	}
}

func TestASourceThatFailsIsUnknownAndStopsNoOther(t *testing.T) {
	t.Parallel()
	s := set(t, func(s *setting) {
		s.config.Queues = append(s.config.Queues, fleet.Queue{Name: "mail", Source: fleet.Source{Kind: fleet.SourceRedis}}, fleet.Queue{Name: "odd", Source: fleet.Source{Kind: fleet.SourcePostgres, Rows: true}})
		s.list.err = errDown
	})
	r := must(t, s)
	same(t, "queues", r.Snapshot.Queues, []fleet.QueueState{{Name: "ocr"}, {Name: "mail", Unknown: "connection refused"}, {Name: "odd", Unknown: "the source did not answer for it"}})
	if len(s.rows.asked) != 1 || len(s.list.asked) != 1 {
		t.Errorf("each source is read once: %d and %d times", len(s.rows.asked), len(s.list.asked))
	}
}

func TestAListThatFailsIsUnknown(t *testing.T) {
	t.Parallel()
	s := set(t, busy, drained("a"), func(s *setting) { s.cloud.listErr = errDown })
	r := must(t, s)
	if l := r.Snapshot.Listings[0]; l.Complete() || len(l.Machines) != 0 {
		t.Errorf("listing %s", marshal(t, l))
	}
	same(t, "calls", s.cloud.log(), []string{"list eu prod"})
}

func TestQuotes(t *testing.T) {
	t.Parallel()
	key := func(market fleet.Market) string { return fleet.Offer{Place: place, Type: "c6i", Market: market}.Key() }
	unpriced := func(market fleet.Market) func(*setting) {
		return func(s *setting) {
			s.config.Prices, s.config.Pools[0].Offers[0].Market = nil, market
			s.cloud.prices["c6i"] = 2 * fleet.Cent
		}
	}
	known := func(market fleet.Market, age time.Duration) func(*setting) {
		return func(s *setting) {
			s.store.memory.Quotes = []fleet.Quote{{Offer: key(market), Price: fleet.Cent, At: noon.Add(-age)}}
		}
	}
	for _, c := range []struct {
		name  string
		given []func(*setting)
		asked bool
		price fleet.Money
	}{
		{"a price of the config is not asked for", nil, false, fleet.Cent},
		{"one that nobody knows is", []func(*setting){unpriced(fleet.OnDemand)}, true, 2 * fleet.Cent},
		{"one of yesterday, less a second, still holds", []func(*setting){unpriced(fleet.OnDemand), known(fleet.OnDemand, 24*time.Hour-time.Second)}, false, fleet.Cent},
		{"a day later it does not", []func(*setting){unpriced(fleet.OnDemand), known(fleet.OnDemand, 24*time.Hour)}, true, 2 * fleet.Cent},
		{"spot holds for a quarter of an hour, less a second", []func(*setting){unpriced(fleet.Spot), known(fleet.Spot, 899*time.Second)}, false, fleet.Cent},
		{"and no longer", []func(*setting){unpriced(fleet.Spot), known(fleet.Spot, 900*time.Second)}, true, 2 * fleet.Cent},
		{"a pool that may not grow asks for none", []func(*setting){unpriced(fleet.OnDemand), func(s *setting) { s.config.Pools[0].Enabled = false }}, false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := set(t, append([]func(*setting){busy}, c.given...)...)
			r := must(t, s)
			if asked := slices.Contains(s.cloud.log(), "quote c6i"); asked != c.asked || (len(s.store.records[0].Quotes) > 0) != c.asked {
				t.Errorf("asked %t and kept %s, want %t", asked, marshal(t, s.store.records[0].Quotes), c.asked)
			}
			if p := r.Plan.Pools[0]; p.Price != c.price {
				t.Errorf("the price is %s, want %s: %s", p.Price, c.price, marshal(t, p))
			}
		})
	}
}

// offers puts three offers into the pool, cheapest first.
func offers(s *setting) {
	s.config.Pools[0].Offers, s.config.Prices = nil, nil
	for i, typ := range []string{"one", "two", "three"} {
		s.config.Pools[0].Offers = append(s.config.Pools[0].Offers, fleet.Offer{Place: place, Type: typ, Market: fleet.OnDemand})
		s.config.Prices = append(s.config.Prices, fleet.Price{Provider: "aws", Type: typ, Market: fleet.OnDemand, Price: fleet.Money(i+1) * fleet.Cent})
	}
}

func answers(one, two, three error) func(*setting) {
	return func(s *setting) {
		s.cloud.answers["one"], s.cloud.answers["two"], s.cloud.answers["three"] = one, two, three
	}
}

func TestOffersAreTriedInOrderAfterRefusalsOnly(t *testing.T) {
	t.Parallel()
	full, quota, throttled := fleet.ErrNoCapacity, fleet.ErrQuota, fleet.ErrThrottled
	for _, c := range []struct {
		name    string
		answers func(*setting)
		tried   []string
		state   fleet.IntentState
		outcome fleet.Outcome
		fails   bool
	}{
		{"the first that works ends it", answers(nil, nil, nil), []string{"one"}, fleet.IntentDone, fleet.OutcomeDone, false},
		{"a refusal moves on in the same tick", answers(full, nil, nil), []string{"one", "two"}, fleet.IntentDone, fleet.OutcomeDone, false},
		{"until none is left", answers(full, quota, full), []string{"one", "two", "three"}, fleet.IntentRefused, fleet.OutcomeRefused, false},
		{"a call without an answer does not move on", answers(errDown, nil, nil), []string{"one"}, fleet.IntentOpen, fleet.OutcomeUnknown, true},
		{"nor does throttling", answers(throttled, nil, nil), []string{"one"}, fleet.IntentOpen, fleet.OutcomeUnknown, true},
		{"nor one after a refusal", answers(full, errDown, nil), []string{"one", "two"}, fleet.IntentOpen, fleet.OutcomeUnknown, true},
		{"a denial moves on, and is told in the end", answers(full, full, fleet.ErrDenied), []string{"one", "two", "three"}, fleet.IntentRefused, fleet.OutcomeRefused, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := set(t, busy, offers, c.answers)
			r, err := evaluate(t, s)
			if (err != nil) != c.fails {
				t.Errorf("error %v", err)
			}
			var tried []string
			tokens := map[string]bool{}
			for _, l := range s.cloud.launches {
				tried, tokens[l.Token] = append(tried, l.Offer.Type), true
			}
			same(t, "tried", tried, c.tried)
			if len(tokens) != len(tried) || len(s.store.begun) != len(tried)-1 {
				t.Errorf("each offer has a token of its own and is written down first: %d tokens, %d begun", len(tokens), len(s.store.begun))
			}
			if res := s.store.settled[r.Plan.Intents[0].ID]; res.State != c.state || res.Outcome != c.outcome || (res.CoolOff != nil) != (errors.Is(s.cloud.answers[tried[len(tried)-1]], full) || errors.Is(s.cloud.answers[tried[len(tried)-1]], quota)) {
				t.Errorf("settled %+v", res)
			}
		})
	}
}

// repeated is a launch whose call had no answer.
func repeated(s *setting) {
	in := fleet.Intent{
		ID: "in", Kind: fleet.KindLaunch, State: fleet.IntentOpen, Pool: "ocr", Count: 1, Idempotent: true, Created: noon.Add(-2 * time.Minute), Changed: noon.Add(-2 * time.Minute),
		ClaimedUntil: noon.Add(-time.Second), Offers: s.config.Pools[0].Offers, Prices: []fleet.Money{1, 2, 3}, Reserve: 3,
	}
	a := decide.Attempt(s.config, "dep", in, 1)
	a.Outcome = fleet.OutcomeUnknown
	in.Attempts = []fleet.Attempt{a}
	s.store.memory.Intents = []fleet.Intent{in}
}

func TestARefusedRepeatAbandons(t *testing.T) {
	t.Parallel()
	s := set(t, busy, offers, answers(fleet.ErrNoCapacity, nil, nil), repeated)
	_ = must(t, s)
	if res := s.store.settled["in"]; res.State != fleet.IntentAbandoned || len(s.cloud.launches) != 1 {
		t.Errorf("it proves nothing about the call before it: %+v after %d launches", res, len(s.cloud.launches))
	}
	same(t, "request", s.cloud.launches[0], *s.store.memory.Intents[0].Attempts[0].Launch)
}

func TestAnAnswerWithoutAMachineIsNone(t *testing.T) {
	t.Parallel()
	s := set(t, busy)
	s.world.Clouds["aws"] = fleet.Cloud{Compute: silentCloud{s.cloud}, Traits: s.world.Clouds["aws"].Traits}
	r := must(t, s)
	if res := s.store.settled[r.Plan.Intents[0].ID]; res.State != fleet.IntentOpen || res.Outcome != fleet.OutcomeUnknown {
		t.Errorf("settled %+v", res)
	}
}

type silentCloud struct{ *cloud }

func (silentCloud) Launch(context.Context, fleet.Launch) ([]fleet.Machine, error) { return nil, nil }

func TestNoCallIsMadeNearTheEndOfTheTimeLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := set(t, busy, offers, func(s *setting) {
			s.config.Pools[0].Queues[0].Steps = []fleet.Tier{{Depth: 1, Workers: 4}}
			s.config.Pools[0].MaxWorkers = 20
			for i := range 8 {
				drained(fmt.Sprintf("w%d", i))(s)
			}
			s.cloud.hang = true
		})
		begin := time.Now()
		r, err := tick.Evaluate(t.Context(), s.world, noon)
		if took := time.Since(begin); took != 50*time.Second {
			t.Errorf("it took %s, want the limit less the time to write answers down", took)
		}
		if err == nil || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a tick that could not do all fails visibly: %v", err)
		}
		done := len(s.cloud.log()) - 1 // but the list
		if done+len(r.Left) != len(r.Plan.Calls) || done < 8 {
			t.Errorf("%d calls were made and %d are left, of %d", done, len(r.Left), len(r.Plan.Calls))
		}
		for _, id := range r.Left {
			if _, ok := s.store.settled[id]; ok {
				t.Errorf("%s is left and has an answer", id)
			}
		}
	})
}

func TestATickWithoutTimeSaysWhatItLeaves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := set(t, busy, drained("a"))
		s.world.Queues[fleet.SourcePostgres] = slow{s.rows, 55 * time.Second}
		r, err := tick.Evaluate(t.Context(), s.world, noon)
		if err == nil || len(r.Left) == 0 || slices.Contains(s.cloud.log(), "launch c6i") || slices.Contains(s.cloud.log(), "terminate i-a") {
			t.Errorf("left %v, error %v, calls %v", r.Left, err, s.cloud.log())
		}
		if err != nil && !strings.Contains(err.Error(), "no time left in this tick") {
			t.Errorf("error %v", err)
		}
	})
}

// slow answers late, whatever its caller's patience.
type slow struct {
	*queues
	by time.Duration
}

func (s slow) Read(ctx context.Context, asked []fleet.Queue) ([]fleet.QueueState, error) {
	time.Sleep(s.by)
	return s.queues.Read(ctx, asked)
}

func TestOneCallThatFailsStopsNoOther(t *testing.T) {
	t.Parallel()
	s := set(t, func(s *setting) {
		for i := range 50 {
			drained(fmt.Sprintf("w%02d", i))(s)
		}
		s.cloud.answers["i-w07"] = errDown
	})
	_, err := evaluate(t, s)
	if err == nil || !errors.Is(err, errDown) || strings.Count(err.Error(), "terminate") != 1 {
		t.Errorf("the one is told of: %v", err)
	}
	if n := len(s.cloud.log()) - 1; n != 50 || len(s.store.settled) != 50 {
		t.Errorf("%d calls, %d answers, want 50", n, len(s.store.settled))
	}
}

func TestAMachineThatIsNotFoundIsNoFailureAndNoProof(t *testing.T) {
	t.Parallel()
	s := set(t, drained("a"), func(s *setting) { s.cloud.answers["i-a"] = fleet.ErrNotFound })
	r := must(t, s)
	if res := s.store.settled[r.Plan.Intents[0].ID]; res.State != fleet.IntentOpen || res.Outcome != fleet.OutcomeUnknown {
		t.Errorf("settled %+v", res)
	}
}

func TestALostClaimIsTold(t *testing.T) {
	t.Parallel()
	s := set(t, busy, func(s *setting) { s.store.lost = true })
	if _, err := evaluate(t, s); !errors.Is(err, fleet.ErrClaimLost) {
		t.Errorf("error %v", err)
	}
}

func TestARefusedResumeCoolsOff(t *testing.T) {
	t.Parallel()
	s := set(t, busy, func(s *setting) {
		s.config.Pools[0].OnIdle, s.config.Pools[0].MaxSuspended = fleet.SuspendIdle, 1
		drained("a")(s)
		w := &s.store.memory.Workers[0]
		w.Status, w.DrainWhy = fleet.Suspended, "drain.idle"
		s.cloud.machines[0].State = fleet.MachineSuspended
		s.cloud.answers["i-a"] = fleet.ErrNoCapacity
	})
	r := must(t, s)
	if res := s.store.settled[r.Plan.Intents[0].ID]; res.State != fleet.IntentRefused || res.CoolOff == nil || res.CoolOff.Offer != decide.ResumeKey("a") {
		t.Errorf("settled %+v after %v", res, s.cloud.log())
	}
}

func TestAnUnknownCommitIsActedOnByNobody(t *testing.T) {
	t.Parallel()
	s := set(t, busy)
	s.world.Store = torn{s.store}
	if _, err := evaluate(t, s); !errors.Is(err, fleet.ErrCommitUnknown) {
		t.Errorf("error %v", err)
	}
	same(t, "calls", s.cloud.log(), []string{"list eu prod"})
}

type torn struct{ *store }

func (s torn) Transact(ctx context.Context, decide func(fleet.Memory) (fleet.Plan, fleet.Record)) error {
	_ = s.store.Transact(ctx, decide)
	return fleet.ErrCommitUnknown
}

func TestASnapshotIsKeptOnlyWhereSomethingChanged(t *testing.T) {
	t.Parallel()
	quiet := set(t)
	must(t, quiet)
	if rec := quiet.store.records[0]; rec.Snapshot != nil || len(rec.Lines) == 0 || len(rec.Samples) != 1 {
		t.Errorf("a quiet tick keeps its line and its sample only: %s", marshal(t, rec))
	}
	moved := set(t, drained("a"))
	must(t, moved)
	if rec := moved.store.records[0]; rec.Snapshot == nil || len(rec.Snapshot.Memory.Workers) != 1 {
		t.Errorf("one that acts keeps what it saw: %s", marshal(t, rec))
	}
}

func TestExpiry(t *testing.T) {
	t.Parallel()
	machine := func(id string, expires time.Time, state fleet.MachineState) func(*setting) {
		return func(s *setting) {
			s.cloud.machines = append(s.cloud.machines, fleet.Machine{ID: id, State: state, Tags: fleet.Tags{Name: "prod", Expires: expires}})
		}
	}
	expiring := func(s *setting) { s.world.Places = []fleet.Place{place} }
	several := func(s *setting) {
		machine("i-over", noon.Add(-61*time.Second), fleet.MachineRunning)(s)
		machine("i-edge", noon.Add(-time.Minute), fleet.MachineRunning)(s)
		machine("i-ahead", noon.Add(time.Hour), fleet.MachineRunning)(s)
		machine("i-never", time.Time{}, fleet.MachineRunning)(s)
		machine("i-gone", noon.Add(-time.Hour), fleet.MachineGone)(s)
		machine("i-stopping", noon.Add(-time.Hour), fleet.MachineStopping)(s)
		machine("i-asleep", noon.Add(-time.Hour), fleet.MachineSuspended)(s)
	}
	down := func(s *setting) { s.store.down, s.object.err = errDown, errDown }
	t.Run("it needs neither config nor database", func(t *testing.T) {
		t.Parallel()
		for name, run := range map[string]func(context.Context, tick.World, time.Time) (tick.Report, error){"evaluate": tick.Evaluate, "reconcile": tick.Reconcile} {
			s := set(t, expiring, several, down)
			if _, err := run(t.Context(), s.world, noon); !errors.Is(err, errDown) {
				t.Errorf("%s: the failure is told all the same: %v", name, err)
			}
			same(t, name, s.cloud.log(), []string{"list eu prod", "terminate i-asleep", "terminate i-over"})
		}
	})
	t.Run("a clock that the cloud does not tell ends nothing", func(t *testing.T) {
		t.Parallel()
		s := set(t, expiring, several, down, func(s *setting) { s.cloud.clock = time.Time{} })
		_, _ = evaluate(t, s)
		same(t, "calls", s.cloud.log(), []string{"list eu prod"})
	})
	t.Run("without places nothing is asked", func(t *testing.T) {
		t.Parallel()
		s := set(t, several, down)
		_, _ = evaluate(t, s)
		same(t, "calls", s.cloud.log(), []string{})
	})
	t.Run("one that fails stops neither the others nor the tick", func(t *testing.T) {
		t.Parallel()
		s := set(t, expiring, several, busy, func(s *setting) { s.cloud.answers["i-asleep"] = errDown })
		_, err := evaluate(t, s)
		if !errors.Is(err, errDown) || !slices.Contains(s.cloud.log(), "terminate i-over") || len(s.store.plans) != 1 {
			t.Errorf("error %v, calls %v", err, s.cloud.log())
		}
	})
	t.Run("a place that is not linked is told of", func(t *testing.T) {
		t.Parallel()
		s := set(t, expiring, func(s *setting) { s.world.Places = []fleet.Place{{Provider: "google"}, place} }, several)
		if _, err := evaluate(t, s); err == nil || !strings.Contains(err.Error(), "google") || !slices.Contains(s.cloud.log(), "terminate i-over") {
			t.Errorf("error %v, calls %v", err, s.cloud.log())
		}
	})
}

func TestPlanWritesNothingAndActsOnNothing(t *testing.T) {
	t.Parallel()
	s := set(t, busy, drained("a"))
	r, err := tick.Plan(t.Context(), s.world, noon)
	if err != nil || len(r.Plan.Calls) != 2 || r.Plan.Pools[0].Launch != 1 {
		t.Errorf("plan %s, error %v", marshal(t, r.Plan), err)
	}
	if len(s.store.plans)+len(s.store.settled) != 0 {
		t.Error("it wrote")
	}
	same(t, "calls", s.cloud.log(), []string{"list eu prod"})
	same(t, "the tick itself decides the same", must(t, s).Plan, r.Plan)
}

type billing struct {
	bills []fleet.Bill
	err   error
}

func (b billing) Charges(context.Context, time.Time, time.Time) ([]fleet.Bill, error) {
	return b.bills, b.err
}

func TestReconcile(t *testing.T) {
	t.Parallel()
	s := set(t, drained("a"), func(s *setting) {
		s.world.Billing = map[string]fleet.Billing{
			"aws": billing{bills: []fleet.Bill{{Provider: "aws", Day: "2027-01-14", Amount: 60 * fleet.Unit}}}, "google": billing{err: errDown},
		}
	})
	r, err := tick.Reconcile(t.Context(), s.world, noon)
	if !errors.Is(err, errDown) || !strings.Contains(err.Error(), "google") {
		t.Errorf("the provider that does not answer is told of: %v", err)
	}
	if len(r.Plan.Bills) != 1 || r.Plan.Override == nil || len(r.Plan.Calls) != 0 {
		t.Errorf("the other's bill is over the limit: %s", marshal(t, r.Plan))
	}
	same(t, "calls", s.cloud.log(), []string{})
	same(t, "what a repeat does", func() string {
		s.store.memory.LastDue = map[fleet.Function]time.Time{fleet.Reconcile: noon}
		r, _ := tick.Reconcile(t.Context(), s.world, noon)
		return r.Plan.Skipped.Code()
	}(), "skip.repeated")
}

func TestAssignments(t *testing.T) {
	t.Parallel()
	c := set(t).config
	c.Queues = append(c.Queues, fleet.Queue{Name: "mail"})
	c.Pools[0].DrainTimeout = 120
	got := tick.Assignments(c)
	if len(got) != 2 || len(got[fleet.VPS].Queues) != 2 || len(got["ocr"].Queues) != 1 || got["ocr"].DrainTimeout != 120 || got[fleet.VPS].DrainTimeout != 300 {
		t.Errorf("the VPS serves all queues, a pool its own: %s", marshal(t, got))
	}
}
