package sim_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sluice/core/fleet"
	"sluice/core/sim"
	"sluice/core/tick"
)

// limit is the time limit of the functions in every trial.
const limit = time.Minute

// trial is one world with its faults, driven step by step. Everything that could go on waits at the
// gate or is due; the seed picks what does.
type trial struct {
	seed   uint64
	rng    *rand.Rand
	w      *sim.World
	s      setting
	seen   *coverage
	trace  func(format string, args ...any)
	failed string

	mu      sync.Mutex // guards what processes touch
	waiting []*pending
	ended   []ended
	calm    bool
	closed  bool
	parsed  map[string]fleet.Config

	ticks    int
	failing  int // calm ticks in a row
	running  map[string]*process
	nextTick time.Time
	nextWord time.Time // of the next happening
	backups  []sim.Backup
	down     map[string]time.Time // providers, until when nothing of them answers
	checks   checks
}

// pending is a call at the gate.
type pending struct {
	call  sim.Call
	out   chan sim.Verdict
	drawn bool
	until time.Time // held until then
	slow  bool      // held past its deadline
}

// process is a tick that runs.
type process struct {
	*sim.Process
	name    string
	due     time.Time
	started time.Time
	crashed bool
}

// ended is a tick that returned.
type ended struct {
	name   string
	report tick.Report
	err    error
}

func newTrial(seed uint64, seen *coverage, trace func(string, ...any)) *trial {
	x := &trial{
		seed: seed, rng: rand.New(rand.NewPCG(seed, 7)), seen: seen, trace: trace,
		running: map[string]*process{}, down: map[string]time.Time{}, parsed: map[string]fleet.Config{},
	}
	x.s = generate(x.rng)
	return x
}

// run drives one trial in a bubble and says what went wrong.
func run(t *testing.T, seed uint64, seen *coverage, trace func(string, ...any)) string {
	var failed string
	synctest.Test(t, func(*testing.T) {
		x := newTrial(seed, seen, trace)
		time.Sleep(x.s.start)
		x.begin()
		x.faults()
		if x.failed == "" {
			x.calmDown()
		}
		x.close()
		failed = x.failed
	})
	return failed
}

func (x *trial) begin() {
	x.w = sim.New(x.seed, time.Now)
	x.w.SetGate(x.gate)
	for _, c := range x.s.clouds {
		x.w.AddCloud(c)
	}
	for i := range x.s.vps {
		x.w.AddVPS(fmt.Sprint("vps-", i))
	}
	x.w.AdvanceDatabase(x.s.databaseAhead)
	x.w.SetConfig(configBytes(x.s.config))
	x.nextTick = time.Now()
	x.nextWord = time.Now().Add(time.Minute)
	x.checks = newChecks(x)
}

func configBytes(c fleet.Config) []byte {
	b, _ := json.Marshal(c)
	return b
}

// parse reads what configBytes wrote, each once.
func (x *trial) parse(name string, b []byte) (fleet.Config, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if c, ok := x.parsed[string(b)]; ok {
		return c, nil
	}
	var c fleet.Config
	if err := json.Unmarshal(b, &c); err != nil {
		return c, fmt.Errorf("%s: %w", name, err)
	}
	x.parsed[string(b)] = c
	return c, nil
}

func (x *trial) fail(format string, args ...any) {
	if x.failed == "" {
		x.failed = fmt.Sprintf(format, args...)
		x.log("FAILED %s", x.failed)
	}
}

func (x *trial) log(format string, args ...any) {
	if x.trace != nil {
		x.trace("%s "+format, append([]any{time.Now().UTC().Format("15:04:05")}, args...)...)
	}
}

func (x *trial) chance(p float64) bool { return x.rng.Float64() < p }

// gate lets a call wait until the driver picks it.
func (x *trial) gate(c sim.Call) sim.Verdict {
	x.mu.Lock()
	if x.closed {
		x.mu.Unlock()
		return sim.Fail(sim.ErrCrashed)
	}
	if x.calm && !parallel(c.Op) {
		x.mu.Unlock()
		return x.s.poison.verdict(c)
	}
	p := &pending{call: c, out: make(chan sim.Verdict, 1)}
	x.waiting = append(x.waiting, p)
	x.mu.Unlock()
	return <-p.out
}

// parallel: a tick makes several of these at once, and their order matters.
func parallel(op sim.Op) bool {
	return slices.Contains([]sim.Op{sim.OpBegin, sim.OpLaunch, sim.OpResume, sim.OpSuspend, sim.OpTerminate, sim.OpSettle}, op)
}

