package fleet

import "time"

// IntentKind is what an intent asks of a cloud.
type IntentKind string

// Kinds of intent. Terminate and suspend are points of no return.
const (
	KindLaunch    IntentKind = "launch"
	KindResume    IntentKind = "resume"
	KindSuspend   IntentKind = "suspend"
	KindTerminate IntentKind = "terminate"
)

// IntentState is how far an intent is.
type IntentState string

// States of an intent. Open and abandoned ones are input to every decision.
const (
	IntentOpen      IntentState = "open"
	IntentDone      IntentState = "done"      // confirmed
	IntentRefused   IntentState = "refused"   // every offer was refused; nothing exists
	IntentAbandoned IntentState = "abandoned" // given up, yet a machine may turn up: still reserved
	IntentClosed    IntentState = "closed"    // abandoned, and two late lists showed nothing
)

// Outcome of one attempt.
type Outcome string

// Outcomes. Pending and unknown are both unanswered.
const (
	OutcomePending Outcome = "pending"
	OutcomeDone    Outcome = "done"
	OutcomeRefused Outcome = "refused"
	OutcomeUnknown Outcome = "unknown"
)

// Attempt is one offer that an intent tries, under a token of its own; calls repeat it unchanged.
type Attempt struct {
	Ordinal int       `json:"ordinal"`
	Launch  *Launch   `json:"launch,omitempty"`  // launch intents only
	First   time.Time `json:"first_at,omitzero"` // when it was first stored
	Calls   int       `json:"calls"`             // calls made or about to be made
	Outcome Outcome   `json:"outcome"`
	Code    string    `json:"code,omitempty"` // why refused or unknown
}

// Unanswered says that a call may have had an effect that nobody has seen.
func (a Attempt) Unanswered() bool { return a.Outcome == OutcomePending || a.Outcome == OutcomeUnknown }

// Intent is a row committed before a cloud call.
type Intent struct {
	ID      string      `json:"id"`
	Kind    IntentKind  `json:"kind"`
	State   IntentState `json:"state"`
	Pool    string      `json:"pool"`
	Worker  string      `json:"worker,omitempty"` // all kinds but launch; empty when an orphan is removed
	Ref     Ref         `json:"ref"`              // all kinds but launch
	Forced  bool        `json:"forced,omitempty"` // terminate although jobs may be in hand
	Why     string      `json:"why,omitempty"`    // code of the reason
	Count   int         `json:"count"`            // machines asked for; 1 for all kinds but launch
	Bound   int         `json:"bound"`            // machines with a row
	Offers  []Offer     `json:"offers,omitempty"` // in the order in which they are tried
	Prices  []Money     `json:"prices,omitempty"` // per hour of each offer, extras included
	Reserve Money       `json:"reserve"`          // per hour and machine: the dearest offer that may be tried
	// Idempotent is the provider's trait when it was made.
	Idempotent bool      `json:"idempotent,omitempty"`
	MinFor     Seconds   `json:"min_charge_seconds"`
	Increment  Seconds   `json:"increment_seconds,omitempty"`
	Created    time.Time `json:"created_at,omitzero"`
	Changed    time.Time `json:"changed_at,omitzero"`
	// ClaimedUntil: no call made before outlives this time, and no other tick acts until then.
	ClaimedUntil time.Time `json:"claimed_until,omitzero"`
	Claim        string    `json:"claim"` // token of the tick that acts
	Attempts     []Attempt `json:"attempts,omitempty"`
	// EmptySince is the begin of the first complete list, begun late enough to count, that showed nothing.
	EmptySince time.Time `json:"empty_since,omitzero"`
}

// Terms on which the machines that it asks for are charged.
func (i Intent) Terms() Terms { return Terms{MinCharge: i.MinFor, Increment: i.Increment} }

// Unbound is how many machines may exist, or come to exist, without a row.
func (i Intent) Unbound() int {
	if i.Kind != KindLaunch || (i.State != IntentOpen && i.State != IntentAbandoned) {
		return 0
	}
	return max(0, i.Count-i.Bound)
}

// Last is the attempt that was made last; nil before the first.
func (i *Intent) Last() *Attempt {
	if len(i.Attempts) == 0 {
		return nil
	}
	return &i.Attempts[len(i.Attempts)-1]
}

// Calls is how many calls of this intent were ever made or about to be made.
func (i Intent) Calls() int {
	n := 0
	for _, a := range i.Attempts {
		n += a.Calls
	}
	return n
}
