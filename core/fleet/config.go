package fleet

import (
	"encoding/json"
	"time"
)

// Mode is how far Sluice may go.
type Mode string

// Modes. VPSOnly never starts a cloud machine and is the default.
const (
	VPSOnly    Mode = "vps_only"
	Hybrid     Mode = "hybrid"
	CloudFirst Mode = "cloud_first"
)

// Config is a config file after defaults, overrides and presets: what decisions read.
// Slices are sorted by name, so that equal configs are equal bytes.
type Config struct {
	Name     string `json:"name"`     // owner tag of every machine
	Currency string `json:"currency"` // of every Money
	// ExchangeRates are what one unit of another currency is worth in Currency, as decimals.
	ExchangeRates map[string]string `json:"exchange_rates,omitempty"`
	Timezone      string            `json:"timezone"` // IANA; whose midnight ends the daily limit
	Mode          Mode              `json:"mode"`
	Interval      Seconds           `json:"evaluation_interval_seconds"`

	Queues    []Queue    `json:"queues,omitempty"`
	Pools     []Pool     `json:"pools,omitempty"`
	Providers []Provider `json:"providers,omitempty"` // enabled ones
	Prices    []Price    `json:"prices,omitempty"`    // static prices of enabled providers
	// Suspended are what suspended machines cost; one that is not among them costs as if it ran.
	Suspended []SuspendedPrice `json:"suspended_prices,omitempty"`
	Workers   WorkerRules      `json:"workers"`
	Limits    Limits           `json:"cost_limits"`

	// Channels are those that take alerts; none: all go to the log (see Routes). Page is where people look.
	Channels []Channel `json:"alert_channels,omitempty"`
	Page     string    `json:"page_url,omitempty"`

	// NotHonoured are paths of keys that are valid but that this version does not act on yet.
	NotHonoured []string `json:"not_honoured,omitempty"`
}

// SourceKind is where a queue's jobs wait.
type SourceKind string

// Sources of queues.
const (
	SourceRedis    SourceKind = "redis"
	SourcePostgres SourceKind = "postgres"
	SourceRabbitMQ SourceKind = "rabbitmq"
)

// Source is where the jobs of a queue are counted.
type Source struct {
	Kind SourceKind `json:"kind"`
	Key  string     `json:"key,omitempty"` // Redis list or broker queue
	// Rows says that each job is a row of processing_jobs; if not, depth is the source's own and age is unknown.
	Rows bool `json:"job_rows"`
}

// Queue is a named stream of jobs.
type Queue struct {
	Name   string `json:"name"`
	Source Source `json:"source"`
	Run    Run    `json:"run"`
}

// Run is what an agent runs for one job.
type Run struct {
	Command   []string `json:"command,omitempty"`
	Timeout   Seconds  `json:"timeout_seconds"`
	Slots     int      `json:"slots_per_worker"` // jobs at once on one worker
	StopGrace Seconds  `json:"stop_grace_seconds"`
}

// OnIdle is what becomes of a machine that is no longer needed.
type OnIdle string

// What to do with idle machines.
const (
	TerminateIdle OnIdle = "terminate"
	SuspendIdle   OnIdle = "suspend"
)

// Pool is the unit of capacity: machines of one kind serving one or more queues.
type Pool struct {
	Name            string      `json:"name"`
	Queues          []PoolQueue `json:"queues"`
	Enabled         bool        `json:"cloud_enabled"` // some queue of it may use the cloud
	Automatic       bool        `json:"automatic"`     // false: only requests of people start machines
	Urgency         int         `json:"urgency"`       // 0..100, 0 is served first when money is short
	MinReady        int         `json:"min_ready"`
	MaxWorkers      int         `json:"max_workers"` // VPS, booting, ready, draining and suspended together
	UpCooldown      Seconds     `json:"scale_up_cooldown_seconds"`
	DownCooldown    Seconds     `json:"scale_down_cooldown_seconds"`
	IdleMinutes     int         `json:"idle_minutes"`
	DrainTimeout    Seconds     `json:"drain_timeout_seconds"`
	OnIdle          OnIdle      `json:"on_idle"`
	MaxSuspended    int         `json:"max_suspended"`
	MaxSuspendedFor Seconds     `json:"max_suspended_seconds"`
	// FallbackAfter is how long spot must have been refused before on-demand is tried; nil is never, 0 at once.
	FallbackAfter *Seconds `json:"on_demand_fallback_seconds"`
	// Cheapest orders offers by price; otherwise their order here holds.
	Cheapest bool    `json:"cheapest"`
	Offers   []Offer `json:"offers,omitempty"`
}

