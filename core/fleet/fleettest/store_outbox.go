package fleettest

import (
	"fmt"
	"time"

	"sluice/core/fleet"
)

func outboxCases() []storeCase {
	return []storeCase{
		{"an alert is stored once for its key and due on each channel until that one has it", alertsOnce},
		{"an alert goes to the channels of its level", routed},
		{"the loudest come first, then those tried least, then the oldest, so many of each channel", outboxOrder},
		{"what was handed out is nobody else's for half a minute, and then due again", outboxClaims},
		{"a channel that fails is held, and no other", held},
		{"twenty alerts that one channel refuses hold nothing up", refusedOnes},
		{"what waits for a channel that is no more is closed", closed},
		{"deliveries are listed: all that wait, and others since a time", deliveriesListed},
	}
}

// everywhere are two channels that take every level.
func everywhere() []fleet.Channel { return []fleet.Channel{takes("log"), takes("ops")} }

func takes(name string, levels ...fleet.Level) fleet.Channel {
	if len(levels) == 0 {
		levels = fleet.Levels()
	}
	return fleet.Channel{Name: name, Kind: fleet.ChannelWebhook, Levels: levels}
}

// outbox is what is due, as channel:key.
func (b *bench) outbox(limit int, channels ...fleet.Channel) (out []string) {
	b.Helper()
	got, err := b.Store.Outbox(b.ctx, channels, limit)
	if err != nil {
		b.Fatalf("outbox: %v", err)
	}
	for _, d := range got {
		out = append(out, d.Channel+":"+d.Key)
	}
	return out
}

// later is past every claim.
func (b *bench) later() { b.Advance(31 * time.Second) }

func (b *bench) raise(level fleet.Level, keys ...string) {
	b.Helper()
	b.commit(func(m fleet.Memory, p *fleet.Plan, _ *fleet.Record) {
		for i, k := range keys {
			p.Alerts = append(p.Alerts, fleet.Alert{
				Key: k, Level: level, Title: "the daily limit is reached", Facts: []byte(`{"code":"daily_limit"}`), At: m.Now.Add(time.Duration(i) * time.Millisecond),
			})
		}
	})
}

func (b *bench) sent(channel, key string, state fleet.DeliveryState) {
	b.Helper()
	s := fleet.Sending{Key: key, Channel: channel, State: state, Answer: "it said " + string(state)}
	if state == fleet.DeliveryWaiting {
		s.Retry, s.Hold = time.Minute, 3*time.Minute
	}
	if err := b.Store.Sent(b.ctx, s); err != nil {
		b.Errorf("sent %s by %s: %v", key, channel, err)
	}
}

func alertsOnce(b *bench) {
	b.raise(fleet.Critical, "limit")
	b.raise(fleet.Critical, "limit")
	got, err := b.Store.Outbox(b.ctx, everywhere(), 10)
	if err != nil || len(got) != 2 || got[0].Key != "limit" || got[0].Level != fleet.Critical || got[0].Title == "" || len(got[0].Facts) == 0 || got[0].At.IsZero() {
		b.Fatalf("outbox %s, %v", text(b.T, got), err)
	}
	for range 2 {
		b.sent("log", "limit", fleet.DeliveryDelivered)
	}
	b.later()
	b.want("where it is not delivered", b.outbox(10, everywhere()...), []string{"ops:limit"})
	b.sent("ops", "limit", fleet.DeliveryDelivered)
	b.sent("ops", "limit", fleet.DeliveryWaiting) // an answer that comes late
	b.raise(fleet.Critical, "limit")
	b.Advance(time.Hour)
	if got := b.outbox(10, everywhere()...); len(got) != 0 {
		b.Errorf("outbox %v after it was sent", got)
	}
}

func routed(b *bench) {
	b.raise(fleet.Info, "started")
	b.raise(fleet.Warning, "slow")
	b.raise(fleet.Critical, "limit")
	channels := []fleet.Channel{takes("log", fleet.Info), takes("ops", fleet.Warning, fleet.Critical), takes("phone", fleet.Critical), takes("none", "")}
	b.want("by level", b.outbox(10, channels...), []string{"log:started", "ops:limit", "ops:slow", "phone:limit"})
	b.later()
	b.want("a channel that is added later hears of later ones", b.outbox(10, append(channels, takes("late"))...), []string{"log:started", "ops:limit", "ops:slow", "phone:limit"})
}

