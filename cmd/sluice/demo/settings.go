package demo

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Name is the installation's name of a local run: its tag, and how a later run knows its database again.
const Name = "sluice-run"

// queueName is the base config's own queue for this work.
const queueName = "images"

// The burst's cloud: so many machines, each this much per hour.
const (
	machinesMax  = 4
	pricePerHour = "0.10"
)

type object = map[string]any

// settings is a config file as any user could write it; a burst of a minute has shorter times than real ones.
func settings(home home, self string, jobs int) object {
	return object{
		"name": Name, "mode": "hybrid", "evaluation_interval_seconds": int(evaluateEvery.Seconds()),
		"connections": object{
			"database": object{"url": "file:" + home.databaseURL()},
			"redis":    object{"url": "file:" + home.redisURL()},
		},
		"queues": object{
			queueName: object{
				"baseline_workers": 1, "max_workers": 1 + machinesMax, "cloud_enabled": true, "cloud_provider": "local",
				"source": object{"kind": "redis", "key": listKey},
				"run":    object{"command": []string{self, "thumbnail"}, "timeout_seconds": 60, "stop_grace_seconds": 5},
			},
		},
		"cloud_providers": object{
			"local": object{"enabled": true, "max_instances": machinesMax, "boot_seconds": 3, "price_per_hour": pricePerHour},
		},
		"scaling_rules": object{
			"scale_up":   object{"queue_depth_threshold": max(1, min(20, jobs/4)), "oldest_job_age_seconds": 20, "cooldown_seconds": 5},
			"scale_down": object{"idle_minutes": 0, "queue_depth_below": 2, "cooldown_seconds": 2, "drain_timeout_seconds": 30},
		},
		"workers": object{
			"heartbeat_seconds": 1, "boot_timeout_seconds": 30, "visibility_timeout_seconds": 30, "lost_database_minutes": 1, "max_lifetime_hours": 1,
		},
		"cost_limits": object{"max_hourly_spend_cents": 100, "max_daily_spend_cents": 100, "alert_threshold_cents": 80},
	}
}

// home is the folder of one run.
type home string

func (h home) path(name string) string { return filepath.Join(string(h), name) }
func (h home) config() string          { return h.path("config.json") }
func (h home) databaseURL() string     { return h.path("database-url") }
func (h home) redisURL() string        { return h.path("redis-url") }
func (h home) images() string          { return h.path("images") }
func (h home) thumbnails() string      { return h.path("thumbnails") }
func (h home) machines() string        { return h.path("machines") }
func (h home) mark() string            { return h.path(".sluice-run") } // the folder is a run's

// openHome empties the run's folder and makes what belongs in it.
func openHome(path string) (home, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("find run folder: %w", err)
	}
	h := home(abs)
	if err := h.empty(); err != nil {
		return "", err
	}
	// The services' own user must get through the folder above; what is in the run's is nobody else's.
	if err := os.MkdirAll(filepath.Dir(abs), 0o755); err != nil { //nolint:gosec // see above
		return "", fmt.Errorf("make run folder: %w", err)
	}
	for _, dir := range []string{abs, h.images(), h.thumbnails(), h.machines()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return "", fmt.Errorf("make run folder: %w", err)
		}
	}
	if err := os.WriteFile(h.mark(), nil, 0o600); err != nil {
		return "", fmt.Errorf("make run folder: %w", err)
	}
	return h, nil
}

// empty removes what an earlier run left, and nothing that is somebody's.
func (h home) empty() error {
	entries, err := os.ReadDir(string(h))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("look at run folder: %w", err)
	}
	if _, err := os.Stat(h.mark()); err != nil && len(entries) > 0 {
		return fmt.Errorf("empty run folder: %s has files that are not of an earlier run; remove it, or name another folder with --home", h)
	}
	if err := os.RemoveAll(string(h)); err != nil {
		return fmt.Errorf("empty run folder: %w", err)
	}
	return nil
}

// write stores the config and the secrets that it refers to.
func (h home) write(self, databaseURL, redisURL string, jobs int) error {
	b, err := json.MarshalIndent(settings(h, self, jobs), "", "  ")
	if err != nil {
		return fmt.Errorf("write config: %w", err)
	}
	for path, content := range map[string]string{
		h.config(): string(b) + "\n", h.databaseURL(): databaseURL + "\n", h.redisURL(): redisURL + "\n",
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return fmt.Errorf("write run folder: %w", err)
		}
	}
	return nil
}
