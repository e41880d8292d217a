package config

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/invopop/jsonschema"
)

const (
	tableBegins = "<!-- The tables below are generated: go test ./core/config -update -->\n"
	docsFile    = "../../docs/configuration.md"
)

// TestTheReferenceIsThatOfTheTypes compares the tables of docs/configuration.md with the types.
func TestTheReferenceIsThatOfTheTypes(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(docsFile)
	if err != nil {
		t.Fatal(err)
	}
	intro, _, found := strings.Cut(string(b), tableBegins)
	if !found {
		t.Fatalf("%s has no line %q", docsFile, tableBegins)
	}
	compareFile(t, docsFile, []byte(intro+tableBegins+tables(reflected(t))))
}

type docs struct {
	defs jsonschema.Definitions
	b    strings.Builder
}

func tables(root *jsonschema.Schema) string {
	d := &docs{defs: root.Definitions}
	d.section("Top level", root)
	for p := root.Properties.Oldest(); p != nil; p = p.Next() {
		if p.Value.Ref != "" || p.Value.Type == "object" || p.Value.Type == "array" {
			d.nested(p.Key, p.Value)
		}
	}
	return d.b.String()
}

// nested writes the table of an object, of a map's entries or of a list's entries.
func (d *docs) nested(path string, s *jsonschema.Schema) {
	def := d.deref(s)
	if p := d.deref(def.AdditionalProperties); p != nil && p.Properties != nil {
		def, path = p, path+".NAME"
	} else if p := d.deref(def.Items); p != nil && p.Properties != nil {
		def, path = p, path+"[]"
	}
	if def.Properties == nil {
		return
	}
	d.section("`"+path+"`", def)
	for p := def.Properties.Oldest(); p != nil; p = p.Next() {
		if p.Value.Extras["x-inherited"] == nil {
			d.nested(path+"."+p.Key, p.Value)
		}
	}
}

func (d *docs) deref(s *jsonschema.Schema) *jsonschema.Schema {
	if s != nil && s.Ref != "" {
		return d.defs[strings.TrimPrefix(s.Ref, "#/$defs/")]
	}
	return s
}

func (d *docs) section(title string, s *jsonschema.Schema) {
	fmt.Fprintf(&d.b, "\n### %s\n\n", title)
	if s.Description != "" && title != "Top level" {
		d.b.WriteString(s.Description + "\n\n")
	}
	d.b.WriteString("| key | value | default | meaning |\n|---|---|---|---|\n")
	for p := s.Properties.Oldest(); p != nil; p = p.Next() {
		required := ""
		for _, r := range s.Required {
			if r == p.Key {
				required = "required"
			}
		}
		d.row(p.Key, p.Value, required)
	}
}

func (d *docs) row(key string, v *jsonschema.Schema, required string) {
	def := required
	if v.Default != nil {
		raw, err := json.Marshal(v.Default)
		if err == nil {
			def = "`" + string(raw) + "`"
		}
	}
	text := v.Description
	if v.Extras["x-not-honoured"] != nil {
		text += " *Not yet.*"
	}
	if v.Extras["x-inherited"] != nil {
		text += " Keys as in `scaling_rules`."
	}
	fmt.Fprintf(&d.b, "| `%s` | %s | %s | %s |\n", key, strings.ReplaceAll(d.values(v), "|", "\\|"), def, strings.TrimSpace(text))
}

// values says what may stand there.
func (d *docs) values(s *jsonschema.Schema) string {
	s = d.deref(s)
	var own shape
	raw, err := json.Marshal(s)
	if err != nil || json.Unmarshal(raw, &own) != nil {
		return ""
	}
	switch {
	case own.Secret && own.Type.has("null"):
		return "reference or null"
	case own.Secret:
		return "reference"
	case own.Type.has("object") && s.Properties != nil:
		return "see below"
	case own.Type.has("array"):
		return "list: " + d.values(s.Items)
	case own.Type.has("object") && s.Properties == nil && s.AdditionalProperties != nil:
		return "by name: " + d.values(s.AdditionalProperties)
	case own.Type.has("string") && own.Expected == "" && len(own.Enum) == 0:
		own.Expected = "text"
	}
	return expected(&own)
}
