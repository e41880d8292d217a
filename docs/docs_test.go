package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const root = ".."

// documents are the files that people read, by their path from the root.
func documents(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"*.md", filepath.Join("*", "*.md")} {
		more, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, more...)
	}
	out := map[string]string{}
	for _, p := range paths {
		name, err := filepath.Rel(root, filepath.Join(root, "docs", p))
		if strings.HasPrefix(p, root) {
			name, err = filepath.Rel(root, p)
		}
		if err != nil {
			t.Fatal(err)
		}
		out[name] = readDoc(t, p)
	}
	if len(out) < 10 {
		t.Fatalf("found %d documents only: %v", len(out), paths)
	}
	return out
}

// suite is what a folder's tests are called.
type suite struct {
	dir   string
	tests map[string]*ast.FuncDecl
	funcs map[string]*ast.FuncDecl
	all   map[string]*suite
}

// suites are those of all folders with Go files, by path from the root.
func suites(t *testing.T) map[string]*suite {
	t.Helper()
	all := map[string]*suite{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "bin" || d.Name() == "testdata"):
			return filepath.SkipDir
		case strings.HasSuffix(path, "_test.go") || strings.Contains(path, "fleettest") && strings.HasSuffix(path, ".go"):
			return add(all, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func add(all map[string]*suite, path string) error {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	dir := filepath.Dir(path)
	name, err := filepath.Rel(root, dir)
	if err != nil {
		return err
	}
	if all[name] == nil {
		all[name] = &suite{dir: dir, tests: map[string]*ast.FuncDecl{}, funcs: map[string]*ast.FuncDecl{}, all: all}
	}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
			all[name].funcs[f.Name.Name] = f
			if strings.HasPrefix(f.Name.Name, "Test") {
				all[name].tests[f.Name.Name] = f
			}
		}
	}
	return nil
}

// has says whether a test has a subtest: whether each part of the name is used as a name within the test, what it calls
// there, the conformance suite that it runs, or the files that it finds.
func (s *suite) has(test, sub string) bool {
	names := map[string]bool{}
	s.collect(s.tests[test], names, map[*ast.FuncDecl]bool{})
	if names[sub] {
		return true
	}
	for part := range strings.SplitSeq(sub, "/") {
		if !names[part] {
			return false
		}
	}
	return true
}

func (s *suite) collect(f *ast.FuncDecl, names map[string]bool, seen map[*ast.FuncDecl]bool) {
	if f == nil || f.Body == nil || seen[f] {
		return
	}
	seen[f] = true
	ast.Inspect(f.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			collectLiteral(n, names)
		case *ast.CallExpr:
			s.collectCall(n, names)
		case *ast.Ident:
			s.collect(s.funcs[n.Name], names, seen)
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == "fleettest" {
				shared := s.all[filepath.Join("core", "fleet", "fleettest")]
				shared.collect(shared.funcs[n.Sel.Name], names, seen)
			}
		}
		return true
	})
}

// collectLiteral finds names of cases: keys of a map, a field called name, or the first field.
func collectLiteral(l *ast.CompositeLit, names map[string]bool) {
	for i, e := range l.Elts {
		kv, keyed := e.(*ast.KeyValueExpr)
		if !keyed {
			if i == 0 {
				addText(e, names)
			}
			continue
		}
		addText(kv.Key, names)
		if key, ok := kv.Key.(*ast.Ident); ok && key.Name == "name" {
			addText(kv.Value, names)
		}
	}
}

// collectCall finds names given to Run and its like, and files found by a pattern.
func (s *suite) collectCall(c *ast.CallExpr, names map[string]bool) {
	called := ""
	switch f := c.Fun.(type) {
	case *ast.Ident:
		called = f.Name
	case *ast.SelectorExpr:
		called = f.Sel.Name
	}
	for _, a := range c.Args {
		switch called {
		case "Run", "bubble":
			addText(a, names)
		case "Glob":
			pattern, _ := text(a)
			files, _ := filepath.Glob(filepath.Join(s.dir, pattern))
			for _, f := range files {
				names[strings.TrimSuffix(filepath.Base(f), filepath.Ext(f))] = true
			}
		}
	}
}

func addText(e ast.Expr, names map[string]bool) {
	if s, ok := text(e); ok {
		names[s] = true
	}
}

func text(e ast.Expr) (string, bool) {
	l, ok := e.(*ast.BasicLit)
	if !ok || l.Kind != token.STRING {
		return "", false
	}
	s, err := strconv.Unquote(l.Value)
	return s, err == nil
}

// named is a test that a document names: "`folder: TestName/subtest`", the folder and the subtest left out or not.
var named = regexp.MustCompile("`(?:([a-z][a-z0-9/_-]*): )?(Test[A-Z0-9][A-Za-z0-9_]*)(?:/([^`]+))?`")

