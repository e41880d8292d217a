package config

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

type kind byte

const (
	null kind = iota
	boolean
	number
	text
	list
	object
)

// node is one JSON value with the place it came from.
type node struct {
	kind    kind
	text    string // a string's value, or the literal of a number or boolean
	members []member
	items   []*node
	at      int    // byte offset in the file; -1 where it is not written there
	from    string // where the value comes from, empty: it stands here
}

// member is one key of an object, in the order of the file.
type member struct {
	name  string
	at    int
	first int // where the key stood first, if it stands more than once
	value *node
}

func (n *node) get(name string) *node {
	if n == nil {
		return nil
	}
	for i := range n.members {
		if n.members[i].name == name {
			return n.members[i].value
		}
	}
	return nil
}

// find walks down to a value, nil where there is none.
func (n *node) find(p path) *node {
	for _, name := range p {
		if n != nil && n.kind == list && isIndex(name) {
			n = n.item(name)
			continue
		}
		n = n.get(name)
	}
	return n
}

func (n *node) item(index string) *node {
	i, err := strconv.Atoi(index[1 : len(index)-1])
	if err != nil || i < 0 || i >= len(n.items) {
		return nil
	}
	return n.items[i]
}

// set adds or replaces a member.
func (n *node) set(name string, v *node) {
	for i := range n.members {
		if n.members[i].name == name {
			n.members[i].value = v
			return
		}
	}
	n.members = append(n.members, member{name: name, at: v.at, value: v})
}

// object gets a member that is an object, made where it is missing.
func (n *node) object(name string) *node {
	if v := n.get(name); v != nil {
		return v
	}
	v := &node{kind: object, at: -1}
	n.set(name, v)
	return v
}

// made is a value that is not written in the file.
func made(raw []byte, from string) *node {
	n, problems := read(raw)
	if len(problems) > 0 {
		panic("core/config: made value: " + problems[0].Message) // from the embedded schema or from json.Marshal
	}
	n.unplace(from)
	return n
}

func (n *node) unplace(from string) {
	n.at, n.from = -1, from
	for i := range n.members {
		n.members[i].at = -1
		n.members[i].value.unplace(from)
	}
	for _, v := range n.items {
		v.unplace(from)
	}
}

// overlaid is base with the keys of over on top, objects merged deeply; where says what base is called.
func overlaid(base, over *node, where path) *node {
	if over == nil {
		return base.inherited(where)
	}
	if base == nil || base.kind != object || over.kind != object {
		return over
	}
	out := &node{kind: object, at: over.at, from: over.from}
	for _, m := range base.members {
		m.value = overlaid(m.value, over.get(m.name), where.key(m.name))
		out.members = append(out.members, m)
	}
	for _, m := range over.members {
		if base.get(m.name) == nil {
			out.members = append(out.members, m)
		}
	}
	return out
}

// inherited is a deep copy that says where it was written.
func (n *node) inherited(where path) *node {
	out := *n
	if out.from == "" {
		out.from = where.String()
	}
	out.members = make([]member, len(n.members))
	for i, m := range n.members {
		m.value = m.value.inherited(where.key(m.name))
		out.members[i] = m
	}
	out.items = make([]*node, len(n.items))
	for i, v := range n.items {
		out.items[i] = v.inherited(where.index(i))
	}
	return &out
}

// MarshalJSON implements json.Marshaler.
func (n *node) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	n.write(&b)
	return b.Bytes(), nil
}

func (n *node) write(b *bytes.Buffer) {
	switch n.kind {
	case null:
		b.WriteString("null")
	case boolean, number:
		b.WriteString(n.text)
	case text:
		writeString(b, n.text)
	case list:
		b.WriteByte('[')
		for i, v := range n.items {
			separate(b, i)
			v.write(b)
		}
		b.WriteByte(']')
	case object:
		b.WriteByte('{')
		for i, m := range n.members {
			separate(b, i)
			writeString(b, m.name)
			b.WriteByte(':')
			m.value.write(b)
		}
		b.WriteByte('}')
	}
}

func separate(b *bytes.Buffer, i int) {
	if i > 0 {
		b.WriteByte(',')
	}
}

func writeString(b *bytes.Buffer, s string) {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err == nil { // a string can always be encoded
		b.Truncate(b.Len() - 1)
	}
}

// equal compares values, not places.
func (n *node) equal(o *node) bool {
	var a, b bytes.Buffer
	n.write(&a)
	o.write(&b)
	return a.String() == b.String()
}

// path is a list of keys from the top; an index of a list is written [0].
type path []string

func (p path) key(name string) path { return append(p[:len(p):len(p)], name) }

func (p path) index(i int) path { return append(p[:len(p):len(p)], indexed(i)) }

// begins says that p is q or lies below it.
func (p path) begins(q path) bool { return len(p) >= len(q) && slices.Equal(p[:len(q)], q) }

// String writes a.b["c.d"][0].
func (p path) String() string {
	var b strings.Builder
	for i, k := range p {
		switch {
		case isIndex(k):
			b.WriteString(k)
		case !plain(k):
			b.WriteString("[" + quote(k) + "]")
		default:
			if i > 0 {
				b.WriteByte('.')
			}
			b.WriteString(k)
		}
	}
	return b.String()
}
