package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// MaxBytes is the largest settings file; a larger one is refused unread.
const MaxBytes = 1 << 20

// maxDepth is far more than the format needs.
const maxDepth = 32

// read turns bytes into a tree and tells of what is not JSON. Keys that stand twice are told of, and the last one counts.
func read(b []byte) (*node, []Problem) {
	if len(b) > MaxBytes {
		return nil, []Problem{{Message: fmt.Sprintf("the file has %d bytes, expected at most %d", len(b), MaxBytes)}}
	}
	if p, bad := unreadable(b); bad {
		return nil, []Problem{p}
	}
	r := &reader{b: b, places: newPlaces(b), dec: jsontext.NewDecoder(bytes.NewReader(b), jsontext.AllowDuplicateNames(true))}
	n, err := r.value(nil)
	if err == nil {
		err = r.end()
	}
	if err != nil {
		return nil, append(r.problems, r.explain(err))
	}
	return n, r.problems
}

// unreadable finds what editors and shells put in front of, or instead of, a config.
func unreadable(b []byte) (Problem, bool) {
	switch {
	case bytes.HasPrefix(b, []byte("\xef\xbb\xbf")):
		return Problem{Message: "the file begins with a byte order mark; save it as UTF-8 without one"}, true
	case bytes.HasPrefix(b, []byte("\xff\xfe")), bytes.HasPrefix(b, []byte("\xfe\xff")):
		return Problem{Message: "the file is UTF-16; save it as UTF-8"}, true
	case len(bytes.TrimSpace(b)) == 0:
		return Problem{Message: "the file is empty; the smallest config is {}, which means vps_only"}, true
	}
	return Problem{}, false
}

type reader struct {
	b        []byte
	places   places
	dec      *jsontext.Decoder
	closed   int // where the top-level value ended
	problems []Problem
}

var (
	errDeep     = errors.New("nested too deeply")
	errTrailing = errors.New("trailing text")
)

// start is the offset of the token that comes next.
func (r *reader) start() int {
	i := int(r.dec.InputOffset())
	for i < len(r.b) && bytes.IndexByte([]byte(" \t\r\n,:"), r.b[i]) >= 0 {
		i++
	}
	return i
}

func (r *reader) value(p path) (*node, error) {
	switch r.dec.PeekKind() {
	case '{':
		return r.object(p)
	case '[':
		return r.list(p)
	default:
		return r.scalar()
	}
}

func (r *reader) scalar() (*node, error) {
	n := &node{at: r.start()}
	v, err := r.dec.ReadValue()
	if err != nil {
		return nil, err
	}
	switch v.Kind() {
	case 'n':
		n.kind = null
	case 't', 'f':
		n.kind, n.text = boolean, string(v)
	case '0':
		n.kind, n.text = number, string(v)
	default:
		n.kind = text
		n.text, err = unquote(v)
	}
	return n, err
}

func unquote(v jsontext.Value) (string, error) {
	b, err := jsontext.AppendUnquote(nil, v)
	return string(b), err
}

func (r *reader) open(k kind) (*node, error) {
	n := &node{kind: k, at: r.start()}
	if r.dec.StackDepth() >= maxDepth {
		return nil, errDeep
	}
	_, err := r.dec.ReadToken()
	return n, err
}

func (r *reader) object(p path) (*node, error) {
	n, err := r.open(object)
	seen := map[string]int{}
	for err == nil && r.dec.PeekKind() != '}' {
		err = r.member(n, p, seen)
	}
	if err == nil {
		_, err = r.dec.ReadToken()
	}
	return n, err
}

func (r *reader) member(n *node, p path, seen map[string]int) error {
	at := r.start()
	raw, err := r.dec.ReadValue()
	if err != nil {
		return err
	}
	name, err := unquote(raw)
	if err != nil {
		return err
	}
	v, err := r.value(p.key(name))
	if err != nil {
		return err
	}
	if i, twice := seen[name]; twice {
		line := r.places.line(n.members[i].first)
		r.problems = append(r.problems, Problem{at: at, Path: p.key(name).String(),
			Message: fmt.Sprintf("the key stands here a second time, first on line %d; expected it once", line)})
		n.members[i].at, n.members[i].value = at, v
		return nil
	}
	seen[name] = len(n.members)
	n.members = append(n.members, member{name: name, at: at, first: at, value: v})
	return nil
}

func (r *reader) list(p path) (*node, error) {
	n, err := r.open(list)
	for err == nil && r.dec.PeekKind() != ']' {
		var v *node
		if v, err = r.value(p.index(len(n.items))); err == nil {
			n.items = append(n.items, v)
		}
	}
	if err == nil {
		_, err = r.dec.ReadToken()
	}
	return n, err
}

func (r *reader) end() error {
	r.closed = int(r.dec.InputOffset())
	if _, err := r.dec.ReadToken(); !errors.Is(err, io.EOF) {
		return errTrailing
	}
	return nil
}

// explain says what is wrong with the syntax without repeating the text, which may be a secret.
func (r *reader) explain(err error) Problem {
	at := r.start()
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		at = int(syntax.ByteOffset)
	}
	p := Problem{at: at, Path: pointer(r.dec.StackPointer())}
	switch {
	case errors.Is(err, errDeep):
		p.at, p.Message = r.start(), fmt.Sprintf("nested deeper than %d levels", maxDepth)
	case errors.Is(err, errTrailing):
		p.at, p.Path, p.Message = r.trailing(), "", "text after the end of the config; expected nothing after the closing }"
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		p.at, p.Message = len(r.b), "the file ends too early; expected a closing } or ] or quote"
	default:
		p.Message = "not JSON: " + r.unexpected(at, err)
	}
	return p
}

// trailing is where the text after the config begins.
func (r *reader) trailing() int {
	rest := len(bytes.TrimLeft(r.b[r.closed:], " \t\r\n"))
	return len(r.b) - rest
}

// unexpected names the character and, where it is a habit from other formats, what to do.
func (r *reader) unexpected(at int, err error) string {
	if at >= len(r.b) {
		return "expected more text"
	}
	before := bytes.TrimRight(r.b[:at], " \t\r\n")
	switch c := r.b[at]; {
	case c == '/' || c == '#':
		return "found a comment; write a key that begins with x- instead"
	case (c == '}' || c == ']') && bytes.HasSuffix(before, []byte(",")), c == ',' && closes(r.b[at+1:]):
		return "found a comma after the last entry; expected none there"
	case c == '\'':
		return "found a single quote; expected double quotes"
	}
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) && syntax.Err != nil {
		return syntax.Err.Error()
	}
	return "a syntax error"
}

// closes says that nothing more comes in a list or object.
func closes(rest []byte) bool {
	rest = bytes.TrimLeft(rest, " \t\r\n")
	return len(rest) > 0 && (rest[0] == '}' || rest[0] == ']')
}

// pointer writes a JSON pointer as a path.
func pointer(ptr jsontext.Pointer) string {
	var p path
	for token := range ptr.Tokens() {
		if isIndex("[" + token + "]") {
			token = "[" + token + "]"
		}
		p = append(p, token)
	}
	return p.String()
}
