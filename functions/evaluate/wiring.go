package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"sluice/core/fleet"
	"sluice/functions/host"
	"sluice/providers/postgres"
	"sluice/providers/redis"
)

type tmpFile string

func (f tmpFile) Get(context.Context, string) (fleet.Object, error) {
	b, err := os.ReadFile(string(f))
	if os.IsNotExist(err) {
		return fleet.Object{}, fmt.Errorf("%s: %w", string(f), fleet.ErrNotFound)
	}
	if err != nil {
		return fleet.Object{}, err
	}
	st, _ := os.Stat(string(f))
	return fleet.Object{Name: string(f), Bytes: b, Modified: st.ModTime()}, nil
}

// links are what this program is built with.
func links() host.Links {
	return host.Links{
		Objects: func(path string) fleet.Objects { return tmpFile(path) },
		Secrets: map[string]func(context.Context, string) (string, error){
			"env": func(_ context.Context, name string) (string, error) { return os.Getenv(name), nil },
			"file": func(_ context.Context, name string) (string, error) {
				b, err := os.ReadFile(name)
				return strings.TrimSpace(string(b)), err
			},
		},
		Database: func(ctx context.Context, url host.Secret) (host.Database, error) {
			return postgres.Open(ctx, postgres.Secret(url))
		},
		Queues: map[fleet.SourceKind]func(host.Secret) fleet.Queues{
			fleet.SourceRedis: func(url host.Secret) fleet.Queues { return redis.New(redis.Secret(url)) },
		},
		Clouds: map[string]func(host.Setup) (fleet.Cloud, error){},
	}
}
