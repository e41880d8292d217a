package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"sluice/cmd/sluice-agent/internal/proc"
	"sluice/core/fleet"
)

// ErrLostDatabase ends an agent whose database has been out of reach for too long.
var ErrLostDatabase = errors.New("the database has been out of reach for too long")

// Rhythms and bounds that nobody has to set.
const (
	callTimeout   = 10 * time.Second
	pollEvery     = time.Second
	sweepEvery    = 30 * time.Second
	listsEvery    = 2 * time.Second
	retryFirst    = time.Second
	retryMost     = 15 * time.Second
	retryAway     = 3 * time.Second
	lastWords     = 10 * time.Second // for what is reported after the end has begun
	killAfterTerm = 2 * time.Second  // for a job that is given back
)

// Rules before the first assignment, equal to the config's defaults.
const (
	defaultHeartbeat    = fleet.Seconds(15)
	defaultVisibility   = fleet.Seconds(300)
	defaultLostDatabase = fleet.Seconds(900)
)

// Options are what an agent is made of.
type Options struct {
	Database Database
	Identity Identity
	Run      func(ctx context.Context, stop <-chan struct{}, c proc.Command) proc.Result
	Sample   func(ctx context.Context) Sample
	// Lists carries the job table's changes over to the Redis lists of these queues; nil where this worker does not.
	Lists func(ctx context.Context, queues []fleet.Queue) error
	// Env are the variables of this process that commands get.
	Env []string
	// BootDelay plays the part of a slow boot.
	BootDelay time.Duration
	// Lifetime ends the agent whatever the database says; 0 is without end.
	Lifetime time.Duration
	Log      *slog.Logger
}

// agent's fields belong to the goroutine of its loop, except where noted.
type agent struct {
	Options
	term    <-chan struct{}    // closed by the first signal
	now     context.Context    // ends with the second signal, the expiry or the loss of the database: jobs are killed
	endNow  context.CancelFunc //
	silence chan struct{}      // closed when nothing more can be reported
	logger  atomic.Pointer[slog.Logger]

	worker   string
	rules    fleet.Assignment
	queues   map[string]fleet.Queue
	drain    bool
	acked    bool
	ends     time.Time // monotonic; zero: never
	life     time.Time // the part of ends that Lifetime sets
	stopping bool
	jobs     map[string]*job // by attempt
	done     chan *job
	beat     *time.Timer
	poll     *time.Timer
	end      *time.Timer

	tried time.Time     // when the database was last asked
	away  time.Duration // how long it has not answered
	said  map[string]string

	mu    sync.Mutex
	lists []fleet.Queue // of rules, for the sweep
}

// Run lives a worker's life until it is told to end, expires or loses its database. The first signal
// lets jobs finish within their grace, the second ends them.
func Run(ctx context.Context, o Options, signals <-chan os.Signal) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a := newAgent(ctx, o)
	defer a.endNow()
	a.term = a.listen(ctx, signals)
	if err := a.join(ctx); err != nil || a.worker == "" {
		return err
	}
	var sweeps sync.WaitGroup
	defer sweeps.Wait()
	defer cancel()
	sweeps.Go(func() { a.sweep(ctx) })
	if a.Lists != nil {
		sweeps.Go(func() { a.sweepLists(ctx) })
	}
	return a.loop(ctx)
}

func newAgent(ctx context.Context, o Options) *agent {
	a := &agent{
		Options: o, silence: make(chan struct{}), jobs: map[string]*job{}, done: make(chan *job), said: map[string]string{},
		beat: time.NewTimer(0), poll: time.NewTimer(0), end: time.NewTimer(time.Hour), tried: time.Now(),
	}
	a.logger.Store(o.Log)
	a.end.Stop()
	a.now, a.endNow = context.WithCancel(ctx)
	a.obey(nil)
	if o.Lifetime > 0 {
		a.life = time.Now().Add(o.Lifetime)
		a.expire(nil)
	}
	return a
}

// listen turns the first signal into a closed channel and the second into the end.
func (a *agent) listen(ctx context.Context, signals <-chan os.Signal) <-chan struct{} {
	term := make(chan struct{})
	go func() {
		for first := true; ; first = false {
			select {
			case <-ctx.Done():
				return
			case s := <-signals:
				a.log().Info("signal received", "signal", s.String(), "first", first)
				if !first {
					a.endNow()
					return
				}
				close(term)
			}
		}
	}()
	return term
}

// join registers, as often as it takes. It leaves the worker's id empty where the end comes first.
func (a *agent) join(ctx context.Context) error {
	wait := a.BootDelay
	next := retryFirst
	for {
		select {
		case <-a.term:
			return nil
		case <-a.end.C:
			return nil
		case <-time.After(wait):
		}
		if lost := a.register(ctx); lost != nil {
			return lost
		}
		if a.worker != "" {
			return nil
		}
		wait, next = jitter(next), min(2*next, retryMost)
	}
}