func TestEveryTestThatADocumentNamesExists(t *testing.T) {
	t.Parallel()
	all, found := suites(t), 0
	for doc, content := range documents(t) {
		for _, m := range named.FindAllStringSubmatch(content, -1) {
			found++
			folder, test, sub := m[1], m[2], m[3]
			if !exists(all, folder, test, sub) {
				t.Errorf("%s names %s, which there is not", doc, m[0])
			}
		}
	}
	if found < 200 {
		t.Errorf("the documents name %d tests only: is the pattern wrong?", found)
	}
}

// exists finds a test in a folder, or, where none is named, in any.
func exists(all map[string]*suite, folder, test, sub string) bool {
	for name, s := range all {
		if (folder == "" || folder == name) && s.tests[test] != nil && (sub == "" || s.has(test, sub)) {
			return true
		}
	}
	return false
}

// The test of the names is worth nothing if it finds what there is not.
func TestNamesThatThereAreNotAreNotFound(t *testing.T) {
	t.Parallel()
	all := suites(t)
	for _, there := range [][3]string{
		{"docs", "TestNamesThatThereAreNotAreNotFound", ""},
		{"core/decide", "TestThresholds", "nothing waits"},
		{"core/decide", "TestScenarios", "quiet"},
		{"core/config", "TestEveryMistakeIsNamedWithItsPlace", "limits"},
		{"providers/postgres", "TestStore", "jobs/a job that is not due is not claimed"},
		{"cmd/sluice-agent/internal/agent", "TestJobs", "exit code 0 is done"},
	} {
		if !exists(all, there[0], there[1], there[2]) {
			t.Errorf("%v is not found", there)
		}
	}
	for _, gone := range [][3]string{
		{"core/tick", "TestThresholds", ""},
		{"core/decide", "TestThresholdsOfOld", ""},
		{"core/decide", "TestThresholds", "nothing waits any more"},
		{"core/decide", "TestThresholds", "a second below the ceiling"},
		{"core/config", "TestEveryMistakeIsNamedWithItsPlace", "no such file"},
		{"providers/postgres", "TestStore", "jobs/a job of another world"},
	} {
		if exists(all, gone[0], gone[1], gone[2]) {
			t.Errorf("%v is found", gone)
		}
	}
}

// Each requirement has an id of its own and is shown by tests, or said to be missing.
func TestEveryRequirementIsShownOrSaidToBeMissing(t *testing.T) {
	t.Parallel()
	ids := map[string]bool{}
	for line := range strings.Lines(readDoc(t, "requirements.md")) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") || strings.TrimSpace(cells[0]) == "id" {
			continue
		}
		if len(cells) != 3 {
			t.Errorf("not id, requirement and tests: %s", line)
			continue
		}
		id, shown := strings.TrimSpace(cells[0]), strings.TrimSpace(cells[2])
		if ids[id] || id == "" {
			t.Errorf("the id %q stands twice or is none", id)
		}
		ids[id] = true
		rest := strings.Trim(named.ReplaceAllString(shown, ""), " ,.;")
		if shown == rest && !strings.HasPrefix(shown, "not yet") && !strings.HasPrefix(shown, "not planned") {
			t.Errorf("%s names no test, and does not say that it is missing: %s", id, shown)
		}
		for _, m := range named.FindAllStringSubmatch(shown, -1) {
			if m[1] == "" {
				t.Errorf("%s does not say in which folder %s is", id, m[2])
			}
		}
	}
	if len(ids) < 100 {
		t.Errorf("found %d requirements only", len(ids))
	}
}

var (
	link   = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	fenced = regexp.MustCompile("(?s)```.*?```")
	code   = regexp.MustCompile("`[^`\n]*`")
	title  = regexp.MustCompile(`(?m)^#+ (.+)$`)
	// unlinked is what a heading's anchor leaves out.
	unlinked = regexp.MustCompile(`[^\p{L}\p{N}_-]`)
)

func TestEveryRelativeLinkLeadsSomewhere(t *testing.T) {
	t.Parallel()
	docs, found := documents(t), 0
	for doc, content := range docs {
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(fenced.ReplaceAllString(content, ""), "``"), -1) {
			path, fragment, _ := strings.Cut(m[1], "#")
			if strings.Contains(path, "://") || strings.HasPrefix(path, "mailto:") {
				continue
			}
			found++
			target := doc
			if path != "" {
				target = filepath.Join(filepath.Dir(doc), path)
			}
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s links to %s: %v", doc, m[1], err)
			} else if fragment != "" && !slices.Contains(anchors(docs[target]), fragment) {
				t.Errorf("%s links to %s, and %s has no such heading", doc, m[1], target)
			}
		}
	}
	if found < 20 {
		t.Errorf("found %d links only", found)
	}
}

