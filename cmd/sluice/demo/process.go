package demo

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// process is a worker that this run started itself: the VPS.
type process struct {
	cmd  *exec.Cmd
	done chan struct{}
}

// startVPS starts an agent as any VPS would, in a process group of its own so that a Ctrl-C reaches it through us.
func startVPS(agent string, h home) (*process, error) {
	log, err := os.OpenFile(h.path("vps.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start the VPS worker: %w", err)
	}
	defer func() { _ = log.Close() }()                                                                     // the child has its own
	cmd := exec.Command(agent, "--machine=vps", "--sweep-redis", "--name="+Name, "--state-dir="+string(h)) //nolint:gosec,noctx // our own program, ended by signal
	cmd.Env = append(os.Environ(), "SLUICE_DATABASE_URL_REF=file:"+h.databaseURL(), "SLUICE_REDIS_URL_REF=file:"+h.redisURL())
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the VPS worker: %w", err)
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // how it ended is in its log
		close(p.done)
	}()
	return p, nil
}

// stop asks, waits, and then ends the whole group.
func (p *process) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(15 * time.Second):
	}
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	<-p.done
	return errors.New("the VPS worker did not end when asked and was killed")
}

// FindAgent finds the agent's program: the one named, the one beside this program, or one in the PATH.
func FindAgent(named, self string) (string, error) {
	if named != "" {
		if _, err := os.Stat(named); err != nil {
			return "", fmt.Errorf("find sluice-agent: %w", err)
		}
		return filepath.Abs(named)
	}
	beside := filepath.Join(filepath.Dir(self), "sluice-agent")
	if _, err := os.Stat(beside); err == nil {
		return beside, nil
	}
	if found, err := exec.LookPath("sluice-agent"); err == nil {
		return filepath.Abs(found)
	}
	return "", fmt.Errorf("find sluice-agent: it is not beside %s and not in PATH; build it with `make build`, or name it with --agent", self)
}