// register asks once; an error is the end.
func (a *agent) register(ctx context.Context) error {
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	s, err := a.Database.Register(call, a.Identity)
	if err != nil {
		return a.missed("register", err)
	}
	a.reached("register")
	if s.Wait {
		a.say("register", "not taken in yet, trying again", nil)
		return nil
	}
	if s.Worker != a.worker {
		a.worker = s.Worker
		a.logger.Store(a.Log.With("worker", a.worker))
		a.log().Info("registered")
	}
	a.accept(ctx, s)
	return nil
}

// loop is everything after registration.
func (a *agent) loop(ctx context.Context) error {
	term := a.term
	for {
		select {
		case <-term:
			term = nil
			a.stop()
		case <-a.end.C:
			a.expired()
		case j := <-a.done:
			delete(a.jobs, j.Attempt)
			a.claim(ctx)
		case <-a.beat.C:
			if err := a.heartbeat(ctx); err != nil {
				return a.abandon(err)
			}
			a.beat.Reset(a.rhythm())
		case <-a.poll.C:
			a.claim(ctx)
			a.poll.Reset(jitter(pollEvery))
		}
		if a.stopping && len(a.jobs) == 0 {
			return a.leave(ctx)
		}
	}
}

// rhythm is the time to the next heartbeat: shorter while the database does not answer.
func (a *agent) rhythm() time.Duration {
	if a.away > 0 {
		return min(a.rules.Heartbeat.Duration(), jitter(retryAway))
	}
	return a.rules.Heartbeat.Duration()
}

// stop takes no more jobs and gives each one in hand its grace.
func (a *agent) stop() {
	a.stopping = true
	a.log().Info("stopping", "jobs", len(a.jobs))
	longest := time.Duration(0)
	for _, j := range a.jobs {
		grace := j.queue.Run.StopGrace.Duration()
		longest = max(longest, grace)
		time.AfterFunc(grace, j.giveBack)
	}
	time.AfterFunc(longest+2*killAfterTerm, a.endNow) // a database that does not answer holds nothing up
	context.AfterFunc(a.now, func() { time.AfterFunc(lastWords, sync.OnceFunc(func() { close(a.silence) })) })
}

// expired gives everything back.
func (a *agent) expired() {
	a.log().Info("this worker's time is over", "jobs", len(a.jobs))
	if !a.stopping {
		a.stop()
	}
	for _, j := range a.jobs {
		j.giveBack()
	}
	time.AfterFunc(killAfterTerm, a.endNow)
}

// abandon ends everything without a word, because there is nobody to hear it.
func (a *agent) abandon(why error) error {
	a.log().Error("ending", "error", why.Error(), "jobs", len(a.jobs))
	if !a.stopping {
		close(a.silence)
	}
	a.endNow()
	for len(a.jobs) > 0 {
		j := <-a.done
		delete(a.jobs, j.Attempt)
	}
	return why
}

// leave says goodbye; where that fails, the missing heartbeats will tell.
func (a *agent) leave(ctx context.Context) error {
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := a.Database.Leave(call, a.worker); err != nil {
		a.log().Warn("could not say goodbye", "error", err.Error())
		return nil
	}
	a.log().Info("left")
	return nil
}

// log is the logger with the worker's id, from any goroutine.
func (a *agent) log() *slog.Logger { return a.logger.Load() }

// jitter spreads what many workers do at the same rhythm.
func jitter(d time.Duration) time.Duration {
	return d/2 + rand.N(d+1) //nolint:gosec // no secret
}

const unanswered = "the database did not answer"

// say logs a state once, until it changes.
func (a *agent) say(about, what string, err error) {
	log := a.log().With("about", about)
	text := what
	if err != nil {
		log, text = log.With("error", err.Error()), what+err.Error()
	}
	if a.said[about] != text {
		a.said[about] = text
		log.Warn(what)
	}
}

// reached notes that the database answered.
func (a *agent) reached(about string) {
	a.away, a.tried = 0, time.Now()
	if a.said[about] != "" {
		a.log().Info("answered again", "about", about)
		delete(a.said, about)
	}
}

// missed notes that it did not, and returns an error when that has lasted too long. What counts is how long
// this process has been trying: hours in which the machine slept are not. The VPS goes on for ever, since nobody
// would start it again, and a refused password is the answer of a database that lives.
func (a *agent) missed(about string, err error) error {
	most := a.rules.Heartbeat.Duration() + callTimeout
	if !errors.Is(err, fleet.ErrAuth) {
		a.away += min(time.Since(a.tried), most)
	}
	a.tried = time.Now()
	a.say(about, unanswered, err)
	if limit := a.rules.LostDatabase.Duration(); a.away > limit && a.Identity.Provider != fleet.VPS {
		return fmt.Errorf("%w: more than %v: %w", ErrLostDatabase, limit, err)
	}
	return nil
}
