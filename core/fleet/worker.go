package fleet

import "time"

// VPS is the provider of workers that Sluice does not start or stop.
const VPS = "vps"

// Status is what the workers table says; see Worker.Lifecycle for what people see.
type Status string

// Statuses of a worker's row.
const (
	Provisioning Status = "provisioning" // asked for, or resumed, and not yet registered
	Ready        Status = "ready"        // registered; claims jobs
	Draining     Status = "draining"     // claims nothing more
	Suspended    Status = "suspended"
	Terminated   Status = "terminated" // confirmed gone
	Failed       Status = "failed"     // gone without having been asked
)

// Lifecycle is a worker's place in its life, in the words operators use.
type Lifecycle string

// Lifecycle states in order.
const (
	LifeDeallocated  Lifecycle = "deallocated"
	LifeProvisioning Lifecycle = "provisioning"
	LifeWarming      Lifecycle = "warming"
	LifeReady        Lifecycle = "ready"
	LifeProcessing   Lifecycle = "processing"
	LifeCooldown     Lifecycle = "cooldown"
	LifeDraining     Lifecycle = "draining"
	LifeSuspended    Lifecycle = "suspended"
	LifeTerminated   Lifecycle = "terminated"
	LifeFailed       Lifecycle = "failed"
)

// Worker is a row of the workers table: the VPS, or one cloud machine. Zero times mean "not yet".
type Worker struct {
	ID        string   `json:"id"`
	Pool      string   `json:"pool"`
	Queues    []string `json:"queues,omitempty"`
	Place     Place    `json:"place"`
	Zone      string   `json:"zone,omitempty"`
	Machine   string   `json:"machine"` // the provider's id
	Type      string   `json:"type,omitempty"`
	Market    Market   `json:"market,omitempty"`
	Intent    string   `json:"intent,omitempty"`             // the launch intent that it answers
	Spec      string   `json:"spec,omitempty"`               // hash of the launch spec
	Price     Money    `json:"price"`                        // per hour while it runs, extras included
	Idle      Money    `json:"idle_price,omitempty"`         // per hour while it is suspended
	MinCharge Seconds  `json:"min_charge_seconds,omitempty"` // billed even for a shorter life
	Increment Seconds  `json:"increment_seconds,omitempty"`  // time is billed in whole ones of these
	Status    Status   `json:"status"`
	Slots     int      `json:"slots"`
	Jobs      int      `json:"current_jobs"`

	CostFrom    time.Time `json:"cost_from,omitzero"`     // costs since then are not in the ledger: asked for, suspended or resumed
	BootAt      time.Time `json:"boot_at,omitzero"`       // launch or resume
	Registered  time.Time `json:"registered_at,omitzero"` // since BootAt
	Heartbeat   time.Time `json:"last_heartbeat,omitzero"`
	IdleSince   time.Time `json:"idle_since,omitzero"` // last job completed, or registered
	DrainAt     time.Time `json:"drain_at,omitzero"`
	DrainAck    time.Time `json:"drain_ack_at,omitzero"` // the agent has said that it claims nothing more
	DrainWhy    string    `json:"drain_why,omitempty"`   // code of the reason
	Expires     time.Time `json:"expires_at,omitzero"`
	Changed     time.Time `json:"changed_at,omitzero"`   // status, machine or drain; not heartbeats
	AbsentSince time.Time `json:"absent_since,omitzero"` // begin of the first complete list without it
}

// Cloud says that Sluice pays for this worker and may end it.
func (w Worker) Cloud() bool { return w.Place.Provider != VPS }

// Ref addresses the worker's machine.
func (w Worker) Ref() Ref { return Ref{Place: w.Place, Zone: w.Zone, Machine: w.Machine} }

// Busy says that jobs are in hand.
func (w Worker) Busy() bool { return w.Jobs > 0 }

// Accepting says that the worker is, or is about to be, capacity: it boots or claims.
func (w Worker) Accepting() bool { return w.Status == Provisioning || w.Status == Ready }

// Lifecycle is what people see. An idle worker is in cooldown once it has worked.
func (w Worker) Lifecycle() Lifecycle {
	switch w.Status {
	case Provisioning:
		return LifeProvisioning
	case Draining:
		return LifeDraining
	case Suspended:
		return LifeSuspended
	case Terminated:
		return LifeTerminated
	case Failed:
		return LifeFailed
	case Ready:
	}
	if w.Busy() {
		return LifeProcessing
	}
	if w.IdleSince.After(w.Registered) {
		return LifeCooldown
	}
	return LifeReady
}

// Sighting is a tagged machine that no live row or open intent knows.
type Sighting struct {
	Place   Place     `json:"place"`
	Machine Machine   `json:"machine"`
	First   time.Time `json:"first_seen,omitzero"` // Begun of the list
	Last    time.Time `json:"last_seen,omitzero"`
	Price   Money     `json:"price"` // per hour, counted as spend from First
	// Increment is its provider's.
	Increment Seconds `json:"increment_seconds,omitempty"`
}
