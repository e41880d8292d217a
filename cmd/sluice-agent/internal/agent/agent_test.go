package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"sluice/cmd/sluice-agent/internal/agent"
	"sluice/cmd/sluice-agent/internal/proc"
	"sluice/core/fleet"
)

// database is a job table in memory with a switch for each way in which a real one fails.
type database struct {
	mu       sync.Mutex
	rules    fleet.Assignment
	queued   []agent.Job
	held     map[string]agent.Job // by attempt
	log      []string             // what was asked, without heartbeats and empty claims
	beats    int
	claims   int
	extended int
	sweeps   int
	waits    int            // registrations that are put off
	drain    bool           // what heartbeats answer
	left     *time.Duration // at the start
	begun    time.Time
	unknown  bool  // heartbeats find no row
	down     error // every call fails
	bad      error // results are refused
}

func (d *database) call(what string) error {
	if what != "" && d.down == nil {
		d.log = append(d.log, what)
	}
	return d.down
}

func (d *database) status() agent.Status {
	s := agent.Status{Worker: "w1", Drain: d.drain, Rules: &d.rules}
	if d.left != nil {
		left := *d.left - time.Since(d.begun)
		s.Left = &left
	}
	return s
}

func (d *database) Register(context.Context, agent.Identity) (agent.Status, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.call("register"); err != nil {
		return agent.Status{}, err
	}
	if d.waits > 0 {
		d.waits--
		return agent.Status{Wait: true}, nil
	}
	d.unknown = false
	return d.status(), nil
}

func (d *database) Heartbeat(context.Context, string, agent.Sample) (agent.Status, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.beats++
	if d.down == nil && d.unknown {
		return agent.Status{}, fleet.ErrNotFound
	}
	return d.status(), d.call("")
}

func (d *database) Claim(_ context.Context, _ string, queues []string, n int) ([]agent.Job, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.claims++
	if d.down != nil {
		return nil, d.down
	}
	var out []agent.Job
	for i := 0; i < len(d.queued) && len(out) < n; {
		if j := d.queued[i]; slices.Contains(queues, j.Queue) {
			out = append(out, j)
			d.held[j.Attempt] = j
			d.queued = slices.Delete(d.queued, i, i+1)
			continue
		}
		i++
	}
	return out, nil
}

func (d *database) Extend(_ context.Context, attempt string) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ours := d.held[attempt]
	if d.down == nil {
		d.extended++
	}
	return ours, d.call("")
}

func (d *database) end(what, attempt string) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.call(what + " " + attempt); err != nil {
		return false, err
	}
	_, ours := d.held[attempt]
	delete(d.held, attempt)
	return ours, nil
}

func (d *database) Complete(_ context.Context, attempt string, result json.RawMessage) (bool, error) {
	if d.bad != nil && result != nil {
		return false, d.bad
	}
	return d.end(strings.TrimSpace("complete "+string(result)), attempt)
}

func (d *database) Fail(_ context.Context, attempt, text string, code *int) (bool, error) {
	if code == nil {
		return d.end(fmt.Sprintf("fail %q", text), attempt)
	}
	return d.end(fmt.Sprintf("fail %q %d", text, *code), attempt)
}

func (d *database) Release(_ context.Context, attempt string) (bool, error) {
	return d.end("release", attempt)
}

func (d *database) Drained(context.Context, string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.call("drained")
}

func (d *database) Leave(context.Context, string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.call("leave")
}

func (d *database) Sweep(context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sweeps++
	return d.down
}

func (d *database) add(queue string, names ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, n := range names {
		d.queued = append(d.queued, agent.Job{Attempt: n, ID: "job-" + n, Queue: queue, Number: 1, Priority: 5})
	}
}

func (d *database) set(change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
}

func (d *database) asked() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.log)
}

// world is an agent that runs with the clock of a synctest bubble.
type world struct {
	*testing.T
	db      *database
	signals chan os.Signal
	ended   chan error
	options agent.Options

	mu      sync.Mutex
	started []proc.Command
}

// commands are what the jobs of the test run: they obey stop and the end of ctx as real ones do.
type command func(ctx context.Context, stop <-chan struct{}) proc.Result

func result(code int, stdout, stderr string) proc.Result {
	r := proc.Result{Code: code, Stdout: proc.NewTail(1000), Stderr: proc.NewTail(1000)}
	_, _ = io.WriteString(r.Stdout, stdout)
	_, _ = io.WriteString(r.Stderr, stderr)
	return r
}

