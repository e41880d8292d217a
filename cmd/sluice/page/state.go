package page

import (
	"time"

	"sluice/core/fleet"
)

// state is what all visitors see. Two equal ones are equal bytes, so that only changes are sent: ages are left to the
// browser, which counts on from the envelope's time.
type state struct {
	Title    string        `json:"title"`
	Name     string        `json:"name,omitempty"` // of the config
	Empty    bool          `json:"empty"`          // no config and no tick was ever here
	Tick     *tickView     `json:"tick,omitempty"` // the last one
	Late     bool          `json:"late"`           // no tick for so long that nothing may be ticking
	Broken   string        `json:"config_broken,omitempty"`
	Money    *moneyView    `json:"money,omitempty"`
	Override *overrideView `json:"override,omitempty"`
	Queues   queuesView    `json:"queues"`
	Workers  workersView   `json:"workers"`
	Lines    []lineView    `json:"lines"`
	Controls []controlView `json:"controls"`
}

type tickView struct {
	ID       string         `json:"id"`
	Function fleet.Function `json:"function"`
	At       time.Time      `json:"at"`
	Message  string         `json:"message"`
}

type overrideView struct {
	Since time.Time `json:"since"`
	Who   string    `json:"who"`
	Why   string    `json:"why"`
}

// moneyView is where the money stands at this moment; amounts are for people.
type moneyView struct {
	Currency string     `json:"currency"`
	Mode     fleet.Mode `json:"mode"`
	Running  float64    `json:"running"`  // per hour
	Reserved float64    `json:"reserved"` // per hour, of machines asked for
	Hour     float64    `json:"hour"`     // accrued since the full hour
	Today    float64    `json:"today"`
	Day      string     `json:"day"`
	Hourly   float64    `json:"hourly_limit"`
	Daily    float64    `json:"daily_limit"`
	// Asof is the tick that the figures are of, where the config that today's would need is not known.
	AsOf *time.Time `json:"as_of,omitempty"`
}

type queuesView struct {
	At    *time.Time  `json:"at,omitempty"` // of the last reading
	Shown []queueView `json:"shown"`
	More  int         `json:"more"`         // queues beside those shown
	Wait  int         `json:"more_waiting"` // jobs in them
}

type queueView struct {
	Name    string        `json:"name"`
	Unknown string        `json:"unknown,omitempty"`
	Depth   int           `json:"depth"`
	Running int           `json:"running"`
	Oldest  fleet.Seconds `json:"oldest_seconds"`
	NoAge   bool          `json:"no_age,omitempty"`
	Series  seriesView    `json:"series"`
}

// seriesView is the last hour in points; null is a reading that failed, or a time without any.
type seriesView struct {
	At    []int64 `json:"at"` // Unix seconds
	Depth []*int  `json:"depth"`
	Age   []*int  `json:"age"`
}

type workersView struct {
	Total   int          `json:"total"` // of those that live
	Columns []columnView `json:"columns"`
	Pools   []poolCount  `json:"pools"`
	More    int          `json:"more_pools"`
	Match   int          `json:"match"` // of a search: how many it found
}

// columnView is one place in a worker's life.
type columnView struct {
	ID    string     `json:"id"`
	Count int        `json:"count"`
	Cards []cardView `json:"cards"`
}

type cardView struct {
	ID      string          `json:"id"`
	Pool    string          `json:"pool"`
	State   fleet.Lifecycle `json:"state"`
	Place   string          `json:"place"`
	Machine string          `json:"machine,omitempty"`
	Type    string          `json:"type,omitempty"`
	Jobs    int             `json:"jobs"`
	Slots   int             `json:"slots"`
	Cloud   bool            `json:"cloud"`
	Price   float64         `json:"price"`
	Cost    float64         `json:"cost"`
	Since   *time.Time      `json:"since,omitempty"` // in this state, as far as is known
	Heard   *time.Time      `json:"heard,omitempty"`
	Why     string          `json:"why,omitempty"`   // code of the reason to drain or to end
	Count   int             `json:"count,omitempty"` // of machines asked for that have no row yet
}

type poolCount struct {
	Pool   string         `json:"pool"`
	Counts map[string]int `json:"counts"` // by column
}

// lineView is a decision, with those before it that said the same.
type lineView struct {
	Key     string      `json:"key"` // id of the first that said it
	Times   int         `json:"times"`
	From    time.Time   `json:"from"` // when it was said first
	ID      string      `json:"id"`
	Tick    string      `json:"tick"`
	At      time.Time   `json:"at"`
	Event   string      `json:"event"`
	Level   fleet.Level `json:"level"`
	Pool    string      `json:"pool,omitempty"`
	Worker  string      `json:"worker,omitempty"`
	Message string      `json:"message"`
}

type controlView struct {
	ID        string `json:"id"`
	Label     string `json:"label"`
	Help      string `json:"help"`
	PerWorker bool   `json:"per_worker"`
	On        *bool  `json:"on,omitempty"`
}

func viewControls(all []Control) []controlView {
	out := make([]controlView, len(all))
	for i, c := range all {
		out[i] = controlView{ID: c.ID, Label: c.Label, Help: c.Help, PerWorker: c.PerWorker}
		if c.On != nil {
			on := c.On()
			out[i].On = &on
		}
	}
	return out
}

// known is a time as JSON has it: none where it is not known.
func known(times ...time.Time) *time.Time {
	for _, t := range times {
		if !t.IsZero() {
			t = t.UTC().Truncate(time.Second)
			return &t
		}
	}
	return nil
}
