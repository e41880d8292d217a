// Package provider is a whole provider in one file: the machines of a small cloud with an API of four calls.
package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"sluice/core/fleet"
)

// Compute speaks to the API at URL.
type Compute struct {
	URL    string
	Token  func(context.Context) (string, error) // asked for before each call, so that it can be rotated
	Client *http.Client
}

var _ fleet.Compute = (*Compute)(nil)

// Traits are promises of the API, from its manual. The scheduler relies on them: what is not promised is left out.
func Traits() fleet.Traits {
	return fleet.Traits{Idempotent: true, MinCharge: 60, MaxBatch: 10}
}

// Link is this provider as a program lists it.
func Link() fleet.Link {
	return fleet.Link{
		Provider: "example",
		Cloud: func(s fleet.Setup) (fleet.Cloud, error) {
			token := func(context.Context) (string, error) { return s.Env("EXAMPLE_TOKEN"), nil }
			c := &Compute{URL: s.Env("EXAMPLE_URL"), Token: token, Client: &http.Client{Timeout: 30 * time.Second}}
			return fleet.Cloud{Compute: c, Traits: Traits()}, nil
		},
	}
}

// machine is one as the API shows it. Tags fit into one label of it, written by the call that makes it.
type machine struct {
	ID      string     `json:"id"`
	State   string     `json:"state"`
	Zone    string     `json:"zone"`
	Type    string     `json:"type"`
	Spot    bool       `json:"spot"`
	Created time.Time  `json:"created"`
	Label   fleet.Tags `json:"label"`
}

func (m machine) read() fleet.Machine {
	// A state that nobody knows still costs: pending is neither gone nor ready.
	states := map[string]fleet.MachineState{"up": fleet.MachineRunning, "ending": fleet.MachineStopping, "ended": fleet.MachineGone}
	state, known := states[m.State]
	if !known {
		state = fleet.MachinePending
	}
	market := fleet.OnDemand
	if m.Spot {
		market = fleet.Spot
	}
	return fleet.Machine{ID: m.ID, State: state, Zone: m.Zone, Type: m.Type, Market: market, Launched: m.Created, Tags: m.Label}
}

// List reads every page. What was read before an error is dropped: half a list looks as if machines were gone.
func (c *Compute) List(ctx context.Context, scope, name string) (all []fleet.Machine, at time.Time, err error) {
	for page := ""; ; {
		var answer struct {
			Machines []machine `json:"machines"`
			Next     string    `json:"next"`
		}
		query := url.Values{"region": {scope}, "name": {name}, "page": {page}}
		if at, err = c.call(ctx, http.MethodGet, "/machines?"+query.Encode(), nil, &answer); err != nil {
			return nil, time.Time{}, fmt.Errorf("list machines: %w", err)
		}
		for _, m := range answer.Machines {
			all = append(all, m.read())
		}
		if page = answer.Next; page == "" {
			return all, at, nil
		}
	}
}

// Quote knows no prices: the settings name them.
func (c *Compute) Quote(context.Context, []fleet.Offer) ([]fleet.Quote, error) { return nil, nil }

// Launch has the token in its address, so that the API answers a repeat with the same machines.
func (c *Compute) Launch(ctx context.Context, l fleet.Launch) ([]fleet.Machine, error) {
	var answer struct {
		Machines []machine `json:"machines"`
	}
	_, err := c.call(ctx, http.MethodPut, "/launches/"+url.PathEscape(l.Token), map[string]any{
		"count": l.Count, "region": l.Offer.Scope, "zone": l.Offer.Zone, "type": l.Offer.Type, "spot": l.Offer.Market == fleet.Spot,
		"image": l.Offer.Image, "label": l.Tags,
	}, &answer)
	if err != nil {
		return nil, fmt.Errorf("launch %d machines: %w", l.Count, err)
	}
	var out []fleet.Machine
	for _, m := range answer.Machines {
		out = append(out, m.read())
	}
	return out, nil
}

// Terminate may be repeated; List shows when the machine is gone.
func (c *Compute) Terminate(ctx context.Context, m fleet.Ref) error {
	if _, err := c.call(ctx, http.MethodDelete, "/machines/"+url.PathEscape(m.Machine), nil, nil); err != nil {
		return fmt.Errorf("terminate machine %s: %w", m.Machine, err)
	}
	return nil
}

// errSuspends cannot come up: the traits do not say that machines can be suspended.
var errSuspends = fmt.Errorf("this cloud cannot suspend machines: %w", fleet.ErrBadRequest)

// Suspend is never called.
func (c *Compute) Suspend(context.Context, fleet.Ref) error { return errSuspends }

// Resume is never called.
func (c *Compute) Resume(context.Context, fleet.Ref) error { return errSuspends }

// call makes one call. The time is the API's own, from its answer.
func (c *Compute) call(ctx context.Context, method, path string, body, answer any) (time.Time, error) {
	token, err := c.Token(ctx)
	if err != nil {
		return time.Time{}, fmt.Errorf("find the API's token: %w", err)
	}
	sent, err := json.Marshal(body)
	if err != nil {
		return time.Time{}, fmt.Errorf("write request: %w: %w", err, fleet.ErrBadRequest)
	}
	r, err := http.NewRequestWithContext(ctx, method, c.URL+path, bytes.NewReader(sent))
	if err != nil {
		return time.Time{}, fmt.Errorf("write request: %w: %w", err, fleet.ErrBadRequest)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	got, err := c.Client.Do(r)
	if err != nil {
		return time.Time{}, fmt.Errorf("%w: %w", err, fleet.ErrUnavailable)
	}
	defer got.Body.Close()
	content, err := io.ReadAll(got.Body)
	if err != nil {
		return time.Time{}, fmt.Errorf("read answer: %w: %w", err, fleet.ErrUnavailable)
	}
	if got.StatusCode >= 300 {
		return time.Time{}, refusal(got.StatusCode, content)
	}
	at, err := http.ParseTime(got.Header.Get("Date"))
	if answer != nil {
		err = errors.Join(err, json.Unmarshal(content, answer))
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("read answer: %w: %w", err, fleet.ErrUnavailable)
	}
	return at, nil
}

// refusal tells an answer that proves that nothing happened from one that proves nothing. It is the part to get right: an unknown
// outcome that is called a refusal ends in a second machine, a refusal that is called unknown only in a wait.
func refusal(status int, content []byte) error {
	kinds := map[int]error{
		http.StatusBadRequest: fleet.ErrBadRequest, http.StatusUnauthorized: fleet.ErrDenied, http.StatusForbidden: fleet.ErrDenied,
		http.StatusNotFound: fleet.ErrNotFound, http.StatusConflict: fleet.ErrQuota, http.StatusInsufficientStorage: fleet.ErrNoCapacity,
		http.StatusTooManyRequests: fleet.ErrThrottled,
	}
	kind := kinds[status]
	if kind == nil {
		kind = fleet.ErrUnavailable
	}
	return fmt.Errorf("status %d: %.200s: %w", status, content, kind)
}
