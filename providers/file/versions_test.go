package file

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/core/fleet"
	"sluice/core/fleet/fleettest"
)

func TestVersions(t *testing.T) {
	t.Parallel()
	fleettest.Versions(t, func(t *testing.T) fleet.Versions {
		t.Helper()
		return &Objects{Path: filepath.Join(t.TempDir(), "sluice.json"), MaxBytes: MaxConfig}
	})
}

func replaced(t *testing.T, path, content string) error {
	t.Helper()
	o := &Objects{Path: path, MaxBytes: MaxConfig}
	now, err := o.Get(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = o.Put(t.Context(), fleet.Change{Old: now.ETag, Bytes: []byte(content)})
	return err
}

func TestAConfigKeepsItsModeAndSoDoesWhatItWas(t *testing.T) {
	t.Parallel()
	for _, mode := range []os.FileMode{0o600, 0o640, 0o644, 0o400} {
		path := write(t, "old", mode)
		if err := replaced(t, path, "new"); err != nil {
			t.Fatal(err)
		}
		versions, err := filepath.Glob(filepath.Join(filepath.Dir(path), versionsDir, "sluice.json", "2*Z-*"))
		if err != nil || len(versions) != 2 {
			t.Fatalf("kept %v, %v, want a version and its note", versions, err)
		}
		for _, p := range append(versions, path) {
			if info, err := os.Stat(p); err != nil || info.Mode().Perm() != mode {
				t.Errorf("%s has mode %v, %v, want %04o", p, info.Mode(), err, mode)
			}
		}
	}
}

func TestAConfigBehindALinkIsReplacedWhereItIs(t *testing.T) {
	t.Parallel()
	path := write(t, "old", 0o644)
	link := filepath.Join(t.TempDir(), "link.json")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if err := replaced(t, link, "new"); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is a link no more: %v, %v", info, err)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "new" {
		t.Errorf("behind it is %q, %v", b, err)
	}
	if kept, err := (&Objects{Path: path, MaxBytes: MaxConfig}).Kept(t.Context()); err != nil || len(kept) != 1 {
		t.Errorf("kept %v, %v", kept, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := (&Objects{Path: link, MaxBytes: MaxConfig}).Put(t.Context(), fleet.Change{}); err == nil || !strings.Contains(err.Error(), "a symbolic link that leads nowhere") {
		t.Errorf("a link that leads nowhere: %v", err)
	}
}

func TestWhatCannotBeWrittenSaysWhy(t *testing.T) {
	t.Parallel()
	wide := write(t, "{}", 0o666)
	full := write(t, "{}", 0o644)
	if err := os.WriteFile(filepath.Join(filepath.Dir(full), versionsDir), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, path, says string
	}{
		{"a directory", t.TempDir(), "found a directory, expected a regular file"},
		{"a folder that is not there", filepath.Join(t.TempDir(), "none", "sluice.json"), "no such file"},
		{"a folder in which nothing can be made, by root neither", "/sys/sluice.json", "/sys/"},
		{"a file that others can write", wide, "chmod go-w"},
		{"a file where the versions go", full, "not a directory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := (&Objects{Path: c.path, MaxBytes: MaxConfig}).Put(t.Context(), fleet.Change{Bytes: []byte("{}")})
			if err == nil || !strings.Contains(err.Error(), c.says) || !strings.HasPrefix(err.Error(), "write config ") {
				t.Errorf("have %v, want %q", err, c.says)
			}
		})
	}
}

func TestANewOneIsLaterThanOneFromTheFuture(t *testing.T) {
	t.Parallel()
	path := write(t, "old", 0o644)
	future := time.Now().Add(time.Hour).Truncate(time.Second)
	if err := os.Chtimes(path, future, future); err != nil {
		t.Fatal(err)
	}
	if err := replaced(t, path, "new"); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || !info.ModTime().After(future) {
		t.Errorf("written at %v, %v, want later than %s", info.ModTime(), err, future)
	}
}

// What a killed writer leaves is neither a version nor in the way.
func TestTheRemainsOfAKilledWriterAreOverwritten(t *testing.T) {
	t.Parallel()
	path := write(t, "old", 0o644)
	dir := folder(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	// Killed right after the first write of a config, the staged file and the config are one.
	if err := errors.Join(os.Link(path, filepath.Join(dir, "new")), os.WriteFile(filepath.Join(dir, "old"), []byte("ol"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := replaced(t, path, "new"); err != nil {
		t.Fatal(err)
	}
	o := &Objects{Path: path, MaxBytes: MaxConfig}
	kept, err := o.Kept(t.Context())
	if err != nil || len(kept) != 1 {
		t.Fatalf("kept %v, %v", kept, err)
	}
	if got, err := o.Version(t.Context(), kept[0].ID); err != nil || string(got.Bytes) != "old" {
		t.Errorf("kept %q, %v", got.Bytes, err)
	}
}
