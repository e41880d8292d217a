package file

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"sluice/core/fleet"
)

const (
	// versionsDir is beside the config and holds a folder for each config there.
	versionsDir = ".sluice-versions"
	// maxKept bounds what is kept of one config.
	maxKept = 20
	// idTime sorts as time does.
	idTime = "20060102T150405.000Z"
	// etagInID is how much of the etag is in a version's id.
	etagInID = 12
	// whySuffix marks the note about a version.
	whySuffix = ".why"
)

var _ fleet.Versions = (*Objects)(nil)

// Put implements fleet.Versions. A lock keeps other Puts away; what else writes the file, an editor say, is found out
// by its content up to the last moment before the rename.
func (o *Objects) Put(ctx context.Context, c fleet.Change) (fleet.Object, error) {
	w, err := o.writing(ctx)
	if err != nil {
		return fleet.Object{}, fmt.Errorf("write config %s: %w", o.Path, err)
	}
	defer w.unlock()
	if err := w.put(ctx, c); err != nil {
		return fleet.Object{}, fmt.Errorf("write config %s: %w", o.Path, err)
	}
	return o.Get(ctx, "")
}

// Kept implements fleet.Versions.
func (o *Objects) Kept(ctx context.Context) ([]fleet.KeptObject, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("list versions of %s: %w", o.Path, err)
	}
	target, err := behind(o.Path)
	if err != nil {
		return nil, fmt.Errorf("list versions of %s: %w", o.Path, err)
	}
	out, err := kept(folder(target))
	if err != nil {
		return nil, fmt.Errorf("list versions of %s: %w", o.Path, err)
	}
	return out, nil
}

// Version implements fleet.Versions.
func (o *Objects) Version(ctx context.Context, id string) (fleet.Object, error) {
	target, err := behind(o.Path)
	if err != nil {
		return fleet.Object{}, fmt.Errorf("read version %s of %s: %w", id, o.Path, err)
	}
	if _, ok := named(id); !ok {
		return fleet.Object{}, fmt.Errorf("read version %q of %s: expected an id such as 20270114T093100.000Z-1a2b3c4d5e6f: %w", id, o.Path, fleet.ErrNotFound)
	}
	object, err := (&Objects{Path: filepath.Join(folder(target), id), MaxBytes: o.MaxBytes}).Get(ctx, "")
	if err != nil {
		return fleet.Object{}, fmt.Errorf("read version %s of %s: %w", id, o.Path, err)
	}
	return object, nil
}

// behind follows symbolic links, so that what is written is the file and not the link to it.
func behind(path string) (string, error) {
	target, err := filepath.EvalSymlinks(path)
	switch {
	case err == nil:
		return target, nil
	case !errors.Is(err, fs.ErrNotExist):
		return "", explain(err)
	}
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return "", fmt.Errorf("found a symbolic link that leads nowhere, expected one to a file; remove it or make what it leads to: %w", fleet.ErrBadRequest)
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return "", explain(err)
	}
	return filepath.Join(dir, filepath.Base(path)), nil
}

// folder is where the versions of a config are kept.
func folder(target string) string {
	return filepath.Join(filepath.Dir(target), versionsDir, filepath.Base(target))
}

// named reads when a version was replaced from its id.
func named(id string) (time.Time, bool) {
	at, hash, _ := strings.Cut(id, "-")
	replaced, err := time.Parse(idTime, at)
	return replaced, err == nil && len(hash) == etagInID && strings.Trim(hash, "0123456789abcdef") == ""
}

// note is what is written down about a version beside its bytes.
type note struct {
	ETag string `json:"etag"`
	Who  string `json:"who,omitempty"`
	Why  string `json:"why,omitempty"`
}

// kept lists a folder; one that is not there is empty.
func kept(dir string) ([]fleet.KeptObject, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, explain(err)
	}
	var out []fleet.KeptObject
	for _, e := range entries {
		replaced, ok := named(e.Name())
		if !ok {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return nil, explain(err)
		}
		k := fleet.KeptObject{ID: e.Name(), Modified: info.ModTime().UTC(), Replaced: replaced}
		if k.ETag, k.Who, k.Why, err = noted(filepath.Join(dir, e.Name())); err != nil {
			return nil, err
		}
		out = append(out, k)
	}
	slices.Reverse(out) // a folder is read in the order of names
	return out, nil
}

// noted reads the note of a version; its etag is the content's, whatever the note says.
func noted(path string) (tag, who, why string, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return "", "", "", explain(err)
	}
	var n note
	if text, err := os.ReadFile(path + whySuffix); err == nil && json.Unmarshal(text, &n) != nil {
		n = note{Why: "the note about it cannot be read"}
	}
	return hashed(b), n.Who, n.Why, nil
}

// writing is a config whose lock is held.
type writing struct {
	*Objects
	target string // the file itself
	dir    string // of its versions
	lock   *os.File
}

