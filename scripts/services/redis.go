package services

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"path/filepath"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// redisConfig is a file because arguments can be read by every local user.
const redisConfig = `bind 127.0.0.1
port %d
requirepass %s
save ""
appendonly no
dir %s
`

func redisTool() tool {
	return tool{name: "redis-server", pkg: "redis-server", places: sbin()}
}

// startRedis starts a Redis that keeps nothing on disk.
func (s *Services) startRedis(ctx context.Context, embedded bool) error {
	if embedded && len(installed(redisTool())) == 0 {
		return s.embedRedis()
	}
	bin, err := s.home.find(ctx, redisTool())
	if err != nil {
		return err
	}
	dir, err := s.home.fresh(Redis)
	if err != nil {
		return err
	}
	password := rand.Text()
	configure := func(port int) (command, error) {
		config := filepath.Join(dir, "redis.conf")
		err := s.home.write(config, fmt.Sprintf(redisConfig, port, password, quoted(dir)))
		return command{name: Redis, program: bin, args: []string{config}, dir: dir}, err
	}
	p, port, err := s.home.launch(ctx, configure, func(ctx context.Context, port int) error {
		return pingRedis(ctx, redisURL(loopback(port), password))
	})
	if err != nil {
		return err
	}
	s.keep(p)
	s.RedisURL = redisURL(loopback(port), password)
	return nil
}

// embedRedis runs the in-process stand-in.
func (s *Services) embedRedis() error {
	server, password := miniredis.NewMiniRedis(), rand.Text()
	server.RequireAuth(password)
	if err := server.StartAddr("127.0.0.1:0"); err != nil {
		return fmt.Errorf("start embedded redis: %w", err)
	}
	s.home.logf("redis-server is not installed: an in-process stand-in is ready on %s", server.Addr())
	s.stops = append(s.stops, func(context.Context) error { server.Close(); return nil })
	s.RedisURL = redisURL(server.Addr(), password)
	return nil
}

func redisURL(address, password string) string {
	return (&url.URL{Scheme: "redis", User: url.UserPassword("", password), Host: address, Path: "/0"}).String()
}

func pingRedis(ctx context.Context, url string) error {
	options, err := redis.ParseURL(url)
	if err != nil {
		return fmt.Errorf("read redis url: %w", err)
	}
	options.MaxRetries = -1
	client := redis.NewClient(options)
	defer client.Close() //nolint:errcheck // nothing was written
	return client.Ping(ctx).Err()
}
