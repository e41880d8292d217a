// Command mutants applies seeded defects to the production code, one at a time, and demands that a named test fails for each.
package main

import (
	"encoding/json"
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
	if err := baseline(chosen); err != nil {
		return err
	}
	var survived, broken []string
	for _, m := range chosen {
		start := time.Now()
		killer, err := m.try()
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
func baseline(chosen []mutant) error {
	packages := map[string]bool{}
	for _, m := range chosen {
		for _, p := range m.Packages {
			packages[p] = true
		}
	}
	args := append([]string{"test", "-count=1", "-timeout=10m"}, slices.Sorted(maps.Keys(packages))...)
	fmt.Println("before:   go", strings.Join(args, " "))
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil { //nolint:noctx // bounded by -timeout
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

// try returns the name of the first test that fails, "" where all pass.
func (m mutant) try() (string, error) {
	overlay, clean, err := m.overlay()
	if err != nil {
		return "", err
	}
	defer clean()
	for _, p := range m.Packages {
		killer, err := test(overlay, p)
		if err != nil || killer != "" {
			return killer, err
		}
	}
	return "", nil
}

func test(overlay, pkg string) (string, error) {
	out, err := exec.Command("go", "test", "-overlay", overlay, "-count=1", "-failfast", "-timeout=8m", pkg).CombinedOutput() //nolint:noctx // bounded by -timeout
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

// overlay replaces the file for one run of the go command; the tree itself stays as it is.
func (m mutant) overlay() (path string, clean func(), err error) {
	src, err := os.ReadFile(m.File)
	if err != nil {
		return "", nil, err
	}
	if n := strings.Count(string(src), m.Old); n != 1 {
		return "", nil, fmt.Errorf("%s: the text to change occurs %d times", m.File, n)
	}
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return "", nil, err
	}
	clean = func() { _ = os.RemoveAll(dir) }
	changed := filepath.Join(dir, filepath.Base(m.File))
	abs, err := filepath.Abs(m.File)
	if err != nil {
		return "", clean, err
	}
	if err := os.WriteFile(changed, []byte(strings.Replace(string(src), m.Old, m.New, 1)), 0o600); err != nil {
		return "", clean, err
	}
	doc, err := json.Marshal(map[string]map[string]string{"Replace": {abs: changed}})
	if err != nil {
		return "", clean, err
	}
	path = filepath.Join(dir, "overlay.json")
	return path, clean, os.WriteFile(path, doc, 0o600)
}
