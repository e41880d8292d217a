package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	mit = `MIT License

Copyright (c) 2026 Somebody

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation files (the "Software"), to deal in the Software without restriction, including without limitation the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
`
	agpl = `This program is free software: you can redistribute it and/or modify it under the terms of the GNU Affero General Public License as published by the Free Software Foundation, either version 3 of the License, or (at your option) any later version.

This program is distributed in the hope that it will be useful, but WITHOUT ANY WARRANTY; without even the implied warranty of MERCHANTABILITY or FITNESS FOR A PARTICULAR PURPOSE. See the GNU Affero General Public License for more details.

You should have received a copy of the GNU Affero General Public License along with this program. If not, see <https://www.gnu.org/licenses/>.
`
)

// folder has files, by name.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestALicence(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		files map[string]string
		want  string // the licences, or what the error says
	}{
		{"that is allowed is named", map[string]string{"LICENSE": mit}, "MIT"},
		{"has several names for its file", map[string]string{"copying.txt": mit}, "MIT"},
		{"that binds who uses it is refused", map[string]string{"LICENSE": agpl}, "AGPL-3.0"},
		{"is refused beside one that is allowed", map[string]string{"LICENSE-MIT": mit, "COPYING": agpl}, "AGPL-3.0"},
		{"in words of somebody's own is not guessed at", map[string]string{"LICENSE": "You may look at it on Sundays."}, "no licence that is known"},
		{"that is missing is not guessed at", map[string]string{"README": mit}, "no licence file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ids, err := licences(work{"example.org/x v1.0.0", folder(t, c.files)})
			got := strings.Join(ids, " and ")
			if err != nil {
				got = err.Error()
			}
			if !strings.Contains(got, c.want) {
				t.Errorf("it is %q, want %q", got, c.want)
			}
			if err != nil && !strings.Contains(got, "example.org/x v1.0.0") {
				t.Errorf("the error does not say whose licence: %v", err)
			}
		})
	}
}

func TestFilesOfOthersAreFoundInsideOurs(t *testing.T) {
	t.Parallel()
	root := folder(t, map[string]string{
		"LICENSE":                    "our own is not asked for",
		"page/charts/charts.min.js":  "x",
		"page/charts/LICENSE":        mit,
		"page/bare/style.min.css":    "x",
		"page/own/page.js":           "x",
		"testdata/other/LICENSE":     agpl,
		".git/LICENSE":               agpl,
		"bin/tools/COPYING":          agpl,
		"docs/licence-of-our-own.md": "no licence: a document",
	})
	works, err := vendored(root)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	err = check(&out, works)
	if len(works) != 2 || err == nil || !strings.Contains(err.Error(), "page/bare has no licence file") || strings.Contains(err.Error(), "charts") {
		t.Errorf("found %v: %v", works, err)
	}
}

func TestAReleaseCarriesEveryText(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	w := work{"example.org/x v1.0.0", folder(t, map[string]string{"LICENSE": mit})}
	if err := writeNotices(&out, []work{w}); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(out.String(), "==== example.org/x v1.0.0: LICENSE\n\nMIT License\n") {
		t.Errorf("it is %.200q", out.String())
	}
}

func TestEveryLibraryOfGoModIsLookedAt(t *testing.T) {
	t.Parallel()
	works, err := modules(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, w := range works {
		name, _, _ := strings.Cut(w.name, " ")
		found[name] = true
	}
	for name := range readByHand() {
		if !found[name] {
			t.Errorf("%s has an exception and is not used", name)
		}
	}
	if !found["github.com/go-ole/go-ole"] || !found["github.com/jackc/pgx/v5"] {
		t.Errorf("direct and indirect ones, those of other systems too, are wanted: %v", works)
	}
}
