package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/core/fleet"
)

// examined is what the doctor found, by check; the worst state of each.
func examined(t *testing.T, r result) map[string]finding {
	t.Helper()
	var all []finding
	if err := json.Unmarshal([]byte(r.out), &all); err != nil {
		t.Fatalf("%v: %s%s", err, r.out, r.err)
	}
	worst := []health{healthy, doubtful, unchecked, broken}
	rank := func(h health) int {
		for i, w := range worst {
			if w == h {
				return i
			}
		}
		return -1
	}
	out := map[string]finding{}
	for _, f := range all {
		if old, ok := out[f.Check]; !ok || rank(f.State) > rank(old.State) {
			out[f.Check] = f
		}
	}
	return out
}

func (i installation) doctor(t *testing.T) (map[string]finding, int) {
	t.Helper()
	r := i.sluice(t, "doctor", "--json")
	return examined(t, r), r.code
}

func TestTheDoctorFindsAnInstallationWell(t *testing.T) {
	t.Parallel()
	i := install(t, "vps_only")
	i.enqueue(t, 2)
	i.must(t, "tick")
	i.must(t, "tick", "--reconcile")
	if _, err := i.db.Connect(t).Exec(t.Context(), "SELECT sluice_register('vps', 'vps-1', 'vps')"); err != nil {
		t.Fatal(err)
	}
	found, code := i.doctor(t)
	if code != exitDone {
		t.Errorf("ends with %d: %+v", code, found)
	}
	for check, want := range map[string]health{
		"config": healthy, "database": healthy, "role": doubtful, "clock": healthy, "schema": healthy, "ticks": healthy,
		"queue ocr": healthy, "workers": healthy, "provider local": healthy, "bill": healthy,
	} {
		if found[check].State != want {
			t.Errorf("%s is %+v, want %s", check, found[check], want)
		}
	}
	if !strings.Contains(found["role"].Finding, "superuser") || !strings.HasPrefix(found["queue ocr"].Finding, "2 waiting") {
		t.Errorf("role %q, queue %q", found["role"].Finding, found["queue ocr"].Finding)
	}
	// 3 machines at 0.10 for the 12 hours of a lifetime.
	if out := i.must(t, "doctor"); !strings.Contains(out, "up to 3.60 USD until every machine's lifetime of 12h0m0s ends it") {
		t.Errorf("the bill without us: %s", out)
	}
}

func TestTheDoctorNamesEachDiseaseAndItsMend(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, sql   string
		check       string
		state       health
		finds, mend string
	}{
		{"an override", "INSERT INTO sluice_overrides (id, at, who, why) VALUES ('o', sluice_clock(), 'evaluate', 'daily limit 5.00')", "mode", broken, "daily limit 5.00", "sluice resume-cloud --reason"},
		{"no ticks any more", "UPDATE sluice_ticks SET at = at - interval '1 hour'", "ticks", broken, "evaluate ran last 1h0m", "timer"},
		{"a worker fallen silent", "SELECT sluice_register('vps', 'vps-1', 'vps'); UPDATE workers SET last_heartbeat = sluice_clock() - interval '1 hour'", "worker", doubtful, "heard of last 1h0m", "sluice-agent"},
		{"a machine that never registered", `SELECT sluice_register('local', 'm-1', 'ocr', NULL, NULL);
			UPDATE workers SET status = 'provisioning', registered_at = NULL, boot_at = sluice_clock() - interval '1 day'`, "worker", doubtful, "has not registered", "console"},
		{"machines of an older spec", "SELECT sluice_register('local', 'm-1', 'ocr', NULL, 'old')", "pool ocr", doubtful, "1 of its machines", "sluice roll ocr"},
		{"nobody on the VPS", "SELECT 1", "workers", doubtful, "no VPS worker", "start sluice-agent"},
		{"an older schema", "DELETE FROM sluice_schema WHERE version_id > 1", "schema", broken, "sluice migrate", "sluice migrate"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			i := install(t, "vps_only")
			i.must(t, "tick")
			for _, sql := range strings.Split(tt.sql, ";") {
				if _, err := i.db.Connect(t).Exec(t.Context(), sql); err != nil {
					t.Fatal(err)
				}
			}
			found, code := i.doctor(t)
			if (code == exitFailed) != (tt.state == broken) {
				t.Errorf("ends with %d", code)
			}
			for check, f := range found {
				if strings.HasPrefix(check, tt.check) && f.State == tt.state && strings.Contains(f.Finding, tt.finds) && strings.Contains(f.Mend, tt.mend) {
					return
				}
			}
			t.Errorf("not found: %+v", found)
		})
	}
}

func TestTheDoctorChecksWhatItCanWithoutADatabaseOrAConfig(t *testing.T) {
	t.Parallel()
	i := install(t, "vps_only")
	lost := installation{i.db, append(i.env[1:len(i.env):len(i.env)], "DATABASE_URL=postgres://nobody:hunter2@127.0.0.1:1/none")}
	r := lost.sluice(t, "doctor", "--json")
	found := examined(t, r)
	if r.code != exitFailed || found["database"].State != broken || found["schema"].State != unchecked || found["config"].State != healthy || found["bill"].State != healthy {
		t.Errorf("without a database: %d, %+v", r.code, found)
	}
	if strings.Contains(r.out+r.err, "hunter2") {
		t.Errorf("a password is shown: %s%s", r.out, r.err)
	}
	bad := filepath.Join(t.TempDir(), "bad.json")
	if err := os.WriteFile(bad, []byte(`{"moed": "hybrid"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	r = i.sluice(t, "doctor", "--json", "--config", bad)
	found = examined(t, r)
	if r.code != exitFailed || found["config"].State != broken || !strings.Contains(found["config"].Finding, "moed") || found["database"].State != healthy || found["queues"].State != unchecked {
		t.Errorf("with a broken config: %d, %+v", r.code, found)
	}
}

func TestTheDoctorTakesAnUnknownPriceForNoBillOfZero(t *testing.T) {
	t.Parallel()
	place := fleet.Place{Provider: "aws", Scope: "eu-1"}
	e := &examination{config: &fleet.Config{
		Providers: []fleet.Provider{{Name: "aws", Scope: "eu-1", MaxInstances: 3}},
		Pools:     []fleet.Pool{{Name: "ocr", Enabled: true, MaxWorkers: 3, Offers: []fleet.Offer{{Place: place, Type: "new"}}}},
	}}
	e.checkBill(t.Context())
	if len(e.findings) != 1 || e.findings[0].State != unchecked || !strings.Contains(e.findings[0].Finding, "none of its 1 offers has a known price") {
		t.Errorf("the bill is %+v", e.findings)
	}
}

func TestTheDoctorFitsFortyColumnsWithoutColours(t *testing.T) {
	t.Parallel()
	i := install(t, "vps_only")
	r := call{args: []string{"doctor"}, env: append(i.env, "COLUMNS=40", "NO_COLOR=1")}.run(t)
	for line := range strings.SplitSeq(r.out, "\n") {
		if n := len([]rune(line)); n > 40 && strings.Contains(strings.TrimSpace(line), " ") {
			t.Errorf("%d columns: %q", n, line)
		}
	}
	if strings.Contains(r.out, "\x1b") || !strings.Contains(r.out, "failure") {
		t.Errorf("colours, or no word for what failed: %q", r.out)
	}
}