// faults is the first part: things happen, calls interleave and fail.
func (x *trial) faults() {
	end := time.Now().Add(x.s.length)
	for x.failed == "" && time.Now().Before(end) {
		x.step()
	}
}

// step lets one thing happen.
func (x *trial) step() {
	synctest.Wait()
	x.observe()
	if x.failed != "" {
		return
	}
	if now := time.Now(); !now.Before(x.nextTick) {
		x.schedule(now)
		return
	}
	if now := time.Now(); !now.Before(x.nextWord) {
		x.nextWord = now.Add(time.Duration(10+x.rng.IntN(x.s.quiet)) * time.Second)
		x.happen()
	}
	x.killOverdue()
	ready, due := x.ready(), x.w.Due()
	switch n := len(ready) + len(due); {
	case n == 0 || x.chance(0.02):
		x.sleep(n > 0)
	default:
		if i := x.rng.IntN(n); i < len(ready) {
			x.release(ready[i])
		} else {
			x.w.Act(due[i-len(ready)])
		}
	}
}

// ready are the calls that can go on now, in a stable order.
func (x *trial) ready() []*pending {
	x.mu.Lock()
	defer x.mu.Unlock()
	slices.SortStableFunc(x.waiting, func(a, b *pending) int { return cmp.Compare(a.call.Key(), b.call.Key()) })
	locked := x.w.Locked()
	var out []*pending
	for _, p := range x.waiting {
		x.draw(p)
		late := p.call.Ctx.Err() != nil
		if p.slow && !late || time.Now().Before(p.until) && !late {
			continue
		}
		if locked && needsLock(p.call.Op) && !late {
			continue
		}
		out = append(out, p)
	}
	return out
}

// needsLock: it would wait for the transaction that is open.
func needsLock(op sim.Op) bool {
	return op == sim.OpTransact || op == sim.OpBegin || op == sim.OpSettle
}

// draw decides once for how long a call is held.
func (x *trial) draw(p *pending) {
	if p.drawn {
		return
	}
	p.drawn = true
	switch {
	case x.chance(x.s.rates["delay"]):
		p.until = time.Now().Add(time.Duration(1+x.rng.IntN(30)) * time.Second)
		x.seen.fault("delay")
	case x.chance(x.s.rates["timeout"]):
		p.slow = true
		x.seen.fault("timeout")
	}
}

// release answers one call.
func (x *trial) release(p *pending) {
	x.mu.Lock()
	x.waiting = slices.DeleteFunc(x.waiting, func(o *pending) bool { return o == p })
	x.mu.Unlock()
	v := x.verdict(p)
	x.log("%-70s %s", p.call.Key(), verdictText(v))
	if v.Crash {
		if r := x.running[p.call.Process]; r != nil {
			r.crashed = true
		}
		x.seen.crash(p.call.Op, v.Effect)
	}
	p.out <- v
}

// weight makes crashes likelier at calls that are rarer and matter more.
func weight(op sim.Op) float64 {
	heavier := map[sim.Op]float64{
		sim.OpResume: 40, sim.OpSuspend: 40, sim.OpBegin: 40, sim.OpLaunch: 8, sim.OpTerminate: 8, sim.OpSettle: 8,
		sim.OpCommit: 3, sim.OpSend: 3, sim.OpSent: 3, sim.OpCharges: 3, sim.OpQuote: 3,
	}
	return max(1, heavier[op])
}

func verdictText(v sim.Verdict) string {
	switch {
	case v.Crash && v.Effect:
		return "CRASH after its effect"
	case v.Crash:
		return "CRASH before it"
	case v.Err != nil && v.Effect:
		return "answer lost: " + v.Err.Error()
	case v.Err != nil:
		return "fails: " + v.Err.Error()
	}
	return "ok"
}

// verdict draws what becomes of a call.
func (x *trial) verdict(p *pending) sim.Verdict {
	op := p.call.Op
	if p.call.Ctx.Err() != nil {
		// The caller has given up; its request may have got there all the same.
		if p.slow && x.chance(0.5) && op != sim.OpCommit {
			return sim.Lose(context.DeadlineExceeded)
		}
		if op == sim.OpCommit {
			return sim.Fail(fleet.ErrCommitUnknown)
		}
		return sim.Fail(context.DeadlineExceeded)
	}
	if x.chance(x.s.rates["crash"] * weight(op)) {
		x.seen.fault("crash")
		if x.chance(0.5) {
			return sim.CrashAfter()
		}
		return sim.CrashBefore()
	}
	if v, hit := x.broken(p.call); hit {
		return v
	}
	return sim.OK()
}

