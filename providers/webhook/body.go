package webhook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"sluice/core/fleet"
)

// Formats of a message.
const (
	formatJSON    = "json"
	formatSlack   = "slack"
	formatConsole = "console"
)

// body is a message in a channel's format.
func body(format string, m fleet.Message) ([]byte, error) {
	var v any
	switch format {
	case formatJSON, "":
		v = plain(m)
	case formatSlack:
		v = slack(m)
	case formatConsole:
		v = console(m)
	default:
		return nil, fmt.Errorf("write message: no format is named %q; expected json, slack or console", format)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("write message: %w", err)
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

// message is the format json. Fields are added, never changed; more than that is another version.
type message struct {
	Version int             `json:"version"`
	ID      string          `json:"id"`
	Key     string          `json:"key"`
	Install string          `json:"install"`
	Level   fleet.Level     `json:"level"`
	Title   string          `json:"title"`
	At      time.Time       `json:"at"`
	Test    bool            `json:"test"`
	Link    string          `json:"link,omitempty"`
	Facts   json.RawMessage `json:"facts,omitempty"`
}

func plain(m fleet.Message) message {
	return message{Version: 1, ID: m.ID, Key: m.Key, Install: m.Install, Level: m.Level, Title: m.Title, At: m.At.UTC(), Test: m.Test, Link: m.Page, Facts: m.Facts}
}

// notification is the format console.
type notification struct {
	ID    string      `json:"id"`
	Title string      `json:"title"`
	Body  string      `json:"body"`
	Level fleet.Level `json:"level"`
	Link  string      `json:"link,omitempty"`
	At    time.Time   `json:"at"`
	Test  bool        `json:"test"`
}

func console(m fleet.Message) notification {
	return notification{ID: m.ID, Title: title(m), Body: details(m), Level: m.Level, Link: m.Page, At: m.At.UTC(), Test: m.Test}
}

// title says at once when a message is only a test.
func title(m fleet.Message) string {
	if m.Test {
		return "Test: " + m.Title
	}
	return m.Title
}

// details are the facts as lines for people, and where they come from.
func details(m fleet.Message) string {
	lines := []string{"installation: " + m.Install, "since: " + m.At.UTC().Format(time.RFC3339)}
	d := json.NewDecoder(bytes.NewReader(m.Facts))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return strings.Join(lines, "\n")
	}
	for d.More() {
		key, err := d.Token()
		var value json.RawMessage
		if err != nil || d.Decode(&value) != nil {
			break
		}
		lines = append(lines, fmt.Sprintf("%v: %s", key, fact(value)))
	}
	return strings.Join(lines, "\n")
}

// fact is a value as people write it.
func fact(value json.RawMessage) string {
	var s string
	if json.Unmarshal(value, &s) == nil {
		return s
	}
	return string(value)
}

// block is one of Slack's blocks; its text is never read as markup but where it is ours.
type block struct {
	Type string    `json:"type"`
	Text slackText `json:"text"`
}

type slackText struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type attachment struct {
	Color  string  `json:"color"`
	Blocks []block `json:"blocks"`
}

type slackMessage struct {
	Text        string       `json:"text"`
	Markup      bool         `json:"mrkdwn"` // never: stars and underscores of a title stay what they are
	Attachments []attachment `json:"attachments"`
}

// slackMost is a little less than Slack takes in one text.
const slackMost = 2900

// colour is that of the line beside a message.
func colour(l fleet.Level) string {
	switch l {
	case fleet.Critical:
		return "#c62828"
	case fleet.Warning:
		return "#f9a825"
	case fleet.Info:
	}
	return "#2e7d32"
}

func slack(m fleet.Message) slackMessage {
	words := func(text string) block {
		return block{"section", slackText{"plain_text", escaped(text)}}
	}
	blocks := []block{words(details(m))}
	if m.Page != "" {
		blocks = append(blocks, block{"section", slackText{"mrkdwn", "<" + strings.ReplaceAll(escaped(m.Page), "|", "%7C") + "|Open the page>"}})
	}
	text := fmt.Sprintf("%s: %s (%s)", strings.ToUpper(string(m.Level)), title(m), m.Install)
	return slackMessage{Text: escaped(text), Attachments: []attachment{{Color: colour(m.Level), Blocks: blocks}}}
}

// escaped takes the power from what Slack would read as a link, a mention or a channel.
func escaped(text string) string {
	power := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
	var b strings.Builder
	for _, r := range text {
		letter := power.Replace(string(r))
		if b.Len()+len(letter) > slackMost {
			return b.String() + " …"
		}
		b.WriteString(letter)
	}
	return b.String()
}
