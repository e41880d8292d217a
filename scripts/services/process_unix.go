//go:build unix && !linux

package services

import "syscall"

// childAttr gives a child its own process group, so that a Ctrl-C meant for
// us does not reach it. Without the kernel's help, a child that outlives us
// is found and stopped by the next start in the folder.
func childAttr(c *syscall.Credential, _ syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Credential: c}
}
