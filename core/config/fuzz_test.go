package config

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// FuzzParse: nothing panics, every error has its place, and what is valid is valid again in its effective form and means the same.
func FuzzParse(f *testing.F) {
	bad, err := filepath.Glob("testdata/bad/*.json")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range append(bad, goodFiles(f)...) {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, true)
		f.Add(b, false)
	}
	f.Fuzz(func(t *testing.T, b []byte, redis bool) {
		p, err := Parse("fuzz.json", b, Env{RedisURLSet: redis})
		if err != nil {
			checkPlaces(t, err)
			return
		}
		again, err := Parse("effective.json", p.EffectiveJSON, Env{})
		if err != nil {
			t.Fatalf("the effective form is refused:\n%v\n%s", err, p.EffectiveJSON)
		}
		if a, b := decisions(t, p), decisions(t, again); a != b {
			t.Fatalf("the effective form means something else: %s", firstDifference(b, a))
		}
	})
}

func checkPlaces(t *testing.T, err error) {
	t.Helper()
	var list *Errors
	if !errors.As(err, &list) || len(list.Problems) == 0 {
		t.Fatalf("not a list of problems: %v", err)
	}
	last := 0
	for _, p := range list.Problems {
		if p.File == "" || p.Line < 1 || p.Column < 1 || p.Message == "" {
			t.Fatalf("a problem without its place: %+v", p)
		}
		if p.Line < last {
			t.Fatalf("problems are not in the order of the file:\n%v", err)
		}
		last = p.Line
	}
}