// lasting runs for a time unless it is ended; it ignores a polite request where deaf.
func lasting(d time.Duration, then proc.Result) command {
	return func(ctx context.Context, stop <-chan struct{}) proc.Result {
		select {
		case <-time.After(d):
			return then
		case <-stop:
			return result(143, "", "")
		case <-ctx.Done():
			return result(137, "", "")
		}
	}
}

func deaf(ctx context.Context, _ <-chan struct{}) proc.Result {
	<-ctx.Done()
	return result(137, "", "")
}

func queue(name string, slots int) fleet.Queue {
	return fleet.Queue{Name: name, Run: fleet.Run{Command: []string{"work"}, Slots: slots, StopGrace: 30, Timeout: 3600}}
}

func newWorld(t *testing.T, c command) *world {
	w := &world{T: t, signals: make(chan os.Signal, 2), ended: make(chan error, 1)}
	w.db = &database{
		held: map[string]agent.Job{}, begun: time.Now(),
		rules: fleet.Assignment{Queues: []fleet.Queue{queue("ocr", 1)}, Heartbeat: 15, Visibility: 300, LostDatabase: 900, DrainTimeout: 300},
	}
	w.options = agent.Options{
		Database: w.db, Identity: agent.Identity{Provider: "local", Machine: "m1", Pool: "ocr"},
		Run: func(ctx context.Context, stop <-chan struct{}, cmd proc.Command) proc.Result {
			w.mu.Lock()
			w.started = append(w.started, cmd)
			w.mu.Unlock()
			return c(ctx, stop)
		},
		Sample: func(context.Context) agent.Sample { return agent.Sample{} },
		Env:    []string{"PATH=/bin", "HOME=/root"},
		Log:    slog.New(slog.DiscardHandler),
	}
	return w
}

func (w *world) run() {
	go func() { w.ended <- agent.Run(w.Context(), w.options, w.signals) }()
	synctest.Wait()
}

// after lets time pass and everything settle.
func (w *world) after(d time.Duration) {
	time.Sleep(d) // the bubble's clock
	synctest.Wait()
}

func (w *world) finish() error {
	w.Helper()
	w.signals <- syscall.SIGTERM
	return w.end()
}

func (w *world) end() error {
	w.Helper()
	select {
	case err := <-w.ended:
		return err
	case <-time.After(time.Hour):
		w.Fatal("the agent does not end")
		return nil
	}
}

func (w *world) is(want ...string) {
	w.Helper()
	if got := w.db.asked(); !slices.Equal(got, want) {
		w.Errorf("the database was asked %q, want %q", got, want)
	}
}

func bubble(t *testing.T, name string, test func(t *testing.T)) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, test)
	})
}