// broken draws a fault of one port.
func (x *trial) broken(c sim.Call) (sim.Verdict, bool) {
	if until := x.down[providerOf(c)]; time.Now().Before(until) {
		x.seen.fault("provider_down")
		return sim.Fail(fleet.ErrUnavailable), true
	}
	switch c.Op {
	case sim.OpLaunch, sim.OpResume, sim.OpTerminate, sim.OpSuspend:
		return x.brokenCall(c.Op)
	case sim.OpCommit:
		return x.pick("commit_lost", sim.Lose(fleet.ErrCommitUnknown), sim.Fail(fleet.ErrCommitUnknown), sim.Fail(fleet.ErrUnavailable))
	case sim.OpList:
		return x.pick("list_error", sim.Fail(fleet.ErrUnavailable), sim.Fail(fleet.ErrThrottled))
	case sim.OpRead:
		return x.pick("queues_unreadable", sim.Fail(fleet.ErrUnavailable))
	case sim.OpBegin, sim.OpSettle, sim.OpSent:
		return x.pick("write_error", sim.Fail(fleet.ErrUnavailable), sim.Lose(fleet.ErrUnavailable))
	case sim.OpSend:
		return x.pick("alert_error", sim.Fail(fleet.ErrUnavailable), sim.Lose(fleet.ErrUnavailable))
	default:
		return x.pick("read_error", sim.Fail(fleet.ErrUnavailable), sim.Fail(fleet.ErrDenied))
	}
}

func (x *trial) brokenCall(op sim.Op) (sim.Verdict, bool) {
	if v, hit := x.pick("answer_lost", sim.Lose(fleet.ErrUnavailable), sim.Lose(context.DeadlineExceeded)); hit {
		return v, hit
	}
	if v, hit := x.pick("refused", sim.Fail(fleet.ErrNoCapacity), sim.Fail(fleet.ErrQuota), sim.Fail(fleet.ErrDenied), sim.Fail(fleet.ErrBadRequest)); hit {
		return v, hit
	}
	if v, hit := x.pick("throttled", sim.Fail(fleet.ErrThrottled), sim.Lose(fleet.ErrThrottled)); hit {
		return v, hit
	}
	if op != sim.OpLaunch {
		if v, hit := x.pick("not_found", sim.Fail(fleet.ErrNotFound)); hit {
			return v, hit
		}
	}
	return x.pick("call_error", sim.Fail(fleet.ErrUnavailable))
}

func (x *trial) pick(fault string, of ...sim.Verdict) (sim.Verdict, bool) {
	if !x.chance(x.s.rates[fault]) {
		return sim.Verdict{}, false
	}
	x.seen.fault(fault)
	return of[x.rng.IntN(len(of))], true
}

func providerOf(c sim.Call) string {
	switch c.Op {
	case sim.OpList, sim.OpQuote, sim.OpLaunch, sim.OpResume, sim.OpSuspend, sim.OpTerminate, sim.OpCharges:
		name, _, _ := strings.Cut(c.Args, " ")
		return name
	default:
		return ""
	}
}

// sleep lets time go on: to the next thing that is known to come, or a little.
func (x *trial) sleep(little bool) {
	now := time.Now()
	next := earlier(x.nextTick, x.nextWord, x.w.NextDue())
	x.mu.Lock()
	for _, p := range x.waiting {
		if deadline, ok := p.call.Ctx.Deadline(); ok && deadline.After(now) {
			next = earlier(next, deadline)
		}
		if p.until.After(now) {
			next = earlier(next, p.until)
		}
	}
	x.mu.Unlock()
	for _, r := range x.running {
		next = earlier(next, r.started.Add(limit))
	}
	d := max(time.Second, next.Sub(now))
	if little {
		d = min(d, time.Duration(1+x.rng.IntN(4))*time.Second)
	}
	time.Sleep(d)
}

func earlier(first time.Time, others ...time.Time) time.Time {
	for _, o := range others {
		if !o.IsZero() && o.Before(first) {
			first = o
		}
	}
	return first
}

