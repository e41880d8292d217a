// Package core_test holds the rules of the house that a compiler does not know.
package core_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "sluice"

// mayImport says which packages of this project and which libraries each package of core may import, besides the standard library.
func mayImport() map[string][]string {
	return map[string][]string{
		"core/fleet":           {},
		"core/fleet/fleettest": {"core/fleet"},
		"core/spend":           {"core/fleet"},
		"core/explain":         {"core/fleet"},
		"core/sim":             {"core/fleet"},
		"core/decide":          {"core/fleet", "core/spend"},
		"core/config":          {"core/fleet", "github.com/go-json-experiment/json/jsontext", "github.com/hbollon/go-edlib"},
		"core/tick":            {"core/fleet", "core/config", "core/decide", "core/spend", "core/explain"},
	}
}

// outside are packages of the standard library through which the world would come into core.
func outside() []string {
	return []string{"log", "log/slog", "os", "os/exec", "os/signal", "net", "net/http", "math/rand", "math/rand/v2", "crypto/rand", "syscall", "unsafe"}
}

// source is one Go file that is not a test.
type source struct {
	pkg     string // folder, from the top of the project
	file    string
	imports []string
	ast     *ast.File
}

func sources(t *testing.T, folders ...string) []source {
	t.Helper()
	var out []source
	for _, folder := range folders {
		err := filepath.WalkDir(filepath.Join("..", folder), func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
				return err
			}
			out = append(out, parsed(t, name))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func parsed(t *testing.T, name string) source {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	rel := strings.TrimPrefix(filepath.ToSlash(name), "../")
	s := source{pkg: path.Dir(rel), file: rel, ast: f}
	for _, i := range f.Imports {
		p, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		s.imports = append(s.imports, strings.TrimPrefix(p, module+"/"))
	}
	return s
}

// standard says that a package is of the standard library: its first element has no dot and is no folder of this project.
func standard(p string) bool {
	first, _, _ := strings.Cut(p, "/")
	return !strings.Contains(first, ".") && !own(p)
}

func own(p string) bool {
	first, _, _ := strings.Cut(p, "/")
	return slices.Contains([]string{"core", "providers", "functions", "cmd", "scripts", "docs", "infra"}, first)
}

func TestPackagesOfCoreImportOnlyWhatTheyMay(t *testing.T) {
	t.Parallel()
	allowed := mayImport()
	files := sources(t, "core")
	if len(files) < 10 {
		t.Fatalf("only %d files were found", len(files))
	}
	for _, s := range files {
		may, known := allowed[s.pkg]
		if !known {
			t.Errorf("%s: the package %s has no entry here; say what it may import", s.file, s.pkg)
			continue
		}
		for _, p := range s.imports {
			if !standard(p) && !slices.Contains(may, p) {
				t.Errorf("%s imports %s; %s may import %v and the standard library", s.file, p, s.pkg, may)
			}
		}
	}
}

func TestTheWorldComesIntoCoreAsArguments(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t, "core") {
		if s.pkg == "core/fleet/fleettest" { // drives real implementations
			continue
		}
		for _, p := range s.imports {
			seeded := s.pkg == "core/sim" && strings.HasPrefix(p, "math/rand")
			if slices.Contains(outside(), p) && !seeded {
				t.Errorf("%s imports %s", s.file, p)
			}
		}
		ast.Inspect(s.ast, func(n ast.Node) bool {
			if call := clock(n); call != "" {
				t.Errorf("%s calls time.%s; time comes in as an argument", s.file, call)
			}
			return true
		})
	}
}

// clock is the name of a function that reads or waits for this computer's clock.
func clock(n ast.Node) string {
	sel, ok := n.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	x, ok := sel.X.(*ast.Ident)
	if ok && x.Name == "time" && slices.Contains([]string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}, sel.Sel.Name) {
		return sel.Sel.Name
	}
	return ""
}

func TestProvidersKnowFleetAndThemselvesOnly(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t, "providers") {
		for _, p := range s.imports {
			if own(p) && p != "core/fleet" && p != "core/fleet/fleettest" && !within(p, provider(s.pkg)) {
				t.Errorf("%s imports %s; a provider may import core/fleet and its own SDK", s.file, p)
			}
		}
	}
}

// provider is the folder of one provider.
func provider(pkg string) string {
	parts := strings.SplitN(pkg, "/", 3)
	return path.Join(parts[:min(2, len(parts))]...)
}

func within(p, folder string) bool { return p == folder || strings.HasPrefix(p, folder+"/") }

func TestNothingRunsBeforeMain(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t, "core", "providers") {
		for _, d := range s.ast.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s has an init function", s.file)
			}
		}
	}
}

func TestNoPackageIsNamedAfterNothing(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t, "core", "providers") {
		for _, name := range []string{"util", "utils", "common", "helpers", "misc"} {
			if path.Base(s.pkg) == name {
				t.Errorf("%s is in a package named %s", s.file, name)
			}
		}
	}
}
