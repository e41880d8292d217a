package postgres

import (
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// when scans a timestamp that may be NULL into a time in UTC; NULL is the zero time.
type when time.Time

// ScanTimestamptz implements pgtype.TimestamptzScanner.
func (w *when) ScanTimestamptz(v pgtype.Timestamptz) error {
	*w = when{}
	if v.Valid && v.InfinityModifier == pgtype.Finite {
		*w = when(v.Time.UTC())
	}
	return nil
}

// at is where a timestamp column is scanned to.
func at(t *time.Time) *when { return (*when)(t) }

// stamp is a time as an argument; the zero time is NULL.
func stamp(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC()
}

// orNull is a string as an argument; the empty one is NULL.
func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// encode writes an argument that the server reads as JSON.
func encode(v any) (string, error) {
	b, err := json.Marshal(v)
	return string(b), err
}

// list queues a query that fills a slice.
func list[T any](b *pgx.Batch, to *[]T, sql string, args []any, scan func(pgx.Rows, *T) error) {
	b.Queue(sql, args...).Query(func(rows pgx.Rows) error {
		return each(rows, func(r pgx.Rows) error {
			var v T
			if err := scan(r, &v); err != nil {
				return err
			}
			*to = append(*to, v)
			return nil
		})
	})
}

// one queues a query of at most one row.
func one(b *pgx.Batch, sql string, args []any, to ...any) {
	b.Queue(sql, args...).Query(func(rows pgx.Rows) error {
		return each(rows, func(r pgx.Rows) error { return r.Scan(to...) })
	})
}
