// Package services brings up private development services - PostgreSQL, PgBouncer, Redis, RabbitMQ - in one folder and takes them down again.
package services

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
)

// The services that Options.Need can name.
const (
	Postgres  = "postgres"
	PgBouncer = "pgbouncer"
	Redis     = "redis"
	RabbitMQ  = "rabbitmq"
)

// startOrder has PgBouncer after the Postgres that it points to.
var startOrder = [...]string{Postgres, PgBouncer, Redis, RabbitMQ}

// Options says what to start and where.
type Options struct {
	// Dir holds data, passwords and logs. Postgres data found there is used
	// again; only one Start at a time can use a folder.
	Dir string
	// Need lists the services wanted; PgBouncer brings Postgres with it.
	Need []string
	// Log receives a line for each step that takes time; nil is silence.
	Log io.Writer

	// A URL given here belongs to a service that runs already: it is handed
	// back as it is and nothing is started for it.
	DatabaseURL, PgBouncerURL, RedisURL, AMQPURL string

	// Volatile trades durability for speed (fsync off). For tests only.
	Volatile bool
	// DropStandIn removes the files at Stop where they had to go to the
	// temporary folder, instead of keeping them for the next Start.
	DropStandIn bool
	// AllowEmbeddedRedis lets an in-process stand-in take the place of a
	// Redis that is not installed, rather than installing one.
	AllowEmbeddedRedis bool
}

// Services are running services and how to reach them. A service that was
// not asked for has an empty URL.
type Services struct {
	// Dir is where the files are: Options.Dir, unless that cannot be reached
	// by the user that the services run as; empty when nothing was started.
	Dir string

	DatabaseURL  string // of a superuser
	PgBouncerURL string // the same databases, pooled by transaction
	RedisURL     string
	AMQPURL      string
	// RabbitMQURL is the management API of the RabbitMQ behind AMQPURL, with
	// user and password; empty when AMQPURL was given by the caller.
	RabbitMQURL string

	home  *home
	stops []func(context.Context) error
}

// Start starts what is needed and returns when all of it answers. ctx bounds
// the starting only; the services live until Stop, or until this process
// ends. When one fails, those started before are stopped again.
func Start(ctx context.Context, o Options) (*Services, error) {
	need, err := inOrder(o.Need)
	if err != nil {
		return nil, err
	}
	s := &Services{DatabaseURL: o.DatabaseURL, PgBouncerURL: o.PgBouncerURL, RedisURL: o.RedisURL, AMQPURL: o.AMQPURL}
	need = slices.DeleteFunc(need, s.given)
	if len(need) == 0 {
		return s, nil // and no folder is made
	}
	if s.home, err = openHome(ctx, o.Dir, o.Log); err != nil {
		return nil, err
	}
	s.Dir = s.home.dir
	s.home.dropStandIn = o.DropStandIn
	for _, name := range need {
		if err := s.start(ctx, name, o); err != nil {
			return nil, errors.Join(fmt.Errorf("start %s: %w", name, err), s.Stop(context.WithoutCancel(ctx)))
		}
	}
	return s, nil
}

// Stop stops the services, the last started first, and frees the folder. It
// reports a service that had ended by itself before.
func (s *Services) Stop(ctx context.Context) error {
	var errs []error
	for _, stop := range slices.Backward(s.stops) {
		errs = append(errs, stop(ctx))
	}
	s.stops = nil
	if s.home != nil {
		errs = append(errs, s.home.close())
	}
	return errors.Join(errs...)
}

// given reports whether a service is one that runs already.
func (s *Services) given(name string) bool {
	return map[string]string{Postgres: s.DatabaseURL, PgBouncer: s.PgBouncerURL, Redis: s.RedisURL, RabbitMQ: s.AMQPURL}[name] != ""
}

func (s *Services) start(ctx context.Context, name string, o Options) error {
	switch name {
	case Postgres:
		return s.startPostgres(ctx, o.Volatile)
	case PgBouncer:
		return s.startPgBouncer(ctx)
	case Redis:
		return s.startRedis(ctx, o.AllowEmbeddedRedis)
	default:
		return s.startRabbitMQ(ctx)
	}
}

// inOrder returns the wanted services in the order in which they start.
func inOrder(need []string) ([]string, error) {
	for _, name := range need {
		if !slices.Contains(startOrder[:], name) {
			return nil, fmt.Errorf("start services: unknown service %q (known: %v)", name, startOrder)
		}
	}
	if slices.Contains(need, PgBouncer) {
		need = append([]string{Postgres}, need...)
	}
	var ordered []string
	for _, name := range startOrder {
		if slices.Contains(need, name) {
			ordered = append(ordered, name)
		}
	}
	return ordered, nil
}

// keep has a started process stopped by Stop.
func (s *Services) keep(p *process) {
	s.stops = append(s.stops, p.stop)
}
