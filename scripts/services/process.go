package services

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

const (
	readyTimeout = 60 * time.Second
	stopTimeout  = 15 * time.Second
	pollInterval = 30 * time.Millisecond
)

// command is a service's process before it runs.
type command struct {
	name string
	program
	args []string
	dir  string
}

// process is a running service.
type process struct {
	name   string
	home   *home
	cmd    *exec.Cmd
	exited chan struct{} // closed after which err is set
	err    error
}

// launch runs a service on a free port and returns when it is ready. Between
// choosing a port and listening on it another program can take it, so a
// service that finds its port in use gets another one.
func (h *home) launch(ctx context.Context, make func(port int) (command, error), ready func(ctx context.Context, port int) error) (*process, int, error) {
	for attempt := 1; ; attempt++ {
		port, err := freePort(ctx)
		if err != nil {
			return nil, 0, err
		}
		c, err := make(port)
		if err != nil {
			return nil, 0, err
		}
		p, err := h.run(ctx, c, func(ctx context.Context) error { return ready(ctx, port) })
		if err == nil {
			h.logf("%s is ready on 127.0.0.1:%d (%s)", c.name, port, c.path)
			return p, port, nil
		}
		if attempt == 3 || !strings.Contains(strings.ToLower(h.tail(c.name)), "in use") {
			return nil, 0, err
		}
	}
}

// run starts a process and waits until it is ready.
func (h *home) run(ctx context.Context, c command, ready func(context.Context) error) (*process, error) {
	p, err := h.spawn(ctx, c)
	if err != nil {
		return nil, err
	}
	if err := p.await(ctx, ready); err != nil {
		_ = p.stop(context.WithoutCancel(ctx))
		return nil, err
	}
	return p, nil
}

func (h *home) spawn(ctx context.Context, c command) (*process, error) {
	log, err := os.OpenFile(h.logPath(c.name), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("make log: %w", err)
	}
	defer log.Close()                      //nolint:errcheck // the child has its own handle
	cmd := exec.Command(c.path, c.args...) //nolint:noctx // a service outlives the context that bounds its start
	cmd.Dir, cmd.Env = c.dir, append(os.Environ(), c.env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = childAttr(h.owner.credential(), stopSignal(c.name))
	p := &process{name: c.name, home: h, cmd: cmd, exited: make(chan struct{})}
	started, ended := make(chan error, 1), make(chan error, 1)
	go runOnThread(cmd, started, ended)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("run %s: %w", c.path, err)
	}
	go p.supervise(ended)
	if err := h.record(c.name, cmd.Process.Pid); err != nil {
		return nil, errors.Join(err, p.stop(context.WithoutCancel(ctx)))
	}
	return p, nil
}

// supervise notes how the process ends.
func (p *process) supervise(ended <-chan error) {
	p.err = <-ended
	close(p.exited)
}

// await polls until the service is ready, has ended or takes too long.
func (p *process) await(ctx context.Context, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.exited:
			return p.failure("it ended while starting", p.err)
		case <-ctx.Done():
			return p.failure("it did not get ready", errors.Join(ctx.Err(), err))
		case <-tick.C:
		}
	}
}

// stop ends the process with its group: politely, and by force when it does
// not listen.
func (p *process) stop(ctx context.Context) error {
	select {
	case <-p.exited:
		p.home.forget(p.name)
		return p.failure("it ended by itself", p.err)
	default:
	}
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	pid := p.cmd.Process.Pid
	_ = syscall.Kill(-pid, stopSignal(p.name))
	select {
	case <-p.exited:
	case <-ctx.Done():
		_ = syscall.Kill(-pid, syscall.SIGKILL)
		<-p.exited
	}
	p.home.forget(p.name)
	return nil
}

func (p *process) failure(what string, err error) error {
	return fmt.Errorf("%s: %s: %w; last lines of %s:\n%s", p.name, what, err, p.home.logPath(p.name), p.home.tail(p.name))
}

// stopSignal ends a service without waiting for its clients.
func stopSignal(name string) syscall.Signal {
	if name == Postgres {
		return syscall.SIGINT
	}
	return syscall.SIGTERM
}

func (h *home) logPath(name string) string {
	return h.path(name + ".log")
}

// tail returns the last lines of a service's log.
func (h *home) tail(name string) string {
	content, err := os.ReadFile(h.logPath(name))
	if err != nil {
		return err.Error()
	}
	return lastLines(string(content), 15)
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return "\t" + strings.Join(lines[max(0, len(lines)-n):], "\n\t")
}

func freePort(ctx context.Context) (int, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find free port: %w", err)
	}
	port := l.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // a TCP listener has a TCP address
	if err := l.Close(); err != nil {
		return 0, fmt.Errorf("find free port: %w", err)
	}
	return port, nil
}
