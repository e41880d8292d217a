package sim

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"sluice/core/fleet"
)

// claimTime is how long nobody else gets what the outbox has handed out.
const claimTime = 30 * time.Second

// Outbox implements fleet.Store.
func (s *Store) Outbox(ctx context.Context, channels []fleet.Channel, limit int) ([]fleet.Delivery, error) {
	if v := s.p.pass(ctx, OpOutbox, ""); v.Err != nil {
		return nil, fmt.Errorf("read outbox: %w", v.Err)
	}
	s.p.w.mu.Lock()
	defer s.p.w.mu.Unlock()
	now := s.p.w.clock()
	s.p.w.db.handOver(channels, now)
	var out []fleet.Delivery
	for _, c := range channels {
		if s.p.w.db.channels[c.Name].held.After(now) {
			continue
		}
		for _, a := range first(s.p.w.db.due(c.Name, now), limit) {
			row := a.on(c.Name)
			out = append(out, fleet.Delivery{Alert: a.Alert, Channel: c.Name, Attempts: row.attempts, Failures: s.p.w.db.channels[c.Name].failures})
			row.next = now.Add(claimTime)
		}
	}
	return out, nil
}

func first[T any](s []T, n int) []T { return s[:min(n, len(s))] }

// handOver gives new alerts to the channels of their level and closes what waits for one that is no more.
func (d *database) handOver(channels []fleet.Channel, now time.Time) {
	d.alerts = slices.Clone(d.alerts)
	for i := range d.alerts {
		a := &d.alerts[i]
		a.deliveries = slices.Clone(a.deliveries)
		for j := range a.deliveries {
			gone := !slices.ContainsFunc(channels, func(c fleet.Channel) bool { return c.Name == a.deliveries[j].channel })
			if gone && a.deliveries[j].state == fleet.DeliveryWaiting {
				a.deliveries[j].state = fleet.DeliveryClosed
			}
		}
		for _, c := range channels {
			if !a.handed && c.Takes(a.Level) {
				a.deliveries = append(a.deliveries, deliveryRow{channel: c.Name, state: fleet.DeliveryWaiting, next: now})
			}
		}
		a.handed = true
	}
}

// due are the alerts that may be sent to a channel now, in their order.
func (d *database) due(channel string, now time.Time) []*alertRow {
	var out []*alertRow
	for i := range d.alerts {
		if row := d.alerts[i].on(channel); row != nil && row.state == fleet.DeliveryWaiting && !row.next.After(now) {
			out = append(out, &d.alerts[i])
		}
	}
	slices.SortStableFunc(out, func(a, b *alertRow) int {
		return cmp.Or(slices.Index(fleet.Levels(), b.Level)-slices.Index(fleet.Levels(), a.Level), a.on(channel).attempts-b.on(channel).attempts,
			a.At.Compare(b.At), cmp.Compare(a.Key, b.Key))
	})
	return out
}

// on is an alert's row of a channel, nil where it does not go there.
func (a *alertRow) on(channel string) *deliveryRow {
	for i := range a.deliveries {
		if a.deliveries[i].channel == channel {
			return &a.deliveries[i]
		}
	}
	return nil
}

// Sent implements fleet.Store.
func (s *Store) Sent(ctx context.Context, x fleet.Sending) error {
	v := s.p.pass(ctx, OpSent, x.Channel+" "+x.Key)
	if v.Effect {
		s.p.w.mu.Lock()
		defer s.p.w.mu.Unlock()
		s.p.w.db.sent(x, s.p.w.clock())
	}
	if v.Err != nil {
		return fmt.Errorf("mark alert: %w", v.Err)
	}
	return nil
}

func (d *database) sent(x fleet.Sending, now time.Time) {
	d.alerts, d.channels = slices.Clone(d.alerts), maps.Clone(d.channels)
	for i := range d.alerts {
		d.alerts[i].deliveries = slices.Clone(d.alerts[i].deliveries)
		row := d.alerts[i].on(x.Channel)
		if d.alerts[i].Key != x.Key || row == nil || row.state != fleet.DeliveryWaiting {
			continue
		}
		row.state, row.answer, row.tried, row.next = x.State, x.Answer, now, now.Add(x.Retry)
		row.attempts++
	}
	if x.State != fleet.DeliveryWaiting { // a channel that refuses one alert has answered
		delete(d.channels, x.Channel)
		return
	}
	d.channels[x.Channel] = channelRow{failures: d.channels[x.Channel].failures + 1, held: now.Add(x.Hold)}
}

// Deliveries implements fleet.History.
func (s *Store) Deliveries(ctx context.Context, since time.Time) (out []fleet.DeliveryRecord, err error) {
	err = s.look(ctx, "alerts", func(d *database) {
		for _, a := range slices.Backward(d.alerts) {
			if !a.handed {
				out = append(out, fleet.DeliveryRecord{Alert: a.Alert, State: fleet.DeliveryWaiting})
			}
			for _, r := range a.deliveries {
				if r.state == fleet.DeliveryWaiting || !a.At.Before(since) {
					out = append(out, d.delivery(a.Alert, r))
				}
			}
		}
	})
	return out, err
}

func (d *database) delivery(a fleet.Alert, r deliveryRow) fleet.DeliveryRecord {
	out := fleet.DeliveryRecord{Alert: a, Channel: r.channel, State: r.state, Attempts: r.attempts, Tried: r.tried, Answer: r.answer}
	if r.state == fleet.DeliveryWaiting {
		out.Next = latest(r.next, d.channels[r.channel].held)
	}
	return out
}
