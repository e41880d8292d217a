package file

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice/core/fleet"
)

func write(t *testing.T, content string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sluice.json")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil { // beyond the umask
		t.Fatal(err)
	}
	return path
}

func TestAFileIsReadOnceAndThenNotModified(t *testing.T) {
	t.Parallel()
	path := write(t, `{"mode":"hybrid"}`, 0o644)
	at := time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC)
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
	o := &Objects{Path: path, MaxBytes: 100}
	first, err := o.Get(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if string(first.Bytes) != `{"mode":"hybrid"}` || !first.Modified.Equal(at) || first.Name != path || first.ETag == "" {
		t.Errorf("have %+v", first)
	}
	if _, err := o.Get(t.Context(), first.ETag); !errors.Is(err, fleet.ErrNotModified) {
		t.Errorf("the same content again: %v", err)
	}
	if err := os.WriteFile(path, []byte(`{}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if second, err := o.Get(t.Context(), first.ETag); err != nil || second.ETag == first.ETag || string(second.Bytes) != "{}" {
		t.Errorf("other content: %+v, %v", second, err)
	}
}

func TestAFileThatOthersCanWriteIsRefused(t *testing.T) {
	t.Parallel()
	for mode, refused := range map[os.FileMode]bool{0o600: false, 0o640: false, 0o644: false, 0o400: false, 0o660: true, 0o602: true, 0o666: true, 0o620: true} {
		path := write(t, "{}", mode)
		_, err := (&Objects{Path: path, MaxBytes: 100}).Get(t.Context(), "")
		if (err != nil) != refused {
			t.Errorf("mode %04o: %v", mode, err)
		}
		if refused && (!errors.Is(err, fleet.ErrDenied) || !strings.Contains(err.Error(), "chmod go-w "+path)) {
			t.Errorf("mode %04o: the error does not say what to do: %v", mode, err)
		}
	}
}

func TestALinkIsJudgedByTheFileBehindIt(t *testing.T) {
	t.Parallel()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(write(t, "{}", 0o666), link); err != nil {
		t.Fatal(err)
	}
	if _, err := (&Objects{Path: link, MaxBytes: 100}).Get(t.Context(), ""); !errors.Is(err, fleet.ErrDenied) {
		t.Errorf("have %v", err)
	}
}

func TestWhatIsNoFileIsRefused(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, path, says string
		is               error
	}{
		{"nothing there", filepath.Join(t.TempDir(), "none"), "no such file", fleet.ErrNotFound},
		{"a directory", t.TempDir(), "found a directory, expected a regular file", fleet.ErrDenied},
		{"a pipe, which is not waited for", pipe, "found a pipe, expected a regular file", fleet.ErrDenied},
		{"a device", "/dev/zero", "found a device, expected a regular file", fleet.ErrDenied},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := (&Objects{Path: tt.path, MaxBytes: 100}).Get(t.Context(), "")
			if !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("have %v", err)
			}
		})
	}
}

func TestALargeFileIsRefusedUnread(t *testing.T) {
	t.Parallel()
	path := write(t, "", 0o600)
	if err := os.Truncate(path, 50<<20); err != nil {
		t.Fatal(err)
	}
	_, err := (&Objects{Path: path, MaxBytes: 1 << 20}).Get(t.Context(), "")
	if err == nil || !strings.Contains(err.Error(), "the file has 52428800 bytes, expected at most 1048576") {
		t.Errorf("have %v", err)
	}
	if err := os.Truncate(path, 1<<20); err != nil {
		t.Fatal(err)
	}
	if _, err := (&Objects{Path: path, MaxBytes: 1 << 20}).Get(t.Context(), ""); err != nil {
		t.Errorf("a file of exactly the limit: %v", err)
	}
}

func TestAnEndedContextReadsNothing(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (&Objects{Path: write(t, "{}", 0o600), MaxBytes: 10}).Get(ctx, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("have %v", err)
	}
}
