package demo

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/core/fleet"
)

func TestARunEmptiesTheFolderOfAnEarlierOneAndNobodyElses(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	h, err := openHome(dir)
	if err != nil {
		t.Fatal(err)
	}
	old := filepath.Join(h.thumbnails(), "old.jpg")
	if err := os.WriteFile(old, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openHome(dir); err != nil {
		t.Fatalf("a second run is refused: %v", err)
	}
	if _, err := os.Stat(old); err == nil {
		t.Error("a thumbnail of the first run is still there")
	}

	theirs := filepath.Join(t.TempDir(), "thesis.txt")
	if err := os.WriteFile(theirs, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openHome(filepath.Dir(theirs)); err == nil || !strings.Contains(err.Error(), "--home") {
		t.Errorf("a folder with somebody's files gives %v", err)
	}
	if _, err := os.Stat(theirs); err != nil {
		t.Errorf("somebody's file is gone: %v", err)
	}
}

func TestTheTerminalShowsTheBeginningOfAnId(t *testing.T) {
	t.Parallel()
	const id = "38121c9c-65d2-455b-b134-aa935dd4c339"
	for _, c := range []struct{ worker, message, want string }{
		{id, "Scaling down worker " + id + ": idle", "Scaling down worker 38121c9c: idle"},
		{"vps", "Worker vps: lost", "Worker vps: lost"},
		{"", "Scaling up images", "Scaling up images"},
	} {
		if got := shortened(fleet.Line{Worker: c.worker, Message: c.message}); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func TestACommandToCopyHasItsPathsQuoted(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{"/a/b": "/a/b", "/my clone/b": "'/my clone/b'", "/it's": `'/it'\''s'`} {
		if got := shellWord(path); got != want {
			t.Errorf("%s is quoted as %s, want %s", path, got, want)
		}
	}
}
