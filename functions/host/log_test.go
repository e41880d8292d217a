package host

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/core/fleet"
	"sluice/core/fleet/fleettest"
	"sluice/core/tick"
)

var due = time.Date(2027, 1, 14, 9, 31, 0, 0, time.UTC)

// logged are the lines of a tick as objects.
func logged(t *testing.T, k Tick) []map[string]any {
	t.Helper()
	var b bytes.Buffer
	NewLog(&b).Write(t.Context(), k)
	var out []map[string]any
	for line := range strings.Lines(b.String()) {
		var object map[string]any
		if err := json.Unmarshal([]byte(line), &object); err != nil {
			t.Fatalf("not JSON: %s", line)
		}
		out = append(out, object)
	}
	return out
}

func twoLines() tick.Report {
	return tick.Report{
		Snapshot: fleet.Snapshot{Config: fleet.Config{Name: "prod"}},
		Lines: []fleet.Line{
			{ID: "d-1", Event: "scale_up", Level: fleet.Warning, Pool: "ocr", Message: "Scaling up ocr", Facts: json.RawMessage(`{"have":1,"why":[{"code":"backlog.age"}]}`)},
			{ID: "d-2", Event: "tick", Level: fleet.Info, Message: "ocr 1 → 2", Facts: json.RawMessage(`{"result":"acted"}`)},
		},
	}
}

func TestEachDecisionIsALineWithItsFactsAtTheTop(t *testing.T) {
	t.Parallel()
	got := logged(t, Tick{Function: fleet.Evaluate, Due: due, Report: twoLines(), Took: 212 * time.Millisecond})
	if len(got) != 2 {
		t.Fatalf("%d lines, want 2", len(got))
	}
	for key, want := range map[string]any{
		"level": "WARN", "event": "scale_up", "install": "prod", "function": "evaluate", "due": "2027-01-14T09:31:00Z",
		"id": "d-1", "pool": "ocr", "message": "Scaling up ocr", "have": 1.0,
	} {
		if got[0][key] != want {
			t.Errorf("%s is %v, want %v", key, got[0][key], want)
		}
	}
	if got[1]["event"] != "tick" || got[1]["result"] != "acted" || got[1]["ms"] != 212.0 {
		t.Errorf("the tick line is %v", got[1])
	}
}

func TestAFailedTickIsVisiblyFailed(t *testing.T) {
	t.Parallel()
	failed := errors.Join(errors.New("launch: denied"), errors.New("terminate: time-out"))
	for name, report := range map[string]tick.Report{"before it decided": {}, "while it acted": twoLines()} {
		got := logged(t, Tick{Function: fleet.Evaluate, Due: due, Report: report, Err: failed})
		last := got[len(got)-1]
		if last["level"] != "ERROR" || last["event"] != "tick" || last["result"] != "failed" {
			t.Errorf("failed %s: %v", name, last)
		}
		if want := "Failed: launch: denied; terminate: time-out"; last["message"] != want {
			t.Errorf("failed %s: message %q, want %q", name, last["message"], want)
		}
	}
}

func TestAnAlertIsALineOfItsLevel(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	m := fleet.Config{Name: "prod"}.Message(fleet.Alert{
		Key: "k", Level: fleet.Critical, Title: "Daily limit", At: due, Facts: json.RawMessage(`{"code":"daily_limit"}`),
	})
	if answer, err := NewLog(&b).Alerter().Send(t.Context(), m); err != nil || answer != "written to the log" {
		t.Fatal(answer, err)
	}
	for _, want := range []string{`"level":"ERROR"`, `"event":"alert"`, `"code":"daily_limit"`, `"message":"Daily limit"`, `"install":"prod"`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%s is not in %s", want, b.String())
		}
	}
}

func TestAnAlertThatDidNotGetThroughIsALine(t *testing.T) {
	t.Parallel()
	m := fleet.Config{Name: "prod"}.Message(fleet.Alert{Key: "k", Level: fleet.Critical, Title: "Daily limit", Facts: json.RawMessage(`{"code":"daily_limit"}`)})
	r := twoLines()
	r.Unsent = []tick.Unsent{
		{Message: m, Channel: "ops", State: fleet.DeliveryWaiting, Answer: "503"}, {Message: m, Channel: "phone", State: fleet.DeliveryRefused, Answer: "404"},
	}
	got := logged(t, Tick{Function: fleet.Evaluate, Due: due, Report: r})[2:]
	for key, want := range map[string]any{
		"level": "WARN", "event": "alert_waiting", "channel": "ops", "error": "503", "install": "prod", "message": "Alert waits for channel ops: Daily limit",
	} {
		if got[0][key] != want {
			t.Errorf("a waiting one: %s is %v, want %v", key, got[0][key], want)
		}
	}
	for key, want := range map[string]any{"level": "ERROR", "event": "alert_refused", "channel": "phone", "code": "daily_limit", "message": "Daily limit"} {
		if got[1][key] != want {
			t.Errorf("a refused one is told whole: %s is %v, want %v", key, got[1][key], want)
		}
	}
}

func TestTheLogIsAChannel(t *testing.T) {
	t.Parallel()
	fleettest.Alerter(t, func(*testing.T) fleettest.AlerterHarness {
		var b bytes.Buffer
		return fleettest.AlerterHarness{Alerter: NewLog(&b).Alerter(), Got: func() []string { return slices.Collect(strings.Lines(b.String())) }}
	})
}
