package services

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// Env returns the addresses as environment variables, those that are set.
func (s *Services) Env() []string {
	var env []string
	for _, v := range [...][2]string{
		{"DATABASE_URL", s.DatabaseURL},
		{"PGBOUNCER_URL", s.PgBouncerURL},
		{"REDIS_URL", s.RedisURL},
		{"AMQP_URL", s.AMQPURL},
		{"RABBITMQ_URL", s.RabbitMQURL},
	} {
		if v[1] != "" {
			env = append(env, v[0]+"="+v[1])
		}
	}
	return env
}

// Run runs a command with Env and our standard streams, passes signals on to
// it, and returns its exit code - as a shell has it when a signal ended it.
func (s *Services) Run(args []string, signals <-chan os.Signal) (int, error) {
	cmd := exec.Command(args[0], args[1:]...) //nolint:noctx // the user's own command, which signals end
	cmd.Env = append(os.Environ(), s.Env()...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	// Its own group: a Ctrl-C then reaches it once, through us.
	cmd.SysProcAttr = childAttr(nil, syscall.SIGTERM)
	started, ended := make(chan error, 1), make(chan error, 1)
	go runOnThread(cmd, started, ended)
	if err := <-started; err != nil {
		return 0, fmt.Errorf("run %s: %w", args[0], err)
	}
	for {
		select {
		case sig := <-signals:
			if sig, ok := sig.(syscall.Signal); ok {
				_ = syscall.Kill(-cmd.Process.Pid, sig)
			}
		case err := <-ended:
			return exitCode(err)
		}
	}
}

// runOnThread starts and waits on one thread, because the kernel ends a child
// together with the thread that started it.
func runOnThread(cmd *exec.Cmd, started, ended chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := cmd.Start()
	started <- err
	if err == nil {
		ended <- cmd.Wait()
	}
}

func exitCode(err error) (int, error) {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0, nil
	case !errors.As(err, &exit):
		return 0, fmt.Errorf("wait for command: %w", err)
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return exit.ExitCode(), nil
}
