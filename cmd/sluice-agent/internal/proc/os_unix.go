//go:build unix && !linux

package proc

import "syscall"

// adoptOrphans does nothing: outside Linux a daemon that leaves its parents cannot be followed.
func adoptOrphans() error { return nil }

func closeOnExec() { syscall.CloseOnExec(lifelineFD) }

func childAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// HideMemory does nothing: outside Linux there is no such switch.
func HideMemory() error { return nil }
