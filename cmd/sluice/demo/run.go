package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"sluice/core/fleet"
	"sluice/core/tick"
	"sluice/functions/host"
	"sluice/providers/local"
	"sluice/providers/postgres"
)

// The rhythm of a local run.
const (
	evaluateEvery  = 2 * time.Second
	reconcileEvery = 15 * time.Second
	tickLimit      = 30 * time.Second
	stuckAfter     = 3 * time.Minute // without any change a run has failed
	endTime        = 60 * time.Second
	leftOutTold    = 3 // files that are no images after all
)

// Options say what a local run works on, and with what.
type Options struct {
	Env   func(string) string
	Log   io.Writer // for services, which say what they bring up
	Say   func(format string, args ...any)
	Dir   string  // of images; empty: they are made
	Home  string  // folder of the stack and of its results
	Jobs  int     // at most so many; 0: every image at every width
	Work  float64 // seconds that one job shall take; 0: enough for a burst
	Force bool
	Keep  bool
	Self  string // this program, which is also the job's command
	Agent string // the sluice-agent program
	Links []fleet.Link
}

// run is a local run under way.
type run struct {
	Options
	home  home
	stack *stack
	world *host.World
	db    *postgres.DB
	conn  *pgx.Conn // for counting
	vps   *vps
	ids   []string
	begun time.Time
	most  int // machines at once
	told  progress
	last  map[string]string // message by whom it is about, so that what stays the same is said once
}

// Run works a burst off and says what it came to. It leaves nothing running, also when it is interrupted.
func Run(ctx context.Context, o Options) (s Summary, err error) {
	r := &run{Options: o, last: map[string]string{}}
	defer func() { err = errors.Join(err, r.end(context.WithoutCancel(ctx), &s)) }()
	jobs, err := r.prepare(ctx)
	if err == nil {
		err = r.begin(ctx, jobs)
	}
	if err == nil {
		err = r.work(ctx)
	}
	if ctx.Err() != nil {
		return s, errors.New("interrupted: everything that was started has been ended")
	}
	if err != nil {
		return s, err
	}
	if s, err = r.summary(ctx, jobs); err != nil {
		return s, err
	}
	if o.Keep {
		r.stay(ctx)
	}
	return s, nil
}

// prepare brings up the stack and makes the work ready. The folder is emptied only once the stack is
// ours: another run in the same folder has it until then.
func (r *run) prepare(ctx context.Context) ([]Thumbnail, error) {
	images, err := r.findImages()
	if err != nil {
		return nil, err
	}
	r.Say("%s", bringingUp(r.Env))
	if r.stack, err = startStack(ctx, r.Options, r.Log); err != nil {
		return nil, err
	}
	if r.home, err = openHome(filepath.Join(r.Home, "run")); err != nil {
		return nil, err
	}
	jobs, err := r.jobs(images)
	if err != nil {
		return nil, err
	}
	if err := r.home.write(r.Self, r.stack.databaseURL, r.stack.redisURL, len(jobs)); err != nil {
		return nil, err
	}
	return jobs, r.open(ctx)
}

// findImages finds the user's images; none, and no error, where there is no folder of them.
func (r *run) findImages() ([]string, error) {
	if r.Dir == "" {
		return nil, nil
	}
	images, leftOut, err := findImages(r.Dir)
	for i, why := range leftOut {
		if i == leftOutTold {
			r.Say("Left out: %d more", len(leftOut)-i)
			break
		}
		r.Say("Left out: %v", why)
	}
	return images, err
}

func (r *run) jobs(images []string) ([]Thumbnail, error) {
	if r.Dir == "" {
		var err error
		n := (max(r.Jobs, 1) + len(widths) - 1) / len(widths)
		if images, err = makeImages(r.home.images(), n); err != nil {
			return nil, err
		}
	}
	jobs := thumbnails(images, r.home.thumbnails(), r.Jobs)
	seconds := workEach(r.Work, len(jobs))
	passes, err := effort(images, r.home.path("trial.jpg"), seconds)
	if err != nil {
		return nil, err
	}
	for i := range jobs {
		jobs[i].Passes = passes
	}
	r.Say("%d thumbnails to make, of %d images, about %.1f s of work each", len(jobs), len(images), seconds)
	return jobs, nil
}

// open opens what ticks and counting need.
func (r *run) open(ctx context.Context) error {
	var err error
	r.world, err = host.Open(ctx, host.Options{
		Env: r.environment, Config: r.home.config(), Database: r.stack.databaseURL, Limit: tickLimit, MinInterval: 1,
	}, r.Links...)
	if err != nil {
		return err
	}
	if err := r.world.Lost(); err != nil {
		return err
	}
	if r.db, err = postgres.Open(ctx, postgres.URL(r.stack.databaseURL)); err != nil {
		return err
	}
	if r.conn, err = pgx.Connect(ctx, r.stack.databaseURL); err != nil {
		return fmt.Errorf("connect to database: %w", err)
	}
	return nil
}

