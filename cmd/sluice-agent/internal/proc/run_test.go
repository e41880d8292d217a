package proc_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/shirou/gopsutil/v4/process"

	"sluice/cmd/sluice-agent/internal/proc"
)

// TestMain lets this binary be its own supervisor, and a small agent that can be killed.
func TestMain(m *testing.M) {
	if len(os.Args) > 4 && os.Args[1] == proc.Supervise {
		grace, _ := time.ParseDuration(os.Args[3])
		os.Exit(proc.Watch(os.Args[5:], grace))
	}
	if len(os.Args) > 2 && os.Args[1] == "agent" {
		if proc.HideMemory() != nil {
			os.Exit(1)
		}
		res := runner().Run(context.Background(), nil, proc.Command{Argv: os.Args[2:], Env: os.Environ()})
		os.Exit(res.Code)
	}
	os.Exit(m.Run())
}

func runner() proc.Runner {
	self, err := proc.Self()
	if err != nil {
		panic(err)
	}
	return proc.Runner{Self: self}
}

// script is a shell command; $MARK is a number of seconds to sleep by which its processes can be told apart.
func script(text string) (proc.Command, string) {
	mark := strconv.Itoa(100000 + int([]byte(rand.Text())[0])*1000 + int(time.Now().UnixNano()%1000))
	mark += "." + strconv.FormatInt(time.Now().UnixNano()%1e9, 10)
	return proc.Command{
		Argv: []string{"sh", "-c", text}, Env: []string{"PATH=" + os.Getenv("PATH"), "MARK=" + mark}, Grace: time.Minute,
	}, mark
}

// alive counts the processes that sleep for mark.
func alive(t *testing.T, mark string) int {
	t.Helper()
	ps, err := process.Processes()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, p := range ps {
		if argv, err := p.CmdlineSlice(); err == nil && len(argv) == 2 && argv[0] == "sleep" && argv[1] == mark {
			n++
		}
	}
	return n
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range 3000 {
		if ok() {
			return
		}
		<-tick.C
	}
	t.Fatalf("it never came to pass that %s", what)
}

func TestTheExitCodeAndBothOutputsComeBack(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		argv   []string
		code   int
		stdout string
		stderr string
	}{
		{[]string{"sh", "-c", "cat; echo bad >&2; exit 7"}, 7, "input", "bad\n"},
		{[]string{"sh", "-c", "kill -9 $$"}, 137, "", ""},
		{[]string{"true"}, 0, "", ""},
		{[]string{"no-such-command"}, 127, "", "sluice-agent: find command: exec: \"no-such-command\": executable file not found in $PATH\n"},
	} {
		res := runner().Run(t.Context(), nil, proc.Command{Argv: c.argv, Env: []string{"PATH=" + os.Getenv("PATH")}, Stdin: []byte("input")})
		if res.Err != nil || res.Code != c.code || res.Stdout.String() != c.stdout || res.Stderr.String() != c.stderr {
			t.Errorf("%q: code %d, stdout %q, stderr %q, %v, want %d, %q, %q", c.argv, res.Code, res.Stdout, res.Stderr, res.Err, c.code, c.stdout, c.stderr)
		}
	}
}

func TestTheCommandGetsTheGivenEnvironmentAndNoOpenFiles(t *testing.T) {
	t.Parallel()
	res := runner().Run(t.Context(), nil, proc.Command{Argv: []string{"/usr/bin/env"}, Env: []string{"A=1"}})
	if res.Stdout.String() != "A=1\n" {
		t.Errorf("environment is %q, want A=1 alone", res.Stdout)
	}
	if runtime.GOOS == "linux" {
		look := "i=3; while [ $i -lt 300 ]; do [ -e /proc/$$/fd/$i ] && echo $i; i=$((i+1)); done"
		res = runner().Run(t.Context(), nil, proc.Command{Argv: []string{"/bin/sh", "-c", look}})
		if open := res.Stdout.String(); open != "" {
			t.Errorf("the command has more files open: %q", strings.Fields(open))
		}
	}
}

func TestAFloodOfOutputNeitherBlocksNorFillsMemory(t *testing.T) {
	t.Parallel()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	res := runner().Run(t.Context(), nil, proc.Command{Argv: []string{"sh", "-c", "head -c 1073741824 /dev/zero; echo end"}, Env: []string{"PATH=" + os.Getenv("PATH")}})
	runtime.ReadMemStats(&after)
	if res.Code != 0 || res.Err != nil {
		t.Fatalf("code %d, %v", res.Code, res.Err)
	}
	if out := res.Stdout.String(); len(out) > 256<<10 || !strings.HasSuffix(out, "end\n") || !strings.HasPrefix(out, "(10736") {
		t.Errorf("kept %d bytes that begin with %.30q, want the last part and a note", len(out), out)
	}
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 64<<20 {
		t.Errorf("the heap grew by %d MB", grown>>20)
	}
}

