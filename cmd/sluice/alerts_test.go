package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"sluice/core/fleet"
)

// hook is a real receiver; the first part of the path is what it answers.
type hook struct {
	*httptest.Server
	mu  sync.Mutex
	got []string
}

func newHook(t *testing.T) *hook {
	t.Helper()
	h := &hook{}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		h.mu.Lock()
		h.got = append(h.got, r.URL.Path+" "+r.Header.Get("Sluice-Signature")+" "+string(b))
		h.mu.Unlock()
		if strings.HasPrefix(r.URL.Path, "/bad") {
			http.Error(w, "no such hook", http.StatusNotFound)
		}
	}))
	t.Cleanup(h.Close)
	return h
}

func (h *hook) bodies() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.got...)
}

const channelsConfig = `{"name": "prod", "alerts": {
  "channels": {"ops": {"kind": "webhook", "url": "env:OPS", "secret": "env:KEY"}, "bad": {"kind": "webhook", "url": "env:BAD", "format": "slack"}},
  "levels": {"warning": ["ops"], "critical": ["ops", "bad"]}}}`

func channelsEnv(t *testing.T, h *hook) []string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "scheduler.json")
	if err := os.WriteFile(path, []byte(channelsConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"SLUICE_CONFIG=" + path, "OPS=" + h.URL + "/ops/hunter2", "BAD=" + h.URL + "/bad/hunter2", "KEY=hunter2"}
}

func TestTryingChannelsOutSaysWhatAnswered(t *testing.T) {
	t.Parallel()
	h := newHook(t)
	env := channelsEnv(t, h)
	r := call{args: []string{"alerts", "test", "--json"}, env: env}.run(t)
	var got []tried
	if err := json.Unmarshal([]byte(r.out), &got); err != nil {
		t.Fatalf("%v: %s%s", err, r.out, r.err)
	}
	if r.code != exitFailed || len(got) != 9 || !strings.Contains(r.err, "3 of 9 test messages were not taken") {
		t.Errorf("%d: %s%s", r.code, r.out, r.err)
	}
	for _, x := range got {
		failed := x.Channel == "bad"
		routed := x.Level == fleet.Critical && x.Channel != "log" || x.Level == fleet.Warning && x.Channel == "ops" || x.Level == fleet.Info && x.Channel == "log"
		answer := map[string]string{"ops": "200 OK", "bad": "404 Not Found", "log": "written to the log"}[x.Channel]
		if (x.Error != "") != failed || x.Routed != routed || x.Answer != answer || failed && !strings.Contains(x.Error, "says: no such hook") {
			t.Errorf("%+v", x)
		}
	}
	for _, b := range h.bodies() {
		if !strings.Contains(b, `"test":true`) && !strings.Contains(b, "Test: This is a test") {
			t.Errorf("a message does not say that it is a test: %s", b)
		}
	}
	if n := len(h.bodies()); n != 6 {
		t.Errorf("%d messages arrived", n)
	}
	if strings.Contains(r.out+r.err, "hunter2") {
		t.Errorf("a secret is shown: %s%s", r.out, r.err)
	}
}

func TestTryingOneChannelOut(t *testing.T) {
	t.Parallel()
	h := newHook(t)
	env := append(channelsEnv(t, h), "COLUMNS=40")
	r := call{args: []string{"alerts", "test", "--channel", "ops", "--level", "critical"}, env: env}.run(t)
	if r.code != exitDone || len(h.bodies()) != 1 || !strings.Contains(h.bodies()[0], "t=") || !strings.Contains(r.out, "answer: 200 OK") {
		t.Errorf("%d: %s%s, arrived %v", r.code, r.out, r.err, h.bodies())
	}
	fits(t, r.out, 40)
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--channel", "opps"}, exitFailed, `the config has no channel "opps"; it has bad, log, ops`},
		{[]string{"--level", "loud"}, exitUsage, "want info, warning or critical"},
		{[]string{"--config", "/nowhere/x.json"}, exitFailed, "/nowhere/x.json"},
	} {
		if r := (call{args: append([]string{"alerts", "test"}, c.args...), env: channelsEnv(t, h)}).run(t); r.code != c.code || !strings.Contains(r.err, c.says) {
			t.Errorf("%v: %d %s", c.args, r.code, r.err)
		}
	}
	if r := sluice(t, "alerts", "tset"); r.code != exitUsage || !strings.Contains(r.err, "did you mean `sluice alerts test`") {
		t.Errorf("%d %s", r.code, r.err)
	}
}

// TestAlertsAreListedByChannel goes the whole way of an alert: stored, sent by a tick, listed.
func TestAlertsAreListedByChannel(t *testing.T) {
	t.Parallel()
	h := newHook(t)
	i := install(t, "vps_only")
	i.env = append(i.env, channelsEnv(t, h)...)
	if out := i.must(t, "alerts"); out != "No alert waits, and none was raised in the last 24h.\n" {
		t.Errorf("before any: %s", out)
	}
	if out := i.must(t, "alerts", "--waiting", "--channel", "ops"); out != "No alert waits for the channel ops: all are delivered.\n" {
		t.Errorf("before any: %s", out)
	}
	raise(t, i)
	if out := i.must(t, "alerts"); !strings.Contains(out, "(the next tick)") {
		t.Errorf("before a tick: %s", out)
	}
	r := i.sluice(t, "tick")
	if r.code != exitDone || !strings.Contains(r.err, "an alert is not delivered by the channel bad (refused): The disk is full: ") {
		t.Errorf("the tick ends with %d: %s%s", r.code, r.out, r.err)
	}
	var got []fleet.DeliveryRecord
	if err := json.Unmarshal([]byte(i.must(t, "alerts", "--json")), &got); err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0].Channel != "bad" || got[0].State != fleet.DeliveryRefused || got[0].Attempts != 1 ||
		got[1].Channel != "ops" || got[1].State != fleet.DeliveryDelivered || got[1].Answer != "200 OK" || got[1].Tried.IsZero() {
		t.Errorf("listed %+v", got)
	}
	i.sluice(t, "tick")
	if n := len(h.bodies()); n != 2 {
		t.Errorf("%d messages after the second tick, want one for each channel", n)
	}
	if out := i.must(t, "alerts", "--channel", "ops"); !strings.Contains(out, "delivered") || strings.Contains(out, "bad") {
		t.Errorf("of one channel: %s", out)
	}
	fits(t, call{args: []string{"alerts"}, env: append(i.env, "COLUMNS=40")}.run(t).out, 40)
}

// raise puts a critical alert into the outbox.
func raise(t *testing.T, i installation) {
	t.Helper()
	_, err := i.db.Connect(t).Exec(t.Context(), `INSERT INTO sluice_alerts (key, level, title, facts, at) VALUES ('disk/1', 'critical', 'The disk is full', '{"code":"disk"}', sluice_clock())`)
	if err != nil {
		t.Fatal(err)
	}
}
