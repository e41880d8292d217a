package config

import "sluice/core/fleet"

// File is a settings file as it is written. The JSON Schema, the table in docs/configuration.md and the
// defaults all come from this type: the comment of a field is its description.
type File struct {
	// Where an editor finds the schema; ignored.
	Schema string `json:"$schema,omitempty"`
	// Version of the format.
	Version int `json:"version" jsonschema:"minimum=1,maximum=1,default=1"`
	// Name of the installation in every tag (sluice:name). One per installation, so that two can share an account.
	Name string `json:"name" jsonschema:"pattern=^[a-z][a-z0-9-]{1\\,30}$,default=sluice" jsonschema_extras:"x-expected=2 to 31 lower-case letters\\, digits and hyphens\\, a letter first"`
	// Currency of every amount in cents.
	Currency string `json:"currency" jsonschema:"pattern=^[A-Z]{3}$,default=USD" jsonschema_extras:"x-expected=a currency code such as USD"`
	// Worth of one unit of another currency in `currency`, for providers that quote and bill in another one.
	ExchangeRates map[string]Rate `json:"exchange_rates,omitempty"`
	// IANA time zone whose midnight ends the daily limit, and the default zone of windows.
	Timezone string `json:"timezone" jsonschema:"default=UTC"`
	// How far Sluice may go: `vps_only` never starts a cloud machine, `hybrid` adds machines to the VPS for bursts, `cloud_first` holds the baseline in the cloud.
	Mode fleet.Mode `json:"mode" jsonschema:"enum=vps_only,enum=hybrid,enum=cloud_first,default=vps_only"`
	// Seconds between evaluations. Above 60, ticks that are not due are skipped; below 60 works in the local run only.
	EvaluationIntervalSeconds int `json:"evaluation_interval_seconds" jsonschema:"minimum=1,maximum=86400,default=60"`
	// References to what has to be reached; never the secrets themselves.
	Connections Connections `json:"connections"`
	// Queues by name. A queue that no pool names is a pool of its own with the same name.
	Queues map[string]Queue `json:"queues,omitempty"`
	// Pools by name: machines of one kind that serve one or more queues.
	Pools map[string]Pool `json:"pools,omitempty"`
	// Which jobs go to which pools; the first rule that matches wins, and the last one must match everything.
	Routing []Rule `json:"routing,omitempty" jsonschema_extras:"x-not-honoured=true"`
	// Clouds by name.
	CloudProviders CloudProviders `json:"cloud_providers"`
	// When to add and remove machines; pools and queues override single keys of it.
	ScalingRules ScalingRules `json:"scaling_rules"`
	// Rules of every worker's life.
	Workers Workers `json:"workers"`
	// Hard limits of spending.
	CostLimits CostLimits `json:"cost_limits"`
	// How often bills are read.
	Billing Billing `json:"billing"`
	// Where alerts go.
	Alerts Alerts `json:"alerts"`
	// What is measured and how long logs are kept.
	Telemetry Telemetry `json:"telemetry"`
}

// Reference names where a secret is kept; it is never the secret.
type Reference string

// Price is a decimal per hour in the provider's currency.
type Price string

// Rate is a decimal exchange rate.
type Rate string

// TierWorkers is a number of machines, or "max".
type TierWorkers struct {
	Count int
	Max   bool
}

// Connections are references to services.
type Connections struct {
	Database DatabaseConnection `json:"database"`
	Redis    RedisConnection    `json:"redis"`
	RabbitMQ RabbitConnection   `json:"rabbitmq"`
}

// DatabaseConnection is how Postgres is reached.
type DatabaseConnection struct {
	// URL for the scheduler.
	URL *Reference `json:"url" jsonschema:"nullable,default=env:DATABASE_URL"`
	// URL for workers on machines that Sluice starts; without it they use `url`.
	WorkerURL *Reference `json:"worker_url,omitempty" jsonschema:"nullable"`
	// Certificate authority that the server's certificate is checked against.
	CA *Reference `json:"ca,omitempty" jsonschema:"nullable" jsonschema_extras:"x-not-honoured=true"`
	// Client certificate and key (PEM).
	ClientCertificate *Reference `json:"client_certificate,omitempty" jsonschema:"nullable" jsonschema_extras:"x-not-honoured=true"`
}

