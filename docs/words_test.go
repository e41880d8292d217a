package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	// term is a word with underscores in backticks, with what it is a part of or not: `cost_limits.max_daily_spend_cents`.
	term = regexp.MustCompile("`([a-z][a-z0-9_]*(?:\\.[a-z0-9_]+)*)`")
	word = regexp.MustCompile(`[a-z][a-z0-9]*(?:_[a-z0-9]+)+`)
	// reason is a code, which events of the log are named after with underscores.
	reason = regexp.MustCompile(`"([a-z_]+\.[a-z_]+)"`)
	field  = regexp.MustCompile(`"([a-z][a-z0-9_]*)":`)
	// named by others: roles and databases of the examples, amounts by their currency.
	foreign = regexp.MustCompile(`^media_|^usd_|_usd$`)
)

// vocabulary is every word with an underscore that the program itself knows: settings, columns, functions, codes, fields.
func vocabulary(t *testing.T) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || slices.Contains([]string{"bin", "dist", "docs", "testdata"}, d.Name())):
			return filepath.SkipDir
		case d.IsDir() || strings.HasSuffix(path, "_test.go") || !slices.Contains([]string{".go", ".sql", ".json"}, filepath.Ext(path)):
			return nil
		}
		b, err := os.ReadFile(path)
		for _, w := range word.FindAllString(string(b), -1) {
			out[w] = true
		}
		for _, m := range reason.FindAllStringSubmatch(string(b), -1) {
			out[strings.ReplaceAll(m[1], ".", "_")] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A setting, column or code that is renamed must not live on in the documents.
func TestEverySettingColumnAndCodeInADocumentExists(t *testing.T) {
	t.Parallel()
	known, found := vocabulary(t), 0
	for doc, content := range documents(t) {
		for _, m := range term.FindAllStringSubmatch(fenced.ReplaceAllString(content, ""), -1) {
			for _, w := range word.FindAllString(m[1], -1) {
				found++
				if !known[w] && !foreign.MatchString(w) {
					t.Errorf("%s speaks of `%s`, and there is no %s", doc, m[1], w)
				}
			}
		}
	}
	if found < 300 {
		t.Errorf("found %d words only: is the pattern wrong?", found)
	}
}

func TestEveryKeyOfSettingsThatAreShownIsInTheSchema(t *testing.T) {
	t.Parallel()
	schema := readDoc(t, filepath.Join(root, "core", "config", "config.v1.schema.json"))
	known, found := map[string]bool{}, 0
	for _, m := range field.FindAllStringSubmatch(schema, -1) {
		known[m[1]] = true
	}
	for _, block := range example.FindAllStringSubmatch(readDoc(t, "configuration.md"), -1) {
		for _, m := range field.FindAllStringSubmatch(block[1], -1) {
			found++
			if !known[m[1]] {
				t.Errorf("configuration.md shows the key %q, which the schema does not know", m[1])
			}
		}
	}
	if found < 5 {
		t.Errorf("found %d keys only", found)
	}
}

// packages are what a go command in a document is given: ./cmd/sluice, ./cmd/...
var packages = regexp.MustCompile(`(?m)\bgo (?:build|install|run|test|vet) [^\n#` + "`" + `]*?(\./[^\s` + "`" + `]+)`)

func TestEveryPackageThatADocumentBuildsExists(t *testing.T) {
	t.Parallel()
	found := 0
	for doc, content := range documents(t) {
		for _, m := range packages.FindAllStringSubmatch(content, -1) {
			found++
			if _, err := os.Stat(filepath.Join(root, strings.TrimSuffix(m[1], "..."))); err != nil {
				t.Errorf("%s: %q: %v", doc, m[0], err)
			}
		}
	}
	if found < 3 {
		t.Errorf("found %d packages only", found)
	}
}
