package tick

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"sluice/core/decide"
	"sluice/core/fleet"
)

// parallel is how many calls of one tick are under way at once.
const parallel = 8

// act makes the calls of a plan, each for an intent that this tick has claimed. One that fails stops
// no other. It returns when every call has ended.
func act(ctx, calls context.Context, w World, r Report) (left []string, failed error) {
	var (
		mu   sync.Mutex
		wg   sync.WaitGroup
		room = make(chan struct{}, parallel)
	)
	for _, c := range r.Plan.Calls {
		i := slices.IndexFunc(r.Plan.Intents, func(in fleet.Intent) bool { return in.ID == c.Intent })
		in := r.Plan.Intents[i]
		room <- struct{}{}
		wg.Go(func() {
			defer func() { <-room }()
			err := errNoTime
			if calls.Err() == nil {
				err = do(ctx, calls, w, r.Snapshot, in, c.Repeat)
			}
			mu.Lock()
			defer mu.Unlock()
			if errors.Is(err, errNoTime) {
				left = append(left, in.ID)
			}
			if err != nil {
				failed = errors.Join(failed, fmt.Errorf("%s of pool %s (intent %s): %w", in.Kind, in.Pool, in.ID, err))
			}
		})
	}
	wg.Wait()
	slices.Sort(left)
	return left, failed
}

var errNoTime = errors.New("no time left in this tick; a later one goes on")

func do(ctx, calls context.Context, w World, s fleet.Snapshot, in fleet.Intent, repeat bool) error {
	if in.Kind == fleet.KindLaunch {
		return launch(ctx, calls, w, s, in, repeat)
	}
	return once(ctx, calls, w, s, in)
}

// launch tries the offers of an intent in their order. Only a refusal moves on to the next one, and
// only while no earlier call is unanswered: a refused repeat proves nothing about the calls before it.
func launch(ctx, calls context.Context, w World, s fleet.Snapshot, in fleet.Intent, repeat bool) error {
	claim := fleet.Claim{Intent: in.ID, Token: in.Claim}
	a := *in.Last()
	for {
		cloud, ok := w.Clouds[a.Launch.Offer.Provider]
		if !ok { // linked when it was decided, or never: nothing is known of earlier calls
			return fmt.Errorf("provider %q is not linked into this build", a.Launch.Offer.Provider)
		}
		machines, err := cloud.Launch(calls, *a.Launch)
		res := launched(s, a, machines, err)
		more := res.Outcome == fleet.OutcomeRefused && !repeat && a.Ordinal < len(in.Offers)
		res.State = launchState(res, repeat, more)
		if err := settle(ctx, w, claim, res); err != nil {
			return err
		}
		if !more {
			return worth(err)
		}
		if calls.Err() != nil {
			return errNoTime
		}
		a = decide.Attempt(s.Config, s.Memory.Deployment, in, a.Ordinal+1)
		if err := w.Store.Begin(ctx, claim, a); err != nil {
			return fmt.Errorf("write down the next offer: %w", err)
		}
	}
}

func launched(s fleet.Snapshot, a fleet.Attempt, machines []fleet.Machine, err error) fleet.Result {
	res := fleet.Result{Attempt: a.Ordinal, Outcome: outcome(err), Machines: machines, Code: code(err)}
	if err == nil && len(machines) == 0 { // an answer without a machine says nothing
		res.Outcome, res.Code = fleet.OutcomeUnknown, "empty_answer"
	}
	if errors.Is(err, fleet.ErrNoCapacity) || errors.Is(err, fleet.ErrQuota) {
		res.CoolOff = coolOff(s, a.Launch.Offer.Key(), res.Code)
	}
	return res
}

func launchState(res fleet.Result, repeat, more bool) fleet.IntentState {
	switch {
	case res.Outcome == fleet.OutcomeDone:
		return fleet.IntentDone
	case res.Outcome == fleet.OutcomeUnknown || more:
		return fleet.IntentOpen
	case repeat:
		return fleet.IntentAbandoned
	}
	return fleet.IntentRefused
}

