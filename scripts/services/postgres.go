package services

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"
)

// superuser is the role that initdb makes and that DatabaseURL uses.
const superuser = "postgres"

// volatileSettings make Postgres forget on a power cut, and tests faster.
var volatileSettings = [...]string{"-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off"}

func initdbTool() tool {
	return tool{name: "initdb", pkg: "postgresql", places: []string{
		"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin",
		"/opt/homebrew/opt/postgresql*/bin", "/usr/local/opt/postgresql*/bin",
		"/bin", // of an embedded download
	}}
}

// startPostgres starts a private server on the folder's data.
func (s *Services) startPostgres(ctx context.Context, volatile bool) error {
	bin, err := s.home.postgresBin(ctx)
	if err != nil {
		return err
	}
	password, err := s.home.postgresPassword()
	if err != nil {
		return err
	}
	if err := s.home.prepareData(ctx, bin); err != nil {
		return err
	}
	p, port, err := s.home.launch(ctx, s.home.postgresCommand(bin, volatile), func(ctx context.Context, port int) error {
		return pingPostgres(ctx, databaseURL(port, password))
	})
	if err != nil {
		return err
	}
	s.keep(p)
	s.DatabaseURL = databaseURL(port, password)
	return nil
}

func (h *home) postgresCommand(bin program, volatile bool) func(int) (command, error) {
	return func(port int) (command, error) {
		args := []string{
			"-D", h.dataDir(), "-p", strconv.Itoa(port),
			"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "max_connections=200",
		}
		if volatile {
			args = append(args, volatileSettings[:]...)
		}
		return command{name: Postgres, program: bin.sibling("postgres"), args: args, dir: h.dataDir()}, nil
	}
}

func (h *home) dataDir() string {
	return h.path("postgres")
}

// postgresBin finds initdb, of the version that made the data if there are
// any.
func (h *home) postgresBin(ctx context.Context) (program, error) {
	have, err := os.ReadFile(filepath.Join(h.dataDir(), "PG_VERSION"))
	if errors.Is(err, os.ErrNotExist) {
		return h.find(ctx, initdbTool())
	}
	if err != nil {
		return program{}, fmt.Errorf("read version of data: %w", err)
	}
	version := strings.TrimSpace(string(have))
	if _, err := h.find(ctx, initdbTool()); err != nil {
		return program{}, err
	}
	for _, candidate := range installed(initdbTool()) {
		if postgresVersion(ctx, candidate) == version {
			return candidate, nil
		}
	}
	return program{}, fmt.Errorf("the data in %s are of Postgres %s, which is not installed: install it, or remove that folder to start anew", h.dataDir(), version)
}

// postgresVersion returns the major version, as PG_VERSION has it.
func postgresVersion(ctx context.Context, bin program) string {
	out, err := bin.command(ctx, "--version").Output()
	if err != nil {
		return ""
	}
	words := strings.Fields(string(out)) // initdb (PostgreSQL) 15.1 (Debian …)
	if len(words) < 3 {
		return ""
	}
	major, _, _ := strings.Cut(words[2], ".")
	return major
}

// postgresPassword returns the superuser's password, made at first use.
func (h *home) postgresPassword() (string, error) {
	path := h.passwordFile()
	content, err := os.ReadFile(path)
	if err == nil && len(content) > 0 {
		return strings.TrimSpace(string(content)), h.owner.take(path)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("read password: %w", err)
	}
	password := rand.Text()
	return password, h.write(path, password+"\n")
}

func (h *home) passwordFile() string {
	return h.path("postgres.password")
}

// prepareData makes the data folder, or readies the one of an earlier run.
// It is made under another name first, so that a folder with the right name
// is always a whole one.
func (h *home) prepareData(ctx context.Context, bin program) error {
	if _, err := os.Stat(h.dataDir()); err == nil {
		return h.recoverData(ctx)
	}
	unfinished, err := h.fresh("postgres.new")
	if err != nil {
		return err
	}
	h.logf("making a Postgres data folder in %s", h.dataDir())
	initdb := bin.command(ctx, "-D", unfinished, "-U", superuser, "-A", "scram-sha-256", "--pwfile="+h.passwordFile(),
		"-E", "UTF8", "--locale=C", "--no-sync")
	initdb.Dir = unfinished
	initdb.SysProcAttr = &syscall.SysProcAttr{Credential: h.owner.credential()}
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("make data folder: %w:\n%s", err, lastLines(string(out), 15))
	}
	if err := os.Rename(unfinished, h.dataDir()); err != nil {
		return fmt.Errorf("make data folder: %w", err)
	}
	return nil
}

// recoverData clears what a killed server leaves: workers that still hold
// its memory, and a pid file whose number another program may have by now.
func (h *home) recoverData(ctx context.Context) error {
	dir, err := filepath.EvalSymlinks(h.dataDir())
	if err != nil {
		return fmt.Errorf("recover data: %w", err)
	}
	if err := h.owner.takeAll(dir); err != nil {
		return fmt.Errorf("recover data: %w", err)
	}
	if err := killWorkersIn(ctx, dir); err != nil {
		return fmt.Errorf("recover data: %w", err)
	}
	pidFile := filepath.Join(dir, "postmaster.pid")
	content, err := os.ReadFile(pidFile)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("recover data: %w", err)
	}
	first, _, _ := strings.Cut(string(content), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(first))
	if err == nil && startedAt(pid) == "" {
		return nil // Postgres sees for itself that this one is gone
	}
	if err := os.Remove(pidFile); err != nil {
		return fmt.Errorf("recover data: %w", err)
	}
	return nil
}

func databaseURL(port int, password string) string {
	return (&url.URL{
		Scheme: "postgres", User: url.UserPassword(superuser, password), Host: loopback(port),
		Path: "/postgres", RawQuery: "sslmode=disable",
	}).String()
}

func loopback(port int) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}

func pingPostgres(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	return errors.Join(conn.Ping(ctx), conn.Close(ctx))
}

// newestFirst orders folders such as /usr/lib/postgresql/15/bin by version.
func newestFirst(paths []string) {
	slices.SortStableFunc(paths, func(a, b string) int { return versionIn(b) - versionIn(a) })
}

// versionIn returns the largest number in a path, 0 without one.
func versionIn(path string) int {
	largest := 0
	for _, digits := range strings.FieldsFunc(path, func(r rune) bool { return r < '0' || r > '9' }) {
		if n, err := strconv.Atoi(digits); err == nil {
			largest = max(largest, n)
		}
	}
	return largest
}