func TestJobs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		result proc.Result
		want   string
	}{
		{"exit code 0 is done", result(0, "hello\n", "noise"), "complete a"},
		{"a JSON object on the last line is the result", result(0, "hello\n {\"pages\": 3}\n\n", ""), `complete {"pages": 3} a`},
		{"another last line is no result", result(0, "{}\nbye\n", ""), "complete a"},
		{"broken JSON is no result", result(0, "{\"pages\":\n", ""), "complete a"},
		{"another exit code is a failure with what stderr says", result(3, "", "no such file"), `fail "no such file" 3 a`},
		{"a silent failure says so", result(3, "", ""), `fail "exit code 3, and nothing on stderr" 3 a`},
		{"a command at its limit fails even when it says that all is well", proc.Result{Code: 0, TimedOut: true, Stdout: proc.NewTail(1), Stderr: proc.NewTail(1)}, `fail "ended at its limit of 3600 s\n" 0 a`},
		{"a command that could not be watched fails without code", proc.Result{Err: errors.New("no memory"), Stdout: proc.NewTail(1), Stderr: proc.NewTail(1)}, `fail "no memory\n" a`},
	} {
		bubble(t, c.name, func(t *testing.T) {
			w := newWorld(t, lasting(time.Second, c.result))
			w.db.add("ocr", "a")
			w.run()
			w.after(time.Minute)
			if err := w.finish(); err != nil {
				t.Error(err)
			}
			w.is("register", c.want, "leave")
		})
	}
	bubble(t, "a result that the database refuses is dropped and the job is done", func(t *testing.T) {
		w := newWorld(t, lasting(time.Second, result(0, `{"a":"\u0000"}`, "")))
		w.db.bad = fleet.ErrBadRequest
		w.db.add("ocr", "a")
		w.run()
		w.after(time.Minute)
		_ = w.finish()
		w.is("register", "complete a", "leave")
	})
	bubble(t, "a command gets the job on stdin and a small environment", func(t *testing.T) {
		w := newWorld(t, lasting(0, result(0, "", "")))
		w.db.queued = []agent.Job{{Attempt: "a", ID: "j", Queue: "ocr", Number: 2, Priority: 7, Payload: json.RawMessage(`{"x":1}`)}}
		w.run()
		w.after(time.Minute)
		_ = w.finish()
		cmd := w.started[0]
		if want := `{"id":"j","queue":"ocr","attempt":2,"priority":7,"payload":{"x":1},"checkpoint":null}` + "\n"; string(cmd.Stdin) != want {
			t.Errorf("stdin is %s, want %s", cmd.Stdin, want)
		}
		if want := []string{"PATH=/bin", "HOME=/root", "SLUICE_JOB_ID=j", "SLUICE_QUEUE=ocr", "SLUICE_ATTEMPT=2"}; !slices.Equal(cmd.Env, want) {
			t.Errorf("environment is %q, want %q", cmd.Env, want)
		}
		if cmd.Timeout != time.Hour || cmd.Grace != 30*time.Second {
			t.Errorf("limit %v, grace %v", cmd.Timeout, cmd.Grace)
		}
	})
	bubble(t, "visibility is renewed at a third of its time", func(t *testing.T) {
		w := newWorld(t, lasting(1000*time.Second, result(0, "", "")))
		w.db.add("ocr", "a")
		w.run()
		w.after(1100 * time.Second)
		_ = w.finish()
		w.is("register", "complete a", "leave")
		if w.db.extended < 9 || w.db.extended > 11 {
			t.Errorf("extended %d times in 1000 s, want 10", w.db.extended)
		}
	})
	bubble(t, "an attempt that is no longer ours is ended and not reported", func(t *testing.T) {
		w := newWorld(t, deaf)
		w.db.add("ocr", "a")
		w.run()
		w.after(time.Second)
		w.db.set(func() { clear(w.db.held) })
		w.after(101 * time.Second)
		w.db.add("ocr", "b")
		w.after(3 * time.Second)
		if len(w.started) != 2 {
			t.Errorf("%d commands were started, want a second one in the slot of the first", len(w.started))
		}
		w.db.set(func() { clear(w.db.held) })
		_ = w.finish()
		if slices.Contains(w.db.asked(), "complete a") || slices.Contains(w.db.asked(), "release a") {
			t.Errorf("the lost attempt was reported: %q", w.db.asked())
		}
	})
	bubble(t, "a command is ended when its visibility ran out unheard", func(t *testing.T) {
		w := newWorld(t, deaf)
		w.db.add("ocr", "a")
		w.run()
		w.after(time.Second)
		w.db.set(func() { w.db.down = errors.New("down") })
		w.after(310 * time.Second)
		w.db.set(func() { w.db.down = nil })
		w.after(time.Minute)
		_ = w.finish()
		w.is("register", "leave")
	})
	bubble(t, "an outcome is told when the database is back", func(t *testing.T) {
		w := newWorld(t, lasting(30*time.Second, result(0, "", "")))
		w.db.add("ocr", "a")
		w.run()
		w.after(20 * time.Second)
		w.db.set(func() { w.db.down = errors.New("down") })
		w.after(100 * time.Second)
		w.db.set(func() { w.db.down = nil })
		w.after(time.Minute)
		_ = w.finish()
		w.is("register", "complete a", "leave")
	})
}

