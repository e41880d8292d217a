package fleettest

import (
	"time"

	"sluice/core/fleet"
)

func bookCases() []storeCase {
	return []storeCase{
		{"sightings are those of the last plan", sightings},
		{"the override stands until it is lifted", override},
		{"a request waits until it is taken up", requests},
		{"a newer quote replaces an older one", quotesKept},
		{"every answer of a bill is kept", bills},
		{"what ended long ago is a sum of the last tick's period", earlier},
	}
}

func sightings(b *bench) {
	see := func(names ...string) []fleet.Sighting {
		var want []fleet.Sighting
		b.commit(func(m fleet.Memory, p *fleet.Plan, _ *fleet.Record) {
			p.Sightings = nil
			for _, n := range names {
				want = append(want, fleet.Sighting{
					Place: place(), Machine: fleet.Machine{ID: n, State: fleet.MachineRunning, Tags: fleet.Tags{Name: "suite"}},
					First: m.Now.Add(-time.Minute), Last: m.Now, Price: fleet.Cent,
				})
			}
			p.Sightings = want
		})
		return want
	}
	want := see("i-1", "i-2")
	b.want("two", b.recall().Sightings, want)
	want = see("i-2")
	b.want("one is gone", b.recall().Sightings, want)
	see()
	if got := b.recall().Sightings; len(got) != 0 {
		b.Errorf("sightings %s, want none", text(b.T, got))
	}
}

func override(b *bench) {
	var want fleet.Override
	b.commit(func(m fleet.Memory, p *fleet.Plan, _ *fleet.Record) {
		want = fleet.Override{ID: id("override"), At: m.Now, Who: "sluice", Why: "50.10 of 50.00 spent"}
		p.Override = &want
	})
	b.want("imposed", b.recall().Override, &want)
	b.commit(func(_ fleet.Memory, _ *fleet.Plan, _ *fleet.Record) {})
	b.want("still", b.recall().Override, &want)
	b.commit(func(_ fleet.Memory, p *fleet.Plan, _ *fleet.Record) { p.Lifted = true })
	if o := b.recall().Override; o != nil {
		b.Errorf("override %s after it was lifted", text(b.T, o))
	}
}

func requests(b *bench) {
	ask := fleet.Request{ID: id("ask"), Kind: fleet.RequestResume, Who: "ann", Why: "checked the bill"}
	if err := b.Requests.Ask(b.ctx, ask); err != nil {
		b.Fatalf("ask: %v", err)
	}
	got := b.recall().Requests
	if len(got) != 1 || got[0].ID != ask.ID || got[0].Kind != ask.Kind || got[0].Who != "ann" || got[0].Why != ask.Why {
		b.Fatalf("requests %s", text(b.T, got))
	}
	b.near("asked at", got[0].At, b.recall().Now)
	b.commit(func(_ fleet.Memory, _ *fleet.Plan, _ *fleet.Record) {})
	if n := len(b.recall().Requests); n != 1 {
		b.Errorf("%d requests after a tick that did not take it up", n)
	}
	b.commit(func(_ fleet.Memory, p *fleet.Plan, _ *fleet.Record) { p.Taken = []string{ask.ID} })
	if n := len(b.recall().Requests); n != 0 {
		b.Errorf("%d requests after it was taken up", n)
	}
}

func quotesKept(b *bench) {
	quote := func(price fleet.Money, age time.Duration) fleet.Quote {
		var q fleet.Quote
		b.commit(func(m fleet.Memory, _ *fleet.Plan, r *fleet.Record) {
			q = fleet.Quote{Offer: offer(fleet.Spot).Key(), Price: price, At: m.Now.Add(-age)}
			r.Quotes = []fleet.Quote{q}
		})
		return q
	}
	want := quote(5*fleet.Cent, time.Minute)
	b.want("first", b.recall().Quotes, []fleet.Quote{want})
	want = quote(6*fleet.Cent, 0)
	b.want("newer", b.recall().Quotes, []fleet.Quote{want})
	b.commit(func(m fleet.Memory, _ *fleet.Plan, r *fleet.Record) {
		want = fleet.Quote{Offer: want.Offer, At: m.Now, Currency: "CHF"}
		r.Quotes = []fleet.Quote{want}
	})
	b.want("in a currency without a rate", b.recall().Quotes, []fleet.Quote{want})
	quote(7*fleet.Cent, time.Hour)
	b.want("older", b.recall().Quotes, []fleet.Quote{want})
}

func bills(b *bench) {
	bill := func(amount, excess fleet.Money) fleet.Bill {
		var out fleet.Bill
		b.commit(func(m fleet.Memory, p *fleet.Plan, _ *fleet.Record) {
			p.Function = fleet.Reconcile
			out = fleet.Bill{Provider: cloud, Day: m.Now.Format(time.DateOnly), Amount: amount, SeenAt: m.Now, Excess: excess}
			p.Bills = []fleet.Bill{out}
		})
		return out
	}
	first, second := bill(3*fleet.Unit, 0), bill(5*fleet.Unit, fleet.Unit)
	b.want("bills", b.recall().Bills, []fleet.Bill{first, second})
}