// RedisConnection is how Redis is reached; by the scheduler and the VPS only, never by cloud workers.
type RedisConnection struct {
	// URL for the scheduler. Where it is set here, or REDIS_URL is set, queues without a source are Redis lists.
	URL *Reference `json:"url" jsonschema:"nullable,default=env:REDIS_URL"`
	// URL for the worker on the VPS; without it `url` is used.
	WorkerURL *Reference `json:"worker_url,omitempty" jsonschema:"nullable"`
	// Certificate authority that the server's certificate is checked against.
	CA *Reference `json:"ca,omitempty" jsonschema:"nullable" jsonschema_extras:"x-not-honoured=true"`
}

// RabbitConnection is how RabbitMQ is reached.
type RabbitConnection struct {
	// URL of the management API, for depths.
	ManagementURL *Reference `json:"management_url" jsonschema:"nullable,default=env:RABBITMQ_MANAGEMENT_URL" jsonschema_extras:"x-not-honoured=true"`
	// AMQP URL for workers.
	WorkerURL *Reference `json:"worker_url" jsonschema:"nullable,default=env:RABBITMQ_URL" jsonschema_extras:"x-not-honoured=true"`
	// Virtual host.
	VHost string `json:"vhost" jsonschema:"default=/" jsonschema_extras:"x-not-honoured=true"`
	// Certificate authority that the server's certificate is checked against.
	CA *Reference `json:"ca,omitempty" jsonschema:"nullable" jsonschema_extras:"x-not-honoured=true"`
}

// Queue is a named stream of jobs.
type Queue struct {
	// Workers that always serve this queue: the VPS's in vps_only and hybrid, cloud workers in cloud_first.
	BaselineWorkers int `json:"baseline_workers" jsonschema:"minimum=0,maximum=10000,default=0"`
	// Most machines serving this queue: the VPS, booting, ready, draining and suspended ones together. In packed pools: instances of its processor.
	MaxWorkers int `json:"max_workers" jsonschema:"minimum=0,maximum=10000,default=1"`
	// Whether machines may be started for this queue.
	CloudEnabled bool `json:"cloud_enabled" jsonschema:"default=false"`
	// The one provider to use; null is the cheapest of those enabled.
	CloudProvider *string `json:"cloud_provider" jsonschema:"nullable,enum=aws,enum=google,enum=ionos,enum=local"`
	// Use spot machines where the provider sells them.
	SpotPreferred bool `json:"spot_preferred" jsonschema:"default=false"`
	// How long spot must have been refused before on-demand is tried; 0 is at once, null is never.
	OnDemandFallbackSeconds *int `json:"on_demand_fallback_seconds" jsonschema:"nullable,minimum=0,maximum=2592000,default=0"`
	// false: only what people ask for starts machines.
	Automatic bool `json:"automatic" jsonschema:"default=true"`
	// 0 is most urgent and is cut last when money is short.
	Urgency int `json:"urgency" jsonschema:"minimum=0,maximum=100,default=50"`
	// Where its jobs wait.
	Source Source `json:"source"`
	// What an agent runs for one job.
	Run Run `json:"run"`
	// Overrides of single keys of the pool's rules.
	ScalingRules ScalingRules `json:"scaling_rules" jsonschema_extras:"x-inherited=true"`
}

// Source is where a queue's jobs are counted.
type Source struct {
	// What kind of queue it is; `redis` where a Redis URL is set, else `postgres`.
	Kind fleet.SourceKind `json:"kind" jsonschema:"enum=redis,enum=postgres,enum=rabbitmq"`
	// Key of the Redis list; `queue:` and the queue's name where it is not set.
	Key string `json:"key,omitempty" jsonschema:"pattern=^[^{}\\s]+$" jsonschema_extras:"x-expected=a Redis key without spaces and braces"`
	// Name of the RabbitMQ queue; the queue's name where it is not set.
	Queue string `json:"queue,omitempty"`
	// Whether each job is a row of processing_jobs as well; if not, the depth is the list's own length and ages are unknown.
	JobRows bool `json:"job_rows" jsonschema:"default=true"`
}

