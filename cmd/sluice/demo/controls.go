package demo

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"sluice/cmd/sluice/page"
	"sluice/core/fleet"
	"sluice/providers/local"
)

// knobs are what a visitor of the page has turned on.
type knobs struct{ paused, refusing atomic.Bool }

// press is what a button does.
type press = func(ctx context.Context, worker string) (said string, err error)

func (r *run) controls() []page.Control {
	return []page.Control{
		{
			ID: "add", Label: fmt.Sprintf("Add %d jobs", moreJobs), Press: r.whileWorking(r.add),
			Help: "Puts more thumbnails into the queue",
		},
		{
			ID: "pause", Label: "Pause ticks", On: r.paused.Load, Press: r.whileWorking(r.pause),
			Help: "Nothing is observed or decided until it is released; workers go on with their jobs",
		},
		{
			ID: "refuse", Label: "Refuse launches", On: r.refusing.Load, Press: r.whileWorking(r.refuse),
			Help: "The cloud refuses every launch, as if it had no machine left, until it is released",
		},
		{
			ID: "kill", Label: "Kill", PerWorker: true, Press: r.whileWorking(r.kill),
			Help: "Ends the worker as a crash does: at once, with jobs in hand",
		},
	}
}

// whileWorking lets a button do something between ticks, and only while there are any.
func (r *run) whileWorking(do press) press {
	return func(ctx context.Context, worker string) (string, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		switch r.phase {
		case preparing:
			return "", errors.New("the run has not begun: its services are being brought up")
		case ended:
			return "", errors.New("the run has ended; `sluice run --watch` goes on until it is interrupted")
		case working:
		}
		said, err := do(ctx, worker)
		if err == nil {
			r.say("Asked for on the page: %s", said)
		}
		return said, err
	}
}

func (r *run) pause(context.Context, string) (string, error) {
	if flip(&r.paused) {
		return "Ticks are paused: workers go on, and nothing is decided", nil
	}
	return "Ticks go on", nil
}

func (r *run) refuse(context.Context, string) (string, error) {
	if flip(&r.refusing) {
		return "The cloud has no capacity: it refuses every launch", nil
	}
	return "The cloud has capacity again; an offer that it refused is left alone for about a minute after its first refusal, longer after each further one", nil
}

func flip(b *atomic.Bool) bool {
	on := !b.Load()
	b.Store(on)
	return on
}

// refuseAtWill puts the refusals of a cloud without capacity between the ticks and the real thing.
func (r *run) refuseAtWill() {
	for name, cloud := range r.world.Clouds {
		cloud.Compute = refusing{cloud.Compute, &r.refusing}
		r.world.Clouds[name] = cloud
	}
}

// refusing is a cloud that has no machine left while it is on.
type refusing struct {
	fleet.Compute
	on *atomic.Bool
}

// Launch implements fleet.Compute.
func (c refusing) Launch(ctx context.Context, l fleet.Launch) ([]fleet.Machine, error) {
	if c.on.Load() {
		return nil, fmt.Errorf("launch: the page has asked for refusals: %w", fleet.ErrNoCapacity)
	}
	return c.Compute.Launch(ctx, l)
}

// kill ends a worker's process as a crash would.
func (r *run) kill(ctx context.Context, id string) (string, error) {
	m, err := r.db.Recall(ctx)
	if err != nil {
		return "", err
	}
	for _, w := range m.Workers {
		if w.ID != id {
			continue
		}
		if !w.Cloud() {
			return "Killed the VPS worker", r.vps.crash()
		}
		cloud, err := local.New(local.Options{Dir: r.home.machines()})
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("Killed machine %s of worker %s", w.Machine, shortID(w.ID)), cloud.Crash(ctx, w.Machine)
	}
	return "", fmt.Errorf("kill worker %s: there is no such worker; it has ended", shortID(id))
}
