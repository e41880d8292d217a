// Package docs_test holds the documents to the code that they describe.
package docs_test

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/core/fleet"
)

var (
	heading = regexp.MustCompile(`(?m)^##+ (\w+)$`)
	row     = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|")
	example = regexp.MustCompile("(?s)```json\n(.*?)```")
)

func readDoc(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// sections maps each heading of one word to the fields in its table.
func sections(doc string) map[string][]string {
	out := map[string][]string{}
	at := heading.FindAllStringSubmatchIndex(doc, -1)
	for i, h := range at {
		end := len(doc)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		var fields []string
		for _, m := range row.FindAllStringSubmatch(doc[h[1]:end], -1) {
			fields = append(fields, m[1])
		}
		out[doc[h[2]:h[3]]] = fields
	}
	return out
}

// structs are all types within a type that have fields of their own in JSON.
func structs(t reflect.Type, seen map[reflect.Type]bool) {
	for slices.Contains([]reflect.Kind{reflect.Slice, reflect.Pointer, reflect.Map}, t.Kind()) {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || t == reflect.TypeFor[time.Time]() || seen[t] {
		return
	}
	seen[t] = true
	for i := range t.NumField() {
		structs(t.Field(i).Type, seen)
	}
}

func jsonFields(t reflect.Type) []string {
	var names []string
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			names = append(names, name)
		}
	}
	return names
}

func TestEveryFieldOfASnapshotIsDescribedAndNoOther(t *testing.T) {
	t.Parallel()
	described := sections(readDoc(t, "snapshot.md"))
	types := map[reflect.Type]bool{}
	structs(reflect.TypeFor[fleet.Snapshot](), types)
	if len(types) < 20 {
		t.Fatalf("found only %d types in a snapshot", len(types))
	}
	for typ := range types {
		fields, ok := described[typ.Name()]
		if !ok {
			t.Errorf("snapshot.md has no section %s", typ.Name())
			continue
		}
		want := jsonFields(typ)
		for _, f := range want {
			if !slices.Contains(fields, f) {
				t.Errorf("snapshot.md does not describe %s of %s", f, typ.Name())
			}
		}
		for _, f := range fields {
			if !slices.Contains(want, f) {
				t.Errorf("snapshot.md describes %s of %s, which there is not", f, typ.Name())
			}
		}
	}
}

func TestTheExampleIsASnapshot(t *testing.T) {
	t.Parallel()
	m := example.FindStringSubmatch(readDoc(t, "snapshot.md"))
	if m == nil {
		t.Fatal("snapshot.md has no example")
	}
	d := json.NewDecoder(bytes.NewBufferString(m[1]))
	d.DisallowUnknownFields()
	var s fleet.Snapshot
	if err := d.Decode(&s); err != nil {
		t.Fatalf("the example is not a snapshot: %v", err)
	}
}