// Run is what an agent runs.
type Run struct {
	// Container image of the processor.
	Image string `json:"image,omitempty" jsonschema_extras:"x-not-honoured=true"`
	// Program and arguments, run once per job with the job on its standard input.
	Command []string `json:"command,omitempty" jsonschema:"minItems=1"`
	// A job that runs longer is stopped, and its attempt has failed.
	TimeoutSeconds int `json:"timeout_seconds" jsonschema:"minimum=1,maximum=2592000,default=3600"`
	// Packed pools: free memory that one more instance needs.
	MemoryMB *int `json:"memory_mb,omitempty" jsonschema:"nullable,minimum=64,maximum=16777216" jsonschema_extras:"x-not-honoured=true"`
	// How many jobs run at once on one machine.
	SlotsPerWorker int `json:"slots_per_worker" jsonschema:"minimum=1,maximum=10000,default=1"`
	// Time between the polite and the forced stop of a job.
	StopGraceSeconds int `json:"stop_grace_seconds" jsonschema:"minimum=0,maximum=86400,default=30"`
	// The processor saves its progress and goes on from there after a retry.
	Checkpoint bool `json:"checkpoint" jsonschema:"default=false" jsonschema_extras:"x-not-honoured=true"`
}

// ScalingRules say when machines come and go.
type ScalingRules struct {
	ScaleUp   ScaleUp   `json:"scale_up"`
	ScaleDown ScaleDown `json:"scale_down"`
}

// ScaleUp says when a machine is added.
type ScaleUp struct {
	// Jobs waiting, this many or more, add a machine per cooldown.
	QueueDepthThreshold int `json:"queue_depth_threshold" jsonschema:"minimum=1,maximum=1000000000,default=10"`
	// A job waiting this long or longer adds a machine per cooldown; null where age is no trigger.
	OldestJobAgeSeconds *int `json:"oldest_job_age_seconds" jsonschema:"nullable,minimum=1,maximum=31536000,default=300"`
	// Mean age of waiting jobs that adds a machine; null for none.
	AverageWaitSeconds *int `json:"average_wait_seconds,omitempty" jsonschema:"nullable,minimum=1,maximum=31536000" jsonschema_extras:"x-not-honoured=true"`
	// Least time between two additions.
	CooldownSeconds int `json:"cooldown_seconds" jsonschema:"minimum=0,maximum=86400,default=120"`
	// Policy table: the highest tier reached says how many cloud workers are wanted in all. With it the two thresholds above are not used.
	Steps []Step `json:"steps,omitempty"`
}

// Step is one tier of a policy, reached when either figure is.
type Step struct {
	// Jobs waiting, this many or more.
	QueueDepthThreshold int `json:"queue_depth_threshold,omitempty" jsonschema:"minimum=1,maximum=1000000000"`
	// Age of the oldest waiting job, this or more.
	OldestJobAgeSeconds int `json:"oldest_job_age_seconds,omitempty" jsonschema:"minimum=1,maximum=31536000"`
	// Cloud workers wanted in all beside the VPS's, or "max" for as many as max_workers allows.
	Workers TierWorkers `json:"workers" jsonschema:"required"`
	// Level of the alert that is sent while this tier is reached.
	Alert fleet.Level `json:"alert,omitempty" jsonschema:"enum=info,enum=warning,enum=critical"`
}

// ScaleDown says when a machine is removed.
type ScaleDown struct {
	// Minutes without a job before a machine may go.
	IdleMinutes int `json:"idle_minutes" jsonschema:"minimum=0,maximum=43200,default=10"`
	// Machines go only while fewer jobs wait than this.
	QueueDepthBelow int `json:"queue_depth_below" jsonschema:"minimum=1,maximum=1000000000,default=2"`
	// Least time between two removals.
	CooldownSeconds int `json:"cooldown_seconds" jsonschema:"minimum=0,maximum=86400,default=300"`
	// How long a machine that goes may finish its jobs; what is left then returns to its queue with the attempt counted.
	DrainTimeoutSeconds int `json:"drain_timeout_seconds" jsonschema:"minimum=0,maximum=86400,default=300"`
}

