package tick_test

import (
	"strings"
	"testing"

	"sluice/core/fleet"
	"sluice/core/tick"
)

// foreign is a provider that bills in a currency of its own and quotes in another, which may be the same.
func foreign(bills, quotes string) func(*setting) {
	return func(s *setting) {
		s.config.Currency, s.config.ExchangeRates = "USD", map[string]string{"EUR": "1.1133"}
		s.config.Providers[0].Currency, s.config.Prices = bills, nil
		s.cloud.prices["c6i"], s.cloud.currency = 100_001, quotes
	}
}

func TestQuotesAreExchangedOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		bills, quotes string
		price         fleet.Money // 0: nothing is launched
	}{
		{"in the config's currency they stay as they are", "USD", "", 100_001},
		{"in the provider's they are exchanged, and rounded up", "EUR", "", 111_332}, // 0.100001 x 1.1133 = 0.1113311133
		{"in the one that the answer names", "USD", "EUR", 111_332},
		{"which is not exchanged for the provider's", "EUR", "USD", 100_001},
		{"without a rate there is no price", "USD", "CHF", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := set(t, busy, foreign(c.bills, c.quotes))
			r := must(t, s)
			pool := r.Plan.Pools[0]
			if (c.price > 0) != (pool.Launch > 0) || pool.Price != c.price {
				t.Fatalf("launched %d at %s, want a price of %s: %s", pool.Launch, pool.Price, c.price, marshal(t, pool))
			}
			kept := s.store.records[0].Quotes
			if len(kept) != 1 || kept[0].Price != c.price || (kept[0].Currency == "") != (c.price > 0) {
				t.Errorf("kept %s", marshal(t, kept))
			}
			if c.price == 0 && !strings.Contains(string(marshal(t, pool.Rejected)), `{"code":"offer.no_price","currency":"CHF"}`) {
				t.Errorf("rejected %s", marshal(t, pool.Rejected))
			}
		})
	}
}

func TestBillsAreExchangedOnce(t *testing.T) {
	t.Parallel()
	reconcile := func(bills ...fleet.Bill) (tick.Report, error) {
		s := set(t, foreign("EUR", ""), func(s *setting) {
			s.world.Billing = map[string]fleet.Billing{"aws": billing{bills: bills}}
		})
		return tick.Reconcile(t.Context(), s.world, noon)
	}
	r, err := reconcile(fleet.Bill{Provider: "aws", Day: "2027-01-14", Amount: 3}, fleet.Bill{Provider: "aws", Day: "2027-01-13", Amount: 3, Currency: "USD"})
	if err != nil || len(r.Plan.Bills) != 2 || r.Plan.Bills[0].Amount != 4 || r.Plan.Bills[1].Amount != 3 {
		t.Errorf("3 millionths of EUR are 3.3399 of USD, which is 4: %v, %s", err, marshal(t, r.Plan.Bills))
	}
	r, err = reconcile(fleet.Bill{Provider: "aws", Day: "2027-01-14", Amount: 3, Currency: "CHF"})
	if err == nil || !strings.Contains(err.Error(), "exchange_rates.CHF") || len(r.Plan.Bills) != 0 {
		t.Errorf("a bill without a rate is unknown, not zero: %v, %s", err, marshal(t, r.Plan.Bills))
	}
}