func TestClaims(t *testing.T) {
	t.Parallel()
	bubble(t, "each queue has its own slots", func(t *testing.T) {
		w := newWorld(t, lasting(time.Hour, result(0, "", "")))
		w.db.rules.Queues = []fleet.Queue{queue("ocr", 3), queue("images", 1)}
		w.db.add("images", "x", "y")
		w.db.add("ocr", "a", "b", "c", "d", "e")
		w.run()
		w.after(10 * time.Second)
		if n := len(w.db.held); n != 4 || len(w.db.queued) != 3 {
			t.Errorf("%d jobs in hand: %v, want three of ocr and one of images", n, w.db.held)
		}
		_ = w.finish()
	})
	bubble(t, "a slot that gets free is filled at once", func(t *testing.T) {
		w := newWorld(t, lasting(time.Millisecond, result(0, "", "")))
		for i := range 100 {
			w.db.add("ocr", fmt.Sprint(i))
		}
		w.run()
		w.after(2 * time.Second)
		if n := len(w.db.queued); n > 0 {
			t.Errorf("%d jobs still wait", n)
		}
		_ = w.finish()
	})
	bubble(t, "a queue without command is left to others, and that is said once", func(t *testing.T) {
		w := newWorld(t, lasting(time.Hour, result(0, "", "")))
		var log bytes.Buffer
		w.options.Log = slog.New(slog.NewJSONHandler(&log, nil))
		w.db.rules.Queues = []fleet.Queue{{Name: "media"}}
		w.db.add("media", "a")
		w.run()
		w.after(10 * time.Minute)
		_ = w.finish()
		if n := strings.Count(log.String(), "no run.command"); n != 1 || w.db.claims > 0 {
			t.Errorf("said %d times and claimed %d times, want 1 and 0", n, w.db.claims)
		}
	})
	bubble(t, "new rules hold from the next heartbeat on", func(t *testing.T) {
		w := newWorld(t, lasting(time.Hour, result(0, "", "")))
		w.db.rules.Queues = nil
		w.db.add("ocr", "a")
		w.run()
		w.after(time.Minute)
		if len(w.db.held) > 0 {
			t.Error("a job was claimed without an assignment")
		}
		w.db.set(func() { w.db.rules.Queues = []fleet.Queue{queue("ocr", 1)} })
		w.after(17 * time.Second)
		if len(w.db.held) != 1 {
			t.Error("no job was claimed with the new assignment")
		}
		_ = w.finish()
	})
	bubble(t, "idle agents ask about once a second and sweep about twice a minute", func(t *testing.T) {
		w := newWorld(t, deaf)
		w.run()
		w.after(10 * time.Minute)
		if n := w.db.claims; n < 500 || n > 800 {
			t.Errorf("%d claims in 10 minutes", n)
		}
		if n := w.db.beats; n < 39 || n > 42 {
			t.Errorf("%d heartbeats in 10 minutes, want 40", n)
		}
		if n := w.db.sweeps; n < 13 || n > 40 {
			t.Errorf("%d sweeps in 10 minutes, want about 20", n)
		}
		_ = w.finish()
	})
}

func TestRegistering(t *testing.T) {
	t.Parallel()
	bubble(t, "a boot delay comes first", func(t *testing.T) {
		w := newWorld(t, deaf)
		w.options.BootDelay = time.Minute
		w.run()
		w.after(59 * time.Second)
		w.is()
		w.after(2 * time.Second)
		w.is("register")
		_ = w.finish()
	})
	bubble(t, "it is repeated with growing pauses while it is put off, for ever", func(t *testing.T) {
		w := newWorld(t, deaf)
		w.db.waits = 100
		w.run()
		w.after(10 * time.Minute)
		if n := len(w.db.asked()); n < 25 || n > 80 {
			t.Errorf("%d registrations in 10 minutes", n)
		}
		w.after(time.Hour)
		if w.db.beats == 0 {
			t.Error("no heartbeat after it was taken in")
		}
		_ = w.finish()
	})
	bubble(t, "an agent that is told to end before says nothing", func(t *testing.T) {
		w := newWorld(t, deaf)
		w.options.BootDelay = time.Hour
		w.run()
		if err := w.finish(); err != nil {
			t.Error(err)
		}
		w.is()
	})
	bubble(t, "a worker whose row is gone registers again and keeps its jobs", func(t *testing.T) {
		w := newWorld(t, lasting(2*time.Minute, result(0, "", "")))
		w.db.add("ocr", "a")
		w.run()
		w.after(time.Second)
		w.db.set(func() { w.db.unknown = true })
		w.after(3 * time.Minute)
		_ = w.finish()
		w.is("register", "register", "complete a", "leave")
	})
}

