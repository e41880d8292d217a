package fleettest

import (
	"strconv"
	"time"

	"sluice/core/fleet"
)

// earlier: lines that ended in the 50 hours before the last tick come back one by one, older ones as what they cost since
// the begin of the period that the last tick stood in.
func earlier(b *bench) {
	b.want("of an empty ledger", b.recall().Earlier, &fleet.Earlier{})
	since := b.recall().Now.Add(-10 * 24 * time.Hour).Truncate(time.Second)
	spans := longAgo(b.recall().Now, since)
	b.commit(func(_ fleet.Memory, p *fleet.Plan, _ *fleet.Record) { p.Spans = spans })
	if e := b.recall().Earlier; e != nil {
		b.Errorf("no tick has said since when it counts, and it is %s", text(b.T, e))
	}
	var last time.Time
	b.commit(func(m fleet.Memory, p *fleet.Plan, _ *fleet.Record) {
		last = m.Now
		p.Spend.Period = fleet.PeriodSpend{Name: "a period", From: since, To: m.Now.Add(time.Hour)}
	})
	want, single := fleet.Earlier{From: since}, 0
	for _, s := range spans {
		if s.To.After(last.Add(-50 * time.Hour)) {
			single++
			continue
		}
		want.Spent += s.Between(since, last.AddDate(1, 0, 0))
	}
	m := b.recall()
	b.want("of lines that are older", m.Earlier, &want)
	if want.Spent == 0 || single == 0 || len(m.Ended) != single {
		b.Errorf("%d lines are recalled, want %d; the others cost %s", len(m.Ended), single, want.Spent)
	}
}

// longAgo are lines of every kind: before a time, across it, after it, charged beyond it, and of the last hours.
func longAgo(now, since time.Time) []fleet.Span {
	var out []fleet.Span
	for i := range 200 {
		from := since.Add(-48*time.Hour + seconds(25*i*i) + time.Duration(1_234_567*i)*time.Microsecond)
		to := from.Add(seconds(i*7919%1800*60) + time.Duration(7_654_321*i)*time.Microsecond)
		if i%10 == 0 {
			to = since.Add(-seconds(17 * i))
			from = to.Add(-time.Minute)
		}
		if to.After(now) {
			continue
		}
		out = append(out, fleet.Span{
			Machine: "m-" + strconv.Itoa(i), Pool: poolA, Provider: place().Provider, Scope: place().Scope, Price: fleet.Money(i * 104_729 % 3_000_000), From: from, To: to,
			MinCharge: fleet.Seconds(i % 3 * 60), Increment: []fleet.Seconds{0, 1, 60, 3600}[i%4],
		})
	}
	return out
}

func seconds(n int) time.Duration { return fleet.Seconds(n).Duration() }
