package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/shirou/gopsutil/v4/process"
	"golang.org/x/sys/unix"

	"sluice/core/fleet"
)

// machine is a machine with what only this package knows of it.
type machine struct {
	fleet.Machine
	scope string
	pid   int // of the agent, which leads the session; 0 when gone
}

// Flags by which a machine is known again. They come first, in this order, so that a shell or a search
// that has them in its own arguments is not mistaken for one.
const (
	flagProvider = "--provider=" + Provider
	flagDir      = "--state-dir="
)

// arguments write everything that is to be known of a machine into its command line, and no secret.
func (c *Compute) arguments(rec *launch, id string) []string {
	t, o := rec.Tags, rec.Offer
	args := []string{
		flagProvider, flagDir + c.o.Dir, "--machine=" + id, "--scope=" + o.Scope, "--zone=" + o.Zone, "--type=" + o.Type,
		"--market=" + string(o.Market), "--name=" + t.Name, "--deployment=" + t.Deployment, "--pool=" + t.Pool, "--intent=" + t.Intent,
		"--spec=" + t.Spec, "--token=" + rec.Token, "--boot-delay=" + rec.Boot.Duration().String(), "--lifetime=" + rec.Lifetime.Duration().String(),
	}
	if !t.Expires.IsZero() {
		args = append(args, "--expires="+t.Expires.Format(time.RFC3339Nano))
	}
	return args
}

// parse reads arguments back; false: not a machine of this folder.
func (c *Compute) parse(argv []string) (machine, bool) {
	if len(argv) < 4 || argv[1] != flagProvider || argv[2] != flagDir+c.o.Dir {
		return machine{}, false
	}
	flags := map[string]string{}
	for _, a := range argv[3:] {
		name, value, _ := strings.Cut(strings.TrimPrefix(a, "--"), "=")
		flags[name] = value
	}
	m := machine{scope: flags["scope"], Machine: fleet.Machine{
		ID: flags["machine"], Zone: flags["zone"], Type: flags["type"], Market: fleet.Market(flags["market"]),
		Tags: fleet.Tags{Name: flags["name"], Deployment: flags["deployment"], Pool: flags["pool"], Intent: flags["intent"], Spec: flags["spec"]},
	}}
	if at, err := time.Parse(time.RFC3339Nano, flags["expires"]); err == nil {
		m.Tags.Expires = at
	}
	return m, m.ID != ""
}

// start runs an agent in a session of its own, which outlives this process.
func (c *Compute) start(rec *launch, id string) error {
	log, err := os.OpenFile(c.logPath(id), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	defer log.Close()                                       //nolint:errcheck // the agent has its own handle
	cmd := exec.Command(c.o.Agent, c.arguments(rec, id)...) //nolint:noctx // a machine outlives the call that made it
	cmd.Env, cmd.Stdout, cmd.Stderr = c.o.Env, log, log
	if cmd.Env == nil {
		cmd.Env = []string{}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start agent: %w", err)
	}
	go func() { _ = cmd.Wait() }() // else it would stay a zombie
	return nil
}

// running are the machines of this folder as the operating system has them, by id.
func (c *Compute) running(ctx context.Context) (map[string]machine, error) {
	pids, err := process.PidsWithContext(ctx)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("read processes: %w", err)
	}
	out := map[string]machine{}
	for _, pid := range pids {
		p := &process.Process{Pid: pid}
		argv, err := p.CmdlineSliceWithContext(ctx)
		if err != nil { // it has ended
			continue
		}
		m, ok := c.parse(argv)
		if !ok || !leads(int(pid)) {
			continue
		}
		if m.State, ok = state(ctx, p); !ok {
			continue
		}
		m.pid = int(pid)
		if ms, err := p.CreateTimeWithContext(ctx); err == nil {
			m.Launched = time.UnixMilli(ms).UTC()
		}
		out[m.ID] = m
	}
	return out, ctx.Err()
}

// leads tells an agent from a child that has not begun its own program yet.
func leads(pid int) bool {
	sid, err := unix.Getsid(pid)
	return err == nil && sid == pid
}

// state is false for what has ended, a zombie included.
func state(ctx context.Context, p *process.Process) (fleet.MachineState, bool) {
	status, err := p.StatusWithContext(ctx)
	switch {
	case err != nil, slices.Contains(status, process.Zombie):
		return fleet.MachineGone, false
	case slices.Contains(status, process.Stop):
		return fleet.MachineSuspended, true
	}
	return fleet.MachineRunning, true
}

// ask is the first, polite call. A repeat within its time changes nothing.
func (c *Compute) ask(ctx context.Context, m machine, asked time.Time) error {
	if !asked.IsZero() {
		return nil
	}
	if err := writeSynced(c.termPath(m.ID), nil); err != nil {
		return fmt.Errorf("note the end: %w", err)
	}
	if err := syscall.Kill(m.pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signal agent: %w", err)
	}
	return thaw(ctx, m.pid)
}

// family is everything that a machine runs: its session, and descendants that left it.
func family(ctx context.Context, leader int) ([]int, error) {
	pids, err := process.PidsWithContext(ctx)
	if err != nil {
		return nil, fmt.Errorf("read processes: %w", err)
	}
	children := map[int][]int{}
	all := []int{leader}
	for _, pid := range pids {
		parent, err := (&process.Process{Pid: pid}).PpidWithContext(ctx)
		if err != nil {
			continue
		}
		children[int(parent)] = append(children[int(parent)], int(pid))
		if sid, err := unix.Getsid(int(pid)); err == nil && sid == leader && int(pid) != leader {
			all = append(all, int(pid))
		}
	}
	for i := 0; i < len(all); i++ {
		for _, child := range children[all[i]] {
			if !slices.Contains(all, child) {
				all = append(all, child)
			}
		}
	}
	return all, ctx.Err()
}

// freeze stops a family until no member is left that could make another.
func freeze(ctx context.Context, leader int) ([]int, error) {
	stopped := map[int]bool{}
	for {
		members, err := family(ctx, leader)
		if err != nil {
			return nil, err
		}
		before := len(stopped)
		for _, pid := range members {
			if !stopped[pid] {
				_ = syscall.Kill(pid, syscall.SIGSTOP) // it may have ended
				stopped[pid] = true
			}
		}
		if len(stopped) == before {
			return members, nil
		}
	}
}

func thaw(ctx context.Context, leader int) error {
	members, err := family(ctx, leader)
	for _, pid := range members {
		_ = syscall.Kill(pid, syscall.SIGCONT) // it may have ended
	}
	return err
}

// kill ends a family: frozen, so that none escapes, then all at once.
func kill(ctx context.Context, leader int) error {
	members, err := freeze(ctx, leader)
	for _, pid := range members {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
	}
	return err
}
