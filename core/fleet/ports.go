package fleet

import (
	"context"
	"encoding/json"
	"time"
)

// Objects reads a config from where it is kept. Get with the etag of an earlier answer returns
// ErrNotModified when nothing has changed, ErrNotFound when there is no such object.
type Objects interface {
	Get(ctx context.Context, etag string) (Object, error)
}

// Object is a config file as read.
type Object struct {
	Name     string // for people: a path or URL without secrets
	Bytes    []byte
	ETag     string
	Modified time.Time
}

// Versions is a config that people replace. What Put replaces is kept, the newest few of it.
type Versions interface {
	Objects
	// Put writes a config whole or not at all, only where the etag of the one that is there is still c.Old (empty: there
	// is none): ErrChanged says that it is not, and that nothing was written. The new one's Modified is later than that of
	// the one it replaces, so that no tick takes it for an older one. ErrBadRequest for what Get would refuse to read.
	Put(ctx context.Context, c Change) (Object, error)
	// Kept lists what was replaced, newest first.
	Kept(ctx context.Context) ([]KeptObject, error)
	// Version reads one of them, byte for byte; ErrNotFound when it is not kept.
	Version(ctx context.Context, id string) (Object, error)
}

// Change is a config that shall take another's place.
type Change struct {
	Old   string // etag of what is replaced
	Bytes []byte
	Who   string
	Why   string // may be empty
}

// KeptObject is a config that was in force until it was replaced.
type KeptObject struct {
	ID       string    `json:"version"`
	ETag     string    `json:"etag"`
	Modified time.Time `json:"modified_at"` // when it was written
	Replaced time.Time `json:"replaced_at"`
	Who      string    `json:"who,omitempty"` // replaced it
	Why      string    `json:"why,omitempty"`
}

// Queues reads all queues of one kind of source in one round trip. The answer has one state for
// each queue asked for, in that order; a queue that cannot be read alone is Unknown there, and an
// error means that none could be read. A missing list is an empty one.
type Queues interface {
	Read(ctx context.Context, queues []Queue) ([]QueueState, error)
}

// Compute is one cloud. Launch repeated with an equal Launch answers with the same machines where
// Traits.Idempotent says so. Suspend, Resume and Terminate may be repeated; they return when the
// call was accepted, the effect shows in List. Errors: ErrNoCapacity, ErrQuota, ErrDenied and
// ErrBadRequest prove that nothing happened; ErrNotFound (not from Launch) that the API does not know the machine now;
// ErrThrottled, ErrUnavailable and all others leave the outcome unknown.
type Compute interface {
	// List pages to the end; a partial list is an error. It shows every machine whose sluice:name tag
	// is name, whatever its deployment. The time is the cloud's own clock (a Date header).
	List(ctx context.Context, scope, name string) ([]Machine, time.Time, error)
	// Quote returns prices per hour, in the provider's own currency, of those offers whose price it knows.
	Quote(ctx context.Context, offers []Offer) ([]Quote, error)
	Launch(ctx context.Context, l Launch) ([]Machine, error)
	Suspend(ctx context.Context, m Ref) error
	Resume(ctx context.Context, m Ref) error
	Terminate(ctx context.Context, m Ref) error
}

// Cloud is a linked provider.
type Cloud struct {
	Compute
	Traits Traits
}

// Billing tells what a provider charges. A period may be asked for again; charges are late,
// estimated and corrected, so each answer replaces the last. Amounts are in the provider's own currency. Errors as for Compute.
type Billing interface {
	Charges(ctx context.Context, from, to time.Time) ([]Bill, error)
}

// Alerter is a channel. Send delivers one message and returns in words what the other side answered; a repeat may deliver
// it twice, under the same ID. ErrBadRequest and ErrDenied: this message will never be taken. Any other error means: try
// again later; a *LaterError says when.
type Alerter interface {
	Send(ctx context.Context, m Message) (answer string, err error)
}

// Store is the database, the only clock and the single-writer lock.
type Store interface {
	// Recall reads without a lock, for observing and for dry runs. ErrSchema when migrations do not fit.
	Recall(ctx context.Context) (Memory, error)
	// Transact takes the lock, reads, calls decide at most once and writes its plan, all or nothing.
	// No network call happens inside. The record is stored with the plan where something changed. A plan
	// that is Skipped writes nothing. ErrCommitUnknown: it may or may not be written, act on nothing.
	Transact(ctx context.Context, decide func(Memory) (Plan, Record)) error
	// Begin stores the next attempt of a claimed launch intent before its call is made. ErrClaimLost.
	Begin(ctx context.Context, claim Claim, a Attempt) error
	// Settle stores what a call answered. Machines named in the answer get their rows even where the claim
	// is lost (ErrClaimLost is still returned). Repeats are harmless.
	Settle(ctx context.Context, claim Claim, r Result) error
	// Outbox hands new alerts over to the channels that take their level, closes what waits for a channel that is not
	// among them, and returns what is due, at most limit of each channel: the loudest first, then those tried least,
	// then the oldest. Nobody else gets the same within half a minute.
	Outbox(ctx context.Context, channels []Channel, limit int) ([]Delivery, error)
	// Sent stores how an attempt ended. What has ended stays as it is.
	Sent(ctx context.Context, s Sending) error
}