func (o *Objects) writing(ctx context.Context) (*writing, error) {
	target, err := behind(o.Path)
	if err != nil {
		return nil, err
	}
	w := &writing{Objects: o, target: target, dir: folder(target)}
	if err := os.MkdirAll(w.dir, 0o755); err != nil { //nolint:gosec // whoever may read the config may read what it was
		return nil, explain(err)
	}
	if w.lock, err = os.OpenFile(filepath.Join(w.dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return nil, explain(err)
	}
	for {
		err := syscall.Flock(int(w.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return w, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			w.unlock()
			return nil, fmt.Errorf("lock it: %w", explain(err))
		}
		select {
		case <-ctx.Done():
			w.unlock()
			return nil, fmt.Errorf("wait for another writer: %w", ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// unlock gives the lock back, as the end of the process does.
func (w *writing) unlock() { _ = w.lock.Close() }

// put keeps what is there, then renames the new one over it. Killed at any point it leaves the one or the other whole.
func (w *writing) put(ctx context.Context, c fleet.Change) error {
	if n := int64(len(c.Bytes)); n > w.MaxBytes {
		return tooLarge(n, w.MaxBytes)
	}
	old, info, err := w.present(c.Old)
	if err != nil {
		return err
	}
	staged := filepath.Join(w.dir, "new")
	if err := stage(staged, c.Bytes, info); err != nil {
		return err
	}
	if info == nil { // a link never replaces anything
		if err = os.Link(staged, w.target); errors.Is(err, fs.ErrExist) {
			return changed()
		}
		if err = errors.Join(err, os.Remove(staged)); err != nil {
			return explain(err)
		}
		return sync(filepath.Dir(w.target))
	}
	if err := w.keep(old, info, note{ETag: hashed(old), Who: c.Who, Why: c.Why}); err != nil {
		return fmt.Errorf("keep the present one: %w", err)
	}
	if _, _, err := w.present(c.Old); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := os.Rename(staged, w.target); err != nil {
		return explain(err)
	}
	return sync(filepath.Dir(w.target))
}

// present reads what is there, and wants it to be what the writer has seen. No info: there is nothing.
func (w *writing) present(seen string) ([]byte, fs.FileInfo, error) {
	b, info, err := readPrivate(w.target, w.MaxBytes)
	switch {
	case errors.Is(err, fleet.ErrNotFound) && seen == "":
		return nil, nil, nil
	case errors.Is(err, fleet.ErrNotFound):
		return nil, nil, changed()
	case err != nil:
		return nil, nil, err
	case hashed(b) != seen:
		return nil, nil, changed()
	}
	return b, info, nil
}

func changed() error {
	return fmt.Errorf("somebody else changed it, nothing was written; look at it and run this again: %w", fleet.ErrChanged)
}

// keep copies what will be replaced, once, and forgets the oldest.
func (w *writing) keep(old []byte, info fs.FileInfo, n note) error {
	before, err := kept(w.dir)
	if err != nil {
		return err
	}
	at := time.Now().UTC().Truncate(time.Millisecond)
	if len(before) > 0 && !at.After(before[0].Replaced) {
		at = before[0].Replaced.Add(time.Millisecond)
	}
	if len(before) > 0 && before[0].ETag == n.ETag { // an earlier writer came no further
		at = before[0].Replaced
	}
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	path := filepath.Join(w.dir, at.Format(idTime)+"-"+n.ETag[:etagInID])
	staged := filepath.Join(w.dir, "old")
	for _, f := range []struct {
		to string
		b  []byte
	}{{path + whySuffix, text}, {path, old}} {
		if err := stage(staged, f.b, info); err != nil {
			return err
		}
		if err := errors.Join(os.Chtimes(staged, info.ModTime(), info.ModTime()), os.Rename(staged, f.to)); err != nil {
			return explain(err)
		}
	}
	if err := forget(w.dir); err != nil {
		return err
	}
	return sync(w.dir)
}

func forget(dir string) error {
	all, err := kept(dir)
	if err != nil {
		return err
	}
	for _, k := range all[min(maxKept, len(all)):] {
		err = errors.Join(err, os.Remove(filepath.Join(dir, k.ID)))
		if gone := os.Remove(filepath.Join(dir, k.ID+whySuffix)); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	return err
}

// stage writes a file with the mode and the owner of another, down to the disk, and later than it. Only the lock's
// holder does, so a killed one's remains are overwritten.
func stage(path string, b []byte, like fs.FileInfo) (err error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return explain(err)
	}
	mode := fs.FileMode(0o644)
	if like != nil {
		mode = 0o600 // until it has its owner
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return explain(err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if like != nil {
		if err := resemble(f, like); err != nil {
			return err
		}
	}
	if _, err := f.Write(b); err != nil {
		return explain(err)
	}
	if like != nil && !time.Now().After(like.ModTime()) {
		later := like.ModTime().Add(time.Millisecond)
		if err := os.Chtimes(path, later, later); err != nil {
			return explain(err)
		}
	}
	if err := f.Sync(); err != nil {
		return explain(err)
	}
	return nil
}

// resemble gives a file the owner and the mode of another: the functions that read it may be another user's.
func resemble(f *os.File, like fs.FileInfo) error {
	info, err := f.Stat()
	if err != nil {
		return explain(err)
	}
	is, ok := info.Sys().(*syscall.Stat_t)
	want, ok2 := like.Sys().(*syscall.Stat_t)
	if ok && ok2 && (is.Uid != want.Uid || is.Gid != want.Gid) {
		if err := f.Chown(int(want.Uid), int(want.Gid)); err != nil {
			return fmt.Errorf("it belongs to user %d and group %d, and what replaces it must too; run this as that user: %w", want.Uid, want.Gid, explain(err))
		}
	}
	if err := f.Chmod(like.Mode().Perm()); err != nil {
		return explain(err)
	}
	return nil
}

// sync makes what was renamed in a folder outlast a loss of power.
func sync(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return explain(err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return explain(err)
	}
	return nil
}
