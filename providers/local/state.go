package local

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"sluice/core/fleet"
)

const (
	// shownFor is how long a machine that ended is listed as gone.
	shownFor = time.Hour
	// keptFor is how long a launch is remembered after its last machine said something.
	keptFor = 24 * time.Hour
	lockTry = 5 * time.Millisecond
)

// Folders of the state.
const (
	launchesDir = "launches"
	logsDir     = "logs"
	termsDir    = "terms"
)

// launch is what is remembered of one token.
type launch struct {
	fleet.Launch
	Boot     fleet.Seconds `json:"boot_seconds"`
	Machines []string      `json:"machines"`
	// Started: every machine was started. A launch without it was cut short, so that a repeat starts those
	// that do not run.
	Started bool      `json:"started"`
	At      time.Time `json:"at"`
}

// gone is a machine of a launch after its end.
func (l *launch) gone(id string) machine {
	return machine{scope: l.Offer.Scope, Machine: fleet.Machine{
		ID: id, State: fleet.MachineGone, Zone: l.Offer.Zone, Type: l.Offer.Type, Market: l.Offer.Market, Launched: l.At, Tags: l.Tags,
	}}
}

// machineID is the same each time, so that a launch that was cut short can be taken up.
func machineID(token string, ordinal int) string {
	return "local-" + strings.ReplaceAll(fleet.ID(Provider, token, fmt.Sprint(ordinal)), "-", "")[:16]
}

func makeFolders(dir string) error {
	for _, sub := range []string{launchesDir, logsDir, termsDir} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return fmt.Errorf("make folder of local machines: %w", err)
		}
	}
	return nil
}

// lock keeps every other launch out, of other processes too; a crash lets go of it.
func (c *Compute) lock(ctx context.Context) (func(), error) {
	f, err := os.OpenFile(filepath.Join(c.o.Dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	for ctx.Err() == nil {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			_ = f.Close()
			return nil, fmt.Errorf("take lock: %w", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(lockTry):
		}
	}
	_ = f.Close()
	return nil, fmt.Errorf("take lock: %w", ctx.Err())
}

func (c *Compute) launchPath(token string) string {
	sum := sha256.Sum256([]byte(token))
	return filepath.Join(c.o.Dir, launchesDir, hex.EncodeToString(sum[:16])+".json")
}

// find returns what is remembered of a token, nil where that is nothing.
func (c *Compute) find(token string) (*launch, error) {
	rec, err := readLaunch(c.launchPath(token))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return rec, err
}

func readLaunch(path string) (*launch, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read launch: %w", err)
	}
	var rec launch
	if err := json.Unmarshal(content, &rec); err != nil {
		return nil, fmt.Errorf("read launch %s: %w: remove it when none of its machines runs", path, err)
	}
	return &rec, nil
}

// launches are all that are remembered; a file that cannot be read makes the list incomplete.
func (c *Compute) launches() ([]*launch, error) {
	paths, err := filepath.Glob(filepath.Join(c.o.Dir, launchesDir, "*.json"))
	if err != nil {
		return nil, fmt.Errorf("list launches: %w", err)
	}
	var out []*launch
	for _, p := range paths {
		rec, err := readLaunch(p)
		if errors.Is(err, fs.ErrNotExist) { // forgotten meanwhile
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, rec)
	}
	return out, nil
}

// save writes a launch so that it is there, whole, after any crash.
func (c *Compute) save(rec *launch) error {
	if rec.At.IsZero() {
		rec.At = time.Now().UTC()
	}
	content, err := json.Marshal(rec)
	if err != nil {
		return fmt.Errorf("write launch: %w", err)
	}
	path := c.launchPath(rec.Token)
	if err := writeSynced(path+".new", content); err != nil {
		return fmt.Errorf("write launch: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("write launch: %w", err)
	}
	return syncDir(filepath.Dir(path))
}

func writeSynced(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Sync(), f.Close())
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("sync folder: %w", err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("sync folder: %w", err)
	}
	return nil
}

// forget takes a launch back that had no effect.
func (c *Compute) forget(rec *launch) error {
	if err := os.Remove(c.launchPath(rec.Token)); err != nil {
		return fmt.Errorf("forget launch: %w", err)
	}
	return nil
}

func (c *Compute) logPath(id string) string  { return filepath.Join(c.o.Dir, logsDir, id+".log") }
func (c *Compute) termPath(id string) string { return filepath.Join(c.o.Dir, termsDir, id) }

// endedLately goes by the log, which an agent writes to last when it ends.
func (c *Compute) endedLately(id string) bool {
	s, err := os.Stat(c.logPath(id))
	return err == nil && time.Since(s.ModTime()) < shownFor
}

// termBegun is when a machine was first asked to end; zero: never.
func (c *Compute) termBegun(id string) time.Time {
	s, err := os.Stat(c.termPath(id))
	if err != nil {
		return time.Time{}
	}
	return s.ModTime()
}

// forgetOld removes what nobody will ask for any more. A failure is tried again by the next launch.
func (c *Compute) forgetOld() {
	launches, err := c.launches()
	if err != nil {
		return
	}
	for _, rec := range launches {
		if c.fresh(rec) {
			continue
		}
		for _, id := range rec.Machines {
			_ = os.Remove(c.logPath(id))
			_ = os.Remove(c.termPath(id))
		}
		_ = c.forget(rec)
	}
}

// fresh launches are young, or have a machine that wrote to its log lately.
func (c *Compute) fresh(rec *launch) bool {
	if time.Since(rec.At) < keptFor {
		return true
	}
	for _, id := range rec.Machines {
		if s, err := os.Stat(c.logPath(id)); err == nil && time.Since(s.ModTime()) < keptFor {
			return true
		}
	}
	return false
}
