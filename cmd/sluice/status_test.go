package main

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestStatusOfAnEmptyInstallationSaysWhatToDoFirst(t *testing.T) {
	t.Parallel()
	i := install(t, "hybrid")
	r := i.sluice(t, "status")
	if r.code != exitFailed {
		t.Errorf("ends with %d, want %d: %s", r.code, exitFailed, r.err)
	}
	for _, want := range []string{"no config yet", "no tick has run here yet", "sluice plan --config FILE"} {
		if !strings.Contains(r.out, want) {
			t.Errorf("%q is not said:\n%s", want, r.out)
		}
	}
}

func TestStatusShowsModeMoneyPoolsQueuesAndTheVPS(t *testing.T) {
	t.Parallel()
	i := install(t, "vps_only")
	i.enqueue(t, 5)
	i.must(t, "tick")
	if _, err := i.db.Connect(t).Exec(t.Context(), "SELECT sluice_register('vps', 'vps-1', 'vps'), sluice_register('vps', 'vps-1', 'vps')"); err != nil {
		t.Fatal(err)
	}
	out := i.must(t, "status")
	for _, want := range []string{"cli-test, vps_only", "Last tick", "0.00 per hour of", "limit.mode", "vps-1", "Nothing wants a person."} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not said:\n%s", want, out)
		}
	}
	var s struct {
		Queues []struct {
			Name  string `json:"name"`
			Depth int    `json:"depth"`
		} `json:"queues"`
		Pools []struct {
			Pool string `json:"pool"`
			Have int    `json:"have"`
			Want int    `json:"want"`
		} `json:"pools"`
	}
	if err := json.Unmarshal([]byte(i.must(t, "status", "--json")), &s); err != nil {
		t.Fatal(err)
	}
	if len(s.Queues) != 1 || s.Queues[0].Name != "ocr" || s.Queues[0].Depth != 5 || len(s.Pools) != 1 || s.Pools[0].Pool != "ocr" || s.Pools[0].Have+s.Pools[0].Want != 0 {
		t.Errorf("as JSON: %+v", s)
	}
	narrow := call{args: []string{"status"}, env: append(i.env, "COLUMNS=40")}.run(t)
	for line := range strings.SplitSeq(narrow.out, "\n") {
		if len([]rune(line)) > 40 {
			t.Errorf("wider than 40 columns: %q", line)
		}
	}
}

func TestStatusNamesWhatWantsAPerson(t *testing.T) {
	t.Parallel()
	i := install(t, "hybrid")
	i.must(t, "tick")
	conn := i.db.Connect(t)
	for _, sql := range []string{
		"UPDATE sluice_ticks SET at = at - interval '1 hour'",
		"INSERT INTO sluice_overrides (id, at, who, why) VALUES (gen_random_uuid(), sluice_clock(), 'sluice', 'the daily limit of 5.00 USD is used up')",
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	r := i.sluice(t, "status")
	if r.code != exitFailed {
		t.Errorf("ends with %d, want %d", r.code, exitFailed)
	}
	for _, want := range []string{"no tick has come to an end for 1h0m", "the daily limit of 5.00 USD is used up", "sluice resume-cloud --reason"} {
		if !strings.Contains(r.out, want) {
			t.Errorf("%q is not said:\n%s", want, r.out)
		}
	}
}
