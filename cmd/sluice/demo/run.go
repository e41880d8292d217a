package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"sluice/cmd/sluice/page"
	"sluice/core/fleet"
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
	Watch bool   // go on until interrupted, and take more work
	Self  string // this program, which is also the job's command
	Agent string // the sluice-agent program
	// Listen is where the page is; empty: its default, or any free port where that is taken.
	Listen string
	Token  string // of the page
	Links  []fleet.Link
}

// run is a local run under way.
type run struct {
	Options
	knobs
	page    *page.Server
	started time.Time
	home    home
	stack   *stack
	world   *host.World
	db      *postgres.DB
	source  upcoming      // the database, for the page
	pool    *pgxpool.Pool // for counting
	vps     *vps

	mu    sync.Mutex // held by whoever ticks, or does what the page asks for
	phase phase
	work  work
	ids   []string
	begun time.Time
	first time.Duration // from the start until a machine was asked for
	most  int           // machines at once
	seen  state         // at the last look
	told  progress
	last  map[string]string // message by whom it is about, so that what stays the same is said once
}

// phase is what may be asked of a run.
type phase int

const (
	preparing phase = iota
	working
	ended
)

// Run works a burst off and says what it came to. It leaves nothing running, also when it is interrupted.
func Run(ctx context.Context, o Options) (s Summary, err error) {
	r := &run{Options: o, started: time.Now(), source: upcoming{up: make(chan struct{})}, last: map[string]string{}}
	defer func() { err = errors.Join(err, r.end(context.WithoutCancel(ctx), &s)) }()
	err = r.servePage(ctx)
	if err == nil {
		err = r.prepare(ctx)
	}
	if err == nil {
		err = r.begin(ctx)
	}
	if err == nil {
		err = r.loop(ctx)
	}
	switch {
	case err == nil:
		return r.summary(context.WithoutCancel(ctx))
	case ctx.Err() != nil:
		return s, errors.New("interrupted: everything that was started has been ended")
	}
	return s, err
}

// prepare brings up the stack and makes the work ready. The folder is emptied only once the stack is
// ours: another run in the same folder has it until then.
func (r *run) prepare(ctx context.Context) error {
	images, err := r.findImages()
	if err != nil {
		return err
	}
	r.Say("%s", bringingUp(r.Env))
	if r.stack, err = startStack(ctx, r.Options, r.Log); err != nil {
		return err
	}
	if r.home, err = openHome(filepath.Join(r.Home, "run")); err != nil {
		return err
	}
	if r.work, err = r.plan(images); err != nil {
		return err
	}
	if err := r.home.write(r.Self, r.stack.databaseURL, r.stack.redisURL, len(r.work.jobs)); err != nil {
		return err
	}
	return r.open(ctx)
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
	if r.pool, err = pgxpool.New(ctx, r.stack.databaseURL); err != nil {
		return fmt.Errorf("open database: %w", err)
	}
	r.source.open(r.db)
	r.refuseAtWill()
	return nil
}

// begin starts the VPS worker and puts the burst in. The first tick tells workers what to run.
func (r *run) begin(ctx context.Context) error {
	r.begun = time.Now()
	if err := r.evaluate(ctx); err != nil {
		return err
	}
	var err error
	if r.vps, err = startVPS(r.Agent, r.home, r.say); err != nil {
		return err
	}
	r.Say("Started one worker, the VPS")
	if r.ids, err = r.stack.enqueue(ctx, r.db, rows(r.work.jobs)); err != nil {
		return err
	}
	r.begun = time.Now()
	r.Say("Put %d jobs into queue %s", len(r.ids), queueName)
	if r.Watch {
		r.tellWatch()
	}
	return nil
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
