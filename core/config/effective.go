package config

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Value is one value that holds, with where it came from.
type Value struct {
	Path  string          `json:"path"`
	Value json.RawMessage `json:"value"`
	From  string          `json:"from"` // "line 12", "default", or the key that it is inherited from
}

// effective lists all values in the order of the file, defaults behind what is written.
func effective(root *node, places places) []Value {
	var out []Value
	var walk func(n *node, p path)
	walk = func(n *node, p path) {
		if n.kind == object && len(n.members) > 0 {
			for _, m := range n.members {
				walk(m.value, p.key(m.name))
			}
			return
		}
		if n.kind == object { // holds nothing
			return
		}
		raw, err := n.MarshalJSON()
		if err != nil {
			return // a tree can always be written
		}
		out = append(out, Value{Path: p.String(), Value: raw, From: n.origin(places)})
	}
	walk(root, nil)
	return out
}

func (n *node) origin(places places) string {
	switch {
	case n.at < 0:
		return n.from
	case n.from == "":
		return fmt.Sprintf("line %d", places.line(n.at))
	}
	return fmt.Sprintf("%s, line %d", n.from, places.line(n.at))
}

// indented is a tree as a settings file.
func indented(root *node) []byte {
	raw, err := root.MarshalJSON()
	if err != nil {
		return nil // a tree can always be written
	}
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "  "); err != nil {
		return nil
	}
	b.WriteByte('\n')
	return b.Bytes()
}
