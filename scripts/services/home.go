package services

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// home is the folder of one set of services, locked against a second use.
type home struct {
	dir   string
	owner owner
	log   io.Writer
	lock  *os.File
	// standsIn is true where dir is not the wanted folder.
	standsIn, dropStandIn bool
}

// openHome makes the folder, locks it, and stops what a crashed run left
// running in it.
func openHome(ctx context.Context, dir string, log io.Writer) (*home, error) {
	if log == nil {
		log = io.Discard
	}
	h := &home{owner: findOwner(), log: log}
	if err := h.settle(dir); err != nil {
		return nil, err
	}
	if err := h.acquire(); err != nil {
		return nil, err
	}
	if err := h.stopLeftovers(ctx); err != nil {
		return nil, errors.Join(err, h.close())
	}
	return h, nil
}

// settle chooses the folder: the wanted one, or a stand-in in the temporary
// folder when the services' user cannot get to the wanted one.
func (h *home) settle(dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("find services folder: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // for the user that the services run as
		return fmt.Errorf("make services folder: %w", err)
	}
	if h.owner.reaches(dir) {
		h.dir = dir
		return nil
	}
	h.dir, h.standsIn = standIn(dir), true
	h.logf("user %s cannot enter %s: using %s instead", h.owner.name, dir, h.dir)
	return h.claimStandIn()
}

// standIn names the same temporary folder for the same wanted folder, so
// that data is found again.
func standIn(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return filepath.Join(os.TempDir(), fmt.Sprintf("sluice-services-%x", sum[:6]))
}

// claimStandIn refuses a folder that another user put at the guessable name.
func (h *home) claimStandIn() error {
	if err := os.Mkdir(h.dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) { //nolint:gosec // as in settle
		return fmt.Errorf("make services folder: %w", err)
	}
	info, err := os.Lstat(h.dir)
	if err != nil {
		return fmt.Errorf("look at services folder: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("make services folder: %s belongs to someone else", h.dir)
	}
	if !h.owner.reaches(h.dir) {
		return fmt.Errorf("make services folder: user %s cannot enter %s; name a folder that it can enter", h.owner.name, h.dir)
	}
	return nil
}

// acquire takes the folder's lock, which the kernel drops with the process.
func (h *home) acquire() error {
	lock, err := os.OpenFile(h.path("lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("lock services folder: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return errors.Join(fmt.Errorf("lock services folder: %s is in use by another run: %w", h.dir, err), lock.Close())
	}
	h.lock = lock
	return nil
}

func (h *home) close() error {
	if h.standsIn && h.dropStandIn {
		if err := os.RemoveAll(h.dir); err != nil {
			return errors.Join(fmt.Errorf("remove services folder: %w", err), h.lock.Close())
		}
	}
	if err := h.lock.Close(); err != nil {
		return fmt.Errorf("unlock services folder: %w", err)
	}
	return nil
}

func (h *home) path(elem ...string) string {
	return filepath.Join(append([]string{h.dir}, elem...)...)
}

// fresh empties and makes a private folder for a service that keeps nothing.
func (h *home) fresh(name string) (string, error) {
	dir := h.path(name)
	if err := os.RemoveAll(dir); err != nil {
		return "", fmt.Errorf("empty %s: %w", dir, err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", fmt.Errorf("make %s: %w", dir, err)
	}
	return dir, h.owner.take(dir)
}

// write makes a file that only the services' user can read.
func (h *home) write(path, content string) error {
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	return h.owner.take(path)
}

func (h *home) logf(format string, args ...any) {
	_, _ = fmt.Fprintf(h.log, "services: "+format+"\n", args...)
}
