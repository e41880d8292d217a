package services

import "syscall"

// childAttr gives a child its own process group, so that a Ctrl-C meant for
// us does not reach it, and has the kernel end it when we die.
func childAttr(c *syscall.Credential, onParentDeath syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: onParentDeath, Credential: c}
}
