package host

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // the zone of the daily limit must be known on machines without zone data

	"sluice/core/fleet"
	"sluice/core/tick"
)

// Names of the environment variables that a host reads.
const (
	EnvConfig   = "SLUICE_CONFIG" // where the config is
	EnvDatabase = "DATABASE_URL"
	EnvRedis    = "REDIS_URL"
	// EnvName and EnvPlaces are what removing expired machines needs when neither config nor
	// database can be had: the config's name, and places such as "aws/eu-west-3,ionos/ID".
	EnvName   = "SLUICE_NAME"
	EnvPlaces = "SLUICE_PLACES"
)

// Options say where a world is.
type Options struct {
	Env         func(string) string
	Config      string // path of the config; SLUICE_CONFIG where empty
	Database    string // URL; DATABASE_URL, then the config's reference, where empty
	MinInterval fleet.Seconds
	Limit       time.Duration
	Log         fleet.Alerter // what channels of kind log write to
}

// World is an open world.
type World struct {
	tick.World
	DB   fleet.Database
	refs refs
}

// Close gives back what the world holds.
func (w *World) Close() { w.DB.Close() }

// Open prepares everything and connects to nothing yet, so that what is down fails the tick that needs
// it, visibly, and not the start: a database that cannot even be named must not keep expired machines alive.
func Open(ctx context.Context, o Options, links ...fleet.Link) (*World, error) {
	path := o.ConfigPath()
	if path == "" {
		return nil, errors.New("open config: no path is known; name one with --config or " + EnvConfig)
	}
	r := newRefs(o, links)
	db, err := openDatabase(ctx, r)
	if err != nil {
		db = lost{err}
	}
	places, err := parsePlaces(o.Env(EnvPlaces))
	if err != nil {
		return nil, err
	}
	w := &World{DB: db, refs: r, World: tick.World{
		Name: o.Env(EnvName), Places: places, Objects: r.objects, Parse: r.parse, Store: db,
		Queues: map[fleet.SourceKind]fleet.Queues{fleet.SourcePostgres: db}, Clouds: map[string]fleet.Cloud{},
		Alerters: r.alerters(), Limit: o.Limit, MinInterval: o.MinInterval,
	}}
	return w, w.link(links)
}

// link opens what providers bring along. A provider that cannot be opened is an error of its own config or environment.
func (w *World) link(links []fleet.Link) error {
	for _, l := range links {
		for kind, open := range l.Queues {
			w.Queues[kind] = open(w.refs.queue(kind))
		}
		if l.Cloud == nil {
			continue
		}
		cloud, err := l.Cloud(fleet.Setup{Env: w.refs.environment, WorkerDatabase: w.refs.workerDatabase})
		if err != nil {
			return fmt.Errorf("open provider %s: %w", l.Provider, err)
		}
		w.Clouds[l.Provider] = cloud
	}
	return nil
}

// Lost says why there is no database; nil where there is one.
func (w *World) Lost() error {
	if l, ok := w.DB.(lost); ok {
		return l.err
	}
	return nil
}

// OpenDatabase opens the database alone, for commands that look at the past or ask for something.
func OpenDatabase(ctx context.Context, o Options, links ...fleet.Link) (fleet.Database, error) {
	return openDatabase(ctx, newRefs(o, links))
}

// DatabaseURL resolves the database's URL, for migrations.
func DatabaseURL(ctx context.Context, o Options, links ...fleet.Link) (string, error) {
	return newRefs(o, links).database(ctx)
}

func openDatabase(ctx context.Context, r refs) (fleet.Database, error) {
	for _, l := range r.links {
		if l.Database != nil {
			return l.Database(ctx, r.database)
		}
	}
	return nil, errors.New("open database: none is linked into this build")
}

// ConfigPath is where the config is looked for.
func (o Options) ConfigPath() string {
	if o.Config != "" {
		return o.Config
	}
	return o.Env(EnvConfig)
}

// parsePlaces reads places such as "aws/eu-west-3,google/project".
func parsePlaces(list string) ([]fleet.Place, error) {
	var out []fleet.Place
	for item := range strings.SplitSeq(list, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		provider, scope, _ := strings.Cut(item, "/")
		if provider == "" {
			return nil, fmt.Errorf("parse %s: %q is no place; want PROVIDER/SCOPE, such as aws/eu-west-3, separated by commas", EnvPlaces, item)
		}
		out = append(out, fleet.Place{Provider: provider, Scope: scope})
	}
	return out, nil
}
