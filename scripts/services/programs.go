package services

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// tool is a program, or another file of a package, to find or install.
type tool struct {
	name   string
	pkg    string   // its Debian package
	places []string // folders that may hold it, as patterns, besides PATH
}

// program is an installed tool.
type program struct {
	path string
	env  []string // what it needs to find its own libraries
}

func (p program) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, p.path, args...)
	cmd.Env = append(os.Environ(), p.env...)
	return cmd
}

// sibling is another program of the same folder.
func (p program) sibling(name string) program {
	p.path = filepath.Join(filepath.Dir(p.path), name)
	return p
}

// sbin are folders that an ordinary user's PATH often lacks.
func sbin() []string {
	return []string{"/usr/sbin", "/usr/local/sbin", "/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"}
}

// find returns a tool, and installs it where that can be done.
func (h *home) find(ctx context.Context, t tool) (program, error) {
	if found := installed(t); len(found) > 0 {
		return found[0], nil
	}
	if err := h.install(ctx, t); err != nil {
		return program{}, fmt.Errorf("find %s: it is not installed: %w", t.name, err)
	}
	if found := installed(t); len(found) > 0 {
		return found[0], nil
	}
	return program{}, fmt.Errorf("find %s: it is not where the package %s should have put it", t.name, t.pkg)
}

// installed lists where a tool is: the system's own, the newest first, then
// PATH's, then those that an earlier run unpacked for this user.
func installed(t tool) []program {
	found := inPlaces("", t)
	if path, err := exec.LookPath(t.name); err == nil {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			found = append(found, program{path: real})
		}
	}
	if cacheDir() == "" {
		return found
	}
	for _, p := range inPlaces(unpackedRoot(t.pkg), t) {
		p.env = unpackedEnv(unpackedRoot(t.pkg))
		found = append(found, p)
	}
	return append(found, inPlaces(embeddedPostgresDir(), t)...)
}

func inPlaces(root string, t tool) []program {
	var found []program
	for _, place := range t.places {
		paths, err := filepath.Glob(filepath.Join(root, place, t.name))
		if err != nil {
			continue // a root with pattern characters in it holds nothing of ours
		}
		newestFirst(paths)
		for _, path := range paths {
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
				found = append(found, program{path: path})
			}
		}
	}
	return found
}

// cacheDir is where this user's unpacked programs stay between runs, empty
// for a user without a home. It is never in a folder that others can write.
func cacheDir() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "sluice")
}