// Pool is a group of machines of one kind.
type Pool struct {
	// A preset of the other keys.
	Kind string `json:"kind" jsonschema:"enum=burst,enum=packed,enum=warm,enum=cold,enum=dedicated,default=burst" jsonschema_extras:"x-not-honoured=true"`
	// Names of the queues that its machines serve.
	Queues []string `json:"queues" jsonschema:"required,minItems=1"`
	// Machines kept ready whatever the queues say.
	MinReady int `json:"min_ready" jsonschema:"minimum=0,maximum=10000,default=0"`
	// Most machines: the VPS, booting, ready, draining and suspended ones together. Not set: the smallest max_workers of its queues.
	MaxWorkers *int `json:"max_workers,omitempty" jsonschema:"minimum=1,maximum=10000"`
	// 0 is most urgent. Not set: the most urgent of its queues.
	Urgency *int `json:"urgency,omitempty" jsonschema:"minimum=0,maximum=100"`
	// Hours in which machines are kept ready.
	Windows []Window `json:"windows,omitempty" jsonschema_extras:"x-not-honoured=true"`
	// Overrides of single keys of the top-level rules.
	ScalingRules ScalingRules `json:"scaling_rules" jsonschema_extras:"x-inherited=true"`
	// Short for scaling_rules.scale_down.idle_minutes.
	IdleMinutes *int `json:"idle_minutes,omitempty" jsonschema:"minimum=0,maximum=43200"`
	// What becomes of a machine that is no longer needed.
	OnIdle fleet.OnIdle `json:"on_idle" jsonschema:"enum=terminate,enum=suspend,default=terminate"`
	// Most machines kept suspended; the rest is terminated.
	MaxSuspended int `json:"max_suspended" jsonschema:"minimum=0,maximum=10000,default=0"`
	// A machine suspended for longer is terminated.
	MaxSuspendedHours int `json:"max_suspended_hours" jsonschema:"minimum=1,maximum=1440,default=168"`
	// Wanted machines are the waiting jobs divided by this; null adds one per cooldown.
	JobsPerWorker *int `json:"jobs_per_worker,omitempty" jsonschema:"nullable,minimum=1,maximum=1000000" jsonschema_extras:"x-not-honoured=true"`
	// As in a queue. Not set: its queues' where the pool lists no offers, else 0.
	OnDemandFallbackSeconds *int `json:"on_demand_fallback_seconds" jsonschema:"nullable,minimum=0,maximum=2592000"`
	// Try offers in their order here, or the cheapest first.
	ProviderChoice string `json:"provider_choice" jsonschema:"enum=listed,enum=cheapest,default=listed"`
	// What may be launched, in order of preference. Not set: what the enabled providers' blocks say.
	Offers []Offer `json:"offers,omitempty" jsonschema:"minItems=1"`
	// When a packed machine has room for one more instance.
	Packing *Packing `json:"packing,omitempty" jsonschema_extras:"x-not-honoured=true,x-optional=true"`
	// Move instances together so that machines become free.
	Migrate bool `json:"migrate" jsonschema:"default=false" jsonschema_extras:"x-not-honoured=true"`
	// A check that has to pass before a machine gets jobs.
	Readiness *Readiness `json:"readiness,omitempty" jsonschema_extras:"x-not-honoured=true,x-optional=true"`
}

// Window is a span of hours with machines kept ready; where windows overlap, the larger number counts.
type Window struct {
	Name string `json:"name,omitempty"`
	// Days on which it begins.
	Days []Day `json:"days" jsonschema:"required,minItems=1"`
	// First minute.
	From string `json:"from" jsonschema:"required,pattern=^([01][0-9]|2[0-3]):[0-5][0-9]$" jsonschema_extras:"x-expected=a time of day such as 08:30"`
	// First minute after it; earlier than `from`, it is the next day's.
	To string `json:"to" jsonschema:"required,pattern=^([01][0-9]|2[0-3]):[0-5][0-9]$" jsonschema_extras:"x-expected=a time of day such as 18:30"`
	// Time zone; not set: the top-level one.
	Timezone string `json:"timezone,omitempty"`
	// Machines kept ready.
	MinReady int `json:"min_ready" jsonschema:"required,minimum=0,maximum=10000"`
	// Start machines this long before.
	RampUpMinutes int `json:"ramp_up_minutes" jsonschema:"minimum=0,maximum=1440,default=0"`
	// Dates on which it does not begin.
	ExceptDates []Date `json:"except_dates,omitempty"`
}

