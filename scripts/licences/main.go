// Licences checks that everything that is built into Sluice, or shipped inside it, is under a permissive licence,
// and writes the texts that a release has to carry.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// work is something of others: a Go module, or a folder of files that ship inside ours.
type work struct {
	name string
	dir  string
}

func main() {
	notices := flag.Bool("notices", false, "write every licence's text instead of checking")
	flag.Parse()
	if err := run(context.Background(), os.Stdout, *notices); err != nil {
		fmt.Fprintln(os.Stderr, "licences:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, notices bool) error {
	works, err := modules(ctx)
	if err != nil {
		return err
	}
	shipped, err := vendored(".")
	if err != nil {
		return err
	}
	works = append(works, shipped...)
	if notices {
		return writeNotices(out, works)
	}
	return check(out, works)
}

// modules are all that go.mod requires, the indirect ones and those of other systems included.
func modules(ctx context.Context) ([]work, error) {
	list, err := exec.CommandContext(ctx, "go", "mod", "download", "-json").Output()
	var out []work
	for d := json.NewDecoder(strings.NewReader(string(list))); d.More(); {
		var m struct{ Path, Version, Dir, Error string }
		if err := d.Decode(&m); err != nil {
			return nil, fmt.Errorf("read list of modules: %w", err)
		}
		if m.Error != "" {
			return nil, fmt.Errorf("download %s: %s", m.Path, m.Error)
		}
		out = append(out, work{m.Path + " " + m.Version, m.Dir})
	}
	if err != nil || len(out) == 0 {
		return nil, fmt.Errorf("list modules with `go mod download -json`: %d found: %w", len(out), err)
	}
	return out, nil
}

// minified tells files of others: nobody writes them by hand.
var minified = regexp.MustCompile(`\.min\.(js|css|mjs)$`)

// vendored are the folders below the top that hold a licence, or minified files, which need one beside them.
func vendored(root string) ([]work, error) {
	dirs := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		dir := filepath.Dir(path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || slices.Contains([]string{"bin", "dist", "testdata"}, d.Name())):
			return filepath.SkipDir
		case !d.IsDir() && dir != root && (minified.MatchString(path) || licenceFile.MatchString(d.Name())):
			dirs[dir] = true
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look for files of others: %w", err)
	}
	var out []work
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		out = append(out, work{dir, dir})
	}
	return out, nil
}

var licenceFile = regexp.MustCompile(`(?i)^(licen[sc]e|copying|unlicense)([-_.]?[a-z0-9]+)?(\.(txt|md|markdown))?$`)

// texts are the licence files of a work by name.
func texts(w work) (map[string][]byte, error) {
	entries, err := os.ReadDir(w.dir)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", w.name, err)
	}
	out := map[string][]byte{}
	for _, e := range entries {
		if e.IsDir() || !licenceFile.MatchString(e.Name()) || strings.HasSuffix(e.Name(), ".go") {
			continue
		}
		if out[e.Name()], err = os.ReadFile(filepath.Join(w.dir, e.Name())); err != nil {
			return nil, fmt.Errorf("read licence of %s: %w", w.name, err)
		}
	}
	return out, nil
}

// check says how many works there are under which licences, and fails for each that may not be used.
func check(out io.Writer, works []work) error {
	count, wrong := map[string]int{}, []error{}
	for _, w := range works {
		ids, err := licences(w)
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		count[strings.Join(ids, " and ")]++
	}
	if len(wrong) > 0 {
		return errors.Join(append(wrong, fmt.Errorf("allowed are %s; take another library, or argue for an exception in scripts/licences", strings.Join(allowed(), ", ")))...)
	}
	var parts []string
	for _, id := range slices.Sorted(maps.Keys(count)) {
		parts = append(parts, fmt.Sprintf("%d %s", count[id], id))
	}
	_, err := fmt.Fprintf(out, "licences of %d works: %s\n", len(works), strings.Join(parts, ", "))
	return err
}

// covered is how much of a licence file has to be recognised, in per cent: the rest may be names and dates.
const covered = 75

// licences names what a work is under, and is an error where that is not known or not allowed.
func licences(w work) ([]string, error) {
	name, _, _ := strings.Cut(w.name, " ")
	if id, ok := readByHand()[name]; ok {
		return []string{id}, nil
	}
	files, err := texts(w)
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s has no licence file in %s", w.name, w.dir)
	}
	found := map[string]bool{}
	for file, text := range files {
		c := licensecheck.Scan(text)
		if c.Percent < covered {
			return nil, fmt.Errorf("%s: %s is no licence that is known (%.0f %% recognised)", w.name, file, c.Percent)
		}
		for _, m := range c.Match {
			if !slices.Contains(allowed(), m.ID) {
				return nil, fmt.Errorf("%s: %s is under %s", w.name, file, m.ID)
			}
			found[m.ID] = true
		}
	}
	return slices.Sorted(maps.Keys(found)), nil
}

func allowed() []string {
	return []string{"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC", "MIT", "MIT-0", "Unlicense"}
}

// readByHand are licences that a person has read because no program knows their words.
func readByHand() map[string]string {
	return map[string]string{
		"github.com/aws/aws-lambda-go": "Apache-2.0",    // and MIT-0 for parts, says its LICENSE-SUMMARY
		"github.com/xi2/xz":            "public domain", // "You can do whatever you want with these files"
	}
}

func writeNotices(out io.Writer, works []work) error {
	for _, w := range works {
		files, err := texts(w)
		if err != nil {
			return err
		}
		for _, file := range slices.Sorted(maps.Keys(files)) {
			if _, err := fmt.Fprintf(out, "==== %s: %s\n\n%s\n\n", w.name, file, strings.TrimSpace(string(files[file]))); err != nil {
				return err
			}
		}
	}
	return nil
}
