package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"
)

var update = flag.Bool("update", false, "write the golden files")

// programs is where TestMain has built sluice and sluice-agent.
var programs string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(withPrograms(m))
}

func withPrograms(m *testing.M) int {
	dir, err := os.MkdirTemp("", "sluice-cli-")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // a temporary folder
	build := exec.CommandContext(context.Background(), "go", "build", "-o", dir+string(filepath.Separator), "sluice/cmd/sluice", "sluice/cmd/sluice-agent")
	if out, err := build.CombinedOutput(); err != nil {
		panic(string(out))
	}
	programs = dir
	return m.Run()
}

// call is one invocation of the program.
type call struct {
	args  []string
	env   []string // beside PATH; nothing else is inherited
	stdin string
	dir   string
}

type result struct {
	code     int
	out, err string
}

func (c call) command(ctx context.Context) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(programs, "sluice"), c.args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.TempDir(), "USER=tester"}, c.env...)
	cmd.Stdin = strings.NewReader(c.stdin)
	cmd.Dir = c.dir
	return cmd
}

func (c call) run(t *testing.T) result {
	t.Helper()
	cmd := c.command(t.Context())
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), stderr.String()}
}

func sluice(t *testing.T, args ...string) result {
	t.Helper()
	return call{args: args}.run(t)
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (run with -update to accept):\n%s", path, got)
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		golden string
		args   []string
		code   int
	}{
		{"validate.txt", []string{"testdata/base.json"}, 0},
		{"validate.json", []string{"testdata/base.json", "--json"}, 0},
		{"validate_effective.txt", []string{"testdata/base.json", "--effective"}, 0},
		{"validate_broken.txt", []string{"testdata/broken.json"}, 1},
		{"validate_broken.json", []string{"testdata/broken.json", "--json"}, 1},
	} {
		r := sluice(t, append([]string{"validate"}, c.args...)...)
		if r.code != c.code {
			t.Errorf("validate %v ends with %d, want %d: %s", c.args, r.code, c.code, r.err)
		}
		golden(t, c.golden, r.out+r.err)
	}
}

func TestAllProblemsOfAConfigAreToldAtOnceEachWithItsLine(t *testing.T) {
	t.Parallel()
	r := sluice(t, "validate", "testdata/broken.json")
	for _, want := range []string{"broken.json:2:", "broken.json:3:", "broken.json:6:", "max_workers"} {
		if !strings.Contains(r.err, want) {
			t.Errorf("%q is not in %s", want, r.err)
		}
	}
}

func TestExitCodesTellUsageFromFailure(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"", 2, "Available Commands"},
		{"--help", 0, ""},
		{"version", 0, ""},
		{"help decide", 0, ""},
		{"completion bash", 0, ""},
		{"valdate x", 2, "did you mean `sluice validate`?"},
		{"--nonsense", 2, "unknown flag"},
		{"validate", 2, "sluice validate FILE"},
		{"validate a b", 2, "sluice validate FILE"},
		{"validate nowhere.json", 1, "no such file"},
		{"decide", 2, "missing --snapshot"},
		{"decide extra", 2, "got 1 argument"},
		{"explain", 2, "TICK|WORKER|QUEUE|now"},
		{"decisions --since yesterday", 2, "90m, 24h or 7d"},
		{"decisions --since -1d", 2, "90m, 24h or 7d"},
		{"drain w-1", 2, "missing --reason"},
		{"drain", 2, "drain WORKER"},
		{"adopt --reason x", 2, "--all"},
		{"adopt m-1 --all --reason x", 2, "--all"},
		{"resume-cloud", 2, "missing --reason"},
		{"run --work 61", 2, "--work"},
		{"run --work NaN", 2, "--work"},
		{"decisions --limit -1", 2, "--limit"},
		{"run --agent /nowhere/agent", 1, "no such file"},
		{"tick", 1, "--config"},
		{"plan", 1, "SLUICE_CONFIG"},
		{"plan --config nowhere.json", 1, "set DATABASE_URL"},
		{"workers", 1, "set DATABASE_URL"},
		{"decisions", 1, "set DATABASE_URL"},
		{"explain x", 1, "set DATABASE_URL"},
		{"migrate", 1, "set DATABASE_URL"},
		{"resume-cloud --reason x", 1, "set DATABASE_URL"},
		{"migrate --database nonsense", 1, "postgres://USER:PASSWORD@HOST"},
		{"migrate --database postgres://u:secret@127.0.0.1:1/x", 1, "is the server running"},
	} {
		t.Run("sluice "+c.args, func(t *testing.T) {
			t.Parallel()
			r := sluice(t, strings.Fields(c.args)...)
			if r.code != c.code {
				t.Errorf("ends with %d, want %d", r.code, c.code)
			}
			if !strings.Contains(r.err, c.says) {
				t.Errorf("does not say %q: %s", c.says, r.err)
			}
			if c.code != 0 && r.out != "" {
				t.Errorf("a failure writes to standard output: %s", r.out)
			}
			if strings.Contains(r.err, "secret") || strings.Contains(r.err, "goroutine ") {
				t.Errorf("a secret or a stack trace is shown: %s", r.err)
			}
		})
	}
}

func TestEveryCommandHasHelpWithAnExampleThatFitsFortyColumns(t *testing.T) {
	t.Parallel()
	a := &app{env: func(string) string { return "" }}
	for _, cmd := range newRoot(a).Commands() {
		t.Run(cmd.Name(), func(t *testing.T) {
			t.Parallel()
			if cmd.Example == "" {
				t.Error("no example")
			}
			r := call{args: []string{cmd.Name(), "--help"}, env: []string{"COLUMNS=40"}}.run(t)
			if r.code != 0 || r.err != "" {
				t.Errorf("ends with %d: %s", r.code, r.err)
			}
			fits(t, r.out, 40)
		})
	}
}

// fits says whether text keeps to a width, but for words that are longer by themselves.
func fits(t *testing.T, text string, width int) {
	t.Helper()
	for line := range strings.SplitSeq(text, "\n") {
		if utf8.RuneCountInString(line) > width && strings.Contains(strings.TrimSpace(line), " ") {
			t.Errorf("wider than %d columns: %q", width, line)
		}
	}
}

func TestOutputFitsFortyColumns(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"validate", "testdata/base.json", "--effective"},
		{"validate", "testdata/broken.json"},
		{"decide", "--snapshot", "testdata/snapshot.json"},
		{"plan"},
	} {
		r := call{args: args, env: []string{"COLUMNS=40"}}.run(t)
		fits(t, r.out+r.err, 40)
	}
}

func TestWaitingForInputThatNeverComesCanBeInterrupted(t *testing.T) {
	t.Parallel()
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	silent, open, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = errors.Join(silent.Close(), open.Close()) }() // nothing was written
	for _, args := range [][]string{{"validate", fifo}, {"decide", "--snapshot", fifo}, {"decide", "--snapshot", "-"}} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		cmd := call{args: args}.command(ctx)
		var stderr bytes.Buffer
		cmd.Stdin, cmd.Stderr = silent, &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { _ = cmd.Wait(); close(ended) }() // how it ended is read below
		for waiting := true; waiting; {
			select {
			case <-ended:
				waiting = false
			case <-time.After(100 * time.Millisecond): // until it listens to signals
				_ = cmd.Process.Signal(os.Interrupt)
			}
		}
		if code := cmd.ProcessState.ExitCode(); ctx.Err() != nil || code == exitFailed && !strings.Contains(stderr.String(), "interrupted") {
			t.Errorf("%v ends with %d: %s", args, code, stderr.String())
		}
		cancel()
	}
}
