package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	_ "time/tzdata" // time zones wherever the tests run
)

// TestEveryMistakeIsNamedWithItsPlace holds the printed errors of bad files against golden ones.
func TestEveryMistakeIsNamedWithItsPlace(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/bad/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal("no bad files", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			t.Parallel()
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			_, err = Parse(filepath.Base(file), b, Env{})
			var list *Errors
			if !errors.As(err, &list) {
				t.Fatalf("a bad file is accepted, or refused with another error: %v", err)
			}
			compareFile(t, strings.TrimSuffix(file, ".json")+".golden", []byte(list.Error()+"\n"))
			if strings.Contains(strings.ToLower(list.Error()), "hunter2") {
				t.Error("an error repeats a secret")
			}
		})
	}
}
