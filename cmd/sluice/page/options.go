package page

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"sluice/core/fleet"
)

// DefaultListen is where the page is served unless told otherwise.
const DefaultListen = "127.0.0.1:8585"

// How often the database is read, and how short a token may be.
const (
	defaultEvery = 2 * time.Second
	minToken     = 16
)

// Source is what the page reads of a database; fleet.Database is one.
type Source interface {
	Recall(ctx context.Context) (fleet.Memory, error)
	Ticks(ctx context.Context, since time.Time, limit int) ([]fleet.TickRecord, error)
	Lines(ctx context.Context, f fleet.LineFilter) ([]fleet.LineRecord, error)
	Snapshot(ctx context.Context, tick string) (fleet.Snapshot, []byte, error)
	Samples(ctx context.Context, since time.Time) ([]fleet.Sample, error)
	Workers(ctx context.Context, since time.Time) ([]fleet.WorkerRecord, error)
}

// Control is a button that changes something.
type Control struct {
	ID, Label, Help string
	// PerWorker: each worker's card has the button, and Press gets the worker.
	PerWorker bool
	// On is the state of a button that toggles; nil where it does not.
	On func() bool
	// Press does it, and says in a sentence what was done.
	Press func(ctx context.Context, worker string) (said string, err error)
}

// Options say what is served, and where.
type Options struct {
	Listen string // host:port, port 0 for any that is free; DefaultListen where empty
	// Token must be shown by every visitor; needed where Listen is reached from other machines.
	Token  string
	Source Source
	// Controls are the page's buttons. Without any, nothing here changes anything.
	Controls []Control
	Title    string        // the page's heading; "Sluice" where empty
	Every    time.Duration // between two readings; two seconds where 0
	// Report gets the error that the database was lost with, which visitors do not see, and nil when it is back. May be nil.
	Report func(error)
}

// Check refuses what cannot be listened on, and what would be open to everybody.
func (o Options) Check() error {
	host, _, err := net.SplitHostPort(o.Listen)
	switch {
	case o.Listen != "" && err != nil:
		return fmt.Errorf("parse --listen %q: want HOST:PORT, such as %s", o.Listen, DefaultListen)
	case o.Listen != "" && o.Token == "" && !loopback(host):
		return fmt.Errorf("refuse --listen %s: other machines reach it, and anybody there could look: "+
			"set --token or SLUICE_PAGE_TOKEN (at least %d characters), or listen on %s", o.Listen, minToken, DefaultListen)
	case o.Token != "" && len(o.Token) < minToken:
		return fmt.Errorf("refuse token: want at least %d characters, got %d; `openssl rand -hex 16` makes one", minToken, len(o.Token))
	}
	return nil
}

// complete fills defaults in.
func (o Options) complete() (Options, error) {
	if o.Listen == "" {
		o.Listen = DefaultListen
	}
	if o.Title == "" {
		o.Title = "Sluice"
	}
	if o.Every <= 0 {
		o.Every = defaultEvery
	}
	if o.Report == nil {
		o.Report = func(error) {}
	}
	if o.Source == nil {
		return o, errors.New("serve page: no database is given")
	}
	return o, o.Check()
}

// loopback says that a host is reached from this machine alone. An empty host is every address.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
