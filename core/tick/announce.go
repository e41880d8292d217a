package tick

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"sluice/core/fleet"
)

// What one tick sends: so many alerts to each channel, and for so long.
const (
	perChannel   = 20
	announceTime = 20 * time.Second
)

// A channel that fails is tried again after a minute, then two, four, at most five; one that names a time itself is
// believed up to an hour.
const (
	firstWait = time.Minute
	mostWait  = 5 * time.Minute
	mostAsked = time.Hour
)

// Unsent is a message that a channel did not take.
type Unsent struct {
	fleet.Message
	Channel string
	State   fleet.DeliveryState // waiting or refused
	Answer  string
}

// announce works off the outbox, at least once, every channel by itself: one that is down fails no tick and holds up no
// other. A tick that knows no config knows no channels.
func announce(ctx context.Context, w World, c fleet.Config) []Unsent {
	if c.Name == "" {
		return nil
	}
	channels := c.Routes()
	due, err := w.Store.Outbox(ctx, channels, perChannel)
	if err != nil {
		return nil // what waits is there for the next tick
	}
	sends, cancel := context.WithTimeout(ctx, min(announceTime, callTime(w.Limit)))
	defer cancel()
	var wg sync.WaitGroup
	unsent := make([][]Unsent, len(channels))
	for i, ch := range channels {
		wg.Go(func() { unsent[i] = deliver(ctx, sends, w, c, ch, due) })
	}
	wg.Wait()
	var out []Unsent
	for _, u := range unsent {
		out = append(out, u...)
	}
	return out
}

// deliver sends to one channel what is due there, until the channel fails or time is up.
func deliver(ctx, sends context.Context, w World, c fleet.Config, ch fleet.Channel, due []fleet.Delivery) []Unsent {
	var out []Unsent
	for _, d := range due {
		if d.Channel != ch.Name || sends.Err() != nil {
			continue
		}
		s := send(sends, w, c, ch, d)
		_ = w.Store.Sent(ctx, s) // sent again if this fails
		if s.State == fleet.DeliveryDelivered {
			continue
		}
		out = append(out, Unsent{Message: c.Message(d.Alert), Channel: ch.Name, State: s.State, Answer: s.Answer})
		if s.State == fleet.DeliveryWaiting {
			break
		}
	}
	return out
}

func send(ctx context.Context, w World, c fleet.Config, ch fleet.Channel, d fleet.Delivery) fleet.Sending {
	open, ok := w.Alerters[ch.Kind]
	if !ok {
		return sending(d, "", fmt.Errorf("channels of kind %q are not linked into this build", ch.Kind))
	}
	answer, err := open(ch).Send(ctx, c.Message(d.Alert))
	return sending(d, answer, err)
}

// sending says what becomes of a delivery after an answer.
func sending(d fleet.Delivery, answer string, err error) fleet.Sending {
	s := fleet.Sending{Key: d.Key, Channel: d.Channel, State: fleet.DeliveryDelivered, Answer: answer}
	switch later, asked := errors.AsType[*fleet.LaterError](err); {
	case err == nil:
		return s
	case errors.Is(err, fleet.ErrBadRequest), errors.Is(err, fleet.ErrDenied):
		s.State, s.Answer = fleet.DeliveryRefused, err.Error()
		return s
	case asked:
		wait := min(later.After, mostAsked)
		s.Retry, s.Hold = max(wait, backoff(d.Attempts)), max(wait, backoff(d.Failures))
	default:
		s.Retry, s.Hold = backoff(d.Attempts), backoff(d.Failures)
	}
	s.State, s.Answer = fleet.DeliveryWaiting, err.Error()
	return s
}

// backoff is a little short of the minute in which the next tick comes, so that it is not missed by a moment.
func backoff(failures int) time.Duration {
	wait := firstWait
	for ; failures > 0 && wait < mostWait; failures-- {
		wait *= 2
	}
	return min(wait, mostWait) - 5*time.Second
}
