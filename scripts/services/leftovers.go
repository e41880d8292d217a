package services

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// record notes which process runs a service, for the start after a crash.
// The start time tells it from a later process with the same number.
func (h *home) record(name string, pid int) error {
	note := fmt.Sprintf("%d %s", pid, startedAt(pid))
	if err := os.WriteFile(h.path(name+".pid"), []byte(note), 0o600); err != nil {
		return fmt.Errorf("record process of %s: %w", name, err)
	}
	return nil
}

func (h *home) forget(name string) {
	_ = os.Remove(h.path(name + ".pid"))
}

// stopLeftovers stops the recorded processes that still run.
func (h *home) stopLeftovers(ctx context.Context) error {
	notes, err := filepath.Glob(h.path("*.pid"))
	if err != nil {
		return fmt.Errorf("find leftover services: %w", err)
	}
	for _, note := range notes {
		name := strings.TrimSuffix(filepath.Base(note), ".pid")
		if err := h.stopLeftover(ctx, name); err != nil {
			return fmt.Errorf("stop leftover %s: %w", name, err)
		}
		h.forget(name)
	}
	return nil
}

func (h *home) stopLeftover(ctx context.Context, name string) error {
	note, err := os.ReadFile(h.path(name + ".pid"))
	if err != nil {
		return err
	}
	pid, started := readNote(string(note))
	if started == "" || startedAt(pid) != started {
		return nil
	}
	h.logf("stopping %s (process %d) of an earlier run", name, pid)
	_ = syscall.Kill(-pid, stopSignal(name))
	if waitGone(ctx, pid, started) == nil {
		return nil
	}
	_ = syscall.Kill(-pid, syscall.SIGKILL)
	return waitGone(ctx, pid, started)
}

// readNote returns what record wrote, and no start time for a note that was
// cut off.
func readNote(note string) (pid int, started string) {
	number, started, _ := strings.Cut(note, " ")
	pid, err := strconv.Atoi(number)
	if err != nil || pid <= 1 {
		return 0, ""
	}
	return pid, started
}

func waitGone(ctx context.Context, pid int, started string) error {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for startedAt(pid) == started {
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for process %d: %w", pid, ctx.Err())
		case <-tick.C:
		}
	}
	return nil
}

// startedAt returns when a process began, in the system's own terms, and
// nothing for one that does not run.
func startedAt(pid int) string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err == nil {
		return startedAtFromStat(string(stat))
	}
	if _, err := os.Stat("/proc/self/stat"); err == nil {
		return ""
	}
	out, err := exec.Command("ps", "-o", "lstart=", "-p", strconv.Itoa(pid)).Output() //nolint:noctx // answers at once
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// startedAtFromStat reads Linux's process line. The name in brackets can
// hold anything, so fields count from the last bracket; a zombie has ended.
func startedAtFromStat(stat string) string {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 || fields[0] == "Z" {
		return ""
	}
	return fields[19]
}

// killWorkersIn ends processes whose working folder is dir: the workers of a
// Postgres that was killed, which keep its memory and so block a new one.
// Where the system does not tell working folders, Postgres itself refuses to
// start over living workers.
func killWorkersIn(ctx context.Context, dir string) error {
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		return fmt.Errorf("find leftover workers: %w", err)
	}
	var errs []error
	for _, link := range links {
		if target, err := os.Readlink(link); err != nil || target != dir {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link)))
		if err != nil {
			continue
		}
		started := startedAt(pid)
		_ = syscall.Kill(pid, syscall.SIGKILL)
		errs = append(errs, waitGone(ctx, pid, started))
	}
	return errors.Join(errs...)
}
