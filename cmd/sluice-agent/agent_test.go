package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/core/fleet"
	"sluice/providers/local"
	"sluice/providers/postgres"
)

func TestJobsRunWithTheirInputAndASmallEnvironment(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.assign("vps", fleet.Assignment{Queues: []fleet.Queue{w.sh("ocr", `in=$(cat); echo progress; printf '{"in":%s,"env":"%s"}\n' "$in" "$(env | sort | tr '\n' ' ')"`)}})
	id := w.enqueue("ocr", 1)[0]
	w.start("--machine", "vps-1", "--sweep-redis=false")
	w.untilCount("ocr", "completed", 1)
	var got struct {
		In struct {
			ID, Queue         string
			Attempt, Priority int
			Payload           map[string]int
		}
		Env string
	}
	if err := json.Unmarshal([]byte(value[string](w, "SELECT result::text FROM processing_jobs")), &got); err != nil {
		t.Fatal(err)
	}
	if got.In.ID != id || got.In.Queue != "ocr" || got.In.Attempt != 1 || got.In.Priority != 5 || got.In.Payload["n"] != 0 {
		t.Errorf("the job on stdin was %+v", got.In)
	}
	for _, v := range strings.Fields(got.Env) {
		switch name, _, _ := strings.Cut(v, "="); name {
		case "PATH", "HOME", "PWD", "SLUICE_JOB_ID", "SLUICE_QUEUE", "SLUICE_ATTEMPT", "_", "OLDPWD", "SHLVL":
		default:
			t.Errorf("the command got %s", v)
		}
	}
	if n := value[int](w, "SELECT count(*) FROM worker_metrics WHERE cpu_percent IS NOT NULL AND load1 IS NOT NULL AND memory_mb > 0"); n == 0 {
		t.Error("no heartbeat measured the machine")
	}
}

func TestBadCommandsFailAndLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	limited := func(q fleet.Queue) fleet.Queue { q.Run.Timeout = 1; return q }
	w.assign("vps", fleet.Assignment{Queues: []fleet.Queue{
		limited(w.sh("hangs", `sleep MARK`)),
		limited(w.sh("deaf", `trap "" TERM; sleep MARK & sleep MARK`)),
		limited(w.sh("daemon", `setsid sh -c 'sleep MARK & exec sleep MARK' & (setsid sleep MARK &); wait`)),
		w.sh("deserts", `(setsid sleep MARK >/dev/null 2>&1 &); exit 4`),
		w.sh("floods", `head -c 1073741824 /dev/zero | tr '\0' x; head -c 200000 /dev/zero | tr '\0' y >&2; echo end >&2; exit 5`),
		w.sh("binary", `printf 'bad \000 \377 text' >&2; exit 6`),
		w.sh("null", `echo '{"a":"\u0000"}'`),
	}})
	for _, q := range []string{"hangs", "deaf", "daemon", "deserts", "floods", "binary", "null"} {
		w.enqueue(q, 1)
	}
	a := w.start("--machine", "vps-1")
	w.untilCount("null", "completed", 1)
	for queue, want := range map[string]string{
		"hangs": "ended at its limit of 1 s", "deaf": "ended at its limit of 1 s", "daemon": "ended at its limit of 1 s",
		"deserts": "exit code 4", "floods": "yyyyend\n", "binary": "bad \uFFFD \uFFFD text",
	} {
		w.untilCount(queue, "dead", 1)
		if text := value[string](w, "SELECT last_error FROM processing_jobs WHERE queue = $1", queue); !strings.Contains(text, want) || len(text) > 70000 {
			t.Errorf("%s failed with %d bytes: %.100q, want %q in it", queue, len(text), text, want)
		}
	}
	if n := w.sleeping(); n > 0 {
		t.Errorf("%d processes are left", n)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", a.cmd.Process.Pid))
	if err == nil {
		_, peak, _ := strings.Cut(string(status), "VmHWM:")
		var kb int
		if _, err := fmt.Sscan(peak, &kb); err != nil || kb > 100<<10 {
			t.Errorf("the agent took %d kB at most (%v), want under 100 MB", kb, err)
		}
	}
}

