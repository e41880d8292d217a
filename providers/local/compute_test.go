package local_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/shirou/gopsutil/v4/process"

	"sluice/core/fleet"
	"sluice/core/fleet/fleettest"
	"sluice/providers/local"
)

// TestMain lets this binary be a machine that does nothing: what machines are for is the agent's own test.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && os.Args[1] == "--provider=local":
		os.Exit(beMachine())
	case len(os.Args) > 1 && os.Args[1] == "scheduler":
		os.Exit(beScheduler(os.Args[2]))
	}
	os.Exit(m.Run())
}

// beMachine waits for SIGTERM; MODE makes it deaf, or lets it start children that leave its session.
func beMachine() int {
	terms := make(chan os.Signal, 1)
	signal.Notify(terms, syscall.SIGTERM)
	if mark := os.Getenv("DAEMON"); mark != "" {
		child := exec.CommandContext(context.Background(), "setsid", "sleep", mark)
		_ = child.Start()
		go func() { _ = child.Wait() }()
	}
	for range terms {
		if os.Getenv("DEAF") == "" {
			return 0
		}
	}
	return 1
}

// beScheduler launches one machine and is killed by the test.
func beScheduler(dir string) int {
	c, err := local.New(local.Options{Dir: dir, Agent: self(), MaxInstances: 3})
	if err != nil {
		return 1
	}
	if _, err := c.Launch(context.Background(), aLaunch("before the crash")); err != nil {
		return 1
	}
	fmt.Println("launched")
	select {}
}

func self() string {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return path
}

func aLaunch(token string) fleet.Launch {
	return fleet.Launch{
		Token: token, Count: 1, Lifetime: 3600, Offer: fleet.Offer{Place: fleet.Place{Provider: local.Provider}, Type: "process", Market: fleet.OnDemand},
		Tags: fleet.Tags{Name: "ours", Deployment: "d", Pool: "ocr", Intent: "i", Spec: "s", Expires: time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC)},
	}
}

// cloud is a folder of its own, all of whose machines are ended after the test.
func cloud(t *testing.T, o local.Options) *local.Compute {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	if o.Agent == "" {
		o.Agent = self()
	}
	if o.MaxInstances == 0 {
		o.MaxInstances = 4
	}
	c, err := local.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { endAll(o.Dir) })
	return c
}

func endAll(dir string) {
	ps, _ := process.Processes()
	for _, p := range ps {
		if argv, err := p.CmdlineSlice(); err == nil && len(argv) > 2 && argv[2] == "--state-dir="+dir {
			_ = p.Kill()
		}
	}
}

func step() { <-time.After(5 * time.Millisecond) }

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 2000 {
		if ok() {
			return
		}
		step()
	}
	t.Fatalf("it never came to pass that %s", what)
}

func list(t *testing.T, c *local.Compute) []fleet.Machine {
	t.Helper()
	ms, _, err := c.List(t.Context(), "", "ours")
	if err != nil {
		t.Fatal(err)
	}
	return ms
}

func states(t *testing.T, c *local.Compute) []fleet.MachineState {
	t.Helper()
	var out []fleet.MachineState
	for _, m := range list(t, c) {
		out = append(out, m.State)
	}
	return out
}

func launchOne(t *testing.T, c *local.Compute, token string) fleet.Ref {
	t.Helper()
	ms, err := c.Launch(t.Context(), aLaunch(token))
	if err != nil {
		t.Fatal(err)
	}
	return fleet.Ref{Place: fleet.Place{Provider: local.Provider}, Machine: ms[0].ID}
}

func TestCompute(t *testing.T) {
	t.Parallel()
	fleettest.Compute(t, func(t *testing.T) fleettest.Harness {
		return fleettest.Harness{
			Cloud:   fleet.Cloud{Compute: cloud(t, local.Options{}), Traits: local.Traits()},
			Offer:   fleet.Offer{Place: fleet.Place{Provider: local.Provider, Scope: "here"}, Zone: "z1", Type: "process", Market: fleet.Spot},
			Max:     4,
			Step:    step,
			Unknown: "local-0123456789abcdef",
		}
	})
}

