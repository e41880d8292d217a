package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/redis/go-redis/v9/logging"
	"github.com/spf13/pflag"

	"sluice/cmd/sluice-agent/internal/agent"
	"sluice/cmd/sluice-agent/internal/proc"
	"sluice/core/fleet"
	"sluice/providers/postgres"
	"sluice/providers/redis"
)

// flags are who this worker is. Those in tags only mark the process for who looks for it.
type flags struct {
	id         agent.Identity
	expires    string
	bootDelay  time.Duration
	lifetime   time.Duration
	sweepRedis bool
	tags       [4]string
}

func (f *flags) define(s *pflag.FlagSet) {
	s.SortFlags = false
	s.StringVar(&f.id.Provider, "provider", fleet.VPS, "who runs this machine")
	s.StringVar(&f.id.Scope, "scope", "", "region, project or data centre of the provider")
	s.StringVar(&f.id.Zone, "zone", "", "zone of the machine")
	s.StringVar(&f.id.Machine, "machine", "", "the provider's id of this machine (default: the host's name)")
	s.StringVar(&f.id.Pool, "pool", fleet.VPS, "pool whose queues it serves")
	s.StringVar(&f.id.Intent, "intent", "", "launch intent that this machine answers")
	s.StringVar(&f.id.Spec, "spec", "", "hash of what it was launched from")
	s.StringVar(&f.id.Type, "type", "", "machine type")
	s.StringVar(&f.id.Market, "market", "", "on_demand or spot")
	s.StringVar(&f.expires, "expires", "", "when the machine is ended at the latest, RFC 3339")
	s.DurationVar(&f.lifetime, "lifetime", 0, "end after this time whatever the database says, such as 12h")
	s.DurationVar(&f.bootDelay, "boot-delay", 0, "wait before registering, as a slow boot would")
	s.BoolVar(&f.sweepRedis, "sweep-redis", false, "keep the Redis lists in step with the job table (one worker beside Redis does)")
	for i, name := range []string{"name", "deployment", "token", "state-dir"} {
		s.StringVar(&f.tags[i], name, "", "mark of the process, not used by it")
	}
}

// run makes an agent of the flags and lets it live.
func (f *flags) run(ctx context.Context, getenv func(string) string, signals <-chan os.Signal, stderr io.Writer) error {
	o, err := f.options(getenv, stderr)
	if err != nil {
		return err
	}
	logging.Disable() // the client's own lines are not JSON; its errors come back to us
	if err := proc.HideMemory(); err != nil {
		return err
	}
	w, err := postgres.OpenWorker(ctx, secret(getenv, "SLUICE_DATABASE_URL_REF", "DATABASE_URL"))
	if err != nil {
		return err
	}
	defer w.Close()
	o.Database = database{w}
	if f.sweepRedis {
		lists := redis.New(secret(getenv, "SLUICE_REDIS_URL_REF", "REDIS_URL"))
		defer lists.Close() //nolint:errcheck // nothing is written
		o.Lists = func(ctx context.Context, queues []fleet.Queue) error {
			_, err := redis.Sweeper{Lists: lists, Ledger: ledger{w, queues}}.Sweep(ctx)
			return err
		}
	}
	return agent.Run(ctx, o, signals)
}

// options are everything but the connections.
func (f *flags) options(getenv func(string) string, stderr io.Writer) (agent.Options, error) {
	o := agent.Options{Identity: f.id, Sample: sample, BootDelay: f.bootDelay, Lifetime: f.lifetime}
	if f.expires != "" {
		at, err := time.Parse(time.RFC3339, f.expires)
		if err != nil {
			return o, fmt.Errorf("%w: --expires %q: want a time such as 2026-01-02T15:04:05Z", errUsage, f.expires)
		}
		o.Identity.Expires = at
	}
	switch fleet.Market(f.id.Market) {
	case "", fleet.OnDemand, fleet.Spot:
	default:
		return o, fmt.Errorf("%w: --market %q: want %s or %s", errUsage, f.id.Market, fleet.OnDemand, fleet.Spot)
	}
	if f.id.Machine == "" {
		host, err := os.Hostname()
		if err != nil {
			return o, fmt.Errorf("find the host's name: %w: give --machine", err)
		}
		o.Identity.Machine = host
	}
	self, err := proc.Self()
	if err != nil {
		return o, err
	}
	o.Run = proc.Runner{Self: self}.Run
	for _, name := range []string{"PATH", "HOME"} {
		if value := getenv(name); value != "" {
			o.Env = append(o.Env, name+"="+value)
		}
	}
	o.Log = slog.New(slog.NewJSONHandler(stderr, nil)).With("machine", o.Identity.Machine, "pool", o.Identity.Pool)
	return o, nil
}
