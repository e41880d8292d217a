// Shape prints how long the functions and files of the code are, tests left out. It gates nothing.
package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
)

const (
	longFunction = 60
	shown        = 10
)

// piece is a function or a file with its length in lines.
type piece struct {
	name  string
	where string
	lines int
}

type shape struct {
	functions, files []piece
}

func main() {
	s, err := measure(os.DirFS("."))
	if err == nil {
		err = s.print(os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "shape:", err)
		os.Exit(1)
	}
}

// measure reads all code below root that a person wrote and that is no test.
func measure(root fs.FS) (shape, error) {
	var s shape
	err := fs.WalkDir(root, ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fmt.Errorf("walk code: %w", err)
		case entry.IsDir() && skipped(path):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		return s.add(root, path)
	})
	return s, err
}

func skipped(dir string) bool {
	name := filepath.Base(dir)
	return dir != "." && (strings.HasPrefix(name, ".") || name == "testdata" || name == "vendor" || name == "bin")
}

func (s *shape) add(root fs.FS, path string) error {
	source, err := fs.ReadFile(root, path)
	if err != nil {
		return fmt.Errorf("read code: %w", err)
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("parse code: %w", err)
	}
	if ast.IsGenerated(file) {
		return nil
	}
	s.files = append(s.files, piece{where: path, lines: bytes.Count(source, []byte("\n"))})
	for _, decl := range file.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && f.Body != nil {
			s.functions = append(s.functions, function(files, f))
		}
	}
	return nil
}

// function counts from the line of "func" to that of the closing bracket.
func function(files *token.FileSet, f *ast.FuncDecl) piece {
	start, end := files.Position(f.Pos()), files.Position(f.End())
	return piece{
		name:  f.Name.Name,
		where: fmt.Sprintf("%s:%d", start.Filename, start.Line),
		lines: end.Line - start.Line + 1,
	}
}

func (s *shape) print(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	long := count(s.functions, longFunction)
	fmt.Fprintf(table, "functions\t%d\tmedian %d, p90 %d, longest %d lines; %d (%.1f %%) over %d\n",
		len(s.functions), percentile(s.functions, 50), percentile(s.functions, 90), percentile(s.functions, 100),
		long, 100*float64(long)/float64(max(1, len(s.functions))), longFunction)
	fmt.Fprintf(table, "files\t%d\tmedian %d, p90 %d, longest %d lines\n",
		len(s.files), percentile(s.files, 50), percentile(s.files, 90), percentile(s.files, 100))
	list(table, "longest functions", s.functions)
	list(table, "longest files", s.files)
	return table.Flush()
}

func list(w io.Writer, title string, pieces []piece) {
	fmt.Fprintf(w, "\n%s\n", title)
	byLength(pieces)
	for _, p := range pieces[:min(shown, len(pieces))] {
		fmt.Fprintf(w, "%d\t%s\t%s\n", p.lines, p.where, p.name)
	}
}

func byLength(pieces []piece) {
	slices.SortFunc(pieces, func(a, b piece) int {
		return cmp.Or(cmp.Compare(b.lines, a.lines), cmp.Compare(a.where, b.where))
	})
}

// percentile returns the length that p of 100 pieces do not exceed.
func percentile(pieces []piece, p int) int {
	if len(pieces) == 0 {
		return 0
	}
	byLength(pieces)
	slices.Reverse(pieces)
	return pieces[(len(pieces)*p+99)/100-1].lines
}

func count(pieces []piece, over int) int {
	n := 0
	for _, p := range pieces {
		if p.lines > over {
			n++
		}
	}
	return n
}
