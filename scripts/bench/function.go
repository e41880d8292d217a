package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

type measured struct {
	startMS, sizeMiB float64
	residentMiB      int
}

// function starts the built evaluate function over HTTP with the config `{}`, asks for one tick, and looks at the process.
func function(ctx context.Context, path string) (measured, error) {
	info, err := os.Stat(path)
	if err != nil {
		return measured{}, fmt.Errorf("%w: run `make functions` first", err)
	}
	m := measured{sizeMiB: float64(info.Size()) / (1 << 20)}
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return m, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	config := filepath.Join(dir, "config.json")
	if err := os.WriteFile(config, []byte("{}"), 0o600); err != nil {
		return m, err
	}
	port, err := freePort()
	if err != nil {
		return m, err
	}
	start := time.Now()
	cmd := exec.CommandContext(ctx, path)
	cmd.Env = append(os.Environ(), "PORT="+port, "SLUICE_CONFIG="+config)
	if err := cmd.Start(); err != nil {
		return m, err
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	for {
		resp, err := http.Post("http://127.0.0.1:"+port+"/", "application/json", strings.NewReader("{}")) //nolint:noctx // bounded below
		if err == nil {
			_ = resp.Body.Close()
			break
		}
		if time.Since(start) > 20*time.Second {
			return m, fmt.Errorf("the evaluate function does not answer: %w", err)
		}
	}
	m.startMS = float64(time.Since(start).Microseconds()) / 1000
	m.residentMiB = resident(cmd.Process.Pid)
	return m, nil
}

func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // answers at once
	if err != nil {
		return "", err
	}
	defer l.Close() //nolint:errcheck // it was only asked for its number
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}

func resident(pid int) int {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(raw), "VmRSS:")
	kib := 0
	_, _ = fmt.Sscan(rest, &kib)
	return kib >> 10
}