func TestALaunchCarriesItsOwnMaximum(t *testing.T) {
	t.Parallel()
	c := cloud(t, local.Options{})
	l := aLaunch("many")
	l.Count, l.Settings = 5, []byte(`{"max_instances": 2, "price_per_hour": "0.1"}`)
	ms, err := c.Launch(t.Context(), l)
	if err != nil || len(ms) != 2 {
		t.Fatalf("launch of 5 with room for 2 gives %d machines, %v", len(ms), err)
	}
	l.Token = "one more"
	if _, err := c.Launch(t.Context(), l); !errors.Is(err, fleet.ErrQuota) {
		t.Errorf("launch into a full account: %v, want %v", err, fleet.ErrQuota)
	}
	l.Token = "many"
	if again, err := c.Launch(t.Context(), l); err != nil || len(again) != 2 || again[0].ID != ms[0].ID {
		t.Errorf("the repeat gives %v, %v, want the same two", again, err)
	}
}

func TestMachinesOfACrashedSchedulerAreFoundAndItsTokenHolds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	scheduler := exec.CommandContext(t.Context(), self(), "scheduler", dir)
	out, err := scheduler.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := scheduler.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	_ = scheduler.Process.Kill()
	_ = scheduler.Wait()
	c := cloud(t, local.Options{Dir: dir})
	found := list(t, c)
	if len(found) != 1 || found[0].State != fleet.MachineRunning || found[0].Tags != aLaunch("").Tags {
		t.Fatalf("found %+v, want the machine with its tags", found)
	}
	if ref := launchOne(t, c, "before the crash"); ref.Machine != found[0].ID {
		t.Errorf("the repeat gives %s, want %s", ref.Machine, found[0].ID)
	}
	if n := len(list(t, c)); n != 1 {
		t.Errorf("%d machines after the repeat, want 1", n)
	}
	ref := fleet.Ref{Machine: found[0].ID}
	if err := c.Terminate(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	until(t, "it is gone, zombie or not", func() bool { return slices.Equal(states(t, c), []fleet.MachineState{fleet.MachineGone}) })
}

func TestAMachineThatCrashesIsGoneWithAllThatItRuns(t *testing.T) {
	t.Parallel()
	c := cloud(t, local.Options{})
	ref := launchOne(t, c, "crash")
	if err := c.Crash(t.Context(), ref.Machine); err != nil {
		t.Fatal(err)
	}
	until(t, "it is gone", func() bool { return slices.Equal(states(t, c), []fleet.MachineState{fleet.MachineGone}) })
	if err := c.Crash(t.Context(), ref.Machine); !errors.Is(err, fleet.ErrNotFound) {
		t.Errorf("a crash of what is gone: %v, want %v", err, fleet.ErrNotFound)
	}
}

// A launch whose scheduler died between writing it down and starting it.
func TestALaunchThatWasCutShortIsTakenUp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := cloud(t, local.Options{Dir: dir})
	ref := launchOne(t, c, "cut")
	endAll(dir)
	until(t, "it is gone", func() bool { return slices.Equal(states(t, c), []fleet.MachineState{fleet.MachineGone}) })
	if launchOne(t, c, "cut"); !slices.Equal(states(t, c), []fleet.MachineState{fleet.MachineGone}) {
		t.Error("a launch whose machine had ended started another")
	}
	files, _ := filepath.Glob(filepath.Join(dir, "launches", "*.json"))
	content, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	cut := strings.Replace(string(content), `"started":true`, `"started":false`, 1)
	if err := os.WriteFile(files[0], []byte(cut), 0o600); err != nil || cut == string(content) {
		t.Fatal("the launch was not cut short", err)
	}
	if again := launchOne(t, c, "cut"); again != ref || !slices.Equal(states(t, c), []fleet.MachineState{fleet.MachineRunning}) {
		t.Errorf("the repeat gives %v in state %v, want %v running", again, states(t, c), ref)
	}
}