func TestDraining(t *testing.T) {
	t.Parallel()
	bubble(t, "a drain is acknowledged once, jobs in hand go on, and its end is obeyed", func(t *testing.T) {
		w := newWorld(t, lasting(2*time.Minute, result(0, "", "")))
		w.db.add("ocr", "a", "b")
		w.run()
		w.after(time.Second)
		w.db.set(func() { w.db.drain = true })
		w.after(10 * time.Minute)
		w.is("register", "drained", "complete a")
		w.db.set(func() { w.db.drain = false })
		w.after(3 * time.Minute)
		w.is("register", "drained", "complete a", "complete b")
		w.db.set(func() { w.db.drain = true })
		w.after(time.Minute)
		_ = w.finish()
		w.is("register", "drained", "complete a", "complete b", "drained", "leave")
	})
	bubble(t, "a worker that registers as draining claims nothing", func(t *testing.T) {
		w := newWorld(t, deaf)
		w.db.add("ocr", "a")
		w.db.drain = true
		w.run()
		w.after(time.Minute)
		_ = w.finish()
		w.is("register", "drained", "leave")
		if w.db.claims > 0 {
			t.Errorf("it claimed %d times", w.db.claims)
		}
	})
}

func TestEnding(t *testing.T) {
	t.Parallel()
	bubble(t, "SIGTERM lets a job finish within its grace", func(t *testing.T) {
		w := newWorld(t, lasting(20*time.Second, result(0, "", "")))
		w.db.add("ocr", "a", "b")
		w.run()
		w.after(time.Second)
		if err := w.finish(); err != nil {
			t.Error(err)
		}
		w.is("register", "complete a", "leave")
	})
	for name, c := range map[string]command{"and is asked to end": lasting(time.Hour, result(0, "", "")), "and does not listen": deaf} {
		bubble(t, "SIGTERM gives back what takes longer "+name, func(t *testing.T) {
			w := newWorld(t, c)
			w.db.add("ocr", "a", "b")
			w.run()
			w.after(time.Second)
			begun := time.Now()
			if err := w.finish(); err != nil {
				t.Error(err)
			}
			w.is("register", "release a", "leave")
			if took := time.Since(begun); took < 30*time.Second || took > 33*time.Second {
				t.Errorf("it took %v, want the grace of 30 s", took)
			}
		})
	}
	bubble(t, "a job that finishes when it is asked to end is done", func(t *testing.T) {
		w := newWorld(t, func(_ context.Context, stop <-chan struct{}) proc.Result { <-stop; return result(0, "", "") })
		w.db.add("ocr", "a")
		w.run()
		w.after(time.Second)
		_ = w.finish()
		w.is("register", "complete a", "leave")
	})
	bubble(t, "a second signal ends it at once", func(t *testing.T) {
		w := newWorld(t, deaf)
		w.db.add("ocr", "a")
		w.run()
		w.after(time.Second)
		begun := time.Now()
		w.signals <- syscall.SIGTERM
		synctest.Wait()
		if err := w.finish(); err != nil {
			t.Error(err)
		}
		w.is("register", "release a", "leave")
		if took := time.Since(begun); took > time.Second {
			t.Errorf("it took %v", took)
		}
	})
	bubble(t, "a database that does not answer holds the end up for seconds only", func(t *testing.T) {
		w := newWorld(t, deaf)
		w.options.Identity.Provider = fleet.VPS
		w.db.add("ocr", "a")
		w.run()
		w.after(time.Second)
		w.db.set(func() { w.db.down = errors.New("down") })
		begun := time.Now()
		if err := w.finish(); err != nil {
			t.Error(err)
		}
		if took := time.Since(begun); took > time.Minute {
			t.Errorf("it took %v", took)
		}
	})
	bubble(t, "it stops claiming a drain's time before its expiry, and gives everything back then", func(t *testing.T) {
		w := newWorld(t, deaf)
		left := 20 * time.Minute
		w.db.left = &left
		w.db.rules.Queues = []fleet.Queue{queue("ocr", 2)}
		w.db.add("ocr", "a")
		w.run()
		w.after(15*time.Minute - time.Second)
		w.after(2 * time.Second)
		w.db.add("ocr", "b")
		if err := w.end(); err != nil {
			t.Error(err)
		}
		w.is("register", "release a", "leave")
		if age := time.Since(w.db.begun); age < left || age > left+5*time.Second {
			t.Errorf("it ended after %v, want %v", age, left)
		}
	})
	bubble(t, "a lifetime ends it without a database", func(t *testing.T) {
		w := newWorld(t, deaf)
		w.options.Lifetime = 10 * time.Minute
		w.db.down = errors.New("down")
		w.run()
		begun := time.Now()
		if err := w.end(); err != nil {
			t.Error(err)
		}
		if took := time.Since(begun); took > 11*time.Minute {
			t.Errorf("it took %v", took)
		}
	})
}

