package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Supervise is the hidden command of this program that stands between an agent and a command.
const Supervise = "supervise"

// Bounds of a run.
const (
	outputKept = 64 << 10
	// lastResort is how much longer than its grace a supervisor may take before its lifeline is cut.
	lastResort = 5 * time.Second
	// pipeDelay is how long output may be read after the supervisor has ended; nobody should hold the pipes then.
	pipeDelay = 2 * time.Second
)

// Command is what to run.
type Command struct {
	Argv    []string
	Env     []string // all of it
	Stdin   []byte
	Timeout time.Duration // 0: none
	Grace   time.Duration // between SIGTERM and SIGKILL
}

// Result is how a run ended.
type Result struct {
	// Code is the exit code; 128 plus the signal's number where a signal ended the command.
	Code     int
	TimedOut bool
	Stdout   *Tail
	Stderr   *Tail
	// Err is set where the command could not be watched to its end; Code then means nothing.
	Err error
}

// Runner runs commands, each under a supervisor of its own: a process that adopts whatever the command
// leaves behind, so that everything a job started can be found and ended, and that ends it all when the
// agent dies.
type Runner struct {
	Self string // path of this program
}

// Self finds this program, also after its file was replaced by a newer one.
func Self() (string, error) {
	const link = "/proc/self/exe"
	if _, err := os.Stat(link); err == nil {
		return link, nil
	}
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find own program: %w", err)
	}
	return path, nil
}

// Run runs a command to its end, and returns when nothing of it is left. Closing stop asks it to end
// with SIGTERM, and the end of its grace or of ctx ends it by force.
func (r Runner) Run(ctx context.Context, stop <-chan struct{}, c Command) Result {
	res := Result{Stdout: NewTail(outputKept), Stderr: NewTail(outputKept)}
	cmd := exec.Command(r.Self, append([]string{Supervise, "--grace", c.Grace.String(), "--"}, c.Argv...)...) //nolint:noctx // the lifeline ends it with all its children
	cmd.Args[0] = "sluice-agent"
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Env, bytes.NewReader(c.Stdin), res.Stdout, res.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a Ctrl-C is the agent's alone to handle
	cmd.WaitDelay = pipeDelay
	theirs, lifeline, err := os.Pipe()
	if err != nil {
		res.Err = fmt.Errorf("make lifeline: %w", err)
		return res
	}
	defer lifeline.Close() //nolint:errcheck // nothing is written to it
	cmd.ExtraFiles = []*os.File{theirs}
	err = cmd.Start()
	_ = theirs.Close()
	if err != nil {
		res.Err = fmt.Errorf("start supervisor: %w", err)
		return res
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	res.TimedOut, err = watch(ctx, stop, c, cmd.Process, lifeline, ended)
	res.Code, res.Err = outcome(cmd.ProcessState, err)
	return res
}

// watch waits for the end of a supervisor and brings it about where it is due.
func watch(ctx context.Context, stop <-chan struct{}, c Command, p *os.Process, lifeline *os.File, ended <-chan error) (timedOut bool, err error) {
	var timeout <-chan time.Time
	if c.Timeout > 0 {
		timeout = time.After(c.Timeout)
	}
	var resort <-chan time.Time
	for {
		select {
		case err := <-ended:
			return timedOut, err
		case <-timeout:
			timedOut = true
			_ = p.Signal(syscall.SIGTERM)
			resort = time.After(c.Grace + lastResort)
		case <-stop:
			stop = nil
			_ = p.Signal(syscall.SIGTERM)
			resort = time.After(c.Grace + lastResort)
		case <-resort:
			_ = lifeline.Close()
		case <-ctx.Done():
			_ = lifeline.Close()
			return timedOut, <-ended
		}
	}
}

func outcome(s *os.ProcessState, err error) (int, error) {
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
		return -1, fmt.Errorf("wait for supervisor: %w", err)
	}
	status, ok := s.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() && status.Signal() == syscall.SIGTERM { // asked to end before it had started anything
		return codeSignal + int(syscall.SIGTERM), nil
	}
	if ok && status.Signaled() {
		return -1, fmt.Errorf("supervisor was ended by signal %d", status.Signal())
	}
	return s.ExitCode(), nil
}