func TestAKilledAgentLeavesNoChildAndItsJobGoesToAnother(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := filepath.Join(t.TempDir(), "first")
	script := fmt.Sprintf(`if mkdir %s 2>/dev/null; then (setsid sleep MARK &); trap "" TERM; sleep MARK; fi; echo ok`, first)
	w.assign("vps", fleet.Assignment{Queues: []fleet.Queue{w.sh("ocr", script)}, Visibility: 3, MaxAttempts: 3})
	w.enqueue("ocr", 1)
	a := w.start("--machine", "one")
	w.until("the job runs", func() bool { return w.sleeping() == 2 })
	a.signal(syscall.SIGKILL)
	w.until("no child is left", func() bool { return w.sleeping() == 0 })
	w.start("--machine", "two")
	worker, err := postgres.OpenWorker(t.Context(), postgres.URL(w.URL))
	if err != nil {
		t.Fatal(err)
	}
	defer worker.Close()
	w.until("the job is done by another", func() bool {
		if _, err := worker.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		return w.count("ocr", "completed") == 1
	})
	if n := value[int](w, "SELECT attempts FROM processing_jobs"); n != 2 {
		t.Errorf("it took %d attempts, want 2", n)
	}
}

func TestSIGTERMReleasesWhatTakesLongerThanItsGrace(t *testing.T) {
	t.Parallel()
	for provider, want := range map[string]string{"vps": "terminated", "local": "draining"} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.assign("p", fleet.Assignment{Queues: []fleet.Queue{w.sh("long", `sleep MARK`), w.sh("short", `sleep 0.7; echo '{"done":true}'`)}})
			w.enqueue("long", 1)
			w.enqueue("short", 1)
			a := w.start("--provider", provider, "--machine", "m", "--pool", "p")
			w.untilCount("short", "processing", 1)
			w.until("the long job runs", func() bool { return w.sleeping() == 1 })
			a.signal(syscall.SIGTERM)
			if code := a.ends(); code != 0 {
				t.Errorf("exit code %d, want 0", code)
			}
			if w.count("short", "completed") != 1 || w.count("long", "queued") != 1 {
				t.Error("want the short job completed and the long one queued")
			}
			if n := value[int](w, "SELECT attempts FROM processing_jobs WHERE queue = 'long'"); n != 0 {
				t.Errorf("the released attempt counts: %d", n)
			}
			if n := w.sleeping(); n > 0 {
				t.Errorf("%d processes are left", n)
			}
			if got := value[string](w, "SELECT status FROM workers"); got != want {
				t.Errorf("the worker is %s, want %s", got, want)
			}
		})
	}
}

func TestADrainIsAcknowledgedAndItsEndObeyed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.assign("p", fleet.Assignment{Queues: []fleet.Queue{w.sh("ocr", "exit 0")}})
	w.start("--provider", "local", "--machine", "m", "--pool", "p")
	w.until("it is ready", func() bool { return value[int](w, "SELECT count(*) FROM workers WHERE status = 'ready'") == 1 })
	w.exec("UPDATE workers SET status = 'draining', draining_at = sluice_clock(), drain_why = 'test'")
	w.until("it acknowledges", func() bool { return value[bool](w, "SELECT drain_ack_at IS NOT NULL FROM workers") })
	w.enqueue("ocr", 1)
	beat := value[time.Time](w, "SELECT last_heartbeat FROM workers")
	w.until("two heartbeats have passed", func() bool {
		return value[bool](w, "SELECT last_heartbeat > $1::timestamptz + interval '1500 ms' FROM workers", beat)
	})
	if w.count("ocr", "queued") != 1 {
		t.Error("a draining worker claimed")
	}
	w.exec("UPDATE workers SET status = 'ready', draining_at = NULL, drain_ack_at = NULL")
	w.untilCount("ocr", "completed", 1)
}