// begin starts the VPS worker and puts the burst in. The first tick tells workers what to run.
func (r *run) begin(ctx context.Context, jobs []Thumbnail) error {
	r.begun = time.Now()
	if err := r.evaluate(ctx); err != nil {
		return err
	}
	var err error
	if r.vps, err = startVPS(r.Agent, r.home, r.say); err != nil {
		return err
	}
	r.Say("Started one worker, the VPS")
	if r.ids, err = r.stack.enqueue(ctx, r.db, rows(jobs)); err != nil {
		return err
	}
	r.begun = time.Now()
	r.Say("Put %d jobs into queue %s", len(jobs), queueName)
	return nil
}

// work ticks until the burst is worked off and its machines are gone.
func (r *run) work(ctx context.Context) error {
	evaluate, reconcile := time.NewTicker(evaluateEvery), time.NewTicker(reconcileEvery)
	defer evaluate.Stop()
	defer reconcile.Stop()
	changed, last := time.Now(), state{}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-reconcile.C:
			if _, err := tick.Reconcile(ctx, r.world.World, due()); err != nil {
				r.say("Reconciling failed: %v", err)
			}
			continue
		case <-evaluate.C:
		}
		if err := r.evaluate(ctx); err != nil && ctx.Err() == nil {
			r.say("The tick failed: %v", err)
		}
		now, err := r.look(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			r.say("%v", err)
		case err == nil && now.over():
			return nil
		case now != last:
			changed, last = time.Now(), now
		}
		if time.Since(changed) > stuckAfter {
			return fmt.Errorf("nothing has changed for %v: %s", stuckAfter, last)
		}
	}
}

// evaluate does a tick and prints what it decided.
func (r *run) evaluate(ctx context.Context) error {
	report, err := tick.Evaluate(ctx, r.world.World, due())
	for _, line := range report.Lines {
		about := line.Event + " " + line.Pool + " " + line.Worker
		if line.Event != "tick" && r.last[about] != line.Message {
			r.last[about] = line.Message
			r.say("%s", shortened(line))
		}
	}
	return err
}

// shortened is a line's message with as much of its worker's id as tells it from the others; the stored line has all of it.
func shortened(line fleet.Line) string {
	const enough = 8
	if len(line.Worker) <= enough {
		return line.Message
	}
	return strings.ReplaceAll(line.Message, line.Worker, line.Worker[:enough])
}

func due() time.Time { return time.Now().UTC() }

// state is where the burst is.
type state struct {
	jobs                       counts
	booting, working, draining int
	intents                    int // asked for, and not answered or not seen yet
}

func (s state) over() bool {
	return s.jobs.total() > 0 && s.jobs.over() == s.jobs.total() && s.booting+s.working+s.draining+s.intents == 0
}

func (s state) String() string {
	return fmt.Sprintf("%d of %d jobs over, %d running; machines: %d booting, %d working, %d draining",
		s.jobs.over(), s.jobs.total(), s.jobs.Running, s.booting, s.working, s.draining)
}

// look counts jobs and machines, and prints progress where it has changed.
func (r *run) look(ctx context.Context) (state, error) {
	var s state
	var err error
	if s.jobs, err = count(ctx, r.conn, r.ids); err != nil {
		return s, err
	}
	m, err := r.db.Recall(ctx)
	if err != nil {
		return s, err
	}
	for _, w := range m.Workers {
		if !w.Cloud() {
			continue
		}
		switch w.Status {
		case fleet.Provisioning:
			s.booting++
		case fleet.Ready:
			s.working++
		case fleet.Draining, fleet.Suspended, fleet.Terminated, fleet.Failed:
			s.draining++
		}
	}
	s.intents = len(m.Intents)
	r.most = max(r.most, s.booting+s.working+s.draining)
	if line, ok := r.told.next(s, time.Since(r.begun)); ok {
		r.say("%s", line)
	}
	return s, nil
}

// say prints with the time since the burst began.
func (r *run) say(format string, args ...any) {
	r.Say("%6.1fs  %s", time.Since(r.begun).Seconds(), fmt.Sprintf(format, args...))
}

// progress prints where the burst is, but not each second.
type progress struct {
	last   state
	lastAt time.Duration
}

const progressEvery = 4 * time.Second

func (p *progress) next(s state, at time.Duration) (string, bool) {
	if s == p.last || at-p.lastAt < progressEvery {
		return "", false
	}
	p.last, p.lastAt = s, at
	return s.String(), true
}

// environment is the user's, but that a SLUICE_ variable of a real installation has no say here.
func (r *run) environment(name string) string {
	switch name {
	case host.EnvConfig, host.EnvName, host.EnvPlaces:
		return ""
	case host.EnvRedis:
		return r.stack.redisURL
	case local.EnvDir:
		return r.home.machines()
	case local.EnvAgent:
		return r.Agent
	}
	return r.Env(name)
}
