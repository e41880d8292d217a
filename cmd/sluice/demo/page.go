package demo

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"sluice/cmd/sluice/page"
	"sluice/core/fleet"
	"sluice/providers/postgres"
)

// anyPort is where the page goes when another program has its own port.
const anyPort = "127.0.0.1:0"

// servePage serves the page from before there is anything to see.
func (r *run) servePage(ctx context.Context) error {
	o := page.Options{Listen: r.Listen, Token: r.Token, Source: &r.source, Controls: r.controls(), Title: "Sluice, a local run"}
	var err error
	r.page, err = page.Start(context.WithoutCancel(ctx), o) // ended by us, after the machines
	if r.Listen == "" && errors.Is(err, syscall.EADDRINUSE) {
		r.Say("Another program has %s, so that the page is elsewhere", page.DefaultListen)
		o.Listen = anyPort
		r.page, err = page.Start(context.WithoutCancel(ctx), o)
	}
	if err != nil {
		return err
	}
	how := ""
	if r.Token != "" {
		how = "?token=TOKEN (once; then without)"
	}
	r.Say("\nWatch it on %s%s", r.page.URL(), how)
	r.Say("")
	return nil
}

// upcoming is the run's database, for the page: whoever asks before it is up waits for it.
type upcoming struct {
	up chan struct{}
	db *postgres.DB // once up is closed
}

var _ page.Source = (*upcoming)(nil)

func (u *upcoming) open(db *postgres.DB) {
	u.db = db
	close(u.up)
}

// from asks the database when it is there.
func from[T any](ctx context.Context, u *upcoming, ask func(*postgres.DB) (T, error)) (T, error) {
	select {
	case <-u.up:
		return ask(u.db)
	case <-ctx.Done():
		var none T
		return none, fmt.Errorf("wait for the database: it is not up yet: %w", ctx.Err())
	}
}

// Recall implements page.Source.
func (u *upcoming) Recall(ctx context.Context) (fleet.Memory, error) {
	return from(ctx, u, func(db *postgres.DB) (fleet.Memory, error) { return db.Recall(ctx) })
}

// Ticks implements page.Source.
func (u *upcoming) Ticks(ctx context.Context, since time.Time, limit int) ([]fleet.TickRecord, error) {
	return from(ctx, u, func(db *postgres.DB) ([]fleet.TickRecord, error) { return db.Ticks(ctx, since, limit) })
}

// Lines implements page.Source.
func (u *upcoming) Lines(ctx context.Context, f fleet.LineFilter) ([]fleet.LineRecord, error) {
	return from(ctx, u, func(db *postgres.DB) ([]fleet.LineRecord, error) { return db.Lines(ctx, f) })
}

// Snapshot implements page.Source.
func (u *upcoming) Snapshot(ctx context.Context, tick string) (fleet.Snapshot, []byte, error) {
	type told struct {
		snapshot fleet.Snapshot
		plan     []byte
	}
	t, err := from(ctx, u, func(db *postgres.DB) (told, error) {
		s, plan, err := db.Snapshot(ctx, tick)
		return told{s, plan}, err
	})
	return t.snapshot, t.plan, err
}

// Samples implements page.Source.
func (u *upcoming) Samples(ctx context.Context, since time.Time) ([]fleet.Sample, error) {
	return from(ctx, u, func(db *postgres.DB) ([]fleet.Sample, error) { return db.Samples(ctx, since) })
}

// Workers implements page.Source.
func (u *upcoming) Workers(ctx context.Context, since time.Time) ([]fleet.WorkerRecord, error) {
	return from(ctx, u, func(db *postgres.DB) ([]fleet.WorkerRecord, error) { return db.Workers(ctx, since) })
}
