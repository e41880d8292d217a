package fleettest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"sluice/core/fleet"
)

// Harness is one cloud to test: an account of its own in which nothing runs yet.
type Harness struct {
	Cloud fleet.Cloud
	// Offer can be launched; its Place is the one that is listed.
	Offer fleet.Offer
	// Settings go along with every launch.
	Settings []byte
	// Max is how many machines the account holds; 0 where no test can reach the end.
	Max int
	// Pages is how many machines make more than one page of a list; 0 where lists have no pages.
	Pages int
	// Step lets the world go on a little while the suite waits for an effect to show in List.
	Step func()
	// Unknown is a well-formed id of a machine that never was.
	Unknown string
	// BreakList makes the next lists fail after what they have read so far; nil where none can.
	BreakList func()
}

// steps is how often a suite lets the world go on before it gives up.
const steps = 2000

// Compute tests that a cloud keeps the promises of fleet.Compute. Each subtest asks for a harness of its own.
func Compute(t *testing.T, start func(t *testing.T) Harness) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, a account)
	}{
		{"a launched machine is listed with every tag", listsEveryTag},
		{"one launch makes as many machines as were asked for", launchesSeveral},
		{"a repeated launch answers with the same machines", repeatsLaunch},
		{"a repeated launch starts nothing after its machine has ended", repeatsLaunchOfEnded},
		{"equal launches at the same time make one set of machines", launchesAtOnce},
		{"launches with different tokens make different machines", launchesApart},
		{"machines of another name are not listed", hidesOtherNames},
		{"our machines of another deployment are listed", listsOtherDeployments},
		{"a terminated machine goes, again and again, and alone", terminates},
		{"an unknown machine is not found", refusesUnknown},
		{"a machine is suspended and resumed, again and again", suspends},
		{"a suspended machine can be terminated", terminatesSuspended},
		{"a full account refuses and changes nothing", refusesQuota},
		{"launches at the same time never pass the maximum", neverPassesMax},
		{"a list is read to its last page", listsEveryPage},
		{"a partial list is an error", failsPartialList},
		{"a cancelled call is an error", obeysCancel},
		{"quotes are of offers that were asked for", quotes},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.test(t, account{Harness: start(t), t: t})
		})
	}
}

// account is a harness with the words that the tests are written in.
type account struct {
	Harness
	t *testing.T
}

func (a account) launch(token string, count int) fleet.Launch {
	return fleet.Launch{
		Token: fleet.ID("fleettest", a.t.Name(), token), Count: count, Offer: a.Offer, Lifetime: 3600, Settings: a.Settings,
		Tags: fleet.Tags{
			Name: "ours", Deployment: fleet.ID("deployment"), Pool: "ocr", Intent: fleet.ID("intent", token), Spec: "5bec",
			Expires: time.Date(2099, 1, 2, 3, 4, 5, 0, time.UTC),
		},
	}
}

func (a account) must(l fleet.Launch) []fleet.Machine {
	a.t.Helper()
	ms, err := a.Cloud.Launch(a.t.Context(), l)
	if err != nil {
		a.t.Fatalf("launch %d: %v", l.Count, err)
	}
	return ms
}

func (a account) list(name string) []fleet.Machine {
	a.t.Helper()
	ms, at, err := a.Cloud.List(a.t.Context(), a.Offer.Scope, name)
	if err != nil {
		a.t.Fatalf("list machines of %s: %v", name, err)
	}
	if at.IsZero() {
		a.t.Fatal("list machines: the answer has no time")
	}
	return ms
}

// live are the ids of machines of ours that are not gone, sorted.
func (a account) live() []string {
	a.t.Helper()
	return ids(slices.DeleteFunc(a.list("ours"), func(m fleet.Machine) bool { return m.State == fleet.MachineGone }))
}

func (a account) state(id string) fleet.MachineState {
	a.t.Helper()
	for _, m := range a.list("ours") {
		if m.ID == id {
			return m.State
		}
	}
	return fleet.MachineGone
}

