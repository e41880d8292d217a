package host

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"sluice/core/config"
	"sluice/core/fleet"
)

// refs finds secrets: from options and environment first, then where the config says.
type refs struct {
	options Options
	links   []fleet.Link
	objects fleet.Objects // nil where no config is known
}

func newRefs(o Options, links []fleet.Link) refs {
	r := refs{options: o, links: links}
	path := o.ConfigPath()
	for _, l := range links {
		if l.Objects != nil && path != "" {
			r.objects = l.Objects(path)
		}
	}
	return r
}

// environment is the process's, but that a database named on the command line is the one.
func (r refs) environment(name string) string {
	if name == EnvDatabase && r.options.Database != "" {
		return r.options.Database
	}
	return r.options.Env(name)
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

// queue is the URL of a kind of queue server.
func (r refs) queue(kind fleet.SourceKind) fleet.Secret {
	return func(ctx context.Context) (string, error) {
		c, err := r.connections(ctx)
		if err != nil {
			return "", err
		}
		ref := c.Redis.URL
		if kind == fleet.SourceRabbitMQ {
			ref = c.RabbitMQ.ManagementURL
		}
		if ref == "" && kind == fleet.SourceRedis {
			ref = "env:" + EnvRedis
		}
		return r.resolve(ctx, ref)
	}
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
	scheme, _, _ := strings.Cut(ref, ":")
	for _, l := range r.links {
		if read, ok := l.Secrets[scheme]; ok {
			return read(ctx, ref)
		}
	}
	return "", fmt.Errorf("resolve %s: this build has no %q references", ref, scheme)
}
