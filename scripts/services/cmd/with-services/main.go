// With-services runs a command with private development services, and takes them down after it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"sluice/scripts/services"
)

const usage = `usage: with-services [--need postgres,redis,pgbouncer,rabbitmq] [--dir DIR] [--] COMMAND...

Starts the services on free loopback ports, runs the command with DATABASE_URL,
PGBOUNCER_URL, REDIS_URL, AMQP_URL and RABBITMQ_URL, and returns its exit code.
A variable that is set already is used as it is, and its service is not started.
`

// failed is the exit code for our own failures, apart from most commands'.
const failed = 125

type settings struct {
	need    []string
	dir     string
	command []string
}

func main() {
	s, err := parse(os.Args[1:])
	if err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "with-services:", err)
		}
		os.Exit(failed)
	}
	code, err := run(s)
	if err != nil {
		fmt.Fprintln(os.Stderr, "with-services:", err)
		code = max(code, failed)
	}
	os.Exit(code)
}

func parse(args []string) (settings, error) {
	flags := flag.NewFlagSet("with-services", flag.ContinueOnError)
	flags.Usage = func() { fmt.Fprint(flags.Output(), usage) }
	need := flags.String("need", "postgres,redis,pgbouncer", "services to start")
	dir := flags.String("dir", "", "folder to keep data in; without it they are thrown away")
	if err := flags.Parse(args); err != nil {
		return settings{}, flag.ErrHelp // the flag set has said what is wrong
	}
	if flags.NArg() == 0 {
		return settings{}, errors.New("name a command to run")
	}
	words := strings.FieldsFunc(*need, func(r rune) bool { return r == ',' || r == ' ' })
	return settings{need: words, dir: *dir, command: flags.Args()}, nil
}

func run(s settings) (code int, err error) {
	dir, discard, err := folder(s.dir)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, discard()) }()
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	started, err := start(dir, s.need, signals)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, started.Stop(context.Background())) }()
	return started.Run(s.command, signals)
}

// folder returns where the services live and how to clean up after them.
func folder(dir string) (string, func() error, error) {
	if dir != "" {
		return dir, func() error { return nil }, nil
	}
	dir, err := os.MkdirTemp("", "sluice-services-")
	if err != nil {
		return "", nil, fmt.Errorf("make services folder: %w", err)
	}
	// The user that the services run as must get through to its own files.
	if err := os.Chmod(dir, 0o711); err != nil { //nolint:gosec // enter, not list
		return "", nil, fmt.Errorf("open services folder: %w", err)
	}
	return dir, func() error { return os.RemoveAll(dir) }, nil
}

// start starts the services, and gives up on a signal.
func start(dir string, need []string, signals <-chan os.Signal) (*services.Services, error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case sig := <-signals:
			cancel(fmt.Errorf("interrupted: %v", sig))
		case <-done:
		}
	}()
	return services.Start(ctx, services.Options{
		Dir: dir, Need: need, Log: os.Stderr, Volatile: true,
		DatabaseURL:  os.Getenv("DATABASE_URL"),
		PgBouncerURL: os.Getenv("PGBOUNCER_URL"),
		RedisURL:     os.Getenv("REDIS_URL"),
		AMQPURL:      os.Getenv("AMQP_URL"),
	})
}