// Day is a day of the week.
type Day string

// Date is a day of the calendar.
type Date string

// Offer is a set of machines that could be launched: one per type and zone.
type Offer struct {
	Provider string       `json:"provider" jsonschema:"required,enum=aws,enum=google,enum=ionos,enum=local"`
	Market   fleet.Market `json:"market" jsonschema:"required,enum=spot,enum=on_demand"`
	// Types, in order of preference.
	InstanceTypes []string `json:"instance_types" jsonschema:"required,minItems=1"`
	// Zones, in order of preference; not set: the provider's.
	Zones []string `json:"zones,omitempty" jsonschema:"minItems=1"`
	// Not set: the provider's image.
	Image string `json:"image,omitempty"`
	// Packed pools: queues whose processors the image contains; not set: all of the pool.
	Processors []string `json:"processors,omitempty" jsonschema:"minItems=1" jsonschema_extras:"x-not-honoured=true"`
	// Launch machines so that they can be hibernated.
	Hibernate bool `json:"hibernate" jsonschema:"default=false" jsonschema_extras:"x-not-honoured=true"`
}

// Packing says when a machine has room.
type Packing struct {
	// Room for one more while vCPUs exceed the load by more than this.
	CPUBuffer float64 `json:"cpu_buffer" jsonschema:"minimum=0,maximum=1024,default=0.5"`
	// Memory that is never given out.
	MemoryReserveMB int `json:"memory_reserve_mb" jsonschema:"minimum=0,maximum=16777216,default=512"`
	// Load booked for an instance that has just been started.
	StartupLoad float64 `json:"startup_load" jsonschema:"minimum=0,maximum=1024,default=1"`
	// Most instances on one machine.
	MaxInstancesPerWorker int `json:"max_instances_per_worker" jsonschema:"minimum=1,maximum=10000,default=8"`
}

// Readiness is a check run on a machine.
type Readiness struct {
	// Program and arguments.
	Command []string `json:"command" jsonschema:"required,minItems=1"`
	// The machine is given up when the check has not passed by then.
	TimeoutSeconds int `json:"timeout_seconds" jsonschema:"minimum=1,maximum=86400,default=300"`
}

// Rule sends jobs to pools.
type Rule struct {
	Name string `json:"name" jsonschema:"required"`
	// All that is given must hold; a job without the fact does not match.
	When When `json:"when" jsonschema:"required"`
	// Pools in order: the first with room takes the job, the last one grows.
	To []string `json:"to" jsonschema:"required,minItems=1"`
	// How long such a job may wait.
	WaitTargetSeconds int `json:"wait_target_seconds,omitempty" jsonschema:"minimum=1,maximum=31536000"`
}

// When says which jobs a rule is for; bounds are inclusive.
type When struct {
	Queue              string `json:"queue,omitempty"`
	Kind               string `json:"kind,omitempty"`
	PriorityMin        *int   `json:"priority_min,omitempty" jsonschema:"minimum=1,maximum=10"`
	PriorityMax        *int   `json:"priority_max,omitempty" jsonschema:"minimum=1,maximum=10"`
	UserInitiated      *bool  `json:"user_initiated,omitempty"`
	ExpectedMinutesMin *int   `json:"expected_minutes_min,omitempty" jsonschema:"minimum=0,maximum=525600"`
	ExpectedMinutesMax *int   `json:"expected_minutes_max,omitempty" jsonschema:"minimum=0,maximum=525600"`
	Checkpoint         *bool  `json:"checkpoint,omitempty"`
}