// once makes a call about one machine. Its intent stays open until the effect is seen in a list, but
// for a resume that is refused.
func once(ctx, calls context.Context, w World, s fleet.Snapshot, in fleet.Intent) error {
	cloud, ok := w.Clouds[in.Ref.Place.Provider]
	if !ok {
		return fmt.Errorf("provider %q is not linked into this build", in.Ref.Place.Provider)
	}
	var err error
	switch in.Kind {
	case fleet.KindTerminate:
		err = cloud.Terminate(calls, in.Ref)
	case fleet.KindSuspend:
		err = cloud.Suspend(calls, in.Ref)
	case fleet.KindResume:
		err = cloud.Resume(calls, in.Ref)
	case fleet.KindLaunch:
	}
	res := fleet.Result{Attempt: 1, Outcome: outcome(err), Code: code(err), State: fleet.IntentOpen}
	if in.Kind == fleet.KindResume && fleet.Refused(err) {
		res.State, res.CoolOff = fleet.IntentRefused, coolOff(s, decide.ResumeKey(in.Worker), res.Code)
	}
	if err2 := settle(ctx, w, fleet.Claim{Intent: in.ID, Token: in.Claim}, res); err2 != nil {
		return err2
	}
	if in.Kind == fleet.KindTerminate && errors.Is(err, fleet.ErrNotFound) {
		return nil // two lists will tell
	}
	return worth(err)
}

func settle(ctx context.Context, w World, claim fleet.Claim, res fleet.Result) error {
	if err := w.Store.Settle(ctx, claim, res); err != nil {
		return fmt.Errorf("write down the answer: %w", err)
	}
	return nil
}

// worth is an error that should make the tick fail visibly. Want of capacity is not: the offer cools off,
// and the decision says so.
func worth(err error) error {
	if errors.Is(err, fleet.ErrNoCapacity) || errors.Is(err, fleet.ErrQuota) {
		return nil
	}
	return err
}

func outcome(err error) fleet.Outcome {
	switch {
	case err == nil:
		return fleet.OutcomeDone
	case fleet.Refused(err):
		return fleet.OutcomeRefused
	}
	return fleet.OutcomeUnknown
}

func code(err error) string {
	codes := []struct {
		is   error
		code string
	}{
		{fleet.ErrNoCapacity, "no_capacity"}, {fleet.ErrQuota, "quota"}, {fleet.ErrDenied, "denied"},
		{fleet.ErrBadRequest, "bad_request"}, {fleet.ErrThrottled, "throttled"}, {fleet.ErrNotFound, "not_found"},
		{context.DeadlineExceeded, "timeout"},
	}
	for _, c := range codes {
		if errors.Is(err, c.is) {
			return c.code
		}
	}
	if err != nil {
		return "unavailable"
	}
	return ""
}

func coolOff(s fleet.Snapshot, key, code string) *fleet.CoolOff {
	var old fleet.CoolOff
	for _, c := range s.Memory.CoolOffs {
		if c.Offer == key {
			old = c
		}
	}
	next := decide.NextCoolOff(old, key, code, s.Memory.Now)
	return &next
}

// expire removes machines past their expiry, with nothing but the provider's list and clock: it must
// work when config and database are gone.
func expire(ctx context.Context, w World) error {
	if len(w.Places) == 0 || w.Name == "" {
		return nil
	}
	var failed error
	for _, p := range w.Places {
		cloud, ok := w.Clouds[p.Provider]
		if !ok {
			failed = errors.Join(failed, fmt.Errorf("expire machines of %s: provider is not linked into this build", p))
			continue
		}
		failed = errors.Join(failed, expirePlace(ctx, cloud, p, w.Name))
	}
	return failed
}

func expirePlace(ctx context.Context, cloud fleet.Cloud, p fleet.Place, name string) error {
	ctx, cancel := context.WithTimeout(ctx, observeTime)
	defer cancel()
	machines, now, err := cloud.List(ctx, p.Scope, name)
	if err != nil {
		return fmt.Errorf("list %s for expired machines: %w", p, err)
	}
	for _, m := range machines {
		over := !m.Tags.Expires.IsZero() && !now.IsZero() && now.After(m.Tags.Expires.Add(expiryGrace))
		if !over || m.State == fleet.MachineGone || m.State == fleet.MachineStopping {
			continue
		}
		if e := cloud.Terminate(ctx, fleet.Ref{Place: p, Zone: m.Zone, Machine: m.ID}); e != nil && !errors.Is(e, fleet.ErrNotFound) {
			err = errors.Join(err, fmt.Errorf("terminate expired %s/%s: %w", p, m.ID, e))
		}
	}
	return err
}

// expiryGrace lets the regular drain, which ends at the expiry, come first.
const expiryGrace = time.Minute