func TestInputThatIsNotReadDoesNotBlock(t *testing.T) {
	t.Parallel()
	res := runner().Run(t.Context(), nil, proc.Command{Argv: []string{"true"}, Env: []string{"PATH=" + os.Getenv("PATH")}, Stdin: make([]byte, 10<<20)})
	if res.Code != 0 || res.Err != nil {
		t.Errorf("code %d, %v", res.Code, res.Err)
	}
}

const (
	hang      = `sleep $MARK`
	daemon    = `setsid sh -c 'sleep $MARK & exec sleep $MARK' & (setsid setsid sleep $MARK &) ; sleep $MARK`
	deaf      = `trap "" TERM; sleep $MARK & while :; do wait; done`
	deserted  = `(setsid sh -c 'trap "" TERM HUP; sleep $MARK; sleep $MARK' >/dev/null 2>&1 &) ; (setsid sleep $MARK &); exit 3`
	forkOnEnd = `trap 'setsid sleep $MARK & setsid sh -c "sleep $MARK; sleep $MARK" & exit 0' TERM; sleep $MARK & wait; sleep $MARK`
)

func TestALimitEndsTheCommandWithAllThatItStarted(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"hangs": hang, "makes daemons": daemon, "ignores SIGTERM": deaf, "forks when told to stop": forkOnEnd} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, mark := script(text)
			c.Timeout, c.Grace = 300*time.Millisecond, 200*time.Millisecond
			res := runner().Run(t.Context(), nil, c)
			if !res.TimedOut || res.Err != nil || res.Code == 0 && name != "forks when told to stop" {
				t.Errorf("result is %+v, want a time-out", res)
			}
			if n := alive(t, mark); n > 0 {
				t.Errorf("%d processes are left", n)
			}
		})
	}
}

func TestTheGraceIsUsedByACommandThatEndsByItself(t *testing.T) {
	t.Parallel()
	c, mark := script(`trap 'echo saved; exit 4' TERM; echo up; sleep $MARK & wait`)
	stop := make(chan struct{})
	go func() {
		until(t, "it runs", func() bool { return alive(t, mark) == 1 })
		close(stop)
	}()
	res := runner().Run(t.Context(), stop, c)
	if res.Code != 4 || res.Stdout.String() != "up\nsaved\n" || res.TimedOut {
		t.Errorf("code %d, stdout %q, timed out %t, want 4 and saved", res.Code, res.Stdout, res.TimedOut)
	}
	if n := alive(t, mark); n > 0 {
		t.Errorf("%d processes are left", n)
	}
}

func TestACommandThatEndsLeavesNoDaemonBehind(t *testing.T) {
	t.Parallel()
	c, mark := script(deserted)
	if res := runner().Run(t.Context(), nil, c); res.Code != 3 || res.Err != nil {
		t.Errorf("code %d, %v, want 3", res.Code, res.Err)
	}
	if n := alive(t, mark); n > 0 {
		t.Errorf("%d processes are left", n)
	}
}

func TestACancelledRunEndsAtOnceByForce(t *testing.T) {
	t.Parallel()
	c, mark := script(deaf)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		until(t, "it runs", func() bool { return alive(t, mark) == 1 })
		cancel()
	}()
	if res := runner().Run(ctx, nil, c); res.Code != 137 || res.Err != nil {
		t.Errorf("code %d, %v, want 137", res.Code, res.Err)
	}
	if n := alive(t, mark); n > 0 {
		t.Errorf("%d processes are left", n)
	}
}

func TestKillingTheAgentLeavesNoProcess(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"hangs": hang, "makes daemons": daemon, "ignores SIGTERM": deaf} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, mark := script(text)
			agent := exec.CommandContext(t.Context(), runner().Self, append([]string{"agent"}, c.Argv...)...)
			agent.Env = c.Env
			if err := agent.Start(); err != nil {
				t.Fatal(err)
			}
			until(t, "it runs", func() bool { return alive(t, mark) > 0 })
			if err := agent.Process.Signal(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			_ = agent.Wait()
			until(t, "nothing is left", func() bool { return alive(t, mark) == 0 })
		})
	}
}

func TestTheTailKeepsTheEndAsText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		writes []string
		want   string
		line   string
		whole  bool
	}{
		{nil, "", "", true},
		{[]string{"a\n", "b"}, "a\nb", "b", true},
		{[]string{"12345678", "\n"}, "(1 bytes before this were dropped)\n2345678\n", "2345678", false},
		{[]string{"123456\n", "{}\r\n \n"}, "(5 bytes before this were dropped)\n6\n{}\r\n \n", "{}", true},
		{[]string{"a\x00\xff"}, "a\uFFFD\uFFFD", "a\x00\xff", true},
		{[]string{strings.Repeat("x", 100)}, "(92 bytes before this were dropped)\nxxxxxxxx", "xxxxxxxx", false},
	} {
		tail := proc.NewTail(8)
		for _, w := range c.writes {
			_, _ = fmt.Fprint(tail, w)
		}
		line, whole := tail.LastLine()
		if tail.String() != c.want || string(line) != c.line || whole != c.whole {
			t.Errorf("%q: tail is %q, last line %q, whole %t, want %q, %q, %t", c.writes, tail, line, whole, c.want, c.line, c.whole)
		}
	}
}