// CloudProviders are the clouds that can be configured.
type CloudProviders struct {
	// Amazon EC2.
	AWS *AWS `json:"aws,omitempty" jsonschema_extras:"x-optional=true"`
	// Google Compute Engine.
	Google *Google `json:"google,omitempty" jsonschema_extras:"x-optional=true"`
	// IONOS Cloud.
	IONOS *IONOS `json:"ionos,omitempty" jsonschema_extras:"x-optional=true"`
	// Processes on this computer, or a second box.
	Local *Local `json:"local,omitempty" jsonschema_extras:"x-optional=true"`
}

// Cloud is what the blocks of all clouds have in common.
type Cloud struct {
	// Whether it may be used. While it is false, the rest of its block may hold placeholders.
	Enabled bool `json:"enabled" jsonschema:"default=false"`
	// Credentials for its API; null is what the environment offers.
	Credentials *Credentials `json:"credentials" jsonschema:"nullable"`
	// Size of a machine's disk.
	RootVolumeGB int `json:"root_volume_gb" jsonschema:"minimum=8,maximum=65536,default=30"`
	// Give machines a public IPv4 address.
	PublicIPv4 bool `json:"public_ipv4" jsonschema:"default=false"`
}

// Credentials is a Reference, or an identity of the workload.
type Credentials string

// AWS is Amazon EC2.
type AWS struct {
	Cloud
	// Currency of its prices and bills.
	Currency string `json:"currency" jsonschema:"pattern=^[A-Z]{3}$,default=USD" jsonschema_extras:"x-expected=a currency code such as USD"`
	// Most machines of this installation there.
	MaxInstances int `json:"max_instances" jsonschema:"minimum=0,maximum=10000,default=5"`
	// Region; needed when enabled.
	Region string `json:"region,omitempty"`
	// Instance type; this or instance_types is needed when enabled.
	InstanceType string `json:"instance_type,omitempty"`
	// Instance types that will do, in order of preference, instead of instance_type.
	InstanceTypes []string `json:"instance_types,omitempty" jsonschema:"minItems=1"`
	// Machine image; needed when enabled.
	AMIID string `json:"ami_id,omitempty"`
	// Whether spot machines may be used.
	SpotEnabled bool `json:"spot_enabled" jsonschema:"default=false"`
	// Spot machines that cost more per hour are passed over.
	SpotMaxPrice Price `json:"spot_max_price,omitempty"`
	// Subnets to start machines in.
	SubnetIDs []string `json:"subnet_ids,omitempty" jsonschema:"minItems=1"`
	// Security groups of machines.
	SecurityGroupIDs []string `json:"security_group_ids,omitempty" jsonschema:"minItems=1"`
	// Instance profile of machines, which may read the references that workers need.
	InstanceProfile string `json:"instance_profile,omitempty"`
	// Known prices by type; `TYPE:spot` is the price of spot, `TYPE:suspended` that of a suspended one.
	Prices map[string]Price `json:"prices,omitempty"`
}

// Google is Google Compute Engine.
type Google struct {
	Cloud
	// Currency of its prices and bills.
	Currency string `json:"currency" jsonschema:"pattern=^[A-Z]{3}$,default=USD" jsonschema_extras:"x-expected=a currency code such as USD"`
	// Most machines of this installation there.
	MaxInstances int `json:"max_instances" jsonschema:"minimum=0,maximum=10000,default=5"`
	// Project; not set: that of the credentials.
	Project string `json:"project,omitempty"`
	// Zone; this or zones is needed when enabled.
	Zone string `json:"zone,omitempty"`
	// Zones that will do, in order of preference, instead of zone.
	Zones []string `json:"zones,omitempty" jsonschema:"minItems=1"`
	// Machine type; this or machine_types is needed when enabled.
	MachineType string `json:"machine_type,omitempty"`
	// Machine types that will do, in order of preference, instead of machine_type.
	MachineTypes []string `json:"machine_types,omitempty" jsonschema:"minItems=1"`
	// Machine image; needed when enabled.
	Image string `json:"image,omitempty"`
	// Whether preemptible (spot) machines may be used.
	Preemptible bool `json:"preemptible" jsonschema:"default=false"`
	// Network of machines.
	Network string `json:"network,omitempty"`
	// Subnetwork of machines.
	Subnetwork string `json:"subnetwork,omitempty"`
	// Service account of machines, which may read the references that workers need.
	ServiceAccount string `json:"service_account,omitempty"`
	// Known prices by type; `TYPE:spot` is the price of preemptible machines, `TYPE:suspended` that of a suspended one.
	Prices map[string]Price `json:"prices,omitempty"`
}