// Claim proves that a tick may act on an intent.
type Claim struct {
	Intent string
	Token  string // Intent.Claim
}

// Result is what one call answered.
type Result struct {
	Attempt  int // ordinal
	Outcome  Outcome
	Code     string    // of a refusal or of an unknown outcome
	Machines []Machine // of a launch
	// State the intent gets: IntentOpen where more is to come.
	State IntentState
	// CoolOff is stored with a refusal for capacity or quota.
	CoolOff *CoolOff
}

// Record is what is kept of a tick for people.
type Record struct {
	// Snapshot is kept, compressed, for 30 days where the tick changed something; nil where it did not.
	Snapshot *Snapshot
	// Config is the config object that parsed, kept as the last good one when it is new.
	Config *Object
	// Assignments tell the agents of each pool what to run; the VPS's pool is named vps.
	Assignments map[string]Assignment
	Lines       []Line
	Samples     []QueueState
	// Quotes were asked for by this tick; each replaces the stored quote of its offer where it is newer.
	Quotes []Quote
}

// Line is one decision in words and data, as it is logged and stored.
type Line struct {
	ID      string          `json:"id"`
	Event   string          `json:"event"` // scale_up, scale_down, scale_up_refused, tick, …
	Level   Level           `json:"level"`
	Pool    string          `json:"pool,omitempty"`
	Worker  string          `json:"worker,omitempty"`
	Message string          `json:"message"`
	Facts   json.RawMessage `json:"facts,omitempty"` // a JSON object
}

// Assignment is what a worker runs, read by its agent when it registers and with each heartbeat.
type Assignment struct {
	Queues       []Queue `json:"queues"`
	Heartbeat    Seconds `json:"heartbeat_seconds"`
	Visibility   Seconds `json:"visibility_timeout_seconds"`
	MaxAttempts  int     `json:"max_attempts"`
	LostDatabase Seconds `json:"lost_database_seconds"`
	DrainTimeout Seconds `json:"drain_timeout_seconds"`
	// RetryElsewhere: a failed job goes to another worker, if there is one.
	RetryElsewhere bool `json:"retry_elsewhere"`
}

// History answers people's questions about the past.
type History interface {
	// Ticks lists ticks since a time, newest first, at most limit.
	Ticks(ctx context.Context, since time.Time, limit int) ([]TickRecord, error)
	// Lines lists decision lines since a time, newest first; empty filters match everything.
	Lines(ctx context.Context, f LineFilter) ([]LineRecord, error)
	// Snapshot returns what a tick saw and the plan that it made, ErrNotFound where none was kept.
	Snapshot(ctx context.Context, tick string) (Snapshot, []byte, error)
	// Samples lists readings of queues since a time, oldest first, for the shadow report.
	Samples(ctx context.Context, since time.Time) ([]Sample, error)
	// Workers lists all workers that lived since a time, newest first.
	Workers(ctx context.Context, since time.Time) ([]WorkerRecord, error)
	// Deliveries lists alerts by channel: all that wait, and those that were raised since a time, newest first. An alert
	// that no tick has handed over yet waits for a channel without a name.
	Deliveries(ctx context.Context, since time.Time) ([]DeliveryRecord, error)
}

// TickRecord is one tick as stored.
type TickRecord struct {
	ID       string    `json:"id"`
	Function Function  `json:"function"`
	Due      time.Time `json:"due"`
	At       time.Time `json:"at"`
	Changed  bool      `json:"changed"` // a snapshot was kept
	Message  string    `json:"message"`
	Spend    Spend     `json:"spend"`
}

// LineFilter selects decision lines. Code matches any reason, and Queue any queue, inside the facts.
type LineFilter struct {
	Since  time.Time
	Pool   string
	Worker string
	Queue  string
	Code   string
	Tick   string
	Limit  int
}

// LineRecord is a stored line.
type LineRecord struct {
	Line
	Tick string    `json:"tick"`
	At   time.Time `json:"at"`
}

// Sample is what the queues looked like on one tick.
type Sample struct {
	At     time.Time    `json:"at"`
	Queues []QueueState `json:"queues"`
}

// WorkerRecord is a worker with its end.
type WorkerRecord struct {
	Worker
	Ended  time.Time `json:"terminated_at,omitzero"`
	EndWhy string    `json:"end_why,omitempty"`
	Cost   Money     `json:"cost"`
}

// Requests is how people ask; the next tick takes a request up.
type Requests interface {
	Ask(ctx context.Context, r Request) error
}
