package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var documented = regexp.MustCompile("(?s)```json\n(.*?)```")

// example is the snapshot that docs/snapshot.md shows, kept as a file so that the other tests can name it.
func example(t *testing.T) string {
	t.Helper()
	doc, err := os.ReadFile("../../docs/snapshot.md")
	if err != nil {
		t.Fatal(err)
	}
	m := documented.FindSubmatch(doc)
	if m == nil {
		t.Fatal("docs/snapshot.md has no example")
	}
	return string(m[1])
}

func TestTheExampleOfTheDocumentationDecidesAsItSays(t *testing.T) {
	t.Parallel()
	golden(t, "snapshot.json", example(t))
	r := sluice(t, "decide", "--snapshot", "testdata/snapshot.json")
	if r.code != 0 {
		t.Fatal(r.err)
	}
	golden(t, "decide.txt", r.out)
	golden(t, "decide.json", sluice(t, "decide", "--snapshot", "testdata/snapshot.json", "--json").out)
}

func launches(t *testing.T, r result) map[string]int {
	t.Helper()
	var a struct {
		Plan struct {
			Pools []struct {
				Pool   string
				Launch int
			}
		}
	}
	if err := json.Unmarshal([]byte(r.out), &a); err != nil {
		t.Fatalf("%v: %s%s", err, r.out, r.err)
	}
	out := map[string]int{}
	for _, p := range a.Plan.Pools {
		out[p.Pool] = p.Launch
	}
	return out
}

func TestASnapshotMayComeFromStandardInput(t *testing.T) {
	t.Parallel()
	r := call{args: []string{"decide", "--snapshot", "-", "--json"}, stdin: example(t)}.run(t)
	if got := launches(t, r)["ocr"]; got != 1 {
		t.Errorf("launches %d, want 1", got)
	}
}

func TestAnotherConfigAnswersAWhatIf(t *testing.T) {
	t.Parallel()
	r := sluice(t, "decide", "--config", "testdata/base.json", "--snapshot", "testdata/snapshot.json", "--json")
	got := launches(t, r)
	if _, ok := got["bulk"]; !ok || got["ocr"] != 0 {
		t.Errorf("the pools are %v, want those of vps_only and no launch", got)
	}
}

func TestEqualSnapshotsGiveEqualBytes(t *testing.T) {
	t.Parallel()
	args := []string{"decide", "--snapshot", "testdata/snapshot.json", "--json"}
	if a, b := sluice(t, args...), sluice(t, args...); a.out != b.out || a.out == "" {
		t.Errorf("two answers:\n%s\n%s", a.out, b.out)
	}
}

func TestABadSnapshotIsAnErrorThatNamesItsPlace(t *testing.T) {
	t.Parallel()
	good := example(t)
	for name, c := range map[string]struct {
		text string
		says []string
	}{
		"empty":          {"", []string{"bad.json"}},
		"not JSON":       {"{\n  version: 1\n}", []string{"bad.json:2", "not JSON"}},
		"unknown key":    {strings.Replace(good, `"depth"`, `"deep"`, 1), []string{"/queues/0/deep", "no such key", "docs/snapshot.md"}},
		"key twice":      {strings.Replace(good, `"version": 1,`, "\"version\": 1,\n\"version\": 1,", 1), []string{"bad.json:3", "twice"}},
		"wrong type":     {strings.Replace(good, `"depth": 42`, `"depth": "many"`, 1), []string{"/queues/0/depth"}},
		"other version":  {strings.Replace(good, `"version": 1`, `"version": 9`, 1), []string{"version", "found 9, expected 1"}},
		"no now":         {strings.Replace(good, `"now": "2027-01-14T09:31:00.4Z",`, "", 1), []string{"memory.now"}},
		"no due":         {strings.Replace(good, `"due": "2027-01-14T09:31:00Z",`, "", 1), []string{"due"}},
		"trailing text":  {good + "{}", []string{"bad.json"}},
		"a list instead": {"[]", []string{"bad.json"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "bad.json"), []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			r := call{args: []string{"decide", "--snapshot", "bad.json"}, dir: dir}.run(t)
			if r.code != exitFailed {
				t.Errorf("ends with %d: %s", r.code, r.out)
			}
			for _, want := range c.says {
				if !strings.Contains(r.err, want) {
					t.Errorf("%q is not in %s", want, r.err)
				}
			}
		})
	}
}