// IONOS is IONOS Cloud.
type IONOS struct {
	Cloud
	// Currency of its prices and bills.
	Currency string `json:"currency" jsonschema:"pattern=^[A-Z]{3}$,default=EUR" jsonschema_extras:"x-expected=a currency code such as EUR"`
	// Most machines of this installation there.
	MaxInstances int `json:"max_instances" jsonschema:"minimum=0,maximum=10000,default=3"`
	// Location, for people.
	Datacenter string `json:"datacenter,omitempty"`
	// Id of the virtual data centre; needed when enabled.
	DatacenterID string `json:"datacenter_id,omitempty"`
	// A name in server_types; needed when enabled.
	ServerType string `json:"server_type,omitempty"`
	// What the names of server types mean.
	ServerTypes map[string]ServerType `json:"server_types,omitempty"`
	// Machine image; needed when enabled.
	Image string `json:"image,omitempty"`
	// LAN that machines are connected to.
	LANID *int `json:"lan_id,omitempty" jsonschema:"minimum=1,maximum=1000000"`
}

// ServerType is the size and price of a server.
type ServerType struct {
	Cores int `json:"cores" jsonschema:"required,minimum=1,maximum=1024"`
	RAMGB int `json:"ram_gb" jsonschema:"required,minimum=1,maximum=16384"`
	// Kind of server.
	Kind string `json:"kind" jsonschema:"enum=vcpu,enum=dedicated,enum=cube,default=vcpu"`
	// Without it nothing is launched: an unknown price is not free.
	PricePerHour Price `json:"price_per_hour,omitempty"`
	// What a suspended one costs per hour. Without it: as much as if it ran.
	SuspendedPricePerHour Price `json:"suspended_price_per_hour,omitempty"`
}

// Local is this computer.
type Local struct {
	// Whether it may be used.
	Enabled bool `json:"enabled" jsonschema:"default=false"`
	// Most processes at once.
	MaxInstances int `json:"max_instances" jsonschema:"minimum=0,maximum=10000,default=5"`
	// Time that a machine takes to boot.
	BootSeconds int `json:"boot_seconds" jsonschema:"minimum=0,maximum=3600,default=5"`
	// What a machine costs per hour, in `currency`.
	PricePerHour Price `json:"price_per_hour" jsonschema:"default=0.00"`
	// What a suspended machine costs per hour, in `currency`. Without it: as much as if it ran.
	SuspendedPricePerHour Price `json:"suspended_price_per_hour,omitempty"`
}

// Workers are the rules of every worker's life.
type Workers struct {
	// How often a worker says that it lives.
	HeartbeatSeconds int `json:"heartbeat_seconds" jsonschema:"minimum=1,maximum=3600,default=15"`
	// A machine that has not registered by then is given up.
	BootTimeoutSeconds int `json:"boot_timeout_seconds" jsonschema:"minimum=30,maximum=86400,default=300"`
	// A claimed job whose worker says nothing for this long goes back to its queue.
	VisibilityTimeoutSeconds int `json:"visibility_timeout_seconds" jsonschema:"minimum=30,maximum=86400,default=300"`
	// A job that failed this often is dead.
	MaxAttempts int `json:"max_attempts" jsonschema:"minimum=1,maximum=1000,default=3"`
	// A failed job goes to another worker where there is one.
	RetryElsewhere bool `json:"retry_elsewhere" jsonschema:"default=true"`
	// A worker that has lost the database for longer ends itself.
	LostDatabaseMinutes int `json:"lost_database_minutes" jsonschema:"minimum=1,maximum=43200,default=15"`
	// No machine lives longer.
	MaxLifetimeHours int `json:"max_lifetime_hours" jsonschema:"minimum=1,maximum=8760,default=12"`
}

