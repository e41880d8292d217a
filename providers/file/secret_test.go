package file

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"sluice/core/fleet"
)

func TestReferencesAreResolved(t *testing.T) {
	t.Setenv("SLUICE_TEST_SECRET", "from the environment")
	t.Setenv("SLUICE_TEST_EMPTY", "")
	kept := write(t, "from a file\n", 0o400)
	tests := []struct {
		name, ref, want string
		is              error
	}{
		{"an environment variable", "env:SLUICE_TEST_SECRET", "from the environment", nil},
		{"one that is not set", "env:SLUICE_TEST_NOT_SET", "", fleet.ErrNotFound},
		{"one that is empty", "env:SLUICE_TEST_EMPTY", "", fleet.ErrNotFound},
		{"a value behind env", "env:postgres://u:hunter2@db", "", fleet.ErrBadRequest},
		{"a file, without its last line break", "file:" + kept, "from a file", nil},
		{"an empty file", "file:" + write(t, "\n", 0o600), "", fleet.ErrNotFound},
		{"a file that others can write", "file:" + write(t, "hunter2", 0o622), "", fleet.ErrDenied},
		{"no file", "file:" + filepath.Join(t.TempDir(), "none"), "", fleet.ErrNotFound},
		{"a relative path", "file:secrets/hunter2", "", fleet.ErrBadRequest},
		{"a kind that is not linked", "aws-sm:prod/database", "", fleet.ErrBadRequest},
		{"a value that looks like a URL", "postgres://u:hunter2@db", "", fleet.ErrBadRequest},
		{"a value", "hunter2", "", fleet.ErrBadRequest},
		{"nothing", "", "", fleet.ErrBadRequest},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Resolve(t.Context(), tt.ref)
			if got != tt.want || !errors.Is(err, tt.is) {
				t.Errorf("have %q, %v", got, err)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error repeats the secret: %v", err)
			}
		})
	}
}

func TestAKindThatIsNotLinkedIsNamed(t *testing.T) {
	t.Parallel()
	_, err := Resolve(t.Context(), "ssm:/prod/database")
	if err == nil || !strings.Contains(err.Error(), "resolve secret ssm:/prod/database: references of kind ssm are not linked in this build") {
		t.Errorf("have %v", err)
	}
}
