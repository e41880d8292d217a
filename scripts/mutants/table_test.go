package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The code moves; a defect that can no longer be seeded would pass for one that is found.
func TestEveryMutantCanBeSeeded(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range mutants() {
		src, err := os.ReadFile(filepath.Join("..", "..", m.File))
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(src), m.Old); n != 1 {
			t.Errorf("%s: the text to change occurs %d times in %s", m.Name, n, m.File)
		}
		if m.Old == m.New || seen[m.Name] {
			t.Errorf("%s: it changes nothing, or its name is taken", m.Name)
		}
		seen[m.Name] = true
	}
}