// until waits for an effect to show.
func (a account) until(what string, ok func() bool) {
	a.t.Helper()
	for range steps {
		if ok() {
			return
		}
		a.Step()
	}
	a.t.Fatalf("it never came to pass that %s; ours are %+v", what, a.list("ours"))
}

func (a account) untilLive(want []string) {
	a.t.Helper()
	a.until(fmt.Sprintf("%v are alive", want), func() bool { return slices.Equal(a.live(), want) })
}

func (a account) untilState(id string, want fleet.MachineState) {
	a.t.Helper()
	a.until(fmt.Sprintf("%s is %s", id, want), func() bool { return a.state(id) == want })
}

func (a account) ref(m fleet.Machine) fleet.Ref {
	return fleet.Ref{Place: a.Offer.Place, Zone: m.Zone, Machine: m.ID}
}

// end terminates a machine for good, in as many calls as it takes.
func (a account) end(m fleet.Machine) {
	a.t.Helper()
	a.until(m.ID+" is gone", func() bool {
		err := a.Cloud.Terminate(a.t.Context(), a.ref(m))
		if err != nil && !errors.Is(err, fleet.ErrNotFound) {
			a.t.Fatalf("terminate: %v", err)
		}
		return a.state(m.ID) == fleet.MachineGone
	})
}

func ids(ms []fleet.Machine) []string {
	out := make([]string, 0, len(ms))
	for _, m := range ms {
		out = append(out, m.ID)
	}
	slices.Sort(out)
	return out
}

func listsEveryTag(t *testing.T, a account) {
	l := a.launch("one", 1)
	m := a.must(l)[0]
	a.untilState(m.ID, fleet.MachineRunning)
	i := slices.IndexFunc(a.list("ours"), func(o fleet.Machine) bool { return o.ID == m.ID })
	got := a.list("ours")[i]
	for _, o := range []fleet.Machine{m, got} {
		if !reflect.DeepEqual(o.Tags, l.Tags) {
			t.Errorf("tags are %+v, want %+v", o.Tags, l.Tags)
		}
		if o.Type != l.Offer.Type || o.Market != l.Offer.Market {
			t.Errorf("machine is %s %s, want %s %s", o.Type, o.Market, l.Offer.Type, l.Offer.Market)
		}
	}
	if l.Offer.Zone != "" && got.Zone != l.Offer.Zone {
		t.Errorf("zone is %q, want %q", got.Zone, l.Offer.Zone)
	}
}

func launchesSeveral(t *testing.T, a account) {
	n := min(3, a.Cloud.Traits.MaxBatch)
	ms := a.must(a.launch("several", n))
	if len(slices.Compact(ids(ms))) != n {
		t.Fatalf("launch of %d answers with %v", n, ids(ms))
	}
	a.untilLive(ids(ms))
}

func repeatsLaunch(t *testing.T, a account) {
	if !a.Cloud.Traits.Idempotent {
		t.Skip("this provider has no idempotency")
	}
	l := a.launch("again", min(2, a.Cloud.Traits.MaxBatch))
	first := ids(a.must(l))
	if again := ids(a.must(l)); !slices.Equal(first, again) {
		t.Errorf("the repeat answers with %v, want %v", again, first)
	}
	a.untilLive(first)
}

func repeatsLaunchOfEnded(t *testing.T, a account) {
	if !a.Cloud.Traits.Idempotent {
		t.Skip("this provider has no idempotency")
	}
	l := a.launch("ended", 1)
	first := a.must(l)
	a.untilLive(ids(first))
	a.end(first[0])
	if again, err := a.Cloud.Launch(t.Context(), l); err == nil && !slices.Equal(ids(first), ids(again)) {
		t.Errorf("the repeat answers with %v, want %v", ids(again), ids(first))
	}
	for range 5 {
		a.Step()
		if got := a.live(); len(got) > 0 {
			t.Fatalf("the repeat started %v", got)
		}
	}
}

