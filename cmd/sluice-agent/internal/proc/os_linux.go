package proc

import (
	"fmt"
	"math"
	"syscall"

	"golang.org/x/sys/unix"
)

// adoptOrphans makes this process the parent of all descendants that lose theirs, daemons included.
func adoptOrphans() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set child subreaper: %w", err)
	}
	return nil
}

// closeOnExec keeps the lifeline, and whatever this program inherited, from the command.
func closeOnExec() {
	if unix.CloseRange(lifelineFD, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) != nil { // before Linux 5.11
		syscall.CloseOnExec(lifelineFD)
	}
}

// childAttr gives the command a group of its own and lets the kernel end it should its supervisor be killed.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// HideMemory keeps other processes of this user, the commands of jobs among them, from reading the
// secrets in this process's memory and environment.
func HideMemory() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("hide memory: %w", err)
	}
	return nil
}
