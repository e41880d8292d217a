package serve

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"sluice/core/fleet"
	"sluice/core/tick"
	"sluice/functions/host"
)

// nowhere is a function whose world has no database and whose tick is given.
func nowhere(out *strings.Builder, do Tick) *Function {
	return &Function{
		Name: fleet.Evaluate, Tick: do, Out: out,
		Env: func(name string) string { return map[string]string{host.EnvConfig: "scheduler.json"}[name] },
		Links: []fleet.Link{{Database: func(context.Context, fleet.Secret) (fleet.Database, error) {
			return nil, errors.New("no database is named")
		}}},
	}
}

func succeed(context.Context, tick.World, time.Time) (tick.Report, error) {
	return tick.Report{Lines: []fleet.Line{{Event: "tick", Message: "Nothing to do"}}}, nil
}

func TestTheDueTimeOfAnEventIsItsTime(t *testing.T) {
	t.Parallel()
	due := time.Date(2027, 1, 14, 9, 31, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		event string
		want  time.Time
		says  string
	}{
		"a rule of EventBridge":  {`{"version":"0","detail-type":"Scheduled Event","time":"2027-01-14T09:31:00Z","detail":{}}`, due, ""},
		"a schedule with offset": {`{"time":"2027-01-14T10:31:00+01:00"}`, due, ""},
		"a time that is none":    {`{"time":"yesterday"}`, time.Time{}, `"yesterday" is not a time`},
		"a list":                 {`[]`, time.Time{}, "want a JSON object"},
	} {
		got, err := eventDue(json.RawMessage(c.event))
		if c.says != "" {
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v, want an error with %q", name, err, c.says)
			}
			continue
		}
		if err != nil || !got.Equal(c.want) {
			t.Errorf("%s is due at %v, %v, want %v", name, got, err, c.want)
		}
	}
	for _, empty := range []string{`{}`, `{"time":""}`, `null`} {
		got, err := eventDue(json.RawMessage(empty))
		if err != nil || time.Since(got) > 2*time.Minute || got.Second() != 0 {
			t.Errorf("%s is due at %v, %v, want this minute", empty, got, err)
		}
	}
}

func TestHTTP(t *testing.T) {
	t.Parallel()
	var given []time.Time
	remember := func(ctx context.Context, w tick.World, due time.Time) (tick.Report, error) {
		given = append(given, due)
		return succeed(ctx, w, due)
	}
	for _, c := range []struct {
		name, method, header string
		do                   Tick
		code                 int
	}{
		{"a call of Cloud Scheduler", http.MethodPost, "2027-01-14T09:31:00Z", remember, 200},
		{"a call without a schedule", http.MethodPost, "", succeed, 200},
		{"a schedule time that is none", http.MethodPost, "noon", succeed, 400},
		{"a look with a browser", http.MethodGet, "", succeed, 405},
		{"a failed tick", http.MethodPost, "", func(context.Context, tick.World, time.Time) (tick.Report, error) {
			return tick.Report{}, errors.New("password of bob is wrong")
		}, 500},
	} {
		var out strings.Builder
		r := httptest.NewRequestWithContext(t.Context(), c.method, "/", strings.NewReader("{}"))
		if c.header != "" {
			r.Header.Set(scheduleTime, c.header)
		}
		w := httptest.NewRecorder()
		nowhere(&out, c.do).ServeHTTP(w, r)
		if w.Code != c.code {
			t.Errorf("%s is answered with %d, want %d: %s", c.name, w.Code, c.code, w.Body)
		}
		if strings.Contains(w.Body.String(), "bob") {
			t.Errorf("%s: the caller is told %s", c.name, w.Body)
		}
		if c.code == 500 && !strings.Contains(out.String(), "password of bob is wrong") {
			t.Errorf("%s: the log does not say why: %s", c.name, out.String())
		}
	}
	if want := time.Date(2027, 1, 14, 9, 31, 0, 0, time.UTC); len(given) != 1 || !given[0].Equal(want) {
		t.Errorf("due %v, want %v", given, want)
	}
}

func TestTheTimeLimitIsTheCallers(t *testing.T) {
	t.Parallel()
	var got time.Duration
	measure := func(_ context.Context, w tick.World, _ time.Time) (tick.Report, error) {
		got = w.Limit
		return tick.Report{}, nil
	}
	var out strings.Builder
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := nowhere(&out, measure).Do(ctx, time.Now()); err != nil || got > 20*time.Second || got < 10*time.Second {
		t.Errorf("limit %v, %v, want what is left of 20 s", got, err)
	}
	if _, err := nowhere(&out, measure).Do(t.Context(), time.Now()); err != nil || got != defaultLimit {
		t.Errorf("limit %v, %v, want %v where the caller tells none", got, err, defaultLimit)
	}
}

func TestIntervalsBelowAMinuteAreNotForFunctions(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	check := func(_ context.Context, w tick.World, _ time.Time) (tick.Report, error) {
		if w.MinInterval != 60 {
			t.Errorf("the shortest interval is %d, want 60", w.MinInterval)
		}
		return tick.Report{}, nil
	}
	if _, err := nowhere(&out, check).Do(t.Context(), time.Now()); err != nil {
		t.Error(err)
	}
}

// Without a database machines past their expiry are removed all the same, and the tick fails visibly.
func TestALostDatabaseDoesNotKeepExpiredMachinesAlive(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	f := nowhere(&out, tick.Evaluate)
	cloud := &expired{}
	f.Env = func(name string) string {
		return map[string]string{host.EnvConfig: "x.json", host.EnvName: "prod", host.EnvPlaces: "moon/dark-side"}[name]
	}
	f.Links = append(f.Links, fleet.Link{Provider: "moon", Cloud: func(fleet.Setup) (fleet.Cloud, error) {
		return fleet.Cloud{Compute: cloud}, nil
	}})
	_, err := f.Do(t.Context(), time.Now())
	if err == nil || !strings.Contains(err.Error(), "no database is named") {
		t.Errorf("the tick ends with %v", err)
	}
	if cloud.ended != "m-old" {
		t.Errorf("ended %q, want the machine past its expiry", cloud.ended)
	}
	if !strings.Contains(out.String(), `"result":"failed"`) {
		t.Errorf("the log does not say that the tick failed: %s", out.String())
	}
}

// expired is a cloud with one machine past its expiry and one not.
type expired struct {
	fleet.Compute
	ended string
}

func (e *expired) List(_ context.Context, scope, name string) ([]fleet.Machine, time.Time, error) {
	now := time.Date(2027, 1, 14, 12, 0, 0, 0, time.UTC)
	if scope != "dark-side" || name != "prod" {
		return nil, now, errors.New("another place was listed")
	}
	return []fleet.Machine{
		{ID: "m-new", State: fleet.MachineRunning, Tags: fleet.Tags{Expires: now.Add(time.Hour)}},
		{ID: "m-old", State: fleet.MachineRunning, Tags: fleet.Tags{Expires: now.Add(-time.Hour)}},
	}, now, nil
}

func (e *expired) Terminate(_ context.Context, m fleet.Ref) error {
	e.ended += m.Machine
	return nil
}
