package config

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"sluice/core/fleet"
)

func TestWhichAlertsGoWhere(t *testing.T) {
	t.Parallel()
	const ops = `"channels": {"ops": {"kind": "webhook", "url": "env:HOOK", "secret": "file:/run/key"}}`
	for _, c := range []struct {
		name, alerts, want string
	}{
		{"nothing said: all to the log", `{}`, `[{"name":"log","kind":"log","levels":["info","warning","critical"]}]`},
		{"the log by its name", `{"levels": {"critical": ["log"]}}`, `[{"name":"log","kind":"log","levels":["info","warning","critical"]}]`},
		{"a level that goes nowhere", `{"levels": {"info": []}}`, `[{"name":"log","kind":"log","levels":["warning","critical"]}]`},
		{"nothing goes anywhere", `{"levels": {"info": [], "warning": [], "critical": []}}`, `[{"name":"log","kind":"log","levels":null}]`},
		{"a level that is left out goes to the log", `{` + ops + `, "levels": {"critical": ["ops"]}}`,
			`[{"name":"log","kind":"log","levels":["info","warning"]},` +
				`{"name":"ops","kind":"webhook","levels":["critical"],"format":"json","url":"env:HOOK","secret":"file:/run/key"}]`},
		{"one level to two channels", `{` + ops + `, "levels": {"critical": ["ops", "log"], "warning": ["ops"], "info": []}}`,
			`[{"name":"log","kind":"log","levels":["critical"]},` +
				`{"name":"ops","kind":"webhook","levels":["warning","critical"],"format":"json","url":"env:HOOK","secret":"file:/run/key"}]`},
		{"a topic", `{"channels": {"phone": {"kind": "sns", "topic_arn": "arn:aws:sns:eu-west-3:1:x"}}, "levels": {"critical": ["phone"]}}`,
			`[{"name":"log","kind":"log","levels":["info","warning"]},{"name":"phone","kind":"sns","levels":["critical"],"topic_arn":"arn:aws:sns:eu-west-3:1:x"}]`},
	} {
		got, err := json.Marshal(parse(t, `{"alerts": `+c.alerts+`}`).Config.Routes())
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %s, %v\nwant %s", c.name, got, err, c.want)
		}
	}
	if p := parse(t, `{"alerts": {"page_url": "https://sluice.example.org/"}}`); p.Config.Page != "https://sluice.example.org/" {
		t.Errorf("the page is %q", p.Config.Page)
	}
}

func TestChannelsThatAreProbablyNotMeantAreWarnedOf(t *testing.T) {
	t.Parallel()
	p := parse(t, `{"alerts": {"channels": {"a": {"kind": "webhook", "url": "env:A"}, "b": {"kind": "webhook", "url": "env:B", "format": "slack"}, "c": {"kind": "log"}},
		"levels": {"warning": ["a", "b"], "critical": []}}}`)
	for _, want := range []string{"alerts.channels.a: no secret", "alerts.channels.c: no level names this channel", "alerts.levels.critical: critical alerts go nowhere"} {
		if !slices.ContainsFunc(p.Warnings, func(w string) bool { return strings.HasPrefix(w, want) }) {
			t.Errorf("no warning says %q: %q", want, p.Warnings)
		}
	}
	if len(p.Warnings) != 3 {
		t.Errorf("warnings %q", p.Warnings)
	}
}

func TestAChannelOfAKindThatNoBuildHasIsNotHonoured(t *testing.T) {
	t.Parallel()
	p := parse(t, `{"alerts": {"channels": {"phone": {"kind": "sns", "topic_arn": "arn:aws:sns:eu-west-3:1:x"}, "l": {"kind": "log"}}, "levels": {"critical": ["phone"], "info": ["l"]}}}`)
	if got := p.Config.NotHonoured; !slices.Equal(got, []string{"alerts.channels.phone.kind"}) {
		t.Errorf("not honoured: %v", got)
	}
	if p.Config.Channels[0].Kind != fleet.ChannelLog {
		t.Errorf("channels %v", p.Config.Channels)
	}
}
