package fleet

import "time"

// Reason is why something was decided: facts with a stable code. Words for it live in explain only,
// and nothing acts on it.
type Reason interface{ Code() string }

// Why a tick did nothing at all.
type (
	// SkipRepeated: this due time was handled already, or a later one was.
	SkipRepeated struct {
		Due  time.Time `json:"due"`
		Last time.Time `json:"last_due"`
	}
	// SkipNotDue: evaluation_interval_seconds has not passed since the last tick.
	SkipNotDue struct {
		Last     time.Time `json:"last_due"`
		Interval Seconds   `json:"interval_seconds"`
	}
	// SkipNotConfigured: no config was ever loaded.
	SkipNotConfigured struct {
		Where string `json:"where"`
	}
)

// Demand: what raises the wanted count.
type (
	// Unobserved: a queue could not be read, so nothing is removed.
	Unobserved struct {
		Queue string `json:"queue"`
		Cause string `json:"cause"`
	}
	// BacklogDepth: depth reached the threshold.
	BacklogDepth struct {
		Queue     string  `json:"queue"`
		Depth     int     `json:"depth"`
		Oldest    Seconds `json:"oldest_s"`
		Threshold int     `json:"threshold"`
	}
	// BacklogAge: the oldest job reached the threshold.
	BacklogAge struct {
		Queue     string  `json:"queue"`
		Depth     int     `json:"depth"`
		Oldest    Seconds `json:"oldest_s"`
		Threshold Seconds `json:"threshold_s"`
	}
	// BacklogStep: a tier of the policy asks for a total.
	BacklogStep struct {
		Queue   string  `json:"queue"`
		Depth   int     `json:"depth"`
		Oldest  Seconds `json:"oldest_s"`
		Tier    int     `json:"tier"` // from 1
		Workers int     `json:"workers"`
	}
	// Awaiting: machines that are booting answer for this backlog.
	Awaiting struct {
		Queue   string   `json:"queue"`
		Depth   int      `json:"depth"`
		Oldest  Seconds  `json:"oldest_s"`
		Booting int      `json:"booting"`
		Workers []string `json:"workers,omitempty"`
		LeftS   Seconds  `json:"left_s"` // until the first of them is given up
	}
	// BelowThreshold: nothing to do.
	BelowThreshold struct {
		Queue  string  `json:"queue"`
		Depth  int     `json:"depth"`
		Oldest Seconds `json:"oldest_s"`
	}
	// FloorBaseline: cloud workers hold the baseline in cloud_first.
	FloorBaseline struct {
		Queue    string `json:"queue"`
		Baseline int    `json:"baseline"`
	}
	// FloorWork: in cloud_first a queue with work and no cloud worker gets one at once.
	FloorWork struct {
		Queue   string `json:"queue"`
		Depth   int    `json:"depth"`
		Running int    `json:"running"`
	}
	// FloorMinReady: the pool's min_ready.
	FloorMinReady struct {
		MinReady int `json:"min_ready"`
	}
	// Idle: workers may go.
	Idle struct {
		Workers int `json:"workers"`
	}
)

