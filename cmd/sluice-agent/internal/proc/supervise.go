package proc

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/shirou/gopsutil/v4/process"
)

// Exit codes that shells use for commands that do not start.
const (
	codeNotRunnable = 126
	codeNotFound    = 127
	codeSignal      = 128
)

const (
	lifelineFD = 3
	// sweepEvery is how often descendants are looked for while they are being ended.
	sweepEvery = 20 * time.Millisecond
	// giveUp is when a supervisor leaves what it cannot end: a process that changed its user.
	giveUp = 10 * time.Second
)

// Watch is the supervisor: it runs a command on its own standard streams, adopts what the command leaves
// behind, and returns the command's exit code when nothing of it is left. SIGTERM is passed on to all
// descendants, followed by SIGKILL after the grace; the end of the lifeline is followed by SIGKILL at once.
func Watch(argv []string, grace time.Duration) int {
	runtime.LockOSThread() // the death signal of the child is tied to the thread that made it
	lifeline := os.NewFile(lifelineFD, "lifeline")
	closeOnExec()
	terms := make(chan os.Signal, 1)
	signal.Notify(terms, syscall.SIGTERM)
	if err := adoptOrphans(); err != nil {
		return complain(codeNotRunnable, "adopt orphans", err)
	}
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return complain(codeNotFound, "find command", err)
	}
	pid, err := syscall.ForkExec(path, argv, &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{0, 1, 2}, Sys: childAttr(),
	})
	if err != nil {
		return complain(codeNotRunnable, "start command "+path, err)
	}
	cut := make(chan struct{})
	go func() { _, _ = io.Copy(io.Discard, lifeline); close(cut) }()
	code, none := make(chan int, 1), make(chan struct{})
	go reap(pid, code, none)
	return attend(grace, terms, cut, code, none)
}

func complain(code int, what string, err error) int {
	fmt.Fprintf(os.Stderr, "sluice-agent: %s: %v\n", what, err)
	return code
}

// attend waits for the command's end, ends it where it is due, and then ends what it left behind.
func attend(grace time.Duration, terms <-chan os.Signal, cut <-chan struct{}, code <-chan int, none <-chan struct{}) int {
	var force <-chan time.Time
	result := codeSignal + int(syscall.SIGKILL)
wait:
	for {
		select {
		case result = <-code:
			break wait
		case <-terms:
			terms = nil
			signalDescendants(syscall.SIGTERM)
			force = time.After(grace)
		case <-force:
			break wait
		case <-cut:
			break wait
		}
	}
	if !killDescendants(none) {
		fmt.Fprintln(os.Stderr, "sluice-agent: some processes of the command could not be ended")
	}
	select {
	case result = <-code:
	default:
	}
	return result
}

// reap collects every child, adopted ones too, and tells how the command ended and when no child is left.
func reap(command int, code chan<- int, none chan<- struct{}) {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil: // ECHILD
			close(none)
			return
		case pid == command && status.Signaled():
			code <- codeSignal + int(status.Signal())
		case pid == command:
			code <- status.ExitStatus()
		}
	}
}

// killDescendants repeats until the kernel says that there is no child left: whatever forks meanwhile is
// adopted and found by the next round.
func killDescendants(none <-chan struct{}) bool {
	for begun := time.Now(); time.Since(begun) < giveUp; {
		signalDescendants(syscall.SIGKILL)
		select {
		case <-none:
			return true
		case <-time.After(sweepEvery):
		}
	}
	return false
}

func signalDescendants(s syscall.Signal) {
	for _, pid := range descendants(os.Getpid()) {
		_ = syscall.Kill(pid, s) // it may be gone already
	}
}

// descendants are all processes below one, in whatever group or session they are.
func descendants(root int) []int {
	pids, err := process.Pids()
	if err != nil {
		return nil
	}
	children := map[int][]int{}
	for _, pid := range pids {
		if parent, err := (&process.Process{Pid: pid}).Ppid(); err == nil {
			children[int(parent)] = append(children[int(parent)], int(pid))
		}
	}
	all := children[root]
	for i := 0; i < len(all); i++ {
		all = append(all, children[all[i]]...)
	}
	return all
}
