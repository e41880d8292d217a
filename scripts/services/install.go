package services

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// lockWait lets two installs at once queue up rather than fail.
const lockWait = "DPkg::Lock::Timeout=120"

// noMainCluster keeps Debian's package from making a cluster of its own.
const (
	noMainCluster     = "/etc/postgresql-common/createcluster.d/sluice.conf"
	noMainClusterText = "create_main_cluster = false\n"
)

// install brings a tool: as root with apt-get, as an ordinary user from
// Debian's packages unpacked in the user's cache, elsewhere (Postgres only)
// from the embedded distribution.
func (h *home) install(ctx context.Context, t tool) error {
	unlock, err := lockCache()
	if err != nil {
		return err
	}
	defer unlock()
	if len(installed(t)) > 0 {
		return nil // another run was faster
	}
	_, err = exec.LookPath("apt-get")
	switch {
	case err == nil && os.Geteuid() == 0:
		return h.aptInstall(ctx, t.pkg)
	case err == nil:
		return h.unpack(ctx, t.pkg)
	case t.name == initdbTool().name:
		return h.downloadPostgres(ctx)
	default:
		return fmt.Errorf("there is no apt-get here: install %s by hand so that %s is on PATH", t.pkg, t.name)
	}
}

func (h *home) aptInstall(ctx context.Context, pkg string) error {
	h.logf("installing %s with apt-get", pkg)
	restore, err := withoutMainCluster()
	if err != nil {
		return err
	}
	defer restore()
	// A list that cannot be refreshed may still be good enough.
	updateErr := apt(ctx, "-o", lockWait, "update")
	if err := apt(ctx, "-o", lockWait, "install", "-y", "--no-install-recommends", pkg); err != nil {
		return errors.Join(fmt.Errorf("install %s with apt-get: %w", pkg, err), updateErr)
	}
	return nil
}

// withoutMainCluster sets Debian's switch until restore is called.
func withoutMainCluster() (restore func(), err error) {
	if err := os.MkdirAll(filepath.Dir(noMainCluster), 0o755); err != nil { //nolint:gosec // settings that anyone may read
		return nil, fmt.Errorf("keep apt-get from making a cluster: %w", err)
	}
	if err := os.WriteFile(noMainCluster, []byte(noMainClusterText), 0o644); err != nil { //nolint:gosec // as above
		return nil, fmt.Errorf("keep apt-get from making a cluster: %w", err)
	}
	return func() { _ = os.Remove(noMainCluster) }, nil
}

func apt(ctx context.Context, args ...string) error {
	return quietly(ctx, "apt-get", append([]string{"-q"}, args...)...)
}

// quietly runs a command and shows what it said only when it fails. It is
// asked to end, not killed, so that it can leave its data whole.
func quietly(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopTimeout
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("run %s: %w:\n%s", name, err, lastLines(string(out), 15))
	}
	return nil
}

// unpack brings a package and those it depends on without being root: apt-get
// fetches them with its state in the cache, and nothing of the system changes.
func (h *home) unpack(ctx context.Context, pkg string) error {
	root := unpackedRoot(pkg)
	h.logf("unpacking %s and what it needs into %s (install it as root to have it system-wide)", pkg, root)
	archives, err := fetchPackages(ctx, pkg)
	if err != nil {
		return fmt.Errorf("unpack %s: %w", pkg, err)
	}
	if err := extract(ctx, archives, root); err != nil {
		return fmt.Errorf("unpack %s: %w", pkg, err)
	}
	return nil
}

// lockCache has the installs of one user wait for each other.
func lockCache() (unlock func(), err error) {
	if cacheDir() == "" {
		return nil, errors.New("lock cache folder: there is none; set HOME")
	}
	if err := os.MkdirAll(cacheDir(), 0o700); err != nil {
		return nil, fmt.Errorf("make cache folder: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(cacheDir(), "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock cache folder: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lock cache folder: %w", err), lock.Close())
	}
	return func() { _ = lock.Close() }, nil
}

// fetchPackages downloads a package with its dependencies, less those that
// the system has, and returns the folder with them.
func fetchPackages(ctx context.Context, pkg string) (string, error) {
	state, archives := filepath.Join(cacheDir(), "apt"), filepath.Join(cacheDir(), "archives", pkg)
	for _, dir := range []string{filepath.Join(state, "lists", "partial"), filepath.Join(state, "cache"), filepath.Join(archives, "partial")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return "", err
		}
	}
	options := []string{
		"-o", "Dir::State=" + state, "-o", "Dir::State::status=/var/lib/dpkg/status",
		"-o", "Dir::Cache=" + filepath.Join(state, "cache"), "-o", "Dir::Cache::archives=" + archives,
		"-o", "Debug::NoLocking=true",
	}
	if err := apt(ctx, append(options, "update")...); err != nil {
		return "", err
	}
	return archives, apt(ctx, append(options, "install", "-y", "--download-only", "--no-install-recommends", pkg)...)
}

// extract makes root whole or not at all.
func extract(ctx context.Context, archives, root string) error {
	debs, err := filepath.Glob(filepath.Join(archives, "*.deb"))
	if err != nil {
		return err
	}
	unfinished := root + ".new"
	if err := errors.Join(os.RemoveAll(root), os.RemoveAll(unfinished), os.MkdirAll(unfinished, 0o700)); err != nil {
		return err
	}
	for _, deb := range debs {
		if err := quietly(ctx, "dpkg-deb", "--extract", deb, unfinished); err != nil {
			return err
		}
	}
	if err := relocateErlang(unfinished, root); err != nil {
		return err
	}
	return errors.Join(os.Rename(unfinished, root), os.RemoveAll(archives))
}

// relocateErlang has Erlang's launcher, which RabbitMQ needs, look below root:
// it is the one program here that does not find its files by itself.
func relocateErlang(unpacked, root string) error {
	const home = "/usr/lib/erlang"
	launcher := filepath.Join(unpacked, home, "bin", "erl")
	script, err := os.ReadFile(launcher)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("relocate erlang: %w", err)
	}
	moved := strings.ReplaceAll(string(script), home, filepath.Join(root, home))
	if err := os.WriteFile(launcher, []byte(moved), 0o755); err != nil { //nolint:gosec // a program
		return fmt.Errorf("relocate erlang: %w", err)
	}
	return nil
}

func unpackedRoot(pkg string) string {
	return filepath.Join(cacheDir(), "packages", pkg)
}

// unpackedEnv has a program from root find the libraries and programs there, Python's included.
func unpackedEnv(root string) []string {
	var libs []string
	for _, pattern := range []string{"usr/lib/*-linux-gnu*", "lib/*-linux-gnu*"} {
		if found, err := filepath.Glob(filepath.Join(root, pattern)); err == nil {
			libs = append(libs, found...)
		}
	}
	return []string{
		"LD_LIBRARY_PATH=" + joinList(append(libs, os.Getenv("LD_LIBRARY_PATH"))...),
		"PATH=" + joinList(filepath.Join(root, "usr/bin"), os.Getenv("PATH")),
		"PYTHONPATH=" + joinList(filepath.Join(root, "usr/lib/python3/dist-packages"), os.Getenv("PYTHONPATH")),
	}
}

func joinList(paths ...string) string {
	return strings.Trim(strings.Join(paths, string(os.PathListSeparator)), string(os.PathListSeparator))
}
