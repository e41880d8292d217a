package config

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Problem is one thing that is wrong with a file.
type Problem struct {
	File     string `json:"file"`
	Line     int    `json:"line"`
	Column   int    `json:"column"` // in characters, from 1
	Path     string `json:"path,omitempty"`
	Message  string `json:"message"`
	Found    string `json:"found,omitempty"` // never a secret's value
	Expected string `json:"expected,omitempty"`
	Nearest  string `json:"nearest,omitempty"` // the valid word that was probably meant

	at int
}

// String is FILE:LINE:COLUMN: PATH: what is wrong.
func (p Problem) String() string {
	s := fmt.Sprintf("%s:%d:%d: ", p.File, p.Line, p.Column)
	if p.Path != "" {
		s += p.Path + ": "
	}
	return s + p.Message
}

// Errors are all the problems of a file, in the order of the file.
type Errors struct {
	Problems []Problem
}

// Error prints one problem per line.
func (e *Errors) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// MarshalJSON writes the list of problems.
func (e *Errors) MarshalJSON() ([]byte, error) { return json.Marshal(e.Problems) }

// problems makes the error of a file, nil for none.
func problems(name string, b []byte, list []Problem) error {
	if len(list) == 0 {
		return nil
	}
	slices.SortStableFunc(list, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Message, b.Message))
	})
	list = slices.CompactFunc(list, func(a, b Problem) bool { return a == b })
	place(name, newPlaces(b), list)
	return &Errors{Problems: list}
}

// place counts columns from one problem to the next, so that a long line is read once.
func place(name string, in places, list []Problem) {
	from, column := 0, 1
	for i := range list {
		at := min(max(list[i].at, 0), len(in.b))
		line := in.line(at)
		if start := in.lines[line-1]; start > from || i == 0 {
			from, column = start, 1
		}
		column += utf8.RuneCount(in.b[from:at])
		from = at
		list[i].File, list[i].Line, list[i].Column = name, line, column
	}
}

// places turns byte offsets into lines.
type places struct {
	b     []byte
	lines []int // offset of each line's first byte
}

func newPlaces(b []byte) places {
	p := places{b: b, lines: []int{0}}
	for i, c := range b {
		if c == '\n' {
			p.lines = append(p.lines, i+1)
		}
	}
	return p
}

// line is the line of an offset, from 1.
func (p places) line(at int) int {
	i, found := slices.BinarySearch(p.lines, at)
	if !found {
		i--
	}
	return i + 1
}

const longest = 60 // characters of a found text that are repeated

func quote(s string) string {
	if utf8.RuneCountInString(s) > longest {
		s = string([]rune(s)[:longest]) + "…"
	}
	return strconv.Quote(s)
}

// plain says that a key needs no quotes in a path.
func plain(s string) bool {
	if s == "" || len(s) > longest {
		return false
	}
	return strings.IndexFunc(s, func(r rune) bool {
		return r != '_' && r != '-' && r != '$' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) < 0
}

func indexed(i int) string { return "[" + strconv.Itoa(i) + "]" }

func isIndex(s string) bool {
	if len(s) < 3 || s[0] != '[' || s[len(s)-1] != ']' {
		return false
	}
	_, err := strconv.Atoi(s[1 : len(s)-1])
	return err == nil
}

// found says what a value is; secrets, and what looks like one, are not repeated.
func found(n *node, s *shape) string {
	switch n.kind {
	case null:
		return "null"
	case list:
		return "a list"
	case object:
		return "an object"
	case text:
		if s.Secret || telling(n.text) {
			return "a text that is not shown here"
		}
		return quote(n.text)
	case boolean, number:
	}
	if s.Secret {
		return "a value that is not shown here"
	}
	if len(n.text) > longest {
		return n.text[:longest] + "…"
	}
	return n.text
}

// telling says that a text may hold a secret although its key does not.
func telling(s string) bool {
	return strings.Contains(s, "://") || strings.Contains(s, "@") || strings.Contains(s, "-----BEGIN") || strings.HasPrefix(s, "AKIA")
}

// expected says what a shape allows.
func expected(s *shape) string {
	e := s.Expected
	if e == "" {
		e = plainly(s)
	}
	if s.Type.has("null") {
		e += ", or null"
	}
	return e
}

func plainly(s *shape) string {
	switch {
	case len(s.Enum) > 0:
		return oneOf(s.words())
	case s.Type.has("integer"):
		return "a whole number" + bounds(s)
	case s.Type.has("number"):
		return "a number" + bounds(s)
	case s.Type.has("boolean"):
		return "true or false"
	case s.Type.has("string"):
		return "a text in quotes"
	case s.Type.has("array"):
		return "a list"
	default:
		return "an object"
	}
}

func bounds(s *shape) string {
	if s.Minimum == nil || s.Maximum == nil {
		return ""
	}
	if *s.Minimum == *s.Maximum {
		return ": " + s.Minimum.String()
	}
	return " from " + s.Minimum.String() + " to " + s.Maximum.String()
}

// words are the texts of an enum.
func (s *shape) words() []string {
	var out []string
	for _, v := range s.Enum {
		if w, ok := v.(string); ok {
			out = append(out, w)
		}
	}
	return out
}

func oneOf(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = strconv.Quote(w)
	}
	if len(quoted) == 1 {
		return quoted[0]
	}
	last := len(quoted) - 1
	return strings.Join(quoted[:last], ", ") + " or " + quoted[last]
}
