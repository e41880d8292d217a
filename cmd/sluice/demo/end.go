package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"sluice/core/fleet"
)

// summary counts what a run came to, before anything is ended.
func (r *run) summary(ctx context.Context) (Summary, error) {
	ctx, cancel := context.WithTimeout(ctx, endTime)
	defer cancel()
	c, err := count(ctx, r.pool, r.ids)
	if err != nil {
		return Summary{}, err
	}
	s := Summary{
		Jobs: len(r.ids), Done: c.Done, Failed: c.Failed, Dead: c.Dead, Unfinished: c.Queued + c.Running,
		Took: time.Since(r.begun).Seconds(), First: r.first.Seconds(), Most: r.most, Thumbnails: r.home.thumbnails(),
	}
	s.Lost = s.Jobs - c.total() + max(0, missing(r.work.jobs)-c.Failed-c.Dead-s.Unfinished)
	if s.WaitP50, s.WaitP95, err = waits(ctx, r.pool, r.ids); err != nil {
		return s, err
	}
	if s.Retried, err = retried(ctx, r.pool, r.ids); err != nil {
		return s, err
	}
	return s, r.costs(ctx, &s)
}

// missing is how many thumbnails are not there, whatever the table says.
func missing(jobs []Thumbnail) int {
	n := 0
	for _, j := range jobs {
		if info, err := os.Stat(j.Target); err != nil || info.Size() == 0 {
			n++
		}
	}
	return n
}

func (r *run) costs(ctx context.Context, s *Summary) error {
	m, err := r.db.Recall(ctx)
	if err != nil {
		return err
	}
	took := time.Since(r.begun)
	all, err := r.db.Workers(ctx, m.Now.Add(-took-time.Minute))
	if err != nil {
		return err
	}
	for _, w := range all {
		if w.Cloud() {
			s.Machines++
			s.Cost += w.Cost
		}
	}
	price, err := fleet.ParseMoney(pricePerHour)
	s.AlwaysOn = price.For(took) * fleet.Money(r.most)
	return err
}

// tellWatch says how to look around while a run goes on.
func (r *run) tellWatch() {
	// The config names a file with the database's address, whose password is not for a terminal.
	self := shellWord(r.Self)
	r.Say("This goes on until Ctrl-C. To look around, in another terminal:\n"+
		"  export SLUICE_CONFIG=%s\n  %s decisions\n  %s workers --since 1h\n  %s explain now",
		shellWord(r.home.config()), self, self, self)
}

// shellWord quotes a path that a shell would take apart.
func shellWord(path string) string {
	if !strings.ContainsAny(path, " \t'\"$&;()*?[]<>|\\`!#~") {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// end ends everything that was started, machines first, and counts what would not go.
func (r *run) end(ctx context.Context, s *Summary) error {
	ctx, cancel := context.WithTimeout(ctx, endTime)
	defer cancel()
	var errs []error
	if r.world != nil {
		left, err := r.endMachines(ctx)
		s.Left += left
		errs = append(errs, err)
	}
	if r.vps != nil {
		errs = append(errs, r.vps.end())
	}
	if r.page != nil { // its visitors see the machines go, and not the database
		errs = append(errs, r.page.Close())
	}
	if len(r.ids) > 0 {
		errs = append(errs, r.stack.clear(ctx, r.ids))
	}
	if r.pool != nil {
		r.pool.Close()
	}
	if r.db != nil {
		r.db.Close()
	}
	if r.world != nil {
		r.world.Close()
	}
	if r.stack != nil {
		errs = append(errs, r.stack.stop(ctx))
	}
	return errors.Join(errs...)
}

// endMachines terminates what still runs, which is nothing after a run that came to its end, and
// returns how many would not go.
func (r *run) endMachines(ctx context.Context) (int, error) {
	for name, cloud := range r.world.Clouds {
		place := fleet.Place{Provider: name}
		for {
			ms, _, err := cloud.List(ctx, place.Scope, Name)
			if err != nil {
				return 0, fmt.Errorf("list machines: %w", err)
			}
			ms = alive(ms)
			if len(ms) == 0 {
				break
			}
			for _, m := range ms {
				err = errors.Join(err, cloud.Terminate(ctx, fleet.Ref{Place: place, Zone: m.Zone, Machine: m.ID}))
			}
			select {
			case <-ctx.Done():
				return len(ms), err
			case <-time.After(100 * time.Millisecond):
			}
		}
	}
	return 0, nil
}
