package config

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"sluice/core/fleet"
)

// TestEveryNumberHasItsBounds walks all numbers of the schema: the bounds themselves fit, one beyond does not.
func TestEveryNumberHasItsBounds(t *testing.T) {
	t.Parallel()
	seen := 0
	var walk func(s *shape, p path)
	walk = func(s *shape, p path) {
		if s.Type.has("integer") {
			seen++
			checkBounds(t, s, p)
		}
		for _, k := range s.keys() {
			walk(s.Properties[k], p.key(k))
		}
		if s.Items != nil {
			walk(s.Items, p.key("[]"))
		}
		if s.values != nil {
			walk(s.values, p.key("*"))
		}
	}
	walk(rootShape(), nil)
	if seen < 60 {
		t.Errorf("only %d numbers were found", seen)
	}
}

func checkBounds(t *testing.T, s *shape, p path) {
	t.Helper()
	if s.Minimum == nil || s.Maximum == nil {
		t.Errorf("%s has no bounds", p)
		return
	}
	low, errLow := s.Minimum.Int64()
	high, errHigh := s.Maximum.Int64()
	if errLow != nil || errHigh != nil {
		t.Fatal(errLow, errHigh)
	}
	for n, fits := range map[int64]bool{low - 1: false, low: true, high: true, high + 1: false} {
		c := &checker{}
		if c.check(&node{kind: number, text: strconv.FormatInt(n, 10)}, s, p) != fits {
			t.Errorf("%s: %d fits is %v, expected %v", p, n, !fits, fits)
		}
	}
}

func TestSizes(t *testing.T) {
	t.Parallel()
	padded := func(n int) []byte { return []byte("{}" + strings.Repeat(" ", n-2)) }
	tests := []struct {
		name string
		b    []byte
		want string
	}{
		{"a file of exactly the limit is read", padded(MaxBytes), ""},
		{"one byte more is refused", padded(MaxBytes + 1), "f:1:1: the file has 1048577 bytes, expected at most 1048576"},
		{"31 lists inside the object are read", deep(31), ""},
		{"32 are refused", deep(32), "nested deeper than 32 levels"},
		{"a million brackets are refused", []byte(strings.Repeat("[", 1_000_000)), "nested deeper than 32 levels"},
		{"a number of a million digits is refused and cut", []byte(`{"version":` + strings.Repeat("9", 1_000_000) + `}`), "9…, expected a whole number: 1"},
		{"a key of a million letters is refused and cut", []byte(`{"` + strings.Repeat("k", 1_000_000) + `":1}`), `k…"]: unknown key`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			begin := time.Now()
			_, err := Parse("f", tt.b, Env{})
			if time.Since(begin) > 5*time.Second {
				t.Error("took too long")
			}
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("have %.200v, want %s", err, tt.want)
			case err != nil && len(err.Error()) > 3000:
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
}

func deep(n int) []byte {
	return []byte(`{"x-deep":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}`)
}

func TestManyMistakesAreFoundQuickly(t *testing.T) {
	t.Parallel()
	for what, entry := range map[string]string{"keys that stand twice": `"mode":"x",`, "unknown keys": `"k%d":1,`} {
		var b strings.Builder
		b.WriteString("{")
		for i := 0; b.Len() < 200_000; i++ {
			if strings.Contains(entry, "%d") {
				fmt.Fprintf(&b, entry, i)
			} else {
				b.WriteString(entry)
			}
		}
		b.WriteString(`"mode":"x"}`)
		begin := time.Now()
		if _, err := Parse("f", []byte(b.String()), Env{}); err == nil {
			t.Errorf("%s are accepted", what)
		}
		if took := time.Since(begin); took > 10*time.Second {
			t.Errorf("%s take %s", what, took)
		}
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for name, valid := range map[string]bool{"ab": true, "a": false, "A1": false, "1a": false, "a-1": true, "a_b": false, strings.Repeat("a", 31): true, strings.Repeat("a", 32): false} {
		_, err := Parse("f", []byte(fmt.Sprintf(`{"name":%q}`, name)), Env{})
		if (err == nil) != valid {
			t.Errorf("the name %q: %v", name, err)
		}
	}
}

func TestAProviderThatIsNotLinkedIsNamed(t *testing.T) {
	t.Parallel()
	c := fleet.Config{Providers: []fleet.Provider{{Name: "aws"}, {Name: "local"}}}
	if got := Unlinked(c, []string{"local"}); len(got) != 1 || got[0] != "aws" {
		t.Errorf("not linked: %v", got)
	}
}
