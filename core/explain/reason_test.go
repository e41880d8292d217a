package explain

import (
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"sluice/core/fleet"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (run with -update to accept):\n%s", path, got)
	}
}

var noon = time.Date(2027, 1, 14, 12, 0, 0, 0, time.UTC)

// filled is a reason with every fact set, each number apart from the others.
func filled(r fleet.Reason) fleet.Reason {
	v := reflect.New(reflect.TypeOf(r)).Elem()
	for i := range v.NumField() {
		fill(v.Field(i), v.Type().Field(i).Name, int64(i+1))
	}
	return v.Interface().(fleet.Reason)
}

func fill(f reflect.Value, name string, n int64) {
	switch f.Interface().(type) {
	case time.Time:
		f.Set(reflect.ValueOf(noon.Add(time.Duration(n) * time.Minute)))
	case fleet.Money:
		f.SetInt(n*1_000_000 + 234_567)
	case fleet.Seconds:
		f.SetInt(100*n + 10)
	case []string:
		f.Set(reflect.ValueOf([]string{"first-" + name, "second-" + name}))
	case bool:
		f.SetBool(true)
	default:
		if f.Kind() == reflect.String {
			f.SetString("the-" + strings.ToLower(name))
			return
		}
		f.SetInt(n + 2)
	}
}

func TestEveryReasonHasWords(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	seen := map[string]string{}
	for _, zero := range fleet.Reasons() {
		r := filled(zero)
		said := words{currency: "USD"}.say(r)
		if said == "" {
			t.Errorf("%s has no words", r.Code())
		}
		if other, ok := seen[said]; ok {
			t.Errorf("%s and %s say the same: %s", other, r.Code(), said)
		}
		seen[said] = r.Code()
		b.WriteString(r.Code() + ": " + said + "\n")
	}
	golden(t, "reasons.txt", b.String())
}

// Flags change what is said: each with only its other facts set.
func TestReasonsWithoutTheirFlags(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for _, r := range []fleet.Reason{
		fleet.OfferWaitsForSpot{LeftS: 310}, fleet.KeptDraining{Jobs: 1, LeftS: 200}, fleet.SuspendedLong{ForS: 90000},
		fleet.Gone{}, fleet.Gone{Terminal: true}, fleet.Gone{Asked: true}, fleet.OrphanSeen{Provider: "aws", Machine: "i-1", First: noon},
		fleet.DailyLimit{Source: "bill", Accrued: fleet.Unit, Limit: fleet.Unit}, fleet.DrainForced{Why: "drain.mode", Jobs: 1, ForS: 300},
		fleet.Awaiting{Queue: "ocr", Booting: 1, LeftS: 60}, fleet.LimitHourly{Limit: fleet.Unit}, fleet.DrainIdle{}, fleet.DrainIdle{Minutes: 1},
	} {
		b.WriteString(r.Code() + ": " + Reason(r) + "\n")
	}
	golden(t, "variants.txt", b.String())
}

// The cause of an abandoned intent and of a drain is a code; each that is declared has words.
func TestCodesInFactsHaveWords(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"not_wanted", "too_old"} {
		if cause(code) == code {
			t.Errorf("cause %s has no words", code)
		}
	}
	for _, r := range fleet.Reasons() {
		if code := r.Code(); strings.HasPrefix(reflect.TypeOf(r).Name(), "Drain") && code != "drain.done" && code != "drain.forced" && drainWord(code) == code {
			t.Errorf("%s has no word", code)
		}
	}
}

func TestEveryReasonHasWordsWhenItsFactsAreZero(t *testing.T) {
	t.Parallel()
	for _, r := range fleet.Reasons() {
		if said := Reason(r); said == "" || strings.HasPrefix(said, r.Code()+" {") {
			t.Errorf("%s has no words at zero: %q", r.Code(), said)
		}
	}
}

func TestReasonsAreClausesWithoutCapitalOrFullStop(t *testing.T) {
	t.Parallel()
	for _, zero := range fleet.Reasons() {
		r := filled(zero)
		said := Reason(r)
		if strings.HasSuffix(said, ".") || said != strings.TrimSpace(said) || strings.Contains(said, "  ") {
			t.Errorf("%s is not a clause: %q", r.Code(), said)
		}
	}
}

type unheard struct {
	Figure int `json:"figure"`
}

func (unheard) Code() string { return "unheard_of" }

func TestAReasonWithoutWordsSaysItsCodeAndFacts(t *testing.T) {
	t.Parallel()
	if got, want := Reason(unheard{4}), `unheard_of {"code":"unheard_of","figure":4}`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := Reason(nil); got != "no reason was given" {
		t.Errorf("nil says %q", got)
	}
}

func TestAmountsHaveTwoToFourDecimals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		money fleet.Money
		want  string
	}{
		{0, "0.00"},
		{1, "0.0001"},
		{79_000, "0.079"},
		{1_234_567, "1.2346"},
		{5 * fleet.Unit, "5.00"},
		{999_999_999, "1000.00"},
	} {
		if got := amount(c.money); got != c.want {
			t.Errorf("%d is written %q, want %q", c.money, got, c.want)
		}
	}
}

func TestSpansHaveAtMostTwoUnits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		seconds fleet.Seconds
		want    string
	}{
		{0, "0 s"}, {119, "119 s"}, {120, "2 min"}, {310, "5 min 10 s"}, {7200, "2 h"}, {9000, "2 h 30 min"}, {180000, "2 days 2 h"},
	} {
		if got := span(c.seconds); got != c.want {
			t.Errorf("%d seconds are written %q, want %q", c.seconds, got, c.want)
		}
	}
}