func TestADeafMachineIsEndedByForceAfterItsTimeWithDescendantsThatLeftItsSession(t *testing.T) {
	t.Parallel()
	mark := fmt.Sprintf("%d.%d", 100000, time.Now().UnixNano())
	c := cloud(t, local.Options{Env: []string{"DEAF=1", "DAEMON=" + mark, "PATH=" + os.Getenv("PATH")}})
	ref := launchOne(t, c, "deaf")
	until(t, "its daemon runs", func() bool { return sleeping(mark) == 1 })
	begun := time.Now()
	until(t, "it is gone", func() bool {
		if err := c.Terminate(t.Context(), ref); err != nil && !errors.Is(err, fleet.ErrNotFound) {
			t.Fatal(err)
		}
		return slices.Equal(states(t, c), []fleet.MachineState{fleet.MachineGone})
	})
	if took := time.Since(begun); took < 5*time.Second {
		t.Errorf("it was ended by force after %v, want its 5 s", took)
	}
	until(t, "its daemon is gone", func() bool { return sleeping(mark) == 0 })
}

func TestASuspendedMachineStandsStillWithAllThatItRuns(t *testing.T) {
	t.Parallel()
	mark := fmt.Sprintf("%d.%d", 200000, time.Now().UnixNano())
	c := cloud(t, local.Options{Env: []string{"DAEMON=" + mark, "PATH=" + os.Getenv("PATH")}})
	ref := launchOne(t, c, "sleeper")
	until(t, "its daemon runs", func() bool { return sleeping(mark) == 1 })
	if err := c.Suspend(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	until(t, "its daemon stands still", func() bool { return sleeping(mark, process.Stop) == 1 })
	if err := c.Resume(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	until(t, "its daemon goes on", func() bool { return sleeping(mark, process.Sleep) == 1 })
	if err := c.Suspend(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	if err := c.Terminate(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	until(t, "all is gone by one call", func() bool { return sleeping(mark) == 0 && states(t, c)[0] == fleet.MachineGone })
}

// sleeping counts processes that sleep for mark, in one of these states if any are given.
func sleeping(mark string, in ...string) int {
	ps, _ := process.Processes()
	n := 0
	for _, p := range ps {
		argv, err := p.CmdlineSlice()
		if err != nil || len(argv) != 2 || argv[0] != "sleep" || argv[1] != mark {
			continue
		}
		status, _ := p.Status()
		if len(in) == 0 || len(status) == 1 && slices.Contains(in, status[0]) {
			n++
		}
	}
	return n
}

func TestAMissingAgentIsARefusalThatLeavesNothing(t *testing.T) {
	t.Parallel()
	c := cloud(t, local.Options{Agent: "/no/such/agent"})
	for range 2 {
		if _, err := c.Launch(t.Context(), aLaunch("x")); !errors.Is(err, fleet.ErrBadRequest) || !strings.Contains(err.Error(), "/no/such/agent") {
			t.Errorf("launch: %v, want %v and the path", err, fleet.ErrBadRequest)
		}
	}
	if ms := list(t, c); len(ms) > 0 {
		t.Errorf("machines are %v, want none", ms)
	}
}

func TestACommandLineThatOnlyMentionsAMachineIsNone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := cloud(t, local.Options{Dir: dir})
	look := exec.CommandContext(t.Context(), "sh", "-c", "sleep 1000; : --provider=local --state-dir="+dir+" --machine=m --name=ours", "--provider=local", "--state-dir="+dir, "--machine=m", "--name=ours")
	look.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := look.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(-look.Process.Pid, syscall.SIGKILL); _ = look.Wait() })
	if ms := list(t, c); len(ms) > 0 {
		t.Errorf("machines are %v, want none", ms)
	}
}

func TestABrokenLaunchFileMakesTheListAnErrorThatNamesIt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := cloud(t, local.Options{Dir: dir})
	path := filepath.Join(dir, "launches", "x.json")
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if ms, _, err := c.List(t.Context(), "", "ours"); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("list: %v, %v, want an error that names %s", ms, err, path)
	}
}

func TestNoSecretIsInACommandLine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := cloud(t, local.Options{Dir: dir, Env: []string{"SLUICE_DATABASE_URL_REF=file:/run/secret", "DATABASE_URL=postgres://u:hunter2@h/d"}})
	l := aLaunch("quiet")
	l.Settings = []byte(`{"x":"hunter2"}`)
	if _, err := c.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	ps, _ := process.Processes()
	for _, p := range ps {
		if line, err := p.Cmdline(); err == nil && strings.Contains(line, dir) && strings.Contains(line, "hunter2") {
			t.Errorf("a command line shows a secret: %s", line)
		}
	}
}