// Limits: what lowers the wanted count.
type (
	// LimitMode: vps_only.
	LimitMode struct {
		Mode Mode `json:"mode"`
	}
	// LimitOverride: the daily limit was breached and nobody has lifted the override.
	LimitOverride struct {
		ID    string    `json:"override"`
		Since time.Time `json:"since"`
		Why   string    `json:"cause"`
	}
	// LimitNotEnabled: no queue of the pool is cloud_enabled, or its provider is not.
	LimitNotEnabled struct {
		Pool string `json:"pool"`
	}
	// LimitManual: automatic is false.
	LimitManual struct{}
	// LimitCeiling: max_workers.
	LimitCeiling struct {
		Max       int `json:"max_workers"`
		VPS       int `json:"vps"`
		Active    int `json:"active"`
		Draining  int `json:"draining"`
		Suspended int `json:"suspended"`
	}
	// LimitProvider: max_instances of the provider.
	LimitProvider struct {
		Provider string `json:"provider"`
		Max      int    `json:"max_instances"`
		Running  int    `json:"running"`
	}
	// LimitCooldown: too soon after the last change in the same direction.
	LimitCooldown struct {
		Direction string    `json:"direction"` // up or down
		Last      time.Time `json:"last"`
		LeftS     Seconds   `json:"left_s"`
	}
	// LimitHourly: the run rate would pass the hourly limit.
	LimitHourly struct {
		Running  Money `json:"running"`
		Reserved Money `json:"reserved"`
		Next     Money `json:"next"`
		Limit    Money `json:"limit"`
		Over     Money `json:"over"`
		// HeldBy are the pools that the run rate is of, the dearest first, a few of them.
		HeldBy []string `json:"held_by,omitempty"`
	}
	// LimitDaily: the day could end above the daily limit.
	LimitDaily struct {
		Accrued Money `json:"accrued"`
		Tail    Money `json:"tail"`
		Next    Money `json:"next"`
		Limit   Money `json:"limit"`
		Over    Money `json:"over"`
		// HeldBy are the pools that have spent it, the dearest first, a few of them.
		HeldBy []string `json:"held_by,omitempty"`
	}
	// LimitPeriod: the week or month could end above its limit, or what it has cost is not known yet.
	LimitPeriod struct {
		Period  string `json:"period"`
		Accrued Money  `json:"accrued"`
		Tail    Money  `json:"tail"`
		Next    Money  `json:"next"`
		Limit   Money  `json:"limit"`
		Over    Money  `json:"over"`
		Unknown bool   `json:"unknown,omitempty"`
	}
	// LimitBreaker: machines of this pool keep failing to boot.
	LimitBreaker struct {
		Failures int       `json:"failures"`
		Until    time.Time `json:"until"` // when one probe may be tried
	}
	// LimitFrozen: the config is broken or older than one already seen.
	LimitFrozen struct {
		Cause string `json:"cause"`
	}
	// LimitOffers: no offer can be had; each has its own reason among the rejected.
	LimitOffers struct {
		Offers int `json:"offers"`
	}
)

// Why an offer was passed over.
type (
	// OfferNoPrice: unknown is not free.
	OfferNoPrice struct {
		Currency string `json:"currency,omitempty"` // that it is quoted in, without an exchange rate
	}
	// OfferDearer: another comes first.
	OfferDearer struct {
		Price Money `json:"price"`
		Best  Money `json:"best"`
	}
	// OfferAboveCap: the quote is above spot_max_price.
	OfferAboveCap struct {
		Price Money `json:"price"`
		Cap   Money `json:"cap"`
	}
	// OfferCoolingOff: it was refused lately.
	OfferCoolingOff struct {
		Until   time.Time `json:"until"`
		Refused string    `json:"refused"`
	}
	// OfferPlaceUnknown: the place could not be listed, so nothing new is started there.
	OfferPlaceUnknown struct {
		Cause string `json:"cause"`
	}
	// OfferFull: max_instances of the provider.
	OfferFull struct {
		Max     int `json:"max_instances"`
		Running int `json:"running"`
	}
	// OfferWaitsForSpot: on-demand waits until spot has been refused for long enough.
	OfferWaitsForSpot struct {
		Never bool    `json:"never,omitempty"`
		LeftS Seconds `json:"left_s,omitempty"`
	}
	// OfferOverBudget: it would pass a limit where a cheaper one does not.
	OfferOverBudget struct {
		Price Money `json:"price"`
	}
)

