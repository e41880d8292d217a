package config

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/core/fleet"
)

// TestWhatValidFilesMean holds warnings, meaning and what is not honoured yet against golden files.
func TestWhatValidFilesMean(t *testing.T) {
	t.Parallel()
	for _, file := range goodFiles(t) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			t.Parallel()
			p := parseFile(t, file)
			compareFile(t, filepath.Join("testdata", "good", strings.TrimSuffix(filepath.Base(file), ".json")+".golden"), summary(p))
		})
	}
}

func goodFiles(t testing.TB) []string {
	t.Helper()
	good, err := filepath.Glob("testdata/good/*.json")
	if err != nil {
		t.Fatal(err)
	}
	examples, err := filepath.Glob("../../docs/examples/*.json")
	if err != nil {
		t.Fatal(err)
	}
	if len(good) < 4 || len(examples) < 3 {
		t.Fatalf("found %d good files and %d examples", len(good), len(examples))
	}
	return append(good, examples...)
}

func parseFile(t testing.TB, file string) Parsed {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Parse(filepath.Base(file), b, Env{})
	if err != nil {
		t.Fatalf("%s is refused:\n%v", file, err)
	}
	return p
}

func summary(p Parsed) []byte {
	var b bytes.Buffer
	section := func(title string, lines []string) {
		b.WriteString("# " + title + "\n")
		for _, l := range lines {
			b.WriteString(l + "\n")
		}
	}
	section("not honoured yet", p.Config.NotHonoured)
	section("warnings", p.Warnings)
	section("meaning", p.Meaning)
	return b.Bytes()
}

// TestTheEffectiveFileMeansTheSame parses what validate --effective prints.
func TestTheEffectiveFileMeansTheSame(t *testing.T) {
	t.Parallel()
	for _, file := range goodFiles(t) {
		p := parseFile(t, file)
		again, err := Parse("effective.json", p.EffectiveJSON, Env{})
		if err != nil {
			t.Errorf("the effective form of %s is refused:\n%v", file, err)
			continue
		}
		if a, b := decisions(t, p), decisions(t, again); a != b {
			t.Errorf("the effective form of %s means something else:\n%s", file, firstDifference(b, a))
		}
	}
}

// decisions are what decisions read; the list of keys not honoured names inherited ones where they stand.
func decisions(t testing.TB, p Parsed) string {
	t.Helper()
	c := p.Config
	if len(c.NotHonoured) > 0 {
		c.NotHonoured = []string{"some"}
	}
	b, err := json.MarshalIndent(c, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestTheSameFileGivesTheSameBytes(t *testing.T) {
	t.Parallel()
	for _, file := range goodFiles(t) {
		first := parseFile(t, file)
		for range 20 {
			again := parseFile(t, file)
			if decisions(t, first) != decisions(t, again) || !bytes.Equal(summary(first), summary(again)) {
				t.Fatalf("%s is read differently each time", file)
			}
		}
	}
}

func TestAnEmptyObjectIsVPSOnlyWithEveryDefault(t *testing.T) {
	t.Parallel()
	p, err := Parse("sluice.json", []byte(`{}`), Env{})
	if err != nil {
		t.Fatal(err)
	}
	c := p.Config
	want := fleet.Config{
		Name: "sluice", Currency: "USD", Timezone: "UTC", Mode: fleet.VPSOnly, Interval: 60,
		Workers: fleet.WorkerRules{Heartbeat: 15, BootTimeout: 300, Visibility: 300, MaxAttempts: 3, RetryElsewhere: true, LostDatabase: 900, MaxLifetime: 12 * 3600},
		Limits:  fleet.Limits{Hourly: 500 * fleet.Cent, Daily: 5000 * fleet.Cent, Alert: 3000 * fleet.Cent},
	}
	same(t, "config", c, want)
	if p.Connections.Database.URL != "env:DATABASE_URL" || p.Connections.Redis.URL != "env:REDIS_URL" || p.Connections.Database.WorkerURL != "env:DATABASE_URL" {
		t.Errorf("connections are %+v", p.Connections)
	}
}

func TestAQueueThatSaysNothingHasEveryDefault(t *testing.T) {
	t.Parallel()
	p, err := Parse("sluice.json", []byte(`{"queues":{"images":{}}}`), Env{RedisURLSet: true})
	if err != nil {
		t.Fatal(err)
	}
	zero := fleet.Seconds(0)
	same(t, "queues", p.Config.Queues, []fleet.Queue{{Name: "images", Source: fleet.Source{Kind: fleet.SourceRedis, Key: "queue:images", Rows: true},
		Run: fleet.Run{Timeout: 3600, Slots: 1, StopGrace: 30}}})
	same(t, "pools", p.Config.Pools, []fleet.Pool{{Name: "images",
		Queues:    []fleet.PoolQueue{{Name: "images", Depth: 10, Age: 300, DepthBelow: 2}},
		Automatic: true, Urgency: 50, MaxWorkers: 1, UpCooldown: 120, DownCooldown: 300, IdleMinutes: 10, DrainTimeout: 300,
		OnIdle: fleet.TerminateIdle, MaxSuspendedFor: 168 * 3600, FallbackAfter: &zero, Cheapest: true}})
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	g, err := json.MarshalIndent(got, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	w, err := json.MarshalIndent(want, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(g, w) {
		t.Errorf("%s: have\n%s\nwant\n%s", what, g, w)
	}
}