// CostLimits are hard limits in cents of `currency`.
type CostLimits struct {
	// Most that all machines together may cost per hour, those asked for included; 0 allows none.
	MaxHourlySpendCents int `json:"max_hourly_spend_cents" jsonschema:"minimum=0,maximum=1000000000,default=500"`
	// Most that a day may cost; then all cloud workers go until a person allows them again.
	MaxDailySpendCents int `json:"max_daily_spend_cents" jsonschema:"minimum=0,maximum=1000000000,default=5000"`
	// A day that costs this much sends an alert.
	AlertThresholdCents int `json:"alert_threshold_cents" jsonschema:"minimum=0,maximum=1000000000,default=3000"`
	// Most that a period may cost; then all cloud workers go until a person allows them again. null for no such limit.
	MaxPeriodSpendCents *int `json:"max_period_spend_cents,omitempty" jsonschema:"nullable,minimum=1,maximum=1000000000"`
	// The period: a month of the calendar, or a week that begins on Monday, in `timezone`.
	Period fleet.Period `json:"period" jsonschema:"enum=week,enum=month,default=month"`
	// What a machine costs per hour beside its price: disk, address, traffic.
	ExtrasCentsPerMachineHour int `json:"extras_cents_per_machine_hour" jsonschema:"minimum=0,maximum=100000,default=0"`
}

// Billing says how often bills are read; null is never.
type Billing struct {
	// Hours between two readings; each page of Cost Explorer costs 0.01 USD.
	AWSCostExplorerHours *int `json:"aws_cost_explorer_hours" jsonschema:"nullable,minimum=1,maximum=720,default=12" jsonschema_extras:"x-not-honoured=true"`
	// Table of the billing export: project.dataset.table.
	GoogleBillingExport string `json:"google_billing_export,omitempty" jsonschema_extras:"x-not-honoured=true"`
	// Hours between two readings.
	IONOSBillingHours *int `json:"ionos_billing_hours" jsonschema:"nullable,minimum=1,maximum=720,default=6" jsonschema_extras:"x-not-honoured=true"`
}

// Alerts says where alerts go; without channels they are logged.
type Alerts struct {
	// Channels by name. The channel `log`, the function's own log, is there without being listed.
	Channels map[string]Channel `json:"channels,omitempty"`
	// Names of channels for each level.
	Levels Levels `json:"levels"`
	// Where people look: the address of the page, which messages link to.
	PageURL string `json:"page_url,omitempty"`
	// An alert that stands is repeated after this time.
	RepeatMinutes int `json:"repeat_minutes" jsonschema:"minimum=1,maximum=43200,default=60" jsonschema_extras:"x-not-honoured=true"`
}

// Channel is a way to reach people.
type Channel struct {
	Kind string `json:"kind" jsonschema:"required,enum=sns,enum=webhook,enum=log"`
	// Of an sns channel.
	TopicARN string `json:"topic_arn,omitempty"`
	// Of a webhook channel: where it leads. The address is https, or http on the same machine.
	URL *Reference `json:"url,omitempty" jsonschema:"nullable"`
	// Key that a webhook's messages are signed with.
	Secret *Reference `json:"secret,omitempty" jsonschema:"nullable"`
	// How a webhook's messages look: `json` for programs of your own, `slack` for an incoming webhook there, `console` for a notification with title, body, level and link.
	Format string `json:"format" jsonschema:"enum=json,enum=slack,enum=console,default=json"`
}

// Levels are the channels of each level. A level that is left out goes to the log, and an empty list is nowhere.
type Levels struct {
	Info     []string `json:"info,omitempty"`
	Warning  []string `json:"warning,omitempty"`
	Critical []string `json:"critical,omitempty"`
}

// Telemetry is what is measured.
type Telemetry struct {
	// How many metrics are written.
	Metrics string `json:"metrics" jsonschema:"enum=off,enum=summary,enum=per_pool,default=summary" jsonschema_extras:"x-not-honoured=true"`
	// How long logs are kept.
	LogRetentionDays int `json:"log_retention_days" jsonschema:"minimum=1,maximum=3653,default=30" jsonschema_extras:"x-not-honoured=true"`
}