// Why a worker was not removed.
type (
	// KeptBusy: jobs in hand.
	KeptBusy struct {
		Jobs int `json:"jobs"`
	}
	// KeptBooting: not registered yet.
	KeptBooting struct {
		ForS  Seconds `json:"for_s"`
		LeftS Seconds `json:"left_s"`
	}
	// KeptIdle: idle, but not for long enough.
	KeptIdle struct {
		Minutes int `json:"idle_min"`
		Limit   int `json:"idle_limit_min"`
	}
	// KeptDepth: its queue still has work.
	KeptDepth struct {
		Queue string `json:"queue"`
		Depth int    `json:"depth"`
		Below int    `json:"below"`
	}
	// KeptUnknown: a queue that it serves could not be read.
	KeptUnknown struct {
		Queue string `json:"queue"`
		Cause string `json:"cause"`
	}
	// KeptCooldown: too soon after the last removal.
	KeptCooldown struct {
		LeftS Seconds `json:"left_s"`
	}
	// KeptWanted: the policy would launch it again at once.
	KeptWanted struct {
		Want int `json:"want"`
	}
	// KeptMinCharge: its minimum charge is paid anyway.
	KeptMinCharge struct {
		LeftS Seconds `json:"left_s"`
	}
	// KeptDraining: it drains already and still has work or has not acknowledged.
	KeptDraining struct {
		Jobs  int     `json:"jobs"`
		Acked bool    `json:"acknowledged"`
		LeftS Seconds `json:"left_s"` // until it is forced
	}
	// KeptSuspended: it waits for work.
	KeptSuspended struct {
		ForS Seconds `json:"for_s"`
	}
	// KeptEnding: its last call was made; its end is awaited.
	KeptEnding struct {
		Intent string `json:"intent"`
	}
)

// Why a worker drains.
type (
	// DrainIdle: it has had nothing to do.
	DrainIdle struct {
		Minutes int `json:"idle_min"`
	}
	// DrainDry: its queues have been empty and all workers of the pool idle for the whole idle time.
	DrainDry struct {
		Minutes int `json:"idle_min"`
	}
	// DrainMode: the mode or the override allows no cloud worker.
	DrainMode struct {
		Mode     Mode   `json:"mode"`
		Override string `json:"override,omitempty"`
	}
	// DrainNotEnabled: its pool is gone from the config or no longer enabled.
	DrainNotEnabled struct{}
	// DrainSurplus: more run than max_workers allows, or more came than was asked for.
	DrainSurplus struct {
		Max int `json:"max"`
	}
	// DrainExpiry: its maximum lifetime ends soon.
	DrainExpiry struct {
		Expires time.Time `json:"expires"`
	}
	// DrainStale: it was launched from another spec than the config's.
	DrainStale struct {
		Spec string `json:"spec"`
		Want string `json:"want"`
	}
	// DrainUnhealthy: no heartbeat.
	DrainUnhealthy struct {
		SilentS Seconds `json:"silent_s"`
	}
	// DrainBoot: it did not register in time.
	DrainBoot struct {
		AfterS Seconds `json:"after_s"`
		Limit  Seconds `json:"limit_s"`
	}
	// DrainRequested: a person asked.
	DrainRequested struct {
		Who string `json:"who"`
		Why string `json:"cause"`
	}
	// DrainAbandoned: it answers a launch that was given up.
	DrainAbandoned struct {
		Intent string `json:"intent"`
	}
)

// What happens to workers and machines beside the counts.
type (
	// Undrained: it is wanted again, or what made it drain has passed.
	Undrained struct {
		Was string `json:"was"`
	}
	// DrainDone: nothing in hand, acknowledged: it is ended now.
	DrainDone struct {
		Why  string  `json:"drain_why"`
		ForS Seconds `json:"for_s"`
	}
	// DrainForced: the drain took too long; the jobs in hand go back to their queue.
	DrainForced struct {
		Why  string  `json:"drain_why"`
		Jobs int     `json:"jobs"`
		ForS Seconds `json:"for_s"`
	}
	// SuspendedLong: it was suspended for its whole allowance, or its spec is stale.
	SuspendedLong struct {
		Stale bool    `json:"stale,omitempty"`
		ForS  Seconds `json:"for_s"`
	}
	// Gone: confirmed by the provider.
	Gone struct {
		Asked    bool `json:"asked"`
		Terminal bool `json:"terminal"` // listed as ended; otherwise absent from two lists
	}
	// Back: a machine is listed although its row had ended.
	Back struct {
		Machine string `json:"machine"`
	}
	// NotListed: absent from one complete list; not believed yet.
	NotListed struct {
		Since time.Time `json:"since"`
	}
	// AllUnhealthy: so many workers are silent at once that the fault is suspected to be elsewhere.
	AllUnhealthy struct {
		Silent int `json:"silent"`
		Of     int `json:"of"`
	}
)

