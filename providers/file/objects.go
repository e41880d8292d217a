package file

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"sluice/core/fleet"
)

// Objects is a settings file on a filesystem. Who may write it decides over money, so that it is refused
// while others than its owner can.
type Objects struct {
	Path     string
	MaxBytes int64 // a larger file is refused unread
}

var _ fleet.Objects = (*Objects)(nil)

// Get implements fleet.Objects; the etag is a hash of the content.
func (o *Objects) Get(ctx context.Context, etag string) (fleet.Object, error) {
	if err := ctx.Err(); err != nil {
		return fleet.Object{}, fmt.Errorf("read config %s: %w", o.Path, err)
	}
	b, info, err := readPrivate(o.Path, o.MaxBytes)
	if err != nil {
		return fleet.Object{}, fmt.Errorf("read config %s: %w", o.Path, err)
	}
	tag := hashed(b)
	if tag == etag {
		return fleet.Object{}, fmt.Errorf("read config %s: %w", o.Path, fleet.ErrNotModified)
	}
	return fleet.Object{Name: o.Path, Bytes: b, ETag: tag, Modified: info.ModTime().UTC()}, nil
}

func hashed(b []byte) string {
	hash := sha256.Sum256(b)
	return hex.EncodeToString(hash[:])
}

// readPrivate reads a regular file that nobody but its owner can write. What is checked is what is read: the open file.
func readPrivate(path string, most int64) ([]byte, fs.FileInfo, error) {
	if err := regular(path); err != nil { // opening a pipe would wait for a writer
		return nil, nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, explain(err)
	}
	defer func() { _ = f.Close() }() // only read
	info, err := f.Stat()
	if err != nil {
		return nil, nil, explain(err)
	}
	if err := acceptable(path, info, most); err != nil {
		return nil, nil, err
	}
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, nil, explain(err)
	}
	if int64(len(b)) > most { // it grew since it was looked at
		return nil, nil, tooLarge(int64(len(b)), most)
	}
	return b, info, nil
}

func regular(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return explain(err)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("found %s, expected a regular file: %w", kind(info.Mode()), fleet.ErrDenied)
	}
	return nil
}

func kind(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a directory"
	case m&fs.ModeNamedPipe != 0:
		return "a pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	}
	return "a device"
}

func acceptable(path string, info fs.FileInfo, most int64) error {
	if !info.Mode().IsRegular() {
		return fmt.Errorf("found %s, expected a regular file: %w", kind(info.Mode()), fleet.ErrDenied)
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("the file can be written by others than its owner (mode %04o); run: chmod go-w %s: %w", info.Mode().Perm(), path, fleet.ErrDenied)
	}
	if info.Size() > most {
		return tooLarge(info.Size(), most)
	}
	return nil
}

func tooLarge(n, most int64) error {
	return fmt.Errorf("the file has %d bytes, expected at most %d: %w", n, most, fleet.ErrBadRequest)
}

// explain puts a filesystem's error into the port's words; its text has the path already.
func explain(err error) error {
	var pe *fs.PathError
	cause := err
	if errors.As(err, &pe) {
		cause = pe.Err
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: %w", fleet.ErrNotFound, cause)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: %w", fleet.ErrDenied, cause)
	}
	return fmt.Errorf("%w: %w", fleet.ErrUnavailable, cause)
}
