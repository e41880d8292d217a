package postgres_test

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"sluice/core/fleet"
	"sluice/providers/postgres/postgrestest"
)

// daysInSQL works out from the rows alone what each local day cost: Postgres's own calendar and decimals, and nothing of
// what the programs reckon with.
const daysInSQL = `
WITH day AS (
	SELECT d::date AS name, d::timestamp AT TIME ZONE $1 AS begins, (d + interval '1 day')::timestamp AT TIME ZONE $1 AS ends
	  FROM generate_series($2::date, $3::date, interval '1 day') d
), line AS (
	SELECT price::numeric / 3600 AS by_second, from_at, from_at + make_interval(secs => greatest(min_charge_seconds,
	       CASE WHEN increment_seconds > 0 THEN ceil(extract(epoch FROM to_at - from_at) / increment_seconds) * increment_seconds
	       ELSE extract(epoch FROM to_at - from_at) END)::double precision) AS paid_to
	  FROM sluice_ledger
)
SELECT day.name::text, coalesce(sum(
	ceil(round(by_second * extract(epoch FROM least(paid_to, ends) - from_at), 9)) -
	ceil(round(by_second * extract(epoch FROM greatest(from_at, begins) - from_at), 9))
	) FILTER (WHERE least(paid_to, ends) > greatest(from_at, begins)), 0)::bigint
  FROM day LEFT JOIN line ON line.from_at < day.ends GROUP BY day.name ORDER BY day.name`

func TestTheLedgersRowsAloneTellWhatEachDayCost(t *testing.T) {
	t.Parallel()
	for zone, first := range map[string]time.Time{
		"Europe/Paris":     time.Date(2027, 10, 29, 0, 0, 0, 0, time.UTC), // clocks go back on the 31st
		"America/New_York": time.Date(2028, 2, 27, 0, 0, 0, 0, time.UTC),  // the 29th is a leap day
		"UTC":              time.Date(2027, 12, 30, 0, 0, 0, 0, time.UTC), // a month and a year end
	} {
		t.Run(zone, func(t *testing.T) {
			t.Parallel()
			d := postgrestest.New(t)
			spans := ledger(first)
			err := d.Open(t).Transact(t.Context(), func(m fleet.Memory) (fleet.Plan, fleet.Record) {
				return fleet.Plan{Function: fleet.Evaluate, Due: m.Now, Now: m.Now, Spans: spans}, fleet.Record{}
			})
			if err != nil {
				t.Fatal(err)
			}
			rows, err := d.Connect(t).Query(t.Context(), daysInSQL, zone, first.AddDate(0, 0, -1), first.AddDate(0, 0, 8))
			if err != nil {
				t.Fatal(err)
			}
			var sum, whole fleet.Money
			for rows.Next() {
				var name string
				var sql, want fleet.Money
				if err := rows.Scan(&name, &sql); err != nil {
					t.Fatal(err)
				}
				from, to := localDay(t, name, zone)
				for _, s := range spans {
					want += s.Between(from, to)
				}
				if sum += sql; sql != want {
					t.Errorf("the rows say %s for %s, the programs %s", sql, name, want)
				}
			}
			for _, s := range spans {
				whole += s.Cost()
			}
			if rows.Err() != nil || sum != whole || whole == 0 {
				t.Errorf("the days add up to %s, the lines to %s (%v)", sum, whole, rows.Err())
			}
		})
	}
}

// ledger are lines of a few days in every way of counting.
func ledger(first time.Time) []fleet.Span {
	r := rand.New(rand.NewPCG(uint64(first.Unix()), 1))
	var out []fleet.Span
	for i := range 300 {
		from := first.Add(time.Duration(r.Int64N(int64(4 * 24 * time.Hour)))).Truncate(time.Microsecond)
		out = append(out, fleet.Span{
			Machine: "m-" + strconv.Itoa(i), Pool: "ocr", Provider: "aws", Price: fleet.Money(r.Int64N(3_000_000)), From: from,
			To: from.Add(time.Duration(r.Int64N(int64(40 * time.Hour)))).Truncate(time.Microsecond), MinCharge: fleet.Seconds(r.IntN(3) * 60),
			Increment: []fleet.Seconds{0, 1, 60, 3600}[r.IntN(4)],
		})
	}
	return out
}

func localDay(t *testing.T, name, zone string) (from, to time.Time) {
	t.Helper()
	loc, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	from, err = time.ParseInLocation(time.DateOnly, name, loc)
	if err != nil {
		t.Fatal(err)
	}
	return from, from.AddDate(0, 0, 1)
}
