package demo

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"
)

// vps is the worker that this run starts itself. As on a real VPS something brings it back when it dies.
type vps struct {
	agent string
	home  home
	say   func(format string, args ...any)
	alive atomic.Pointer[os.Process] // the last that was started
	stop  chan struct{}              // closed when it shall end
	done  chan struct{}              // closed when it has
	err   error                      // how it ended; read after done
}

// restartAfter is how long after its death the VPS worker is started again.
const restartAfter = time.Second

func startVPS(agent string, h home, say func(format string, args ...any)) (*vps, error) {
	v := &vps{agent: agent, home: h, say: say, stop: make(chan struct{}), done: make(chan struct{})}
	first, err := v.start()
	if err != nil {
		return nil, err
	}
	go v.keep(first)
	return v, nil
}

// start starts an agent as any VPS would, in a process group of its own so that a Ctrl-C reaches it through us.
func (v *vps) start() (*exec.Cmd, error) {
	log, err := os.OpenFile(v.home.path("vps.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start the VPS worker: %w", err)
	}
	defer func() { _ = log.Close() }()                                                                            // the child has its own
	cmd := exec.Command(v.agent, "--machine=vps", "--sweep-redis", "--name="+Name, "--state-dir="+string(v.home)) //nolint:noctx // our own program, ended by signal
	cmd.Env = append(os.Environ(), "SLUICE_DATABASE_URL_REF=file:"+v.home.databaseURL(), "SLUICE_REDIS_URL_REF=file:"+v.home.redisURL())
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the VPS worker: %w", err)
	}
	v.alive.Store(cmd.Process)
	return cmd, nil
}

// crash ends the worker as a failure would; what brings it back is not told.
func (v *vps) crash() error {
	if err := v.alive.Load().Kill(); err != nil {
		return fmt.Errorf("kill the VPS worker: %w", err)
	}
	return nil
}

// keep lets the worker live until it shall end.
func (v *vps) keep(cmd *exec.Cmd) {
	defer close(v.done)
	for {
		ended := make(chan struct{})
		go func() {
			_ = cmd.Wait() // how it ended is in its log
			close(ended)
		}()
		select {
		case <-v.stop:
			v.err = endProcess(cmd, ended)
			return
		case <-ended:
		}
		v.say("The VPS worker has died and is started again")
		select {
		case <-v.stop:
			return
		case <-time.After(restartAfter):
		}
		var err error
		if cmd, err = v.start(); err != nil {
			v.err = err
			return
		}
	}
}

// endProcess asks, waits, and then ends the whole group.
func endProcess(cmd *exec.Cmd, ended <-chan struct{}) error {
	_ = cmd.Process.Signal(syscall.SIGTERM) // may have ended by itself
	select {
	case <-ended:
		return nil
	case <-time.After(15 * time.Second):
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	<-ended
	return errors.New("the VPS worker did not end when asked and was killed")
}

func (v *vps) end() error {
	close(v.stop)
	<-v.done
	return v.err
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
