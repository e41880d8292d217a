package host

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"sluice/core/config"
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

// Secret reads a secret from where it is kept, anew each time, so that a changed one is found.
type Secret = func(ctx context.Context) (string, error)

// Database is what a host needs of one: the store of ticks, its job table as queues, the past, and requests.
type Database interface {
	fleet.Store
	fleet.Queues
	fleet.History
	fleet.Requests
	Close()
}

// Links are the providers that a program is built with. What is not here, it does not carry.
type Links struct {
	Objects  func(path string) fleet.Objects
	Secrets  map[string]func(ctx context.Context, name string) (string, error) // by the scheme of references
	Database func(ctx context.Context, url Secret) (Database, error)
	Queues   map[fleet.SourceKind]func(url Secret) fleet.Queues // beside the database's own
	Clouds   map[string]func(Setup) (fleet.Cloud, error)
}

// Setup is what a cloud may be opened with beside the settings that each launch carries.
type Setup struct {
	Env func(string) string
	// WorkerDatabase is the reference to the URL that workers on its machines use, as the config has it now.
	WorkerDatabase func(ctx context.Context) (string, error)
}

// Options say where a world is.
type Options struct {
	Env         func(string) string
	Config      string // path of the config; SLUICE_CONFIG where empty
	Database    string // URL; DATABASE_URL, then the config's reference, where empty
	MinInterval fleet.Seconds
	Limit       time.Duration
	Alerters    []fleet.Alerter
}

// World is an open world.
type World struct {
	tick.World
	DB   Database
	refs refs
}

// Close gives back what the world holds.
func (w *World) Close() { w.DB.Close() }

// Open prepares everything and connects to nothing yet, so that what is down fails the tick that needs
// it, visibly, and not the start: a database that cannot even be named must not keep expired machines alive.
func Open(ctx context.Context, o Options, l Links) (*World, error) {
	path := o.ConfigPath()
	if path == "" {
		return nil, errors.New("open config: no path is known; name one with --config or " + EnvConfig)
	}
	r := refs{options: o, links: l, objects: l.Objects(path)}
	db, err := l.Database(ctx, r.database)
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
		Alerters: o.Alerters, Limit: o.Limit, MinInterval: o.MinInterval,
	}}
	for kind, open := range l.Queues {
		w.Queues[kind] = open(r.redis)
	}
	return w, w.openClouds(o, l)
}

// Lost says why there is no database; nil where there is one.
func (w *World) Lost() error {
	if l, ok := w.DB.(lost); ok {
		return l.err
	}
	return nil
}

// OpenDatabase opens the database alone, for commands that look at the past or ask for something.
func OpenDatabase(ctx context.Context, o Options, l Links) (Database, error) {
	r := refs{options: o, links: l}
	if path := o.ConfigPath(); path != "" {
		r.objects = l.Objects(path)
	}
	return l.Database(ctx, r.database)
}

// DatabaseURL resolves the database's URL, for migrations.
func DatabaseURL(ctx context.Context, o Options, l Links) (string, error) {
	r := refs{options: o, links: l}
	if path := o.ConfigPath(); path != "" {
		r.objects = l.Objects(path)
	}
	return r.database(ctx)
}

// ConfigPath is where the config is looked for.
func (o Options) ConfigPath() string {
	if o.Config != "" {
		return o.Config
	}
	return o.Env(EnvConfig)
}

func (w *World) openClouds(o Options, l Links) error {
	for name, open := range l.Clouds {
		cloud, err := open(Setup{Env: o.Env, WorkerDatabase: w.refs.workerDatabase})
		if err != nil {
			return fmt.Errorf("open provider %s: %w", name, err)
		}
		w.Clouds[name] = cloud
	}
	return nil
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

// refs finds secrets: from options and environment first, then where the config says.
type refs struct {
	options Options
	links   Links
	objects fleet.Objects // nil where no config is known
}

func (r refs) parse(name string, b []byte) (fleet.Config, error) {
	p, err := config.Parse(name, b, r.env())
	return p.Config, err
}

func (r refs) env() config.Env { return config.Env{RedisURLSet: r.options.Env(EnvRedis) != ""} }

// connections are the config's references. Where there is no config yet they are the defaults.
func (r refs) connections(ctx context.Context) (config.Refs, error) {
	name, b := "the default config", []byte("{}")
	if r.objects != nil {
		object, err := r.objects.Get(ctx, "")
		switch {
		case err == nil:
			name, b = object.Name, object.Bytes
		case !errors.Is(err, fleet.ErrNotFound):
			return config.Refs{}, err
		}
	}
	p, err := config.Parse(name, b, r.env())
	return p.Connections, err
}

// database: the command line, the environment, the config.
func (r refs) database(ctx context.Context) (string, error) {
	if url := r.options.Database; url != "" {
		return url, nil
	}
	if url := r.options.Env(EnvDatabase); url != "" {
		return url, nil
	}
	c, err := r.connections(ctx)
	if err != nil {
		return "", fmt.Errorf("find the database: %w", err)
	}
	if c.Database.URL == "" || c.Database.URL == "env:"+EnvDatabase {
		return "", fmt.Errorf("find the database: set %s, or name one with --database, or refer to one in the config's connections.database.url", EnvDatabase)
	}
	return r.resolve(ctx, c.Database.URL)
}

func (r refs) redis(ctx context.Context) (string, error) {
	c, err := r.connections(ctx)
	if err != nil {
		return "", err
	}
	if c.Redis.URL == "" {
		return r.resolve(ctx, "env:"+EnvRedis)
	}
	return r.resolve(ctx, c.Redis.URL)
}

// workerDatabase is a reference, not a URL: machines resolve it themselves.
func (r refs) workerDatabase(ctx context.Context) (string, error) {
	c, err := r.connections(ctx)
	if err == nil && c.Database.WorkerURL == "" {
		return "env:" + EnvDatabase, nil
	}
	return c.Database.WorkerURL, err
}

// resolve reads what a reference leads to.
func (r refs) resolve(ctx context.Context, ref string) (string, error) {
	scheme, name, _ := strings.Cut(ref, ":")
	read, ok := r.links.Secrets[scheme]
	if !ok {
		return "", fmt.Errorf("resolve %s: this build has no %q references", ref, scheme)
	}
	return read(ctx, name)
}
