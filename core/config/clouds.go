package config

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"sluice/core/fleet"
)

// cloud is what all providers' blocks come down to.
type cloud struct {
	name     string
	enabled  bool
	scope    string
	currency string
	most     int // machines
	types    []string
	typesKey string // the key that a missing type belongs to
	zones    []string
	image    string
	spot     bool
	spotKey  string
	cap      Price // of spot
	prices   map[string]Price
	block    any
}

// clouds are the providers that have a block, by name.
func (f File) clouds() []cloud {
	var out []cloud
	for _, c := range []*cloud{f.CloudProviders.AWS.cloud(), f.CloudProviders.Google.cloud(), f.CloudProviders.IONOS.cloud(), f.CloudProviders.Local.cloud(f.Currency)} {
		if c != nil {
			out = append(out, *c)
		}
	}
	return out
}

// cloud finds a provider's block.
func (f File) cloud(name string) (cloud, bool) {
	for _, c := range f.clouds() {
		if c.name == name {
			return c, true
		}
	}
	return cloud{}, false
}

func (a *AWS) cloud() *cloud {
	if a == nil {
		return nil
	}
	return &cloud{name: "aws", enabled: a.Enabled, scope: a.Region, currency: a.Currency, most: a.MaxInstances,
		types: several(a.InstanceTypes, a.InstanceType), typesKey: "instance_type", zones: []string{""}, image: a.AMIID,
		spot: a.SpotEnabled, spotKey: "spot_enabled", cap: a.SpotMaxPrice, prices: a.Prices, block: a}
}

func (g *Google) cloud() *cloud {
	if g == nil {
		return nil
	}
	return &cloud{name: "google", enabled: g.Enabled, scope: g.Project, currency: g.Currency, most: g.MaxInstances,
		types: several(g.MachineTypes, g.MachineType), typesKey: "machine_type", zones: several(g.Zones, g.Zone), image: g.Image,
		spot: g.Preemptible, spotKey: "preemptible", prices: g.Prices, block: g}
}

func (i *IONOS) cloud() *cloud {
	if i == nil {
		return nil
	}
	prices := map[string]Price{}
	for name, t := range i.ServerTypes {
		if t.PricePerHour != "" {
			prices[name] = t.PricePerHour
		}
		if t.SuspendedPricePerHour != "" {
			prices[name+suspendedKey] = t.SuspendedPricePerHour
		}
	}
	return &cloud{name: "ionos", enabled: i.Enabled, scope: i.DatacenterID, currency: i.Currency, most: i.MaxInstances,
		types: several(nil, i.ServerType), typesKey: "server_type", zones: []string{""}, image: i.Image, spotKey: "enabled", prices: prices, block: i}
}

// suspendedKey ends the key of what a suspended machine of a type costs.
const suspendedKey = ":suspended"

// localType is the one type of machine that this computer has.
const localType = "local"

func (l *Local) cloud(currency string) *cloud {
	if l == nil {
		return nil
	}
	prices := map[string]Price{localType: l.PricePerHour}
	if l.SuspendedPricePerHour != "" {
		prices[localType+suspendedKey] = l.SuspendedPricePerHour
	}
	return &cloud{name: "local", enabled: l.Enabled, currency: currency, most: l.MaxInstances,
		types: []string{localType}, zones: []string{""}, spotKey: "enabled", prices: prices, block: l}
}

// several prefers a list to a single value.
func several(list []string, one string) []string {
	if len(list) > 0 || one == "" {
		return list
	}
	return []string{one}
}

// resolve makes the enabled provider that decisions see.
func (c cloud) resolve() (fleet.Provider, error) {
	settings, err := json.Marshal(c.block)
	return fleet.Provider{Name: c.name, Scope: c.scope, Currency: c.currency, MaxInstances: c.most, Settings: settings}, err
}

// known are the static prices in the config's currency. Processes of this computer may cost nothing; a cloud's machine
// for nothing is a price that nobody knows.
func (c cloud) known(f File) []fleet.Price {
	var out []fleet.Price
	for _, key := range slices.Sorted(maps.Keys(c.prices)) {
		if strings.HasSuffix(key, suspendedKey) {
			continue
		}
		p := fleet.Price{Provider: c.name, Type: key, Market: fleet.OnDemand, Price: f.money(c.prices[key], c.currency)}
		if t, spot := strings.CutSuffix(key, ":spot"); spot {
			p.Type, p.Market = t, fleet.Spot
		}
		if p.Price > 0 || c.name == "local" {
			out = append(out, p)
		}
	}
	return out
}

// suspended are what suspended machines cost in the config's currency; nothing is as unknown as in known.
func (c cloud) suspended(f File) []fleet.SuspendedPrice {
	var out []fleet.SuspendedPrice
	for _, key := range slices.Sorted(maps.Keys(c.prices)) {
		t, ok := strings.CutSuffix(key, suspendedKey)
		if price := f.money(c.prices[key], c.currency); ok && (price > 0 || c.name == "local") {
			out = append(out, fleet.SuspendedPrice{Provider: c.name, Type: t, Price: price})
		}
	}
	return out
}

// money is a price in the config's currency; the schema has seen that it is a number, and the review that there is a rate.
func (f File) money(p Price, currency string) fleet.Money {
	m, err := fleet.ParseMoney(string(p))
	if err != nil {
		return 0
	}
	m, _ = fleet.Config{Currency: f.Currency, ExchangeRates: f.rates()}.Exchange(m, currency)
	return m
}

func (f File) rates() map[string]string {
	if len(f.ExchangeRates) == 0 {
		return nil
	}
	out := make(map[string]string, len(f.ExchangeRates))
	for currency, rate := range f.ExchangeRates {
		out[currency] = string(rate)
	}
	return out
}

// offers are what a provider's own block offers.
func (c cloud) offers(spotPreferred bool, f File) []fleet.Offer {
	markets := []fleet.Market{fleet.OnDemand}
	if spotPreferred && c.spot {
		markets = []fleet.Market{fleet.Spot, fleet.OnDemand}
	}
	var out []fleet.Offer
	for _, m := range markets {
		out = append(out, c.listed(m, c.types, c.zones, c.image, f)...)
	}
	return out
}

func (c cloud) listed(m fleet.Market, types, zones []string, image string, f File) []fleet.Offer {
	var most fleet.Money
	if m == fleet.Spot && c.cap != "" {
		most = f.money(c.cap, c.currency)
	}
	var out []fleet.Offer
	for _, t := range types {
		for _, z := range zones {
			out = append(out, fleet.Offer{Place: fleet.Place{Provider: c.name, Scope: c.scope}, Zone: z, Type: t, Market: m, Image: image, MaxPrice: most})
		}
	}
	return out
}