// DefaultDrainTimeout holds where no pool of the config says otherwise: on the VPS, and for what is left of a pool that
// the config no longer has.
const DefaultDrainTimeout Seconds = 300

// PoolQueue is a queue as seen by a pool that serves it.
type PoolQueue struct {
	Name       string  `json:"name"`
	Baseline   int     `json:"baseline_workers"`
	Depth      int     `json:"queue_depth_threshold"`  // >=
	Age        Seconds `json:"oldest_job_age_seconds"` // >=; 0: age is no trigger
	Steps      []Tier  `json:"steps,omitempty"`        // ascending
	DepthBelow int     `json:"queue_depth_below"`      // <
}

// Tier is a step of a scaling policy, reached when either figure is (>=); a zero figure is none.
type Tier struct {
	Depth   int     `json:"queue_depth_threshold,omitempty"`
	Age     Seconds `json:"oldest_job_age_seconds,omitempty"`
	Workers int     `json:"workers,omitempty"` // cloud workers wanted in all
	Max     bool    `json:"max,omitempty"`     // as many as max_workers allows, instead of Workers
	Alert   Level   `json:"alert,omitempty"`
}

// Provider is an enabled cloud.
type Provider struct {
	Name         string `json:"name"`
	Scope        string `json:"scope,omitempty"`
	Currency     string `json:"currency,omitempty"` // that it quotes and bills in; empty: the config's
	MaxInstances int    `json:"max_instances"`
	// Settings is the provider's own block, references instead of secrets; a Launch carries it along.
	Settings json.RawMessage `json:"settings,omitempty"`
}

// Place is where the provider's machines are listed.
func (p Provider) Place() Place { return Place{Provider: p.Name, Scope: p.Scope} }

// Price is a static price of the config, extras not included.
type Price struct {
	Provider string `json:"provider"`
	Type     string `json:"type"`
	Market   Market `json:"market"`
	Price    Money  `json:"price"` // per hour
}

// SuspendedPrice is what a suspended machine costs: disk, memory that is kept, address. Nothing is added to it.
type SuspendedPrice struct {
	Provider string `json:"provider"`
	Type     string `json:"type"`
	Price    Money  `json:"price"` // per hour
}

// WorkerRules are the rules of every worker's life.
type WorkerRules struct {
	Heartbeat      Seconds `json:"heartbeat_seconds"`
	BootTimeout    Seconds `json:"boot_timeout_seconds"`
	Visibility     Seconds `json:"visibility_timeout_seconds"`
	MaxAttempts    int     `json:"max_attempts"`
	RetryElsewhere bool    `json:"retry_elsewhere"`
	LostDatabase   Seconds `json:"lost_database_seconds"`
	MaxLifetime    Seconds `json:"max_lifetime_seconds"`
}

// Limits are hard limits of spending.
type Limits struct {
	Hourly Money `json:"hourly"`          // run rate, reservations included
	Daily  Money `json:"daily"`           // accrued in one day of Config.Timezone
	Alert  Money `json:"alert_threshold"` // of the daily limit
	Extras Money `json:"extras_per_machine_hour"`
	// Period has a limit of its own; empty: none.
	Period    Period `json:"period,omitempty"`
	PerPeriod Money  `json:"per_period,omitempty"` // accrued in one period of Config.Timezone
}

// Period is a stretch of days that has a limit.
type Period string

// Periods. A week begins on Monday.
const (
	Week  Period = "week"
	Month Period = "month"
)

// Late says that the last tick is so long ago that nothing may be ticking: three intervals, and three minutes.
func (c Config) Late(last, now time.Time) bool {
	return now.Sub(last) > max(3*time.Minute, 3*c.Interval.Duration())
}

// Pool finds a pool by name.
func (c Config) Pool(name string) (Pool, bool) {
	for _, p := range c.Pools {
		if p.Name == name {
			return p, true
		}
	}
	return Pool{}, false
}

// Price finds the static price of an offer per hour, extras not included. A zone has none of its own.
func (c Config) Price(o Offer) (Money, bool) {
	for _, p := range c.Prices {
		if p.Provider == o.Provider && p.Type == o.Type && p.Market == o.Market {
			return p.Price, true
		}
	}
	return 0, false
}

// SuspendedPrice finds what a suspended machine of a type costs per hour.
func (c Config) SuspendedPrice(provider, kind string) (Money, bool) {
	for _, p := range c.Suspended {
		if p.Provider == provider && p.Type == kind {
			return p.Price, true
		}
	}
	return 0, false
}

// Provider finds an enabled provider by name.
func (c Config) Provider(name string) (Provider, bool) {
	for _, p := range c.Providers {
		if p.Name == name {
			return p, true
		}
	}
	return Provider{}, false
}
