package config

import (
	_ "embed" // the schema
	"encoding/json"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// schemaJSON is generated from File by a test.
//
//go:embed config.v1.schema.json
var schemaJSON []byte

// Schema returns the JSON Schema of a settings file.
func Schema() []byte { return slices.Clone(schemaJSON) }

// shape is what the schema says about one value: the keywords that the generator writes, no others.
type shape struct {
	Ref         string            `json:"$ref"`
	Type        types             `json:"type"`
	Properties  map[string]*shape `json:"properties"`
	Additional  json.RawMessage   `json:"additionalProperties"`
	Items       *shape            `json:"items"`
	Required    []string          `json:"required"`
	MinItems    int               `json:"minItems"`
	Enum        []any             `json:"enum"`
	Pattern     string            `json:"pattern"`
	Minimum     *json.Number      `json:"minimum"`
	Maximum     *json.Number      `json:"maximum"`
	Default     json.RawMessage   `json:"default"`
	Defs        map[string]*shape `json:"$defs"`
	Expected    string            `json:"x-expected"`
	Secret      bool              `json:"x-secret"`
	NotHonoured bool              `json:"x-not-honoured"`
	Inherited   bool              `json:"x-inherited"` // its defaults come from elsewhere in the file
	Optional    bool              `json:"x-optional"`  // an object that is not made where it is missing

	values *shape // of a map's entries
	regexp *regexp.Regexp
}

// types is one type or several.
type types []string

// UnmarshalJSON implements json.Unmarshaler.
func (t *types) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		*t = types{""}
		return json.Unmarshal(b, &(*t)[0])
	}
	return json.Unmarshal(b, (*[]string)(t))
}

func (t types) has(name string) bool { return slices.Contains(t, name) }

// rootShape is the embedded schema, read once.
var rootShape = sync.OnceValue(func() *shape {
	root := &shape{}
	if err := json.Unmarshal(schemaJSON, root); err != nil {
		panic("core/config: embedded schema: " + err.Error()) // a test reads it
	}
	return root.resolve(root.Defs)
})

// resolve replaces references, so that walking needs no look-ups.
func (s *shape) resolve(defs map[string]*shape) *shape {
	if name, ok := strings.CutPrefix(s.Ref, "#/$defs/"); ok {
		s.take(defs[name])
	}
	for k, p := range s.Properties {
		s.Properties[k] = p.resolve(defs)
	}
	if s.Items != nil {
		s.Items = s.Items.resolve(defs)
	}
	if len(s.Additional) > 0 && s.Additional[0] == '{' {
		s.values = &shape{}
		if err := json.Unmarshal(s.Additional, s.values); err != nil {
			panic("core/config: embedded schema: " + err.Error())
		}
		s.values = s.values.resolve(defs)
	}
	if s.Pattern != "" {
		s.regexp = regexp.MustCompile(s.Pattern)
	}
	return s
}

// take copies what a definition says about the value; what is said about the key stays.
func (s *shape) take(def *shape) {
	s.Ref, s.Type, s.Additional, s.Items, s.Required = "", def.Type, def.Additional, def.Items, def.Required
	s.Properties = make(map[string]*shape, len(def.Properties))
	for k, p := range def.Properties {
		own := *p
		s.Properties[k] = &own
	}
}

// keys are the known keys of an object, sorted.
func (s *shape) keys() []string {
	keys := make([]string, 0, len(s.Properties))
	for k := range s.Properties {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// at is the shape of a member.
func (s *shape) at(key string) *shape {
	if p := s.Properties[key]; p != nil {
		return p
	}
	return s.values
}

// made says that an object of this shape exists even where the file does not mention it.
func (s *shape) made() bool {
	return s.Type.has("object") && s.Properties != nil && !s.Optional && !s.Inherited
}

func ratio(n *json.Number) (*big.Rat, bool) {
	if n == nil {
		return nil, false
	}
	return new(big.Rat).SetString(n.String())
}
