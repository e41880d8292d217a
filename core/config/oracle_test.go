package config

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// TestEditorsAndParseAgreeOnShapes holds the checker against a JSON Schema library and the shipped schema.
func TestEditorsAndParseAgreeOnShapes(t *testing.T) {
	t.Parallel()
	schema := compiled(t)
	bad, err := filepath.Glob("testdata/bad/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(bad, goodFiles(t)...) {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		root, problems := read(b)
		if root == nil || len(problems) > 0 {
			continue // not JSON, or keys twice, which no schema sees
		}
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		c := &checker{}
		c.check(root, rootShape(), nil)
		ours := withoutExponents(c.problems)
		if theirs := schema.Validate(value); (theirs == nil) != (len(ours) == 0) {
			t.Errorf("%s: the schema says %v, the checker says %v", file, theirs, ours)
		}
	}
}

// withoutExponents drops what only the checker refuses: 1e3 is a whole number in JSON Schema.
func withoutExponents(list []Problem) []Problem {
	var out []Problem
	for _, p := range list {
		if !strings.Contains(p.Found, "1e3") {
			out = append(out, p)
		}
	}
	return out
}

func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("config.v1.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("config.v1.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}