func TestLosingTheDatabase(t *testing.T) {
	t.Parallel()
	down := errors.New("connection refused")
	bubble(t, "an agent that has lost it for too long ends its jobs and itself", func(t *testing.T) {
		w := newWorld(t, deaf)
		w.db.rules.Visibility = 7200
		w.db.add("ocr", "a")
		w.run()
		w.after(time.Second)
		w.db.set(func() { w.db.down = down })
		begun := time.Now()
		if err := w.end(); !errors.Is(err, agent.ErrLostDatabase) || !errors.Is(err, down) {
			t.Errorf("it ended with %v, want %v", err, agent.ErrLostDatabase)
		}
		if took := time.Since(begun); took < 870*time.Second || took > 950*time.Second {
			t.Errorf("it took %v, want 900 s", took)
		}
	})
	bubble(t, "an agent that never reached it ends too", func(t *testing.T) {
		w := newWorld(t, deaf)
		w.db.down = down
		w.run()
		if err := w.end(); !errors.Is(err, agent.ErrLostDatabase) {
			t.Errorf("it ended with %v, want %v", err, agent.ErrLostDatabase)
		}
	})
	bubble(t, "the VPS tries for ever", func(t *testing.T) {
		w := newWorld(t, lasting(time.Second, result(0, "", "")))
		w.options.Identity.Provider = fleet.VPS
		w.run()
		w.after(time.Second)
		w.db.set(func() { w.db.down = down })
		w.after(24 * time.Hour)
		w.db.set(func() { w.db.down = nil })
		w.db.add("ocr", "a")
		w.after(time.Minute)
		if err := w.finish(); err != nil {
			t.Error(err)
		}
		w.is("register", "complete a", "leave")
	})
	bubble(t, "a refused password is not a lost database", func(t *testing.T) {
		w := newWorld(t, lasting(time.Second, result(0, "", "")))
		w.run()
		w.after(time.Second)
		w.db.set(func() { w.db.down = fmt.Errorf("connect: %w", fleet.ErrAuth) })
		w.after(24 * time.Hour)
		w.db.set(func() { w.db.down = nil })
		w.db.add("ocr", "a")
		w.after(time.Minute)
		if err := w.finish(); err != nil {
			t.Error(err)
		}
		w.is("register", "complete a", "leave")
	})
	bubble(t, "hours in which the machine slept do not count", func(t *testing.T) {
		w := newWorld(t, deaf)
		var asleep atomic.Int64
		w.options.Sample = func(context.Context) agent.Sample {
			time.Sleep(time.Duration(asleep.Load()))
			return agent.Sample{}
		}
		w.run()
		w.after(time.Second)
		asleep.Store(int64(5 * time.Hour))
		w.db.set(func() { w.db.down = down })
		w.after(5 * time.Hour)
		asleep.Store(0)
		w.after(time.Minute)
		w.db.set(func() { w.db.down = nil })
		w.after(time.Minute)
		if err := w.finish(); err != nil {
			t.Error(err)
		}
		w.is("register", "leave")
	})
	bubble(t, "outages that end do not add up", func(t *testing.T) {
		w := newWorld(t, deaf)
		w.run()
		for range 10 {
			w.db.set(func() { w.db.down = down })
			w.after(10 * time.Minute)
			w.db.set(func() { w.db.down = nil })
			w.after(time.Minute)
		}
		if err := w.finish(); err != nil {
			t.Error(err)
		}
		w.is("register", "leave")
	})
}

func TestListsAreSweptWithTheQueuesThatHaveThem(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, deaf)
		redis := queue("images", 1)
		redis.Source = fleet.Source{Kind: fleet.SourceRedis, Key: "queue:images", Rows: true}
		foreign := queue("theirs", 1)
		foreign.Source = fleet.Source{Kind: fleet.SourceRedis, Key: "queue:theirs"}
		w.db.rules.Queues = []fleet.Queue{queue("ocr", 1), redis, foreign}
		var mu sync.Mutex
		var sweeps int
		w.options.Lists = func(_ context.Context, queues []fleet.Queue) error {
			mu.Lock()
			defer mu.Unlock()
			sweeps++
			if len(queues) != 1 || queues[0].Name != "images" {
				t.Errorf("swept %v, want images", queues)
			}
			return errors.New("down")
		}
		w.run()
		w.after(time.Minute)
		if err := w.finish(); err != nil {
			t.Error(err)
		}
		if sweeps < 20 || sweeps > 60 {
			t.Errorf("%d sweeps in a minute, want about 30", sweeps)
		}
	})
}
