package services

import (
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// owner is the user that the services run as: the current one, except for
// root, whom Postgres and PgBouncer refuse.
type owner struct {
	name     string
	uid, gid int
	// switched is true where the services run as another user than we do.
	switched bool
}

func findOwner() owner {
	self := owner{name: "uid " + strconv.Itoa(os.Geteuid()), uid: os.Geteuid(), gid: os.Getegid()}
	if self.uid != 0 {
		return self
	}
	for _, name := range []string{"postgres", "nobody"} {
		if o, ok := lookUpOwner(name); ok {
			return o
		}
	}
	return self
}

func lookUpOwner(name string) (owner, bool) {
	u, err := user.Lookup(name)
	if err != nil {
		return owner{}, false
	}
	uid, uidErr := strconv.Atoi(u.Uid)
	gid, gidErr := strconv.Atoi(u.Gid)
	return owner{name: name, uid: uid, gid: gid, switched: true}, uidErr == nil && gidErr == nil
}

// credential is what a child runs with; nil leaves it as we are.
func (o owner) credential() *syscall.Credential {
	if !o.switched {
		return nil
	}
	return &syscall.Credential{Uid: uint32(o.uid), Gid: uint32(o.gid)} //nolint:gosec // ids from the user database fit
}

// take gives the owner a file or folder.
func (o owner) take(path string) error {
	if !o.switched {
		return nil
	}
	if err := os.Lchown(path, o.uid, o.gid); err != nil {
		return fmt.Errorf("give %s to %s: %w", path, o.name, err)
	}
	return nil
}

// takeAll gives the owner a whole folder of another owner: installing Postgres
// brings a user of its name, which then replaces nobody.
func (o owner) takeAll(dir string) error {
	if info, err := os.Stat(dir); err != nil || o.owns(info) {
		return err
	}
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return o.take(path)
	})
}

func (o owner) owns(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == o.uid
}

// reaches reports whether the owner may enter the folder and all above it.
func (o owner) reaches(dir string) bool {
	if !o.switched {
		return true
	}
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return false
	}
	for ; o.enters(dir); dir = filepath.Dir(dir) {
		if dir == filepath.Dir(dir) {
			return true
		}
	}
	return false
}

func (o owner) enters(dir string) bool {
	info, err := os.Stat(dir)
	if err != nil {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return false
	}
	switch {
	case int(stat.Uid) == o.uid:
		return info.Mode()&0o100 != 0
	case int(stat.Gid) == o.gid:
		return info.Mode()&0o010 != 0
	default:
		return info.Mode()&0o001 != 0
	}
}