func launchesAtOnce(t *testing.T, a account) {
	if !a.Cloud.Traits.Idempotent {
		t.Skip("this provider has no idempotency")
	}
	l := a.launch("at once", 1)
	answers := a.allAtOnce(slices.Repeat([]fleet.Launch{l}, 8))
	var first []string
	for _, r := range answers {
		if r.err != nil {
			t.Fatalf("launch: %v", r.err)
		}
		if first == nil {
			first = ids(r.machines)
		}
		if !slices.Equal(first, ids(r.machines)) {
			t.Errorf("equal launches answer with %v and %v", first, ids(r.machines))
		}
	}
	a.untilLive(first)
}

type answer struct {
	machines []fleet.Machine
	err      error
}

func (a account) allAtOnce(ls []fleet.Launch) []answer {
	out := make([]answer, len(ls))
	var wg sync.WaitGroup
	for i, l := range ls {
		wg.Go(func() { out[i].machines, out[i].err = a.Cloud.Launch(a.t.Context(), l) })
	}
	wg.Wait()
	return out
}

func launchesApart(t *testing.T, a account) {
	one, two := a.must(a.launch("one", 1)), a.must(a.launch("two", 1))
	if one[0].ID == two[0].ID {
		t.Fatalf("two tokens answer with one machine %s", one[0].ID)
	}
	a.untilLive(ids(append(one, two...)))
}

func hidesOtherNames(t *testing.T, a account) {
	other := a.launch("theirs", 1)
	other.Tags.Name = "theirs"
	theirs, ours := a.must(other), a.must(a.launch("ours", 1))
	a.untilLive(ids(ours))
	a.until("theirs is listed under its own name", func() bool { return slices.Equal(ids(a.list("theirs")), ids(theirs)) })
	if got := a.list("nobody"); len(got) > 0 {
		t.Errorf("a name without machines lists %v", ids(got))
	}
}

func listsOtherDeployments(_ *testing.T, a account) {
	l := a.launch("older", 1)
	l.Tags.Deployment = fleet.ID("an earlier database")
	m := a.must(l)
	a.untilLive(ids(m))
}

func terminates(t *testing.T, a account) {
	kept, m := a.must(a.launch("kept", 1)), a.must(a.launch("ended", 1))
	a.untilLive(ids(append(slices.Clone(kept), m...)))
	if err := a.Cloud.Terminate(t.Context(), a.ref(m[0])); err != nil {
		t.Fatalf("terminate: %v", err)
	}
	a.end(m[0])
	if err := a.Cloud.Terminate(t.Context(), a.ref(m[0])); err != nil && !errors.Is(err, fleet.ErrNotFound) {
		t.Errorf("terminate what is gone: %v, want nothing or not found", err)
	}
	a.untilLive(ids(kept))
}

func refusesUnknown(t *testing.T, a account) {
	ref := fleet.Ref{Place: a.Offer.Place, Zone: a.Offer.Zone, Machine: a.Unknown}
	calls := map[string]func(context.Context, fleet.Ref) error{"terminate": a.Cloud.Terminate}
	if a.Cloud.Traits.Suspends {
		calls["suspend"], calls["resume"] = a.Cloud.Suspend, a.Cloud.Resume
	}
	for name, call := range calls {
		if err := call(t.Context(), ref); !errors.Is(err, fleet.ErrNotFound) {
			t.Errorf("%s of an unknown machine: %v, want %v", name, err, fleet.ErrNotFound)
		}
	}
}

func suspends(t *testing.T, a account) {
	if !a.Cloud.Traits.Suspends {
		t.Skip("this provider does not suspend")
	}
	m := a.must(a.launch("sleeper", 1))[0]
	a.untilState(m.ID, fleet.MachineRunning)
	for _, c := range []struct {
		call func(context.Context, fleet.Ref) error
		want fleet.MachineState
	}{
		{a.Cloud.Suspend, fleet.MachineSuspended},
		{a.Cloud.Suspend, fleet.MachineSuspended},
		{a.Cloud.Resume, fleet.MachineRunning},
		{a.Cloud.Resume, fleet.MachineRunning},
		{a.Cloud.Suspend, fleet.MachineSuspended},
	} {
		if err := c.call(t.Context(), a.ref(m)); err != nil {
			t.Fatalf("towards %s: %v", c.want, err)
		}
		a.untilState(m.ID, c.want)
	}
}

