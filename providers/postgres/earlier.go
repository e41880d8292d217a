package postgres

import (
	"time"

	"github.com/jackc/pgx/v5"

	"sluice/core/fleet"
)

// ledgerReach is how far back memory has single lines of the ledger. It goes by the last tick, so that sluice_earlier,
// which is another statement, begins exactly where they end.
const ledgerReach = `(SELECT coalesce(max(at), '-infinity') - interval '50 hours' FROM sluice_ticks)`

// queueEarlier reads what is older than the lines in memory.
func (r *recalled) queueEarlier(b *pgx.Batch) {
	b.Queue("SELECT since, something, spent FROM sluice_earlier()").QueryRow(func(row pgx.Row) error {
		var since time.Time
		var some bool
		var spent fleet.Money
		if err := row.Scan(at(&since), &some, &spent); err != nil {
			return err
		}
		if some && since.IsZero() { // nobody has said since when it counts
			return nil
		}
		r.Earlier = &fleet.Earlier{From: since, Spent: spent}
		return nil
	})
}
