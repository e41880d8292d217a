package tick_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"sluice/core/fleet"
)

func waiting(keys ...string) (out []fleet.Alert) {
	for _, k := range keys {
		out = append(out, fleet.Alert{Key: k, Level: fleet.Warning})
	}
	return out
}

func TestAChannelThatIsDownFailsNothingAndIsTriedOnce(t *testing.T) {
	t.Parallel()
	up, down := &alerter{}, &alerter{err: errDown}
	s := set(t, func(s *setting) {
		s.store.outbox = waiting("a", "b")
		s.channels(down, up)
	})
	r := must(t, s)
	same(t, "the other one has both", up.keys(), []string{"a", "b"})
	same(t, "the one that is down was asked once", down.keys(), []string{"a"})
	same(t, "it is held", s.store.sent["a"], []fleet.Sending{{Key: "a", Channel: "a", State: fleet.DeliveryWaiting, Answer: errDown.Error(), Retry: 55 * time.Second, Hold: 55 * time.Second}})
	same(t, "the other is done", s.store.sent["b"][1], fleet.Sending{Key: "b", Channel: "b", State: fleet.DeliveryDelivered, Answer: "200 OK"})
	if len(r.Unsent) != 1 || r.Unsent[0].Channel != "a" || r.Unsent[0].Key != "a" || r.Unsent[0].State != fleet.DeliveryWaiting {
		t.Errorf("the report says %s", marshal(t, r.Unsent))
	}
}

func TestAMessageThatIsRefusedIsNotTriedAgainAndTheNextOneIs(t *testing.T) {
	t.Parallel()
	for _, err := range []error{fleet.ErrBadRequest, fmt.Errorf("404: %w", fleet.ErrDenied)} {
		no := &alerter{err: err}
		s := set(t, func(s *setting) {
			s.store.outbox = waiting("a", "b")
			s.channels(no)
		})
		r := must(t, s)
		same(t, "both are tried", no.keys(), []string{"a", "b"})
		for i, x := range s.store.sent["a"] {
			if x.State != fleet.DeliveryRefused || r.Unsent[i].State != fleet.DeliveryRefused {
				t.Errorf("%v: %s", err, marshal(t, x))
			}
		}
	}
}

func TestAMessageSaysWhoSendsItAndIsTheSameWhenRepeated(t *testing.T) {
	t.Parallel()
	a := &alerter{}
	s := set(t, func(s *setting) {
		s.store.outbox = waiting("a")
		s.config.Page = "https://sluice.example"
		s.channels(a)
	})
	must(t, s)
	must(t, s)
	first, again := a.got[0], a.got[1]
	if first.Install != "prod" || first.Page != "https://sluice.example" || first.ID == "" || first.ID != again.ID || first.Test {
		t.Errorf("sent %s, then %s", marshal(t, first), marshal(t, again))
	}
	other := fleet.Config{Name: "staging"}.Message(first.Alert)
	if other.ID == first.ID {
		t.Error("another installation sends under the same id")
	}
}

func TestWithoutAConfigNobodyIsTold(t *testing.T) {
	t.Parallel()
	a := &alerter{}
	s := set(t, func(s *setting) {
		s.store.outbox = waiting("a")
		s.channels(a)
		s.object.err = fleet.ErrNotFound
	})
	if r := must(t, s); r.Plan.Skipped == nil || len(a.got) != 0 {
		t.Errorf("skipped %v, sent %v", r.Plan.Skipped, a.keys())
	}
}

// A channel's back-off grows with its failures and a message's with its own attempts; a time that the other side names is kept.
func TestWaitsGrowAndAreBounded(t *testing.T) {
	t.Parallel()
	later := func(after time.Duration) error { return &fleet.LaterError{After: after, Err: errDown} }
	for _, c := range []struct {
		name               string
		attempts, failures int
		err                error
		retry, hold        time.Duration
	}{
		{"the first failure", 0, 0, errDown, 55 * time.Second, 55 * time.Second},
		{"a message that fails on a channel that works", 2, 0, errDown, 235 * time.Second, 55 * time.Second},
		{"a channel that fails with every message", 0, 9, errDown, 55 * time.Second, 295 * time.Second},
		{"the other side names a time", 0, 0, later(10 * time.Minute), 10 * time.Minute, 10 * time.Minute},
		{"a time that is too short", 0, 0, later(time.Second), 55 * time.Second, 55 * time.Second},
		{"a time that is too long", 0, 0, later(24 * time.Hour), time.Hour, time.Hour},
	} {
		a := &alerter{err: c.err}
		s := set(t, func(s *setting) {
			s.channels(a)
			s.store.due = []fleet.Delivery{{Alert: fleet.Alert{Key: "k"}, Channel: "a", Attempts: c.attempts, Failures: c.failures}}
		})
		must(t, s)
		if got := s.store.sent["a"][0]; got.Retry != c.retry || got.Hold != c.hold {
			t.Errorf("%s: retry %s, hold %s, want %s and %s", c.name, got.Retry, got.Hold, c.retry, c.hold)
		}
	}
}

func TestAChannelThatHangsHoldsTheTickForABoundedTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		up, hung := &alerter{}, &alerter{hangs: true}
		s := set(t, func(s *setting) {
			s.store.outbox = waiting("a", "b", "c")
			s.channels(hung, up)
		})
		begun := time.Now()
		must(t, s)
		if took := time.Since(begun); took != 20*time.Second {
			t.Errorf("took %s", took)
		}
		if !slices.Equal(up.keys(), []string{"a", "b", "c"}) || len(hung.got) != 1 || s.store.sent["a"][0].State != fleet.DeliveryWaiting {
			t.Errorf("sent %v and %v: %s", up.keys(), hung.keys(), marshal(t, s.store.sent["a"]))
		}
	})
}

func TestAnAlertForAKindOfChannelThatIsNotLinkedWaits(t *testing.T) {
	t.Parallel()
	s := set(t, func(s *setting) {
		s.store.outbox = waiting("a")
		s.config.Channels = []fleet.Channel{{Name: "phone", Kind: fleet.ChannelSNS, Levels: fleet.Levels()}}
	})
	r := must(t, s)
	if len(r.Unsent) != 1 || r.Unsent[0].State != fleet.DeliveryWaiting || r.Unsent[0].Answer != `channels of kind "sns" are not linked into this build` {
		t.Errorf("the report says %s", marshal(t, r.Unsent))
	}
}

func TestWhereNoChannelIsConfiguredAlertsGoToTheLog(t *testing.T) {
	t.Parallel()
	log := &alerter{}
	s := set(t, func(s *setting) {
		s.store.outbox = waiting("a")
		s.world.Alerters = map[fleet.ChannelKind]func(fleet.Channel) fleet.Alerter{fleet.ChannelLog: func(fleet.Channel) fleet.Alerter { return log }}
	})
	must(t, s)
	same(t, "in the log", log.keys(), []string{"a"})
}
