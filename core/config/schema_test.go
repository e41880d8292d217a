package config

import (
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/invopop/jsonschema"
)

var update = flag.Bool("update", false, "write golden files, the schema and the reference table anew")

// TestTheShippedSchemaIsThatOfTheTypes generates the schema again and compares.
func TestTheShippedSchemaIsThatOfTheTypes(t *testing.T) {
	t.Parallel()
	compareFile(t, "config.v1.schema.json", generateSchema(t))
}

func compareFile(t *testing.T, path string, want []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("%s is not current; run: go test ./core/config -update\n%s", path, firstDifference(string(got), string(want)))
	}
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := 0; i < len(g) || i < len(w); i++ {
		var a, b string
		if i < len(g) {
			a = g[i]
		}
		if i < len(w) {
			b = w[i]
		}
		if a != b {
			return "have: " + a + "\nwant: " + b
		}
	}
	return ""
}

func generateSchema(t *testing.T) []byte {
	t.Helper()
	b, err := json.MarshalIndent(reflected(t), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(b, '\n')
}

func reflected(t *testing.T) *jsonschema.Schema {
	t.Helper()
	r := &jsonschema.Reflector{ExpandedStruct: true, Anonymous: true, RequiredFromJSONSchemaTags: true, Mapper: scalar}
	if err := r.AddGoComments("sluice/core/config", "./"); err != nil {
		t.Fatal(err)
	}
	r.CommentMap = onTheirOwnPath(r.CommentMap)
	s := r.Reflect(&File{})
	s.Title = "Sluice settings, version 1"
	s.Description = "Every number names its unit in its key. Keys that begin with x- are comments. Keys marked x-not-honoured are checked, but this version does not act on them yet."
	delete(s.Definitions, "File")
	finish(s)
	for _, d := range s.Definitions {
		finish(d)
	}
	return s
}

// onTheirOwnPath undoes that the reflector appends the folder to the package's path.
func onTheirOwnPath(m map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range m {
		if i := strings.LastIndex(k, "/config"); i >= 0 {
			k = "sluice/core" + k[i:]
		}
		out[k] = strings.ReplaceAll(v, "\n", " ")
	}
	return out
}

const reference = `^(env:[A-Za-z_][A-Za-z0-9_]*|file:/.+|ssm:/.+|aws-sm:.+|gcp-sm:[^/]+/.+)$`

// scalar is the schema of the types that are more than their Go kind says.
func scalar(t reflect.Type) *jsonschema.Schema {
	switch t {
	case reflect.TypeFor[Reference]():
		return secret(reference, "a reference to a secret: env:NAME, file:/path, ssm:/path, aws-sm:name or gcp-sm:project/name")
	case reflect.TypeFor[Credentials]():
		return secret(strings.TrimSuffix(reference, ")$")+"|workload-identity:.+)$", "a reference to a secret: env:NAME, file:/path, ssm:/path, aws-sm:name, gcp-sm:project/name, or workload-identity:…")
	case reflect.TypeFor[Price]():
		return pattern(`^[0-9]{1,6}(\.[0-9]{1,9})?$`, `a price per hour as a string such as "0.0416"`)
	case reflect.TypeFor[Rate]():
		return pattern(`^[0-9]{1,6}(\.[0-9]{1,9})?$`, `an exchange rate as a string such as "1.0842"`)
	case reflect.TypeFor[Date]():
		return pattern(`^[0-9]{4}-[0-9]{2}-[0-9]{2}$`, "a date such as 2027-05-01")
	case reflect.TypeFor[Day]():
		return &jsonschema.Schema{Type: "string", Enum: []any{"mon", "tue", "wed", "thu", "fri", "sat", "sun"}}
	case reflect.TypeFor[TierWorkers]():
		return &jsonschema.Schema{Pattern: "^max$", Minimum: "1", Maximum: "10000", Extras: map[string]any{
			"type": []string{"integer", "string"}, "x-expected": `a number from 1 to 10000, or "max"`}}
	}
	return nil
}

func pattern(re, expected string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Pattern: re, Extras: map[string]any{"x-expected": expected}}
}

func secret(re, expected string) *jsonschema.Schema {
	s := pattern(re, expected)
	s.Extras["x-secret"] = true
	return s
}

// finish allows comments, and writes null as a type where the library writes a choice.
func finish(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if s.Type == "object" {
		s.PatternProperties = map[string]*jsonschema.Schema{"^x-": jsonschema.TrueSchema}
	}
	if s.AdditionalProperties != nil {
		finish(s.AdditionalProperties)
	}
	if s.Properties == nil {
		return
	}
	for p := s.Properties.Oldest(); p != nil; p = p.Next() {
		p.Value = nullable(p.Value)
		finish(p.Value)
	}
}

func nullable(s *jsonschema.Schema) *jsonschema.Schema {
	if len(s.OneOf) != 2 || s.OneOf[1].Type != "null" {
		return s
	}
	v := s.OneOf[0]
	if v.Extras == nil {
		v.Extras = map[string]any{}
	}
	v.Extras["type"] = []string{v.Type, "null"}
	v.Type = ""
	if v.Enum != nil {
		v.Enum = append(v.Enum, nil)
	}
	return v
}
