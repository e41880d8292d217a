package webhook

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/core/fleet"
)

var update = flag.Bool("update", false, "write the examples")

// TestTheExamplesAreWhatIsSent holds the files that the documents show to what a receiver gets.
func TestTheExamplesAreWhatIsSent(t *testing.T) {
	t.Parallel()
	for _, format := range []string{formatJSON, formatSlack, formatConsole} {
		b, err := body(format, alarm(fleet.Critical, "The daily limit 50.00 USD is reached"))
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		if err := json.Indent(&got, b, "", "  "); err != nil {
			t.Fatal(err)
		}
		got.WriteByte('\n')
		file := filepath.Join("..", "..", "docs", "examples", "webhook", format+".json")
		if *update {
			if err := os.WriteFile(file, got.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil || !bytes.Equal(want, got.Bytes()) {
			t.Errorf("%s differs (run with -update to accept), %v:\n%s", file, err, got.Bytes())
		}
	}
}

func TestATestSaysSoInEveryFormat(t *testing.T) {
	t.Parallel()
	m := alarm(fleet.Info, "Nothing has happened")
	m.Test = true
	for format, want := range map[string]string{formatJSON: `"test":true`, formatSlack: `"text":"INFO: Test: Nothing has happened (prod)"`, formatConsole: `"title":"Test: Nothing has happened"`} {
		if b, err := body(format, m); err != nil || !strings.Contains(string(b), want) {
			t.Errorf("%s: %s, %v", format, b, err)
		}
	}
	if _, err := body("xml", m); err == nil || !strings.Contains(err.Error(), "expected json, slack or console") {
		t.Errorf("an unknown format: %v", err)
	}
}

func TestNamesHaveNoPowerInSlack(t *testing.T) {
	t.Parallel()
	m := alarm(fleet.Warning, "<!channel> *now* & <https://evil.example|here> "+strings.Repeat("<é>", 5000))
	m.Page = "https://sluice.example.org/?a=1&b=<x>|y"
	m.Facts = json.RawMessage(`{"pool":"<!here>","cause":"a > b & c"}`)
	b, err := body(formatSlack, m)
	if err != nil {
		t.Fatal(err)
	}
	var got slackMessage
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	blocks := got.Attachments[0].Blocks
	if got.Markup || got.Attachments[0].Color != "#f9a825" || blocks[0].Text.Type != "plain_text" {
		t.Errorf("sent %s", b)
	}
	for _, s := range []string{got.Text, blocks[0].Text.Text} {
		if strings.ContainsAny(s, "<>") {
			t.Errorf("a name has power in %.100s", s)
		}
	}
	if want := "pool: &lt;!here&gt;\ncause: a &gt; b &amp; c"; !strings.HasSuffix(blocks[0].Text.Text, want) {
		t.Errorf("the facts are %q, want %q", blocks[0].Text.Text, want)
	}
	if want := "<https://sluice.example.org/?a=1&amp;b=&lt;x&gt;%7Cy|Open the page>"; blocks[1].Text.Text != want {
		t.Errorf("the link is %q, want %q", blocks[1].Text.Text, want)
	}
	if n := len(got.Text); n < 2800 || n > 3000 || strings.Contains(strings.ReplaceAll(got.Text, "&lt;", ""), "&l") {
		t.Errorf("a text of %d bytes, or an escape that is cut: %s", n, got.Text[n-40:])
	}
}

func TestFactsThatAreNoObjectLeaveTheRest(t *testing.T) {
	t.Parallel()
	for _, facts := range []string{"", "null", "[1]", `{"a":`, "nonsense"} {
		m := alarm(fleet.Info, "x")
		m.Facts = json.RawMessage(facts)
		if got, want := details(m), "installation: prod\nsince: 2027-01-14T09:31:00Z"; got != want {
			t.Errorf("%s: %q", facts, got)
		}
	}
}
