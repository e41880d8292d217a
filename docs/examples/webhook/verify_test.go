package webhook

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"sluice/providers/webhook"
	"sluice/scripts/services"
)

// cases are signatures of a body, as t=SECONDS,v1=HEX, and whether they hold.
func cases(now time.Time, body []byte) map[string]struct {
	signature string
	good      bool
} {
	type c = struct {
		signature string
		good      bool
	}
	fresh := webhook.Sign("key", now, body)
	return map[string]c{
		"fresh":                      {fresh, true},
		"four minutes old":           {webhook.Sign("key", now.Add(-4*time.Minute), body), true},
		"a clock that is ahead":      {webhook.Sign("key", now.Add(4*time.Minute), body), true},
		"six minutes old":            {webhook.Sign("key", now.Add(-6*time.Minute), body), false},
		"from the future":            {webhook.Sign("key", now.Add(6*time.Minute), body), false},
		"another key":                {webhook.Sign("other", now, body), false},
		"another body":               {webhook.Sign("key", now, append([]byte(" "), body...)), false},
		"an old one with a new time": {fmt.Sprintf("t=%d,v1=%s", now.Unix()+1, strings.SplitN(fresh, "v1=", 2)[1]), false},
		"cut off":                    {fresh[:len(fresh)-2], false},
		"no signature":               {fmt.Sprintf("t=%d", now.Unix()), false},
		"no time":                    {strings.SplitN(fresh, ",", 2)[1], false},
		"nothing":                    {"", false},
		"nonsense":                   {"t=é,v1=ü,=,", false},
	}
}

func TestVerify(t *testing.T) {
	t.Parallel()
	now, body := time.Unix(1_800_000_000, 0), []byte(`{"title":"é"}`)
	for name, c := range cases(now, body) {
		if got := Verify([]byte("key"), c.signature, body, now); got != c.good {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestVerifyInPython runs verify.py as a program of its own on the same signatures.
func TestVerifyInPython(t *testing.T) {
	t.Parallel()
	python, _, err := services.Bring(t.Context(), io.Discard, "python3-psycopg2", "/usr/bin", "python3")
	if err != nil {
		t.Fatal(err)
	}
	body := []byte(`{"title":"é"}`)
	for name, c := range cases(time.Now(), body) {
		cmd := exec.CommandContext(t.Context(), python, "verify.py", c.signature)
		cmd.Env, cmd.Stdin = append(os.Environ(), "WEBHOOK_KEY=key"), bytes.NewReader(body)
		out, err := cmd.Output()
		want := map[bool]string{true: "good\n", false: "bad\n"}[c.good]
		if string(out) != want || (err == nil) != c.good {
			t.Errorf("%s: says %q, %v", name, out, err)
		}
	}
}
