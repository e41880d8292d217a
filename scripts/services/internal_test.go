package services

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func TestPgBouncerStartsAfterThePostgresItBrings(t *testing.T) {
	got, err := inOrder([]string{Redis, PgBouncer})
	if want := []string{Postgres, PgBouncer, Redis}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
}

func TestARecordedProcessOfAnEarlierRunIsStopped(t *testing.T) {
	h := testHome(t)
	leftover := exec.CommandContext(t.Context(), "sleep", "600")
	leftover.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	check(t, leftover.Start())
	check(t, h.record(Redis, leftover.Process.Pid))
	ended := make(chan error, 1)
	go func() { ended <- leftover.Wait() }()
	check(t, h.stopLeftovers(t.Context()))
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "terminated") {
		t.Errorf("it ended with %v", err)
	}
}

func TestAProcessThatOnlyHasTheSameNumberIsLeftAlone(t *testing.T) {
	h := testHome(t)
	stranger := exec.CommandContext(t.Context(), "sleep", "600")
	stranger.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	check(t, stranger.Start())
	defer func() { _, _ = stranger.Process.Kill(), stranger.Wait() }()
	pid := stranger.Process.Pid
	check(t, h.record(Redis, pid))
	note, err := os.ReadFile(h.path("redis.pid"))
	check(t, err)
	check(t, os.WriteFile(h.path("redis.pid"), append(note, '1'), 0o600))
	check(t, h.stopLeftovers(t.Context()))
	if startedAt(pid) == "" {
		t.Error("it was stopped")
	}
}

func TestAPostgresPidFileWithSomeoneElsesNumberIsRemoved(t *testing.T) {
	h := testHome(t)
	data, err := h.fresh(Postgres)
	check(t, err)
	pidFile := filepath.Join(data, "postmaster.pid")
	check(t, os.WriteFile(pidFile, []byte("1\n"+data+"\n"), 0o600))
	check(t, h.recoverData(t.Context()))
	if _, err := os.Stat(pidFile); !os.IsNotExist(err) {
		t.Errorf("it is there: %v", err)
	}
}

func TestADataFolderThatWasNotFinishedIsMadeAnew(t *testing.T) {
	h := testHome(t)
	unfinished, err := h.fresh("postgres.new")
	check(t, err)
	check(t, os.WriteFile(filepath.Join(unfinished, "PG_VERSION"), []byte("15\n"), 0o600))
	s := &Services{home: h}
	check(t, s.startPostgres(t.Context(), true))
	check(t, s.stops[0](t.Context()))
}

func TestStopReportsAServiceThatEndedByItself(t *testing.T) {
	h := testHome(t)
	p, err := h.spawn(t.Context(), command{
		name: Redis, program: program{path: "/bin/sh"}, args: []string{"-c", "echo out of luck; exit 3"}, dir: h.dir,
	})
	check(t, err)
	<-p.exited
	err = p.stop(t.Context())
	if err == nil || !strings.Contains(err.Error(), "ended by itself: exit status 3") || !strings.Contains(err.Error(), "out of luck") {
		t.Errorf("stop: %v", err)
	}
}

func TestAServiceThatDoesNotListenIsKilled(t *testing.T) {
	h := testHome(t)
	p, err := h.spawn(t.Context(), command{
		name: Redis, program: program{path: "/bin/sh"}, args: []string{"-c", "trap '' TERM; echo deaf; sleep 600; sleep 600"}, dir: h.dir,
	})
	check(t, err)
	check(t, p.await(t.Context(), func(context.Context) error {
		if !strings.Contains(h.tail(Redis), "deaf") {
			return os.ErrNotExist
		}
		return nil
	}))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	check(t, p.stop(ctx))
}

func TestTheEmbeddedRedisAnswersOnlyWithItsPassword(t *testing.T) {
	s := &Services{home: testHome(t)}
	check(t, s.embedRedis())
	check(t, pingRedis(t.Context(), s.RedisURL))
	_, address, _ := strings.Cut(s.RedisURL, "@")
	if err := pingRedis(t.Context(), "redis://"+address); err == nil {
		t.Error("it answers without a password")
	}
	check(t, s.stops[0](t.Context()))
}

func TestAnOwnerReachesAFolderOnlyThroughOpenOnes(t *testing.T) {
	stranger := owner{name: "stranger", uid: 64321, gid: 64321, switched: true}
	outer := filepath.Join(t.TempDir(), "outer")
	inner := filepath.Join(outer, "inner")
	check(t, os.MkdirAll(inner, 0o755))
	check(t, os.Chmod(filepath.Dir(filepath.Dir(outer)), 0o755))
	if !stranger.reaches(inner) {
		t.Error("open folders are closed to it")
	}
	check(t, os.Chmod(outer, 0o700))
	if stranger.reaches(inner) {
		t.Error("it gets through a closed folder")
	}
}

func TestTheNewestPostgresComesFirst(t *testing.T) {
	paths := []string{"/usr/lib/postgresql/9/bin", "/usr/lib/postgresql/17/bin", "/usr/lib/postgresql/15/bin"}
	newestFirst(paths)
	if paths[0] != "/usr/lib/postgresql/17/bin" || paths[2] != "/usr/lib/postgresql/9/bin" {
		t.Errorf("got %v", paths)
	}
}

func TestAStartTimeIsReadPastAnyProgramName(t *testing.T) {
	stat := "42 (a) S (b)) S 1 " + strings.Repeat("0 ", 17) + "777 0 0"
	if got := startedAtFromStat(stat); got != "777" {
		t.Errorf("got %q", got)
	}
	if got := startedAtFromStat(strings.Replace(stat, ")) S", ")) Z", 1)); got != "" {
		t.Errorf("a zombie started at %q", got)
	}
}

func testHome(t *testing.T) *home {
	t.Helper()
	dir := t.TempDir()
	check(t, os.Chmod(filepath.Dir(dir), 0o755)) // for the user that the services run as
	h, err := openHome(context.Background(), dir, t.Output())
	check(t, err)
	t.Cleanup(func() { check(t, h.close()) })
	return h
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestAStandInGoesWhereItIsNotToBeKept(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ standsIn, drop, kept bool }{{true, true, false}, {true, false, true}, {false, true, true}} {
		h := &home{dir: t.TempDir(), standsIn: c.standsIn, dropStandIn: c.drop}
		if err := errors.Join(h.acquire(), h.close()); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(h.dir); (err == nil) != c.kept {
			t.Errorf("%+v: the folder's state is %v", c, err)
		}
	}
}
