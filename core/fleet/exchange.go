package fleet

import (
	"fmt"
	"math/big"
)

// Exchange turns an amount of a currency into the config's, by its static rate. It is the one place where that happens:
// to prices of the settings when they are parsed, to quotes and bills when a provider has answered. What is finer than a
// millionth is rounded up, as everywhere. A currency without a rate is an error: its amounts are unknown, not zero.
func (c Config) Exchange(m Money, currency string) (Money, error) {
	if currency == c.Currency || currency == "" {
		return m, nil
	}
	rate, ok := new(big.Rat).SetString(c.ExchangeRates[currency])
	if !ok {
		return 0, fmt.Errorf("no rate for %s; expected what one %s is worth in %s in exchange_rates.%s", currency, currency, c.Currency, currency)
	}
	rate.Mul(rate, big.NewRat(int64(m), 1))
	q, rest := new(big.Int).QuoRem(rate.Num(), rate.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	if !q.IsInt64() {
		return 0, fmt.Errorf("%s %s: too large in %s", m, currency, c.Currency)
	}
	return Money(q.Int64()), nil
}

// Quoted are a provider's quotes in the config's currency. One that cannot be turned into it has no price and keeps its
// currency, which tells why nothing of it is launched.
func (c Config) Quoted(provider string, quotes []Quote) []Quote {
	out := make([]Quote, len(quotes))
	for i, q := range quotes {
		currency := c.currencyOf(provider, q.Currency)
		price, err := c.Exchange(q.Price, currency)
		out[i] = Quote{Offer: q.Offer, Price: price, At: q.At}
		if err != nil {
			out[i].Price, out[i].Currency = 0, currency
		}
	}
	return out
}

// Billed are a provider's bills in the config's currency; one that cannot be turned into it is an error.
func (c Config) Billed(provider string, bills []Bill) ([]Bill, error) {
	out := make([]Bill, len(bills))
	for i, b := range bills {
		amount, err := c.Exchange(b.Amount, c.currencyOf(provider, b.Currency))
		if err != nil {
			return nil, fmt.Errorf("bill of %s: %w", b.Day, err)
		}
		out[i] = b
		out[i].Amount, out[i].Currency = amount, ""
	}
	return out, nil
}

// currencyOf is what the answer says that it is in, else what the provider's settings say.
func (c Config) currencyOf(provider, told string) string {
	if p, ok := c.Provider(provider); ok && told == "" {
		return p.Currency
	}
	return told
}
