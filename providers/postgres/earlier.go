package postgres

import (
	"time"

	"github.com/jackc/pgx/v5"

	"sluice/core/fleet"
)

// ledgerReach is how far back memory has single lines of the ledger. It goes by the last tick, so that what is read
// beside them, in another statement, begins exactly where they end.
const ledgerReach = `(SELECT coalesce(max(at), '-infinity') - interval '50 hours' FROM sluice_ticks)`

// earlierSQL sums what older lines, and bills that memory does not have, cost in the period that the last tick stood in.
// A line's part is the difference of two amounts since it began, each rounded up to a millionth (fleet.Span.Between).
var earlierSQL = `
WITH reach AS (SELECT ` + ledgerReach + ` AS until),
period AS (SELECT (spend -> 'period' ->> 'from')::timestamptz AS since FROM sluice_ticks ORDER BY at DESC LIMIT 1),
old AS (
	SELECT l.price::numeric AS price, ` + micros("l.from_at", "greatest(p.since, l.from_at)") + ` AS before,
	       greatest(l.min_charge_seconds * 1000000::numeric, CASE WHEN l.increment_seconds = 0 THEN ` + micros("l.from_at", "l.to_at") + `
	           ELSE ceil(` + micros("l.from_at", "l.to_at") + ` / (l.increment_seconds * 1000000)) * l.increment_seconds * 1000000 END) AS charged
	  FROM period p CROSS JOIN reach r JOIN sluice_ledger l ON l.to_at <= r.until AND l.to_at > p.since - interval '1 day')
SELECT (SELECT since FROM period),
       EXISTS (SELECT FROM sluice_ledger l, reach r WHERE l.to_at <= r.until AND l.to_at > r.until - interval '40 days'),
       (SELECT coalesce(sum(ceil(price * charged / 3600000000) - ceil(price * before / 3600000000)) FILTER (WHERE charged > before), 0)::bigint FROM old)
     + (SELECT coalesce(sum(b.excess), 0)::bigint FROM sluice_bills b, period p
         WHERE b.seen_at >= p.since AND b.day <= ((SELECT sluice_clock()) AT TIME ZONE 'UTC')::date - 7)`

// micros are the microseconds from one time to another, exactly.
func micros(from, to string) string {
	return "(extract(epoch FROM " + to + " - " + from + ") * 1000000)::bigint::numeric"
}

// queueEarlier reads what is older than the lines in memory.
func (r *recalled) queueEarlier(b *pgx.Batch) {
	b.Queue(earlierSQL).QueryRow(func(row pgx.Row) error {
		var since time.Time
		var some bool
		var e fleet.Earlier
		if err := row.Scan(at(&since), &some, &e.Spent); err != nil {
			return err
		}
		if e.From = since; since.IsZero() && some {
			return nil // nobody has said since when it counts
		}
		r.Earlier = &e
		return nil
	})
}