func terminatesSuspended(t *testing.T, a account) {
	if !a.Cloud.Traits.Suspends {
		t.Skip("this provider does not suspend")
	}
	m := a.must(a.launch("sleeper", 1))[0]
	a.untilState(m.ID, fleet.MachineRunning)
	if err := a.Cloud.Suspend(t.Context(), a.ref(m)); err != nil {
		t.Fatalf("suspend: %v", err)
	}
	a.untilState(m.ID, fleet.MachineSuspended)
	a.end(m)
}

func refusesQuota(t *testing.T, a account) {
	if a.Max == 0 {
		t.Skip("no test can fill this account")
	}
	var full []fleet.Machine
	for i := range a.Max {
		full = append(full, a.must(a.launch(fmt.Sprint("fill ", i), 1))...)
	}
	a.untilLive(ids(full))
	if ms, err := a.Cloud.Launch(t.Context(), a.launch("one too many", 1)); !errors.Is(err, fleet.ErrQuota) {
		t.Fatalf("launch into a full account answers %v, %v, want %v", ids(ms), err, fleet.ErrQuota)
	}
	a.untilLive(ids(full))
	a.end(full[0])
	m := a.must(a.launch("room again", 1))
	a.untilLive(ids(append(full[1:], m...)))
}

func neverPassesMax(t *testing.T, a account) {
	if a.Max == 0 {
		t.Skip("no test can fill this account")
	}
	ls := make([]fleet.Launch, a.Max+4)
	for i := range ls {
		ls[i] = a.launch(fmt.Sprint("rush ", i), 1)
	}
	var started []fleet.Machine
	for _, r := range a.allAtOnce(ls) {
		if r.err != nil && !errors.Is(r.err, fleet.ErrQuota) {
			t.Errorf("launch: %v, want nothing or %v", r.err, fleet.ErrQuota)
		}
		started = append(started, r.machines...)
	}
	if len(started) != a.Max {
		t.Errorf("%d launches started %d machines, want %d", len(ls), len(started), a.Max)
	}
	a.untilLive(ids(started))
}

func listsEveryPage(t *testing.T, a account) {
	if a.Pages == 0 {
		t.Skip("lists of this provider have no pages")
	}
	var want []fleet.Machine
	for i := range a.Pages {
		want = append(want, a.must(a.launch(fmt.Sprint("page ", i), 1))...)
	}
	a.untilLive(ids(want))
}

func failsPartialList(t *testing.T, a account) {
	if a.BreakList == nil {
		t.Skip("lists of this provider come as a whole")
	}
	m := a.must(a.launch("seen", 1))
	a.untilLive(ids(m))
	a.BreakList()
	if ms, _, err := a.Cloud.List(t.Context(), a.Offer.Scope, "ours"); err == nil {
		t.Errorf("a list that broke answers with %v, want an error", ids(ms))
	} else if len(ms) > 0 {
		t.Errorf("a list that broke answers with %v beside its error %v", ids(ms), err)
	}
}

func obeysCancel(t *testing.T, a account) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := a.Cloud.List(ctx, a.Offer.Scope, "ours"); err == nil {
		t.Error("a cancelled list has no error")
	}
	if ms, err := a.Cloud.Launch(ctx, a.launch("cancelled", 1)); err == nil {
		t.Errorf("a cancelled launch answers with %v", ids(ms))
	} else if fleet.Refused(err) {
		t.Errorf("a cancelled launch answers %v, which claims that nothing happened", err)
	}
}

func quotes(t *testing.T, a account) {
	qs, err := a.Cloud.Quote(t.Context(), []fleet.Offer{a.Offer})
	if err != nil {
		t.Fatalf("quote: %v", err)
	}
	for _, q := range qs {
		if q.Offer != a.Offer.Key() || q.Price <= 0 {
			t.Errorf("quote %+v, want a price of %s", q, a.Offer.Key())
		}
	}
	if none, err := a.Cloud.Quote(t.Context(), nil); err != nil || len(none) > 0 {
		t.Errorf("quote of nothing: %v, %v", none, err)
	}
}
