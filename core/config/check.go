package config

import (
	"math/big"
	"regexp"
	"slices"
	"strings"
)

// checker holds a tree against its shape. What does not fit is told of and taken out, so that later checks see a sound tree.
type checker struct {
	problems []Problem
	bad      []path // where something was taken out
}

// check says whether the value may stay.
func (c *checker) check(n *node, s *shape, p path) bool {
	if !fits(n, s) {
		c.refuse(n, s, p)
		return false
	}
	switch n.kind {
	case object:
		c.members(n, s, p)
		return c.required(n, s, p)
	case list:
		return c.list(n, s, p)
	case text:
		return c.text(n, s, p)
	case number:
		return c.number(n, s, p)
	case null, boolean:
	}
	return true
}

func fits(n *node, s *shape) bool {
	switch n.kind {
	case null:
		return s.Type.has("null")
	case boolean:
		return s.Type.has("boolean")
	case number:
		return s.Type.has("number") || s.Type.has("integer")
	case text:
		return s.Type.has("string")
	case list:
		return s.Type.has("array")
	case object:
		return s.Type.has("object")
	}
	return false
}

func (c *checker) refuse(n *node, s *shape, p path) {
	pr := Problem{at: n.at, Path: p.String(), Found: found(n, s), Expected: expected(s)}
	pr.Message = "found " + pr.Found + ", expected " + pr.Expected
	if hint := written(n, s); hint != "" {
		pr.Message += "; write " + hint
	}
	if n.kind == text && !s.Secret {
		pr = pr.meant(n.text, s.words())
	}
	c.problems = append(c.problems, pr)
	c.bad = append(c.bad, p)
}

var digits = regexp.MustCompile(`^-?[0-9]{1,15}$`)

// written is the value as it was probably meant.
func written(n *node, s *shape) string {
	switch {
	case s.Secret:
		return ""
	case n.kind == text && s.Type.has("integer") && digits.MatchString(n.text):
		return n.text + " without quotes"
	case n.kind == text && s.Type.has("boolean") && (n.text == "true" || n.text == "false"):
		return n.text + " without quotes"
	case n.kind == number && s.Type.has("string") && s.regexp != nil && s.regexp.MatchString(n.text):
		return quote(n.text) + " in quotes"
	}
	return ""
}

func (c *checker) members(n *node, s *shape, p path) {
	var kept []member
	for _, m := range n.members {
		if strings.HasPrefix(m.name, "x-") {
			continue
		}
		sub := s.at(m.name)
		if sub == nil {
			c.unknown(m, s, p)
			continue
		}
		if c.check(m.value, sub, p.key(m.name)) {
			kept = append(kept, m)
		}
	}
	n.members = kept
}

func (c *checker) unknown(m member, s *shape, p path) {
	pr := Problem{at: m.at, Path: p.key(m.name).String(), Message: "unknown key", Expected: "one of " + strings.Join(s.keys(), ", ")}
	pr = pr.meant(m.name, s.keys())
	if pr.Nearest == "" {
		pr.Message += "; expected " + pr.Expected + ", or a comment whose key begins with x-"
	}
	c.problems = append(c.problems, pr)
	c.bad = append(c.bad, p.key(m.name))
}

func (c *checker) required(n *node, s *shape, p path) bool {
	whole := true
	for _, key := range s.Required {
		if n.get(key) != nil || c.spoiled(p.key(key)) {
			continue
		}
		whole = false
		c.problems = append(c.problems, Problem{at: n.at, Path: p.key(key).String(), Expected: expected(s.at(key)),
			Message: "missing; expected " + expected(s.at(key))})
	}
	for _, key := range s.Required {
		whole = whole && n.get(key) != nil
	}
	if !whole {
		c.bad = append(c.bad, p)
	}
	return whole
}

func (c *checker) list(n *node, s *shape, p path) bool {
	if len(n.items) < s.MinItems {
		c.problems = append(c.problems, Problem{at: n.at, Path: p.String(), Message: "found an empty list, expected at least one entry"})
		c.bad = append(c.bad, p)
		return false
	}
	whole := true
	for i, v := range n.items {
		whole = c.check(v, s.Items, p.index(i)) && whole
	}
	if !whole {
		c.bad = append(c.bad, p)
	}
	return whole
}

func (c *checker) text(n *node, s *shape, p path) bool {
	if len(s.Enum) > 0 && !slices.Contains(s.words(), n.text) || s.regexp != nil && !s.regexp.MatchString(n.text) {
		c.refuse(n, s, p)
		return false
	}
	return true
}

var (
	whole  = regexp.MustCompile(`^-?[0-9]{1,18}(\.0{1,18})?$`)
	simple = regexp.MustCompile(`^-?[0-9]{1,18}(\.[0-9]{1,18})?$`)
)

// number refuses exponents: nobody writes a limit as 5e3, and a typing error in one costs thousands.
func (c *checker) number(n *node, s *shape, p path) bool {
	form := simple
	if !s.Type.has("number") {
		form = whole
	}
	if !form.MatchString(n.text) || !within(n.text, s) {
		c.refuse(n, s, p)
		return false
	}
	if form == whole {
		n.text, _, _ = strings.Cut(n.text, ".")
	}
	if n.text == "-0" {
		n.text = "0"
	}
	return true
}

func within(number string, s *shape) bool {
	v, ok := new(big.Rat).SetString(number)
	if !ok {
		return false
	}
	if least, ok := ratio(s.Minimum); ok && v.Cmp(least) < 0 {
		return false
	}
	most, ok := ratio(s.Maximum)
	return !ok || v.Cmp(most) <= 0
}

// spoiled says that something at or below a path was taken out.
func (c *checker) spoiled(p path) bool {
	return slices.ContainsFunc(c.bad, func(b path) bool { return b.begins(p) })
}