func TestALocalMachineIsSuspendedResumedAndTerminated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.assign("ocr", fleet.Assignment{Queues: []fleet.Queue{w.sh("ocr", "exit 0")}, LostDatabase: 1})
	c, err := local.New(local.Options{
		Dir: t.TempDir(), Agent: binary, MaxInstances: 1, Env: []string{"DATABASE_URL=" + w.URL, "PATH=" + os.Getenv("PATH")},
	})
	if err != nil {
		t.Fatal(err)
	}
	ms, err := c.Launch(t.Context(), fleet.Launch{
		Token: "t", Count: 1, Lifetime: 3600, Offer: fleet.Offer{Place: fleet.Place{Provider: "local"}, Type: "process", Market: fleet.OnDemand},
		Tags: fleet.Tags{Name: "n", Deployment: "d", Pool: "ocr", Spec: "s"}, Settings: []byte(`{"boot_seconds": 0}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	ref := fleet.Ref{Place: fleet.Place{Provider: "local"}, Machine: ms[0].ID}
	t.Cleanup(func() {
		_ = c.Suspend(context.Background(), ref)
		_ = c.Terminate(context.Background(), ref)
	})
	w.until("it is ready", func() bool {
		return value[int](w, "SELECT count(*) FROM workers WHERE status = 'ready' AND machine_id = $1 AND spec_hash = 's' AND instance_type = 'process'", ref.Machine) == 1
	})
	w.exec("UPDATE workers SET status = 'suspended'")
	if err := c.Suspend(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	w.enqueue("ocr", 1)
	<-time.After(2 * time.Second) // longer than LostDatabase: the sleep does not count as a loss
	if w.count("ocr", "queued") != 1 {
		t.Error("a suspended machine claimed")
	}
	w.exec("UPDATE workers SET status = 'provisioning'")
	if err := c.Resume(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	w.untilCount("ocr", "completed", 1)
	if err := c.Terminate(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	w.until("it is gone", func() bool {
		ms, _, err := c.List(t.Context(), "", "n")
		return err == nil && len(ms) == 1 && ms[0].State == fleet.MachineGone
	})
}

func TestAChangedPasswordDrainsNothingAndFailsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := newGate(t, w.URL, "first")
	secret := filepath.Join(t.TempDir(), "url")
	write := func(password string) {
		if err := os.WriteFile(secret, []byte(g.url(password)+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("first")
	w.assign("p", fleet.Assignment{Queues: []fleet.Queue{w.sh("ocr", "sleep 0.2")}, LostDatabase: 5})
	a := w.startWith([]string{"SLUICE_DATABASE_URL_REF=file:" + secret}, "--provider", "local", "--machine", "m", "--pool", "p")
	w.enqueue("ocr", 3)
	w.untilCount("ocr", "completed", 3)
	g.change("second", false)
	w.enqueue("ocr", 20)
	refused, since := g.refusals(), time.Now()
	w.until("the old password was refused for longer than the limit", func() bool {
		return g.refusals() > refused+8 && time.Since(since) > 6*time.Second
	})
	write("second")
	w.untilCount("ocr", "completed", 23)
	if n := value[int](w, "SELECT count(*) FROM job_attempts WHERE status <> 'succeeded'"); n > 0 {
		t.Errorf("%d attempts did not succeed", n)
	}
	if got := value[string](w, "SELECT status FROM workers"); got != "ready" {
		t.Errorf("the worker is %s, want ready", got)
	}
	if log := a.said(); strings.Contains(log, "first@") || strings.Contains(log, "second@") || !strings.Contains(log, "authentication failed") {
		t.Errorf("the log shows a password, or not what happened:\n%s", log)
	}
}

func TestAnAgentThatLostItsDatabaseEndsWithItsJobs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := newGate(t, w.URL, "p")
	w.assign("p", fleet.Assignment{Queues: []fleet.Queue{w.sh("ocr", "(setsid sleep MARK &) ; sleep MARK")}, LostDatabase: 2})
	w.enqueue("ocr", 1)
	a := w.startWith([]string{"DATABASE_URL=" + g.url("p")}, "--provider", "local", "--machine", "m", "--pool", "p")
	w.until("the job runs", func() bool { return w.sleeping() == 2 })
	g.change("p", true)
	if code := a.ends(); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	if n := w.sleeping(); n > 0 {
		t.Errorf("%d processes are left", n)
	}
	if !strings.Contains(a.said(), "the database has been out of reach for too long") {
		t.Errorf("the log does not say why:\n%s", a.said())
	}
}

func TestExpiryIsReadByTheDatabasesClock(t *testing.T) {
	t.Parallel()
	for name, shift := range map[string]string{"an hour ahead of this machine": "1 hour", "an hour behind": "-1 hour"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.exec("CREATE OR REPLACE FUNCTION sluice_clock() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT clock_timestamp() + interval ''" + shift + "'''")
			w.assign("p", fleet.Assignment{Queues: []fleet.Queue{w.sh("ocr", "sleep MARK")}, DrainTimeout: 1})
			w.enqueue("ocr", 1)
			expires := value[time.Time](w, "SELECT sluice_clock() + interval '6 seconds'")
			begun := time.Now()
			a := w.start("--provider", "local", "--machine", "m", "--pool", "p", "--expires", expires.UTC().Format(time.RFC3339Nano))
			w.untilCount("ocr", "processing", 1)
			if code := a.ends(); code != 0 {
				t.Errorf("exit code %d, want 0", code)
			}
			if lived := time.Since(begun); lived < 5*time.Second {
				t.Errorf("it ended after %v, want 6 s", lived)
			}
			if w.count("ocr", "queued") != 1 || w.sleeping() > 0 {
				t.Error("want the job released and its command ended")
			}
		})
	}
}

func TestAnAgentWhoseRowIsGoneRegistersAgainAndGoesOnWithItsJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.assign("vps", fleet.Assignment{Queues: []fleet.Queue{w.sh("ocr", "sleep 2")}})
	w.enqueue("ocr", 1)
	w.start("--machine", "m")
	w.untilCount("ocr", "processing", 1)
	w.exec("UPDATE workers SET status = 'terminated', terminated_at = sluice_clock()")
	w.until("it is ready again", func() bool { return value[int](w, "SELECT count(*) FROM workers WHERE status = 'ready'") == 1 })
	w.untilCount("ocr", "completed", 1)
	if n := value[int](w, "SELECT count(*) FROM job_attempts"); n != 1 {
		t.Errorf("%d attempts, want 1", n)
	}
}

// A host that pops ids from the list itself, as it did before there were agents, works beside them.
func TestAHostsOwnConsumerWorksBesideAgents(t *testing.T) {
	t.Parallel()
	redisURL := os.Getenv("REDIS_URL")
	if redisURL == "" {
		t.Fatal("REDIS_URL is not set: run make test, which starts a Redis")
	}
	o, err := redis.ParseURL(redisURL)
	if err != nil {
		t.Fatal(err)
	}
	lists := redis.NewClient(o)
	defer lists.Close() //nolint:errcheck // a test's end
	w := newWorld(t)
	key, ran := "test:"+w.mark+":queue:images", filepath.Join(t.TempDir(), "ran")
	t.Cleanup(func() { lists.Del(context.Background(), key) })
	q := w.sh("images", fmt.Sprintf(`echo "agent $SLUICE_JOB_ID" >> %s`, ran))
	q.Source = fleet.Source{Kind: fleet.SourceRedis, Key: key, Rows: true}
	q.Run.Slots = 2
	w.assign("vps", fleet.Assignment{Queues: []fleet.Queue{q}, MaxAttempts: 3})
	ctx, stop := context.WithCancel(t.Context())
	var host sync.WaitGroup
	byHost := map[string]int{}
	hostBegan, agentsBegan := make(chan struct{}), make(chan struct{}) // each side does a job before the other can do all
	conn, whole := w.Connect(t), context.WithoutCancel(ctx)            // what was popped is finished
	host.Go(func() {
		for ctx.Err() == nil {
			popped, err := lists.BRPop(ctx, time.Second, key).Result()
			if err != nil {
				continue
			}
			tag, err := conn.Exec(whole, `UPDATE processing_jobs SET status = 'processing', attempts = attempts + 1, claimed_at = sluice_clock(),
				visible_until = sluice_clock() + interval '5 minutes' WHERE id = $1 AND status = 'queued' AND (due_at IS NULL OR due_at <= sluice_clock())`, popped[1])
			if err != nil || tag.RowsAffected() == 0 {
				continue // an agent has it
			}
			byHost[popped[1]]++
			_, _ = conn.Exec(whole, `UPDATE processing_jobs SET status = 'completed', completed_at = sluice_clock() WHERE id = $1 AND status = 'processing'`, popped[1])
			if len(byHost) == 1 {
				close(hostBegan)
				<-agentsBegan
			}
		}
	})
	ids := w.enqueue("images", 120)
	for _, id := range ids {
		if err := lists.LPush(t.Context(), key, id).Err(); err != nil {
			t.Fatal(err)
		}
	}
	<-hostBegan
	env := []string{"DATABASE_URL=" + w.URL, "REDIS_URL=" + redisURL}
	w.startWith(env, "--machine", "vps-1", "--sweep-redis")
	w.startWith(env, "--machine", "vps-2")
	w.until("an agent has done a job", func() bool { _, err := os.Stat(ran); return err == nil })
	close(agentsBegan)
	w.untilCount("images", "completed", len(ids))
	w.until("the list is empty", func() bool { return lists.LLen(t.Context(), key).Val() == 0 })
	stop()
	host.Wait()

	content, err := os.ReadFile(ran)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	runs := map[string]int{}
	for _, line := range strings.Fields(strings.ReplaceAll(string(content), "agent ", "")) {
		runs[line]++
	}
	if len(byHost) == 0 || len(runs) == 0 {
		t.Errorf("the host did %d jobs and the agents %d: the test shows nothing", len(byHost), len(runs))
	}
	for _, id := range ids {
		if n := runs[id] + byHost[id]; n != 1 {
			t.Errorf("job %s was done %d times", id, n)
		}
	}
}

func TestTheCommandLine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		env  []string
		code int
		want string
	}{
		{[]string{"--version"}, nil, 0, "sluice-agent version"},
		{[]string{"--help"}, nil, 0, "Examples:"},
		{[]string{"--no-such-flag"}, nil, 2, "unknown flag: --no-such-flag"},
		{[]string{"extra"}, nil, 2, "unexpected argument"},
		{[]string{"--expires", "tomorrow"}, nil, 2, "want a time such as"},
		{[]string{"--market", "black"}, nil, 2, "want on_demand or spot"},
		{nil, nil, 1, "DATABASE_URL is not set"},
		{nil, []string{"DATABASE_URL=hunter2://x"}, 1, "want postgres://"},
		{nil, []string{"SLUICE_DATABASE_URL_REF=postgres://u:hunter2@h/d"}, 1, "want file:/path or env:NAME"},
		{nil, []string{"SLUICE_DATABASE_URL_REF=file:/no/such/file"}, 1, "/no/such/file"},
	} {
		cmd := exec.CommandContext(t.Context(), binary, c.args...)
		cmd.Env = append([]string{"PATH=/bin"}, c.env...)
		out, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != c.code || !strings.Contains(string(out), c.want) || strings.Contains(string(out), "hunter2") {
			t.Errorf("sluice-agent %q with %q: exit code %d, want %d and %q in:\n%s", c.args, c.env, code, c.code, c.want, out)
		}
	}
}
