// Command mutants applies seeded defects to the production code, one at a time, and demands that a named test fails for each.
package main

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

func main() {
	only := flag.String("only", "", "run only mutants whose name matches this expression")
	list := flag.Bool("list", false, "print the mutants and stop")
	flag.Parse()
	if err := run(regexp.MustCompile(*only), *list); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(only *regexp.Regexp, list bool) error {
	chosen := slices.DeleteFunc(mutants(), func(m mutant) bool { return !only.MatchString(m.Name) })
	if list {
		for _, m := range chosen {
			fmt.Printf("%-8s %s\n", m.Point, m.Name)
		}
		return nil
	}
	tree, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tree) }()
	if err := copyTree(tree); err != nil {
		return err
	}
	if err := baseline(tree, chosen); err != nil {
		return err
	}
	var survived, broken []string
	for _, m := range chosen {
		start := time.Now()
		killer, err := m.try(tree)
		took := time.Since(start).Round(time.Second)
		switch {
		case err != nil:
			broken = append(broken, m.Name)
			fmt.Printf("BROKEN   %-8s %s: %v\n", m.Point, m.Name, err)
		case killer == "":
			survived = append(survived, m.Name)
			fmt.Printf("SURVIVED %-8s %s (%s)\n", m.Point, m.Name, took)
		default:
			fmt.Printf("killed   %-8s %s: %s (%s)\n", m.Point, m.Name, killer, took)
		}
	}
	if len(survived)+len(broken) > 0 {
		return fmt.Errorf("%d survived, %d could not be applied", len(survived), len(broken))
	}
	return nil
}

// baseline demands that the tests pass while nothing is broken: a test that fails anyway notices nothing.
func baseline(tree string, chosen []mutant) error {
	packages := map[string]bool{}
	for _, m := range chosen {
		for _, p := range m.Packages {
			packages[p] = true
		}
	}
	args := append([]string{"test", "-count=1", "-timeout=10m"}, slices.Sorted(maps.Keys(packages))...)
	fmt.Println("before:   go", strings.Join(args, " "))
	if out, err := goTool(tree, args...); err != nil {
		return fmt.Errorf("the tests fail before anything is broken:\n%s", out)
	}
	return nil
}

// mutant is one seeded defect: Old, which must occur exactly once in File, becomes New.
type mutant struct {
	Point    string // of the protocol, or the rule
	Name     string // what is dropped or changed
	File     string
	Old, New string
	Packages []string // whose tests may notice, the quickest first
}

// copyTree copies the project: a defect that was seeded into the tree itself would stay there when this program is
// killed, and the go command's -overlay is no way around, since it takes an embedded file that is overlaid for the original.
func copyTree(to string) error {
	entries, err := os.ReadDir(".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := e.Name()
		switch {
		case strings.HasPrefix(name, ".") || name == "bin":
		case e.IsDir():
			err = errors.Join(err, os.CopyFS(filepath.Join(to, name), os.DirFS(name)))
		default:
			b, readErr := os.ReadFile(name)
			err = errors.Join(err, readErr, os.WriteFile(filepath.Join(to, name), b, 0o600))
		}
	}
	return err
}

// try returns the name of the first test that fails, "" where all pass.
func (m mutant) try(tree string) (string, error) {
	file := filepath.Join(tree, m.File)
	src, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(src), m.Old); n != 1 {
		return "", fmt.Errorf("%s: the text to change occurs %d times", m.File, n)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(src), m.Old, m.New, 1)), 0o600); err != nil {
		return "", err
	}
	defer func() { _ = os.WriteFile(file, src, 0o600) }() // where that fails, the next defect in this file does too
	for _, p := range m.Packages {
		killer, err := test(tree, p)
		if err != nil || killer != "" {
			return killer, err
		}
	}
	return "", nil
}

func test(tree, pkg string) (string, error) {
	out, err := goTool(tree, "test", "-count=1", "-failfast", "-timeout=8m", pkg)
	if err == nil {
		return "", nil
	}
	if strings.Contains(string(out), "[build failed]") || strings.Contains(string(out), "[setup failed]") {
		return "", fmt.Errorf("it does not compile:\n%s", out)
	}
	if found := failure.FindStringSubmatch(string(out)); found != nil {
		return found[1], nil
	}
	return "", fmt.Errorf("no test of %s failed by name:\n%s", pkg, out)
}

var failure = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

func goTool(tree string, args ...string) ([]byte, error) {
	cmd := exec.Command("go", args...) //nolint:noctx // bounded by -timeout
	cmd.Dir = tree
	return cmd.CombinedOutput()
}
