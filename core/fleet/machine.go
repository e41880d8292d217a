package fleet

import (
	"encoding/json"
	"time"
)

// MachineState is a provider's state, reduced to what decisions need.
type MachineState string

// Machine states. Only MachineGone is terminal.
const (
	MachinePending   MachineState = "pending"
	MachineRunning   MachineState = "running"
	MachineStopping  MachineState = "stopping" // on its way to suspended or gone; still costs
	MachineSuspended MachineState = "suspended"
	MachineGone      MachineState = "gone"
)

// Tags are written in the launch call itself, so that no machine is ever without an owner.
type Tags struct {
	Name       string    `json:"name"`             // sluice:name, the config's name
	Deployment string    `json:"deployment"`       // sluice:deployment, the database's id
	Pool       string    `json:"pool"`             // sluice:pool
	Intent     string    `json:"intent"`           // sluice:intent
	Spec       string    `json:"spec"`             // sluice:spec, hash of what it was launched from
	Expires    time.Time `json:"expires,omitzero"` // sluice:expires, RFC 3339
}

// Machine is what a cloud's API lists.
type Machine struct {
	ID       string       `json:"id"`
	State    MachineState `json:"state"`
	Zone     string       `json:"zone,omitempty"`
	Type     string       `json:"type,omitempty"`
	Market   Market       `json:"market,omitempty"`
	Launched time.Time    `json:"launched,omitzero"` // the provider's clock; informational
	Tags     Tags         `json:"tags"`
}

// Listing is one complete list of a place, or the reason why there is none.
type Listing struct {
	Place    Place     `json:"place"`
	Begun    time.Time `json:"begun,omitzero"` // database clock, read before the call left
	Machines []Machine `json:"machines,omitempty"`
	Unknown  string    `json:"unknown,omitempty"` // why the list is not complete; Machines is then empty
}

// Complete says that absence from the list means something.
func (l Listing) Complete() bool { return l.Unknown == "" }

// Ref addresses one machine of a place.
type Ref struct {
	Place   Place  `json:"place"`
	Zone    string `json:"zone,omitempty"`
	Machine string `json:"machine"`
}

// Launch is one call for up to Count machines (at least one). It is stored before the call is
// made; a provider turns the same Launch into the same bytes every time.
type Launch struct {
	Token    string  `json:"token"` // idempotency token
	Count    int     `json:"count"`
	Offer    Offer   `json:"offer"`
	Tags     Tags    `json:"tags"`
	Lifetime Seconds `json:"lifetime_seconds"`
	// Settings is the provider's block of the config as it was then (Provider.Settings).
	Settings json.RawMessage `json:"settings,omitempty"`
}