// What happens to intents.
type (
	// Adopted: a machine was found by its tag.
	Adopted struct {
		Intent  string `json:"intent"`
		Machine string `json:"machine"`
		Cause   string `json:"cause"` // listed or requested
	}
	// Repeated: the stored request is sent again under the same token.
	Repeated struct {
		Intent string     `json:"intent"`
		Kind   IntentKind `json:"kind"`
		Calls  int        `json:"calls"`
	}
	// Waiting: an unanswered call may still take effect.
	Waiting struct {
		Intent string    `json:"intent"`
		Until  time.Time `json:"until"`
	}
	// Abandoned: no longer wanted or no longer safe to repeat; still reserved.
	Abandoned struct {
		Intent string `json:"intent"`
		Cause  string `json:"cause"` // not_wanted or too_old
	}
	// Released: an abandoned intent showed nothing in two late lists.
	Released struct {
		Intent string `json:"intent"`
	}
)

// Orphans and books.
type (
	// OrphanSeen: tagged as ours, no row and no open intent knows it.
	OrphanSeen struct {
		Provider string    `json:"provider"`
		Machine  string    `json:"machine"`
		Foreign  bool      `json:"foreign_deployment,omitempty"`
		First    time.Time `json:"first_seen"`
	}
	// OrphanRemoved: seen twice and old enough.
	OrphanRemoved struct {
		Provider string    `json:"provider"`
		Machine  string    `json:"machine"`
		Intent   string    `json:"intent"` // tag
		First    time.Time `json:"first_seen"`
		Cost     Money     `json:"cost"`
	}
	// OrphansTooMany: the database is suspected, none is removed.
	OrphansTooMany struct {
		Orphans  int `json:"orphans"`
		Machines int `json:"machines"`
	}
	// PlaceUnknown: a place could not be listed.
	PlaceUnknown struct {
		Place string `json:"place"`
		Cause string `json:"cause"`
	}
	// DailyLimit: breach.
	DailyLimit struct {
		Accrued  Money  `json:"accrued"`
		Tail     Money  `json:"tail"`
		Reserved Money  `json:"reserved"`
		Limit    Money  `json:"limit"`
		Source   string `json:"source"` // accrual or bill
		Draining int    `json:"draining"`
		Jobs     int    `json:"jobs_running"`
	}
	// PeriodLimit: breach of the week's or the month's.
	PeriodLimit struct {
		Period   string `json:"period"`
		Accrued  Money  `json:"accrued"`
		Tail     Money  `json:"tail"`
		Reserved Money  `json:"reserved"`
		Limit    Money  `json:"limit"`
		Draining int    `json:"draining"`
		Jobs     int    `json:"jobs_running"`
	}
	// NearDailyLimit: the alert threshold.
	NearDailyLimit struct {
		Accrued   Money     `json:"accrued"`
		Threshold Money     `json:"threshold"`
		Limit     Money     `json:"limit"`
		At        time.Time `json:"limit_at,omitzero"` // when the limit is reached if all goes on as it is
	}
	// ResumedCloud: a person lifted the override.
	ResumedCloud struct {
		Who string `json:"who"`
		Why string `json:"cause"`
	}
	// ResumeRefused: the rest of the day's budget does not cover the cheapest pool for an hour.
	ResumeRefused struct {
		Left     Money `json:"left"`
		Cheapest Money `json:"cheapest"` // per hour
		// Period is the week or month of which too little is left; empty: it is the day.
		Period string `json:"period,omitempty"`
	}
	// TopTier: the highest tier of the policy was reached.
	TopTier struct {
		Queue  string  `json:"queue"`
		Depth  int     `json:"depth"`
		Oldest Seconds `json:"oldest_s"`
	}
	// BootFailing: the breaker opened.
	BootFailing struct {
		Failures int `json:"failures"`
	}
	// ConfigBroken: the last good config is in force and nothing grows.
	ConfigBroken struct {
		Cause string `json:"cause"`
	}
)
