package fleet

import "time"

// Market is how a machine is bought.
type Market string

// Markets. A spot machine may be taken away at short notice.
const (
	OnDemand Market = "on_demand"
	Spot     Market = "spot"
)

// Place is what one List call covers: a provider and its region, project, data centre or host.
type Place struct {
	Provider string `json:"provider"`
	Scope    string `json:"scope,omitempty"`
}

func (p Place) String() string {
	if p.Scope == "" {
		return p.Provider
	}
	return p.Provider + "/" + p.Scope
}

// Offer is something that could be launched. Its price is a Quote, since prices change and offers do not.
type Offer struct {
	Place
	Zone   string `json:"zone,omitempty"` // empty: the provider chooses
	Type   string `json:"type"`
	Market Market `json:"market"`
	Image  string `json:"image,omitempty"`
	// MaxPrice per hour, zero for none: a dearer quote is passed over (spot_max_price).
	MaxPrice Money `json:"max_price,omitempty"`
}

// Key names an offer for quotes and cool-offs: provider, scope, zone, type and market.
func (o Offer) Key() string {
	return o.Provider + "/" + o.Scope + "/" + o.Zone + "/" + o.Type + "/" + string(o.Market)
}

// Quote is the price of an offer per hour, as of At. A missing quote means no launch: unknown is not free.
type Quote struct {
	Offer string    `json:"offer"` // Offer.Key
	Price Money     `json:"price"`
	At    time.Time `json:"at"`
	// Currency of the price: from a provider, empty is that of its settings. In memory it is the one that the config has
	// no rate for, and there is no price.
	Currency string `json:"currency,omitempty"`
}

// CoolOff keeps an offer from being tried again until a time, after it was refused for capacity or quota.
type CoolOff struct {
	Offer string    `json:"offer"` // Offer.Key
	Until time.Time `json:"until"`
	Count int       `json:"count"` // refusals in a row, for the exponent
	Code  string    `json:"code"`  // no_capacity, quota, …
}

// Traits are what the protocol must know of a provider.
type Traits struct {
	// Idempotent: a repeated launch with the same token answers with the same machines for at least 15 minutes.
	Idempotent bool `json:"idempotent"`
	// Visibility is how long a created machine may be missing from complete lists.
	Visibility Seconds `json:"visibility_seconds"`
	// MinCharge is billed even for a shorter life.
	MinCharge Seconds `json:"min_charge_seconds"`
	// Increment: time is billed in whole ones of these, a begun one included; zero: as it passes.
	Increment Seconds `json:"increment_seconds,omitempty"`
	// MaxBatch is the most machines one launch call can ask for; at least 1.
	MaxBatch int `json:"max_batch"`
	// Suspends says that the provider can suspend and resume machines.
	Suspends bool `json:"suspends"`
	// BoundsLifetime says that the provider itself ends a machine at its expiry, whatever else is dead.
	BoundsLifetime bool `json:"bounds_lifetime"`
}

// Seconds is a duration in whole seconds; it is a number in JSON.
type Seconds int64

// Duration converts for arithmetic with times.
func (s Seconds) Duration() time.Duration { return time.Duration(s) * time.Second }
