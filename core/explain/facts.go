package explain

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"time"

	"sluice/core/fleet"
)

// facts is a JSON object that keeps its order, because people read these lines.
type facts []fact

type fact struct {
	key   string
	value any
}

func (f *facts) add(key string, value any) { *f = append(*f, fact{key, value}) }

// addIf leaves out what is zero: an absent key says the same in fewer bytes.
func (f *facts) addIf(key string, value any) {
	if v := reflect.ValueOf(value); v.IsValid() && !v.IsZero() {
		f.add(key, value)
	}
}

// MarshalJSON implements json.Marshaler.
func (f facts) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, x := range f {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := writePair(&b, x); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func writePair(b *bytes.Buffer, x fact) error {
	key, err := json.Marshal(x.key)
	if err != nil {
		return err
	}
	value, err := json.Marshal(x.value)
	if err != nil {
		return err
	}
	b.Write(key)
	b.WriteByte(':')
	b.Write(value)
	return nil
}

// raw is the object's bytes. What is added to facts is numbers, strings and slices of them, which always marshal.
func (f facts) raw() json.RawMessage {
	b, err := json.Marshal(f)
	if err != nil {
		return json.RawMessage(`{}`)
	}
	return b
}

// number is money as a JSON number of whole currency units with at most four decimals, for people
// and metrics; exact amounts are in the stored snapshot.
func number(m fleet.Money) json.Number {
	s := amount(m)
	return json.Number(strings.TrimSuffix(strings.TrimRight(s, "0"), "."))
}

// reasonFacts are a reason's code and its fields as it declares them; a field of money carries the
// currency in its key.
func (w words) reasonFacts(r fleet.Reason) facts {
	f := facts{{"code", r.Code()}}
	v := reflect.Indirect(reflect.ValueOf(r))
	for i := range v.NumField() {
		key, options, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		value := v.Field(i)
		if (options == "omitempty" || options == "omitzero") && value.IsZero() {
			continue
		}
		f.add(w.factOf(key, value.Interface()))
	}
	return f
}

func (w words) factOf(key string, value any) (string, any) {
	switch value := value.(type) {
	case fleet.Money:
		return w.moneyKey(key), number(value)
	case time.Time:
		return key, value.UTC().Truncate(time.Second)
	}
	return key, value
}

// moneyKey puts the currency in a key, as units are in all others: hour_usd.
func (w words) moneyKey(key string) string {
	if w.currency == "" {
		return key
	}
	return key + "_" + w.currencyKey()
}

func (w words) currencyKey() string {
	if w.currency == "" {
		return "money"
	}
	return strings.ToLower(w.currency)
}

// spend is where the money stands, under the currency's name.
func (w words) spend(s fleet.Spend) facts {
	f := facts{{"hour", number(s.Rate)}}
	f.addIf("reserved", zeroable(s.Reserved))
	f.addIf("hour_limit", zeroable(s.Hourly))
	f.add("today", number(s.Today))
	f.addIf("day_limit", zeroable(s.Daily))
	f.addIf("day_limit_at", s.DailyAt)
	if p := s.Period; p.Name != "" {
		f.add("period", p.Name)
		f.add("in_period", number(p.Spent))
		f.add("period_limit", number(p.Limit))
		f.addIf("period_limit_at", p.At)
		f.addIf("period_unknown", p.Unknown)
	}
	return f
}

// zeroable is the empty number for no money, which addIf leaves out.
func zeroable(m fleet.Money) json.Number {
	if m == 0 {
		return ""
	}
	return number(m)
}

// steps are the reasons of a count, each with what it made of it.
func (w words) steps(steps []fleet.Step) []facts {
	out := make([]facts, len(steps))
	for i, s := range steps {
		out[i] = append(w.reasonFacts(s.Why), fact{"from", s.From}, fact{"to", s.To})
	}
	return out
}

func (w words) offerFacts(o fleet.Offer, price fleet.Money) facts {
	f := facts{{"provider", o.Provider}}
	f.addIf("scope", o.Scope)
	f.addIf("zone", o.Zone)
	f.add("market", o.Market)
	f.add("type", o.Type)
	f.add(w.currencyKey()+"_hour", number(price))
	return f
}

func (w words) rejected(all []fleet.Rejected) []facts {
	out := make([]facts, len(all))
	for i, r := range all {
		out[i] = append(facts{{"offer", r.Offer}}, w.reasonFacts(r.Why)...)
	}
	return out
}