func outboxOrder(b *bench) {
	b.raise(fleet.Info, "old", "older-name")
	b.raise(fleet.Critical, "limit")
	b.want("the first two", b.outbox(2, takes("log")), []string{"log:limit", "log:old"})
	b.later()
	b.sent("log", "old", fleet.DeliveryWaiting)
	b.Advance(3 * time.Minute)
	b.want("all", b.outbox(3, takes("log")), []string{"log:limit", "log:older-name", "log:old"})
}

func outboxClaims(b *bench) {
	b.raise(fleet.Info, "a", "b")
	b.want("one", b.outbox(1, takes("log")), []string{"log:a"})
	b.want("the other", b.outbox(9, takes("log")), []string{"log:b"})
	if got := b.outbox(9, takes("log")); len(got) != 0 {
		b.Errorf("handed out twice: %v", got)
	}
	b.later()
	b.want("whoever had them is gone", b.outbox(9, takes("log")), []string{"log:a", "log:b"})
}

func held(b *bench) {
	b.raise(fleet.Info, "a", "b")
	b.outbox(9, everywhere()...)
	b.sent("ops", "a", fleet.DeliveryWaiting)
	b.sent("log", "a", fleet.DeliveryDelivered)
	b.Advance(time.Minute)
	b.want("while it is held", b.outbox(9, everywhere()...), []string{"log:b"})
	b.Advance(2 * time.Minute)
	got, err := b.Store.Outbox(b.ctx, []fleet.Channel{takes("ops")}, 9)
	if err != nil || len(got) != 2 || got[0].Key != "b" || got[0].Attempts != 0 || got[1].Attempts != 1 || got[0].Failures != 1 {
		b.Fatalf("after it: %s, %v", text(b.T, got), err)
	}
	b.sent("ops", "b", fleet.DeliveryWaiting)
	b.Advance(3 * time.Minute)
	if got, err = b.Store.Outbox(b.ctx, []fleet.Channel{takes("ops")}, 9); err != nil || len(got) != 2 || got[0].Failures != 2 {
		b.Fatalf("failures add up: %s, %v", text(b.T, got), err)
	}
	b.sent("ops", "a", fleet.DeliveryDelivered)
	b.later()
	if got, err = b.Store.Outbox(b.ctx, []fleet.Channel{takes("ops")}, 9); err != nil || len(got) != 1 || got[0].Failures != 0 || got[0].Attempts != 1 {
		b.Errorf("an answer forgives: %s, %v", text(b.T, got), err)
	}
}

func refusedOnes(b *bench) {
	for i := range 20 {
		b.raise(fleet.Info, fmt.Sprintf("bad-%02d", i))
	}
	for _, d := range b.outbox(20, takes("ops")) {
		b.sent("ops", d[len("ops:"):], fleet.DeliveryRefused)
	}
	b.raise(fleet.Info, "new")
	b.want("at once", b.outbox(20, takes("ops")), []string{"ops:new"})
}

func closed(b *bench) {
	b.raise(fleet.Info, "a")
	b.outbox(9, everywhere()...)
	b.later()
	b.want("one is left", b.outbox(9, takes("log")), []string{"log:a"})
	b.later()
	b.want("it does not come back", b.outbox(9, everywhere()...), []string{"log:a"})
}

func deliveriesListed(b *bench) {
	b.raise(fleet.Info, "a")
	states := func(since time.Time) (out []string) {
		b.Helper()
		got, err := b.History.Deliveries(b.ctx, since)
		if err != nil {
			b.Fatalf("deliveries: %v", err)
		}
		for _, d := range got {
			out = append(out, fmt.Sprintf("%s:%s %s %d %s", d.Channel, d.Key, d.State, d.Attempts, d.Answer))
		}
		return out
	}
	start := b.recall().Now.Add(-time.Minute)
	b.want("before any tick announces", states(start), []string{":a waiting 0 "})
	b.outbox(9, everywhere()...)
	b.sent("log", "a", fleet.DeliveryDelivered)
	b.sent("ops", "a", fleet.DeliveryWaiting)
	b.Advance(time.Second)
	b.raise(fleet.Info, "b")
	b.want("since then", states(start), []string{":b waiting 0 ", "log:a delivered 1 it said delivered", "ops:a waiting 1 it said waiting"})
	b.want("what waits", states(b.recall().Now.Add(time.Hour)), []string{":b waiting 0 ", "ops:a waiting 1 it said waiting"})
	got, err := b.History.Deliveries(b.ctx, start)
	if err != nil || len(got) != 3 || got[1].Tried.IsZero() || !got[1].Next.IsZero() || got[2].Next.Sub(got[2].Tried) != 3*time.Minute {
		b.Errorf("times: %s, %v", text(b.T, got), err)
	}
}
