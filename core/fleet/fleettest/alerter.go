package fleettest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"sluice/core/fleet"
)

// AlerterHarness is a channel with the handles that the suite needs.
type AlerterHarness struct {
	Alerter fleet.Alerter
	// Got is what has arrived, each as it was written.
	Got func() []string
	// Refuse makes the other side refuse messages for good, and Fail makes it fail for now; nil where it cannot.
	Refuse, Fail func()
	// Repeats says that a receiver can tell a repeat by the message's ID.
	Repeats bool
}

// Alerter runs the conformance suite of fleet.Alerter.
func Alerter(t *testing.T, open func(t *testing.T) AlerterHarness) {
	t.Helper()
	for _, c := range []struct {
		name string
		run  func(*testing.T, AlerterHarness)
	}{
		{"a message arrives, and the answer is told", arrives},
		{"a repeat arrives under the same id", repeats},
		{"a title of any letters arrives", hostile},
		{"a refusal says so", refuses},
		{"a failure is no refusal", fails},
		{"an ended context ends the call", ends},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t, open(t))
		})
	}
}

func alertMessage(title string) fleet.Message {
	return fleet.Config{Name: "suite", Page: "https://sluice.example.org/"}.Message(fleet.Alert{
		Key: "daily_limit/1", Level: fleet.Critical, Title: title, Facts: []byte(`{"code":"daily_limit","limit_usd":50}`), At: time.Date(2027, 1, 14, 9, 31, 0, 0, time.UTC),
	})
}

func arrives(t *testing.T, h AlerterHarness) {
	answer, err := h.Alerter.Send(t.Context(), alertMessage("The daily limit is reached"))
	got := h.Got()
	if err != nil || answer == "" || len(got) != 1 || !strings.Contains(got[0], "The daily limit is reached") {
		t.Errorf("answered %q, %v; arrived %q", answer, err, got)
	}
}

func repeats(t *testing.T, h AlerterHarness) {
	m := alertMessage("The daily limit is reached")
	for range 2 {
		if _, err := h.Alerter.Send(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	got := h.Got()
	if len(got) != 2 || h.Repeats && (!strings.Contains(got[0], m.ID) || !strings.Contains(got[1], m.ID)) {
		t.Errorf("arrived %q", got)
	}
}

func hostile(t *testing.T, h AlerterHarness) {
	for _, title := range []string{"<!channel> *now* & <https://evil.example|here>", "\x1b[31m\r\nX-Injected: yes", "\xff\xfe not UTF-8", strings.Repeat("é", 10_000), ""} {
		if _, err := h.Alerter.Send(t.Context(), alertMessage(title)); err != nil {
			t.Errorf("%.40q: %v", title, err)
		}
	}
	if got := h.Got(); len(got) != 5 {
		t.Errorf("%d of 5 arrived", len(got))
	}
}

func refuses(t *testing.T, h AlerterHarness) {
	if h.Refuse == nil {
		return
	}
	h.Refuse()
	if _, err := h.Alerter.Send(t.Context(), alertMessage("x")); !errors.Is(err, fleet.ErrBadRequest) && !errors.Is(err, fleet.ErrDenied) {
		t.Errorf("got %v", err)
	}
}

func fails(t *testing.T, h AlerterHarness) {
	if h.Fail == nil {
		return
	}
	h.Fail()
	if _, err := h.Alerter.Send(t.Context(), alertMessage("x")); err == nil || errors.Is(err, fleet.ErrBadRequest) || errors.Is(err, fleet.ErrDenied) {
		t.Errorf("got %v", err)
	}
}

func ends(t *testing.T, h AlerterHarness) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.Alerter.Send(ctx, alertMessage("x")); err == nil && h.Fail != nil {
		t.Error("a call whose context has ended succeeds")
	}
}
