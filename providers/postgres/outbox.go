package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"sluice/core/fleet"
)

const (
	// handOver gives new alerts to the channels that take their level; $1 are the channels.
	handOver = `WITH handed AS (
			UPDATE sluice_alerts SET sent_at = sluice_clock() WHERE key IN (
				SELECT a.key FROM sluice_alerts a WHERE a.sent_at IS NULL ORDER BY a.at, a.key LIMIT 1000 FOR UPDATE SKIP LOCKED)
			RETURNING key, level, sent_at
		)
		INSERT INTO sluice_deliveries (alert, channel, next_at)
		SELECT h.key, c ->> 'name', h.sent_at FROM handed h JOIN jsonb_array_elements($1::jsonb) c ON c -> 'levels' ? h.level
		ON CONFLICT DO NOTHING`

	closeDeliveries = `UPDATE sluice_deliveries SET state = 'closed' WHERE (alert, channel) IN (
		SELECT d.alert, d.channel FROM sluice_deliveries d WHERE d.state = 'waiting' AND d.channel <> ALL ($1::text[]) FOR UPDATE SKIP LOCKED)`

	forgetChannels = "DELETE FROM sluice_channels WHERE name <> ALL ($1::text[])"

	loudness = "array_position(ARRAY['critical', 'warning', 'info'], a.level)"

	// dueDeliveries claims what it returns: two ticks that announce at once send nothing twice.
	dueDeliveries = `WITH due AS MATERIALIZED (
			SELECT d.alert, d.channel, coalesce(s.failures, 0) AS failures FROM unnest($1::text[]) c (name)
			LEFT JOIN sluice_channels s ON s.name = c.name
			CROSS JOIN LATERAL (
				SELECT d.alert, d.channel FROM sluice_deliveries d JOIN sluice_alerts a ON a.key = d.alert
				WHERE d.channel = c.name AND d.state = 'waiting' AND d.next_at <= sluice_clock()
				ORDER BY ` + loudness + `, d.attempts, a.at, a.key LIMIT $2 FOR UPDATE OF d SKIP LOCKED) d
			WHERE coalesce(s.held_until, '-infinity') <= sluice_clock()
		), claimed AS (
			UPDATE sluice_deliveries d SET next_at = sluice_clock() + interval '30 seconds'
			FROM due WHERE d.alert = due.alert AND d.channel = due.channel
			RETURNING d.alert, d.channel, d.attempts, due.failures
		)
		SELECT a.key, a.level, a.title, a.facts, a.at, c.channel, c.attempts, c.failures FROM claimed c JOIN sluice_alerts a ON a.key = c.alert
		ORDER BY c.channel, ` + loudness + `, c.attempts, a.at, a.key`

	endAttempt = `UPDATE sluice_deliveries SET state = $3, attempts = attempts + 1, tried_at = sluice_clock(), answer = $4,
		next_at = sluice_clock() + $5::interval WHERE alert = $1 AND channel = $2 AND state = 'waiting'`

	channelAnswered = "DELETE FROM sluice_channels WHERE name = $1"

	channelFailed = `INSERT INTO sluice_channels AS s (name, failures, held_until) VALUES ($1, 1, sluice_clock() + $2::interval)
		ON CONFLICT (name) DO UPDATE SET failures = s.failures + 1, held_until = excluded.held_until`
)

// Outbox implements fleet.Store. Its statements are one transaction, in one round trip.
func (d *DB) Outbox(ctx context.Context, channels []fleet.Channel, limit int) ([]fleet.Delivery, error) {
	text, err := encode(append([]fleet.Channel{}, channels...))
	if err != nil {
		return nil, err
	}
	names := make([]string, len(channels))
	for i, c := range channels {
		names[i] = c.Name
	}
	var out []fleet.Delivery
	b := &pgx.Batch{}
	b.Queue(handOver, text)
	b.Queue(closeDeliveries, names)
	b.Queue(forgetChannels, names)
	list(b, &out, dueDeliveries, []any{names, limit}, func(row pgx.Rows, x *fleet.Delivery) error {
		return row.Scan(&x.Key, &x.Level, &x.Title, &x.Facts, at(&x.At), &x.Channel, &x.Attempts, &x.Failures)
	})
	err = d.batch(ctx, "read outbox", b)
	return out, err
}

// Sent implements fleet.Store. A channel that refuses one alert has answered.
func (d *DB) Sent(ctx context.Context, s fleet.Sending) error {
	b := &pgx.Batch{}
	b.Queue(endAttempt, s.Key, s.Channel, string(s.State), s.Answer, s.Retry)
	if s.State == fleet.DeliveryWaiting {
		b.Queue(channelFailed, s.Channel, s.Hold)
	} else {
		b.Queue(channelAnswered, s.Channel)
	}
	return d.batch(ctx, "mark alert", b)
}

// Deliveries implements fleet.History.
func (d *DB) Deliveries(ctx context.Context, since time.Time) ([]fleet.DeliveryRecord, error) {
	var out []fleet.DeliveryRecord
	err := d.query(ctx, "read alerts", `SELECT a.key, a.level, a.title, a.facts, a.at, coalesce(d.channel, ''), coalesce(d.state, 'waiting'), coalesce(d.attempts, 0),
			d.tried_at, CASE WHEN d.state = 'waiting' THEN greatest(d.next_at, s.held_until) END, coalesce(d.answer, '')
		FROM sluice_alerts a LEFT JOIN sluice_deliveries d ON d.alert = a.key LEFT JOIN sluice_channels s ON s.name = d.channel
		WHERE (d.alert IS NOT NULL OR a.sent_at IS NULL)
		AND (coalesce(d.state, 'waiting') = 'waiting' OR a.at >= coalesce($1, '-infinity'::timestamptz))
		ORDER BY a.at DESC, a.key, d.channel`, []any{stamp(since)},
		func(row pgx.Rows) error {
			var x fleet.DeliveryRecord
			err := row.Scan(&x.Key, &x.Level, &x.Title, &x.Facts, at(&x.At), &x.Channel, &x.State, &x.Attempts, at(&x.Tried), at(&x.Next), &x.Answer)
			out = append(out, x)
			return err
		})
	return out, err
}