// schedule starts what the schedule fires, mostly as it should.
func (x *trial) schedule(now time.Time) {
	due := x.nextTick
	x.nextTick = x.nextTick.Add(time.Minute)
	if x.chance(x.s.rates["schedule_gap"]) {
		x.nextTick = x.nextTick.Add(time.Duration(1+x.rng.IntN(8)) * time.Minute)
		x.seen.fault("schedule_gap")
	}
	x.w.Workers().Sweep()
	if len(x.running) > 4 {
		return
	}
	x.start(tick.Evaluate, due)
	switch {
	case x.chance(x.s.rates["repeated_tick"]):
		x.start(tick.Evaluate, due)
		x.seen.fault("repeated_tick")
	case x.chance(x.s.rates["stale_tick"]):
		x.start(tick.Evaluate, due.Add(-time.Duration(1+x.rng.IntN(5))*time.Minute))
		x.seen.fault("stale_tick")
	case x.chance(x.s.rates["future_tick"]):
		x.start(tick.Evaluate, due.Add(time.Duration(1+x.rng.IntN(120))*time.Minute))
		x.seen.fault("future_tick")
	}
	if now.Minute()%x.s.reconcileEvery == 0 {
		x.start(tick.Reconcile, due)
	}
}

type entry func(context.Context, tick.World, time.Time) (tick.Report, error)

// start runs a tick as a process of its own.
func (x *trial) start(f entry, due time.Time) {
	x.ticks++
	name := fmt.Sprintf("tick-%03d", x.ticks)
	p := &process{Process: x.w.Process(name), name: name, due: due, started: time.Now()}
	x.running[name] = p
	x.log("%s starts, due %s", name, due.UTC().Format("15:04:05"))
	go func() {
		r, err := f(context.Background(), x.world(p.Process), due.Add(x.s.scheduleAhead))
		x.mu.Lock()
		defer x.mu.Unlock()
		x.ended = append(x.ended, ended{name, r, err})
	}()
}

func (x *trial) world(p *sim.Process) tick.World {
	clouds := p.Clouds()
	for name := range clouds {
		if slices.Contains(x.s.unlinked, name) {
			delete(clouds, name)
		}
	}
	return tick.World{
		Name: "sim", Places: x.s.places, Objects: p.Objects(), Parse: x.parse,
		Queues: map[fleet.SourceKind]fleet.Queues{fleet.SourceRedis: p.Redis(), fleet.SourcePostgres: p.Table()},
		Clouds: clouds, Billing: p.Billing(), Alerters: p.Alerters(), Store: p.Store(),
		Limit: limit, MinInterval: 60,
	}
}

// killOverdue ends processes as a platform does that has a time limit.
func (x *trial) killOverdue() {
	for _, name := range slices.Sorted(keys(x.running)) {
		if r := x.running[name]; !r.crashed && time.Since(r.started) > limit+2*time.Second {
			x.log("%s runs into its time limit", name)
			r.Kill()
			r.crashed = true
			x.seen.fault("killed_at_limit")
		}
	}
}

func keys[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// observe takes what has happened and holds it against the invariants.
func (x *trial) observe() {
	x.mu.Lock()
	done := x.ended
	x.ended = nil
	x.mu.Unlock()
	for _, e := range x.w.Events() {
		x.checks.event(e)
	}
	slices.SortFunc(done, func(a, b ended) int { return cmp.Compare(a.name, b.name) })
	for _, e := range done {
		r := x.running[e.name]
		delete(x.running, e.name)
		x.log("%s ends: %s", e.name, outcomeText(e))
		if r != nil && !r.crashed {
			x.checks.returned(e)
		}
	}
	x.checks.always()
}

func outcomeText(e ended) string {
	var b strings.Builder
	if e.report.Plan.Skipped != nil {
		b.WriteString("skipped, " + e.report.Plan.Skipped.Code())
	}
	for _, p := range e.report.Plan.Pools {
		fmt.Fprintf(&b, " %s %d→%d", p.Pool, p.Have, p.Want)
		for _, s := range p.Steps {
			if s.From != s.To {
				fmt.Fprintf(&b, " (%d→%d %s)", s.From, s.To, s.Why.Code())
			}
		}
		for _, d := range p.Drain {
			fmt.Fprintf(&b, " drain %s %s", d.Worker[:8], d.Why.Code())
		}
	}
	for _, n := range e.report.Plan.Notes {
		fmt.Fprintf(&b, " [%s %s]", n.Why.Code(), cmp.Or(n.Worker, n.Pool))
	}
	if e.err != nil {
		fmt.Fprintf(&b, " error: %v", strings.ReplaceAll(e.err.Error(), "\n", "; "))
	}
	return b.String()
}

// close lets every goroutine of the bubble end.
func (x *trial) close() {
	x.mu.Lock()
	x.closed = true
	for _, p := range x.waiting {
		p.out <- sim.Fail(sim.ErrCrashed)
	}
	x.waiting = nil
	x.mu.Unlock()
	time.Sleep(2 * limit)
	synctest.Wait()
}
