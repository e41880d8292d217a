package fleet

import "time"

// Function is which of the two entry points a tick belongs to.
type Function string

// Functions.
const (
	Evaluate  Function = "evaluate"
	Reconcile Function = "reconcile"
)

// Snapshot is everything that a decision may look at. It is stored with the decision, and the same
// snapshot gives the same plan, byte for byte.
type Snapshot struct {
	Version  int       `json:"version"` // of this format; 1
	Function Function  `json:"function"`
	Due      time.Time `json:"due"`
	// Limit is the function's own time limit: no call of this tick outlives Memory.Now plus it.
	Limit  Seconds `json:"function_limit_seconds"`
	Config Config  `json:"config"`
	// ConfigAt is the last-modified time of the config that was read.
	ConfigAt time.Time `json:"config_modified_at,omitzero"`
	// ConfigBroken: the config could not be read; Config is the last good one and nothing may grow.
	ConfigBroken string `json:"config_broken,omitempty"`

	Queues   []QueueState `json:"queues,omitempty"`   // sorted by name
	Listings []Listing    `json:"listings,omitempty"` // sorted by place
	// Charges are what providers told reconcile that their days cost so far.
	Charges []Bill            `json:"charges,omitempty"`
	Quotes  []Quote           `json:"quotes,omitempty"` // fresh ones, sorted by offer
	Traits  map[string]Traits `json:"traits,omitempty"` // by provider; a provider without is not linked
	Memory  Memory            `json:"memory"`
}

// QueueState is one reading of a queue.
type QueueState struct {
	Name string `json:"name"`
	// Unknown is why it could not be read. The numbers are then zero, but for those that another source still tells
	// (the job table of a list that cannot be read): the age is judged by them, and nothing else.
	Unknown string  `json:"unknown,omitempty"`
	Depth   int     `json:"depth"`            // jobs that wait, are due and can be claimed
	Running int     `json:"running"`          // claimed and not finished
	Oldest  Seconds `json:"oldest_seconds"`   // age of the oldest waiting job
	NoAge   bool    `json:"no_age,omitempty"` // the source does not tell ages
	// Priorities break Depth down where the source knows them, ascending.
	Priorities []PriorityState `json:"priorities,omitempty"`
}

// PriorityState is the part of a queue's depth that has one priority (1 is most urgent).
type PriorityState struct {
	Priority int     `json:"priority"`
	Depth    int     `json:"depth"`
	Oldest   Seconds `json:"oldest_seconds"`
}

// Memory is what the database remembers, read in one transaction.
type Memory struct {
	Deployment string                 `json:"deployment"` // id made by the first migration
	Now        time.Time              `json:"now"`        // the tick's now: database clock under the lock, never below the last tick's
	LastDue    map[Function]time.Time `json:"last_due,omitempty"`
	ConfigAt   time.Time              `json:"config_modified_at,omitzero"` // newest config ever seen
	Workers    []Worker               `json:"workers,omitempty"`           // not ended; sorted by id
	Ended      []Span                 `json:"ended,omitempty"`             // ledger lines that ended in the 50 hours before the last tick, or since
	Earlier    *Earlier               `json:"earlier,omitempty"`           // what ended before those; nil: not known
	Intents    []Intent               `json:"intents,omitempty"`           // open and abandoned, sorted by id
	Sightings  []Sighting             `json:"sightings,omitempty"`
	Pools      []PoolMemory           `json:"pools,omitempty"` // sorted by name
	CoolOffs   []CoolOff              `json:"cool_offs,omitempty"`
	Quotes     []Quote                `json:"quotes,omitempty"`
	Override   *Override              `json:"override,omitempty"`
	Requests   []Request              `json:"requests,omitempty"`
	Bills      []Bill                 `json:"bills,omitempty"` // of the last days
	// LastGood is the last config that parsed; not part of a snapshot.
	LastGood []byte `json:"-"`
}

// Earlier is what ledger lines that ended before those in memory, and bills before those, cost.
type Earlier struct {
	// From is the begin of the period that the last tick stood in: the cost since then. Zero: there is nothing at all.
	From  time.Time `json:"from,omitzero"`
	Spent Money     `json:"spent"`
}

// PoolMemory is what the rows say about a pool's past.
type PoolMemory struct {
	Pool     string    `json:"pool"`
	LastUp   time.Time `json:"last_up,omitzero"`   // last launch or resume intent that was not refused
	LastDown time.Time `json:"last_down,omitzero"` // last drain for idleness
	// Lost counts workers that ended without having been asked since LastUp; they may be replaced at once.
	Lost int `json:"lost,omitempty"`
	// SlowestBoot is the longest of the last ten boots that registered.
	SlowestBoot Seconds `json:"slowest_boot_seconds,omitempty"`
	// BootFailures counts machines in a row that never registered, LastFailure is when the last was given up.
	BootFailures int       `json:"boot_failures,omitempty"`
	LastFailure  time.Time `json:"last_failure,omitzero"`
	// SpotRefusedSince is when spot began to be refused without a success since.
	SpotRefusedSince time.Time `json:"spot_refused_since,omitzero"`
}

// Override holds the mode at vps_only until a person lifts it.
type Override struct {
	ID  string    `json:"id"`
	At  time.Time `json:"at"`
	Who string    `json:"who"`
	Why string    `json:"why"` // one sentence with the figures
}

// RequestKind is what a person asked for.
type RequestKind string

// Requests, taken up by the next tick.
const (
	RequestDrain  RequestKind = "drain"        // Target is a worker
	RequestAdopt  RequestKind = "adopt"        // Target is a machine id, or "all"
	RequestResume RequestKind = "resume_cloud" // lifts the override
)

// Request is one such wish.
type Request struct {
	ID     string      `json:"id"`
	Kind   RequestKind `json:"kind"`
	Target string      `json:"target,omitempty"`
	Who    string      `json:"who"`
	Why    string      `json:"why"`
	At     time.Time   `json:"at"`
}

// Bill is what a provider says, at one time, that one of its days costs so far; each answer that differs is kept.
type Bill struct {
	Provider string    `json:"provider"`
	Day      string    `json:"day"` // the provider's own day, 2006-01-02 UTC
	Amount   Money     `json:"amount"`
	Currency string    `json:"currency,omitempty"` // of a provider's answer; empty: that of its settings, and ever after the config's
	SeenAt   time.Time `json:"seen_at"`
	// Excess is what this answer adds beyond own accrual of that day and earlier excesses; it
	// counts on the local day of SeenAt.
	Excess Money `json:"excess,omitempty"`
}