// anchors are what headings can be linked by.
func anchors(content string) []string {
	var out []string
	for _, m := range title.FindAllStringSubmatch(content, -1) {
		out = append(out, unlinked.ReplaceAllString(strings.ReplaceAll(strings.ToLower(m[1]), " ", "-"), ""))
	}
	return out
}

var (
	span    = regexp.MustCompile("`((?:sluice|sluice-agent|make)(?: [^`\n]+)?)`")
	snippet = regexp.MustCompile(`(?m)^\s*((?:sluice|sluice-agent|make) [^\n]+)$`)
	flag    = regexp.MustCompile(`(?m)^ +(?:-\w, )?--([a-z-]+)`)
	comment = regexp.MustCompile(`\s#.*$`)
)

// commands are the command lines in a document, in words.
func commands(content string) (out [][]string) {
	var lines []string
	for _, m := range span.FindAllStringSubmatch(fenced.ReplaceAllString(content, ""), -1) {
		lines = append(lines, m[1])
	}
	for _, block := range fenced.FindAllString(content, -1) {
		for _, m := range snippet.FindAllStringSubmatch(block, -1) {
			lines = append(lines, m[1])
		}
	}
	for _, l := range lines {
		out = append(out, strings.Fields(comment.ReplaceAllString(l, "")))
	}
	return out
}

func TestEveryCommandInADocumentIsOneWithItsFlags(t *testing.T) {
	t.Parallel()
	bin := build(t)
	targets := readDoc(t, filepath.Join(root, "Makefile"))
	help, found := map[string]string{}, 0
	shown := documents(t)
	maps.Copy(shown, units(t))
	for doc, content := range shown {
		for _, words := range commands(content) {
			found++
			if words[0] == "make" {
				if len(words) > 1 && !strings.Contains(targets, "\n"+words[1]+":") {
					t.Errorf("%s: the Makefile has no target %s", doc, words[1])
				}
				continue
			}
			name := command(words)
			if _, known := help[name]; !known {
				help[name] = helpOf(t, bin, name)
			}
			if strings.Contains(help[name], "\nAvailable Commands:") && name != "sluice" && len(words) > 2 && !strings.HasPrefix(words[2], "-") {
				name += " " + words[2] // a command of a command
				help[name] = helpOf(t, bin, name)
			}
			if !strings.Contains(help[name], "\n  "+name+" ") && !strings.Contains(help[name], "\n  "+name+"\n") {
				t.Errorf("%s: %q: there is no command %q", doc, strings.Join(words, " "), name)
				continue
			}
			for _, f := range flagsOf(words) {
				if !slices.Contains(flags(help[name]), f) {
					t.Errorf("%s: %q: %s has no flag --%s", doc, strings.Join(words, " "), name, f)
				}
			}
		}
	}
	if found < 10 {
		t.Errorf("found %d commands only", found)
	}
}

// units are the example units of systemd, as blocks of the commands that they start.
func units(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("examples", "systemd", "*.service"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("found %d units: %v", len(paths), err)
	}
	out := map[string]string{}
	for _, p := range paths {
		_, start, found := strings.Cut(readDoc(t, p), "\nExecStart=/usr/local/bin/")
		if !found {
			t.Errorf("%s starts nothing of ours", p)
		}
		line, _, _ := strings.Cut(start, "\n")
		out[p] = "```\n" + line + "\n```"
	}
	return out
}

// build makes both programs in a folder of the test's own.
func build(t *testing.T) string {
	t.Helper()
	bin := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", bin+string(filepath.Separator), "./cmd/sluice", "./cmd/sluice-agent")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return bin
}

// command is the program with its subcommand.
func command(words []string) string {
	if words[0] == "sluice" && len(words) > 1 && !strings.HasPrefix(words[1], "-") {
		return "sluice " + words[1]
	}
	return words[0]
}

// helpOf asks for a command's help. The program shows that of its parent where there is no such command.
func helpOf(t *testing.T, bin, name string) string {
	t.Helper()
	words := strings.Fields(name)
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, words[0]), append(words[1:], "--help")...)
	cmd.Env = []string{"COLUMNS=200"}
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("%s --help: %v", name, err)
	}
	return string(out)
}

func flags(help string) []string {
	var out []string
	for _, m := range flag.FindAllStringSubmatch(help, -1) {
		out = append(out, m[1])
	}
	return out
}

func flagsOf(words []string) []string {
	var out []string
	for _, w := range words {
		if f, ok := strings.CutPrefix(w, "--"); ok && f != "" {
			f, _, _ = strings.Cut(f, "=")
			out = append(out, strings.Trim(f, ".,;:)]"))
		}
	}
	return out
}
