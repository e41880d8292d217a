package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"sluice/core/config"
	"sluice/core/fleet"
	"sluice/providers/postgres"
	"sluice/scripts/services"
)

// listKey is the Redis list of the burst's job ids.
const listKey = "queue:" + queueName

// stack is where the run keeps its jobs: the user's services, or private ones.
type stack struct {
	databaseURL, redisURL string
	stop                  func(context.Context) error
}

// bringingUp says what startStack is about to do.
func bringingUp(env func(string) string) string {
	switch database, redis := env("DATABASE_URL") != "", env("REDIS_URL") != ""; {
	case database && redis:
		return "Using the Postgres of DATABASE_URL and the Redis of REDIS_URL"
	case database:
		return "Using the Postgres of DATABASE_URL, bringing up a Redis"
	case redis:
		return "Using the Redis of REDIS_URL, bringing up a Postgres"
	}
	return "Bringing up Postgres and Redis"
}

// startStack takes what the user names and starts what is missing.
func startStack(ctx context.Context, o Options, log io.Writer) (*stack, error) {
	given := o.Env("DATABASE_URL")
	s, err := services.Start(ctx, services.Options{
		Dir: filepath.Join(o.Home, "services"), Need: []string{services.Postgres, services.Redis}, Log: log,
		DatabaseURL: given, RedisURL: o.Env("REDIS_URL"), AllowEmbeddedRedis: true, DropStandIn: true,
	})
	if err != nil {
		return nil, err
	}
	st := &stack{databaseURL: s.DatabaseURL, redisURL: s.RedisURL, stop: s.Stop}
	if given == "" {
		st.databaseURL, err = freshDatabase(ctx, s.DatabaseURL)
	} else if !o.Force {
		err = refuseReal(ctx, given)
	}
	if err == nil && o.Env("REDIS_URL") != "" && !o.Force {
		err = refuseUsedList(ctx, st.redisURL)
	}
	if err == nil {
		_, err = postgres.Migrate(ctx, st.databaseURL)
	}
	if err != nil {
		return nil, errors.Join(err, st.stop(context.WithoutCancel(ctx)))
	}
	return st, nil
}

// freshDatabase makes an empty database on the private server: what an earlier run left is nobody's.
func freshDatabase(ctx context.Context, server string) (string, error) {
	const name = "sluice_run"
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		return "", fmt.Errorf("make database: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }() // nothing is left to be done on it
	for _, sql := range []string{"DROP DATABASE IF EXISTS " + name + " WITH (FORCE)", "CREATE DATABASE " + name} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return "", fmt.Errorf("make database: %w", err)
		}
	}
	u, err := url.Parse(server)
	if err != nil {
		return "", errors.New("make database: the server's URL cannot be parsed")
	}
	u.Path = "/" + name
	return u.String(), nil
}

var errReal = errors.New("DATABASE_URL leads to a database that is in use: it has workers, jobs or decisions that are not of a local run; " +
	"name an empty one, unset DATABASE_URL to get a private one, or insist with --force")

var errOtherRun = errors.New("DATABASE_URL leads to a database that another local run works on, or did some seconds ago; " +
	"wait for its end, or unset DATABASE_URL to get a private one")

// otherRunAlive is several of its workers' heartbeats.
const otherRunAlive = 10 * time.Second

// refuseReal protects a real deployment: jobs of a demonstration have no place among its own.
func refuseReal(ctx context.Context, url string) error {
	used, err := inUse(ctx, url)
	if err != nil || !used {
		return err
	}
	db, err := postgres.Open(ctx, postgres.URL(url))
	if err != nil {
		return err
	}
	defer db.Close()
	m, err := db.Recall(ctx)
	if err != nil {
		return errReal // tables in use, and not of a schema of ours
	}
	p, err := config.Parse("last config", m.LastGood, config.Env{})
	if err != nil || p.Config.Name != Name {
		return errReal
	}
	for _, w := range m.Workers {
		if m.Now.Sub(w.Heartbeat) < otherRunAlive {
			return errOtherRun
		}
	}
	return nil
}

// inUse says whether any of the tables that a deployment fills has a row.
func inUse(ctx context.Context, url string) (bool, error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return false, errors.New("connect to DATABASE_URL: is the server up, and are user and password right?")
	}
	defer func() { _ = conn.Close(ctx) }() // nothing is left to be done on it
	for _, table := range []string{"workers", "processing_jobs", "sluice_ticks"} {
		var there, filled bool
		if err := conn.QueryRow(ctx, "SELECT to_regclass('public.' || $1) IS NOT NULL", table).Scan(&there); err != nil {
			return false, fmt.Errorf("look at database: %w", err)
		}
		if !there {
			continue
		}
		if err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM "+table+")").Scan(&filled); err != nil {
			return false, fmt.Errorf("look at database: %w", err)
		}
		if filled {
			return true, nil
		}
	}
	return false, nil
}

func refuseUsedList(ctx context.Context, redisURL string) error {
	client, err := openRedis(redisURL)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // nothing is left to be done on it
	n, err := client.LLen(ctx, listKey).Result()
	if err != nil {
		return fmt.Errorf("look at Redis: %w", err)
	}
	if n > 0 {
		return fmt.Errorf("REDIS_URL leads to a server whose list %s has %d entries: name another, unset REDIS_URL to get a private one, or insist with --force", listKey, n)
	}
	return nil
}

func openRedis(redisURL string) (*redis.Client, error) {
	o, err := redis.ParseURL(redisURL)
	if err != nil {
		return nil, errors.New("REDIS_URL is not valid: want redis://user:password@host:6379/0")
	}
	return redis.NewClient(o), nil
}

// enqueue puts jobs in as a host does: a row each, and their ids into the list.
func (s *stack) enqueue(ctx context.Context, db *postgres.DB, jobs []postgres.NewJob) ([]string, error) {
	ids, err := db.Enqueue(ctx, jobs...)
	if err != nil {
		return nil, err
	}
	client, err := openRedis(s.redisURL)
	if err != nil {
		return ids, err
	}
	defer func() { _ = client.Close() }() // nothing is left to be done on it
	values := make([]any, len(ids))
	for i, id := range ids {
		values[i] = id
	}
	if err := client.LPush(ctx, listKey, values...).Err(); err != nil {
		return ids, fmt.Errorf("push job ids: %w", err)
	}
	return ids, nil
}

// clear takes back what is left of a run: its waiting jobs and their ids.
func (s *stack) clear(ctx context.Context, ids []string) error {
	conn, err := pgx.Connect(ctx, s.databaseURL)
	if err != nil {
		return fmt.Errorf("clear jobs: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }() // nothing is left to be done on it
	if _, err := conn.Exec(ctx, "DELETE FROM processing_jobs WHERE id = ANY($1::text[]::uuid[]) AND status = 'queued'", ids); err != nil {
		return fmt.Errorf("clear jobs: %w", err)
	}
	client, err := openRedis(s.redisURL)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // nothing is left to be done on it
	p := client.Pipeline()
	for _, id := range ids {
		p.LRem(ctx, listKey, 0, id)
	}
	if _, err := p.Exec(ctx); err != nil {
		return fmt.Errorf("clear list: %w", err)
	}
	return nil
}

// machine states that are not over.
func alive(ms []fleet.Machine) []fleet.Machine {
	var out []fleet.Machine
	for _, m := range ms {
		if m.State != fleet.MachineGone {
			out = append(out, m)
		}
	}
	return out
}
