package fleet

import (
	"encoding/json"
	"time"
)

// Plan is what one tick will write down and then do.
type Plan struct {
	Function Function  `json:"function"`
	Due      time.Time `json:"due"` // never after Now
	Now      time.Time `json:"now"`
	// Skipped ends the tick with success and nothing written.
	Skipped Reason `json:"-"`

	Pools []PoolPlan `json:"pools,omitempty"`
	Notes []Note     `json:"notes,omitempty"` // what happened beside the pools
	Spend Spend      `json:"spend"`

	Intents   []Intent       `json:"intents,omitempty"` // new and changed ones, as they shall be stored
	Calls     []Call         `json:"calls,omitempty"`   // made after the commit, each for an intent claimed here
	Adopted   []Worker       `json:"adopted,omitempty"` // rows for machines that had none
	Workers   []WorkerChange `json:"workers,omitempty"`
	Spans     []Span         `json:"spans,omitempty"`     // added to the ledger
	Sightings []Sighting     `json:"sightings,omitempty"` // all that remain; others are forgotten
	Override  *Override      `json:"override,omitempty"`  // imposed now
	Lifted    bool           `json:"lifted,omitempty"`    // the override ends
	Taken     []string       `json:"taken,omitempty"`     // requests taken up
	Alerts    []Alert        `json:"alerts,omitempty"`
	Bills     []Bill         `json:"bills,omitempty"` // seen now, by reconcile
}

// PoolPlan is a decision about one pool. Steps chain from Have to Want, so the explanation cannot lie.
type PoolPlan struct {
	Pool string `json:"pool"`
	Have int    `json:"have"` // cloud workers that boot or claim, asked-for ones included
	Want int    `json:"want"`
	// Hybrid is what would be wanted if nothing but the mode and the override were lifted.
	Hybrid   int        `json:"hybrid"`
	Steps    []Step     `json:"steps,omitempty"`
	Kept     []Kept     `json:"kept,omitempty"`     // why each worker was not removed
	Rejected []Rejected `json:"rejected,omitempty"` // why each offer was passed over
	Undrain  []string   `json:"undrain,omitempty"`  // workers, in ladder order
	Resume   []string   `json:"resume,omitempty"`   // workers
	Launch   int        `json:"launch,omitempty"`   // machines
	Offer    *Offer     `json:"offer,omitempty"`    // tried first
	Price    Money      `json:"price,omitempty"`    // per hour, extras included
	Drain    []Drained  `json:"drain,omitempty"`
}

// Step is one rule's effect on the wanted count; From equals To where a rule only has something to say.
type Step struct {
	From int
	To   int
	Why  Reason
}

// Kept says why a worker was not removed.
type Kept struct {
	Worker string
	Why    Reason
}

// Drained says why a worker begins to drain.
type Drained struct {
	Worker string
	Why    Reason
}

// Rejected says why an offer was passed over.
type Rejected struct {
	Offer string // Offer.Key
	Why   Reason
}

// Note is something worth a line that is not about one pool's count.
type Note struct {
	Level  Level
	Pool   string
	Worker string
	Why    Reason
}

// Call is one action after the commit.
type Call struct {
	Intent string `json:"intent"`
	Repeat bool   `json:"repeat,omitempty"` // the stored request again, same token
}

// WorkerChange is a row as it shall be; it is written only where the status is still From.
// A worker that becomes Terminated or Failed gives its jobs back to their queues.
type WorkerChange struct {
	From   Status `json:"from"`
	Worker Worker `json:"worker"`
	Why    string `json:"why,omitempty"` // code of the reason
}

// Spend is where the money stands at the tick's now.
type Spend struct {
	Rate     Money  `json:"rate"`     // per hour, of all machines not confirmed gone
	Reserved Money  `json:"reserved"` // per hour, of machines asked for without a row
	Today    Money  `json:"today"`    // accrued on Day, the larger of own books and bill
	Tail     Money  `json:"tail"`     // what would still accrue today if everything were drained now
	Day      string `json:"day"`      // 2006-01-02 in the config's zone
	Hourly   Money  `json:"hourly_limit"`
	Daily    Money  `json:"daily_limit"`
	// DailyAt is when the day's limit is reached if all goes on as it is, what is reserved included; zero: not today.
	DailyAt time.Time   `json:"daily_limit_at,omitzero"`
	Period  PeriodSpend `json:"period,omitzero"` // where it has a limit
}

// PeriodSpend is where the money of a week or a month stands.
type PeriodSpend struct {
	Name  string    `json:"name"` // of a month 2006-01, of a week 2006-W01, in the config's zone
	From  time.Time `json:"from"`
	To    time.Time `json:"to"`
	Spent Money     `json:"spent"`
	Tail  Money     `json:"tail"` // what would still accrue in it if everything were drained now
	Limit Money     `json:"limit"`
	At    time.Time `json:"limit_at,omitzero"` // when it is reached if all goes on as it is; zero: not in this period
	// Unknown: what was spent before the ledger's reach is not known yet, and nothing more is spent until it is.
	Unknown bool `json:"unknown,omitempty"`
}

// MarshalReason writes a reason as its facts with its code among them.
func MarshalReason(r Reason) ([]byte, error) {
	if r == nil {
		return []byte("null"), nil
	}
	facts, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	code, _ := json.Marshal(r.Code())
	out := append([]byte(`{"code":`), code...)
	if len(facts) > 2 { // more than {}
		out = append(append(out, ','), facts[1:len(facts)-1]...)
	}
	return append(out, '}'), nil
}

// Why wraps a reason so that encoding/json writes it with MarshalReason.
type Why struct{ Reason }

// MarshalJSON implements json.Marshaler.
func (w Why) MarshalJSON() ([]byte, error) { return MarshalReason(w.Reason) }

// MarshalJSON implements json.Marshaler.
func (s Step) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		From int `json:"from"`
		To   int `json:"to"`
		Why  Why `json:"why"`
	}{s.From, s.To, Why{s.Why}})
}

// MarshalJSON implements json.Marshaler.
func (k Kept) MarshalJSON() ([]byte, error) { return marshalWorkerWhy(k.Worker, k.Why) }

// MarshalJSON implements json.Marshaler.
func (d Drained) MarshalJSON() ([]byte, error) { return marshalWorkerWhy(d.Worker, d.Why) }

func marshalWorkerWhy(worker string, why Reason) ([]byte, error) {
	return json.Marshal(struct {
		Worker string `json:"worker"`
		Why    Why    `json:"why"`
	}{worker, Why{why}})
}

// MarshalJSON implements json.Marshaler.
func (r Rejected) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Offer string `json:"offer"`
		Why   Why    `json:"why"`
	}{r.Offer, Why{r.Why}})
}

// MarshalJSON implements json.Marshaler.
func (n Note) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Level  Level  `json:"level"`
		Pool   string `json:"pool,omitempty"`
		Worker string `json:"worker,omitempty"`
		Why    Why    `json:"why"`
	}{n.Level, n.Pool, n.Worker, Why{n.Why}})
}
