package main

import (
	"bytes"
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

	"golang.org/x/sys/unix"
)

// live is the path of the config in force.
func (i installation) live() string { return strings.TrimPrefix(i.env[1], "SLUICE_CONFIG=") }

// draft writes a config that differs from the one in force in a few words.
func (i installation) draft(t *testing.T, pairs ...string) string {
	t.Helper()
	text := strings.NewReplacer(append(pairs, "MODE", "hybrid")...).Replace(burstConfig)
	path := filepath.Join(t.TempDir(), "draft.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func content(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func says(t *testing.T, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in:\n%s", want, text)
		}
	}
}

func TestADiffTellsSettingsThePlanAndTheCostAndWritesNothing(t *testing.T) {
	t.Parallel()
	i := install(t, "hybrid")
	i.enqueue(t, 5)
	before, rows := content(t, i.live()), i.everything(t)
	draft := i.draft(t, `"queue_depth_threshold": 3`, `"steps": [{"queue_depth_threshold": 3, "workers": 2}]`, `"max_workers": 3`, `"max_workers": 5`)
	r := i.sluice(t, "config", "diff", draft)
	if r.code != exitDifferent {
		t.Errorf("ends with %d, want %d: %s", r.code, exitDifferent, r.err)
	}
	says(t, r.out, "~ queues.ocr.max_workers: 3 → 5", `+ scaling_rules.scale_up.steps = [{"queue_depth_threshold":3,"workers":2}]`,
		"now: have 0, want 1, launch 1 (first local///local/on_demand at 0.10 an hour)", "with it: have 0, want 2, launch 2",
		"now: 0.30 USD an hour", "with it: 0.50 USD an hour", "0.00 USD now, 0.10 after the next tick as it is, 0.20 after the next tick with it.")
	if content(t, i.live()) != before || i.everything(t) != rows {
		t.Error("it has written")
	}
	if r := i.sluice(t, "config", "diff", i.draft(t)); r.code != exitDone || !strings.Contains(r.out, "the same, byte for byte") {
		t.Errorf("the same bytes: %d %s", r.code, r.out)
	}
	if r := i.sluice(t, "config", "diff", i.draft(t, `"name"`, `"x-note": "why",`+"\r\n\t"+`"name"`)); r.code != exitDone || !strings.Contains(r.out, "only comments or formatting differ") {
		t.Errorf("a comment more: %d %s", r.code, r.out)
	}
	fits(t, call{args: []string{"config", "diff", draft}, env: append(i.env, "COLUMNS=40")}.run(t).out, 40)
}

func TestAMachineOfOlderSettingsIsToldAsReplaced(t *testing.T) {
	t.Parallel()
	i := install(t, "hybrid")
	i.must(t, "tick")
	if _, err := i.db.Connect(t).Exec(t.Context(), `INSERT INTO workers (pool, provider, machine_id, status, boot_at, registered_at, last_heartbeat, queues)
		VALUES ('ocr', 'local', 'm-1', 'ready', sluice_clock(), sluice_clock(), sluice_clock(), '{ocr}')`); err != nil {
		t.Fatal(err)
	}
	r := i.sluice(t, "config", "diff", i.draft(t, "MODE", "vps_only"))
	says(t, r.out, `~ mode: "hybrid" → "vps_only"`, "worker ", "now: keep it", "with it: drain it")
}

func TestAPushKeepsWhatItReplacesAndARollbackPutsItBack(t *testing.T) {
	t.Parallel()
	i := install(t, "hybrid")
	before := "\r\n" + content(t, i.live()) + "\r\n\r\n"
	if err := os.WriteFile(i.live(), []byte(before), 0o640); err != nil {
		t.Fatal(err)
	}
	if out := i.must(t, "config", "versions"); !strings.Contains(out, "No version of") {
		t.Errorf("before any push: %s", out)
	}
	if r := i.sluice(t, "config", "rollback", "--reason", "x", "--yes"); r.code != exitFailed || !strings.Contains(r.err, "no other version is kept") {
		t.Errorf("with nothing to put back: %d %s", r.code, r.err)
	}
	draft := i.draft(t, `"max_workers": 3`, `"max_workers": 4`)
	says(t, i.must(t, "config", "push", draft, "--yes", "--reason", "more room"), "3 → 4", "Written to "+i.live(), "sluice config rollback")
	if content(t, i.live()) != content(t, draft) {
		t.Error("what was pushed is not what was written")
	}
	var kept []struct{ Version, Who, Why string }
	if err := json.Unmarshal([]byte(i.must(t, "config", "versions", "--json")), &kept); err != nil || len(kept) != 1 {
		t.Fatalf("kept %v, %v", kept, err)
	}
	if kept[0].Why != "more room" || !strings.HasPrefix(kept[0].Who, "tester@") {
		t.Errorf("kept %+v", kept[0])
	}
	if r := i.sluice(t, "config", "diff", draft, "--version", kept[0].Version); r.code != exitDifferent || !strings.Contains(r.out, "3 → 4") {
		t.Errorf("against the version: %d %s%s", r.code, r.out, r.err)
	}
	says(t, i.must(t, "config", "rollback", "--yes", "--reason", "too much"), "4 → 3", "Written to")
	if content(t, i.live()) != before {
		t.Errorf("put back as %q, want %q", content(t, i.live()), before)
	}
	says(t, i.must(t, "tick"), "Nothing to do: 1 pool as wanted")
	if r := i.sluice(t, "config", "rollback", "none", "--yes", "--reason", "x"); r.code != exitFailed || !strings.Contains(r.err, "`sluice config versions`") {
		t.Errorf("a version that is not there: %d %s", r.code, r.err)
	}
	spoilt := filepath.Join(filepath.Dir(i.live()), ".sluice-versions", "scheduler.json", kept[0].Version)
	if err := os.WriteFile(spoilt, []byte(`{"modus": 1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := i.sluice(t, "config", "rollback", kept[0].Version, "--yes", "--reason", "x"); r.code != exitFailed || !strings.Contains(r.err, "has 1 problem") || content(t, i.live()) != before {
		t.Errorf("a version that is not valid: %d %s", r.code, r.err)
	}
}

func TestTheFirstConfigIsPushedWhereThereIsNone(t *testing.T) {
	t.Parallel()
	i := install(t, "hybrid")
	if err := os.Remove(i.live()); err != nil {
		t.Fatal(err)
	}
	says(t, i.must(t, "config", "push", i.draft(t), "--yes"), "is the first config", "+ queues.ocr.max_workers = 3", "not configured yet", "Written to "+i.live())
	says(t, i.must(t, "config", "push", i.draft(t), "--yes"), "Nothing was written")
}

func TestABrokenConfigInForceCanBeReplaced(t *testing.T) {
	t.Parallel()
	i := install(t, "hybrid")
	if err := os.WriteFile(i.live(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	says(t, i.must(t, "config", "push", i.draft(t), "--yes"), "is not valid, so its settings cannot be compared", "the tick fails", "Written to")
}

func TestAPushThatMayNotBeWritesNothing(t *testing.T) {
	t.Parallel()
	i := install(t, "hybrid")
	before, draft := content(t, i.live()), i.draft(t, `"max_workers": 3`, `"max_workers": 4`)
	secret := `"connections": {"database": {"url": "postgres://u:hunter2@db/app"}}, "name"`
	link := filepath.Join(t.TempDir(), "link.json")
	if err := os.Symlink(i.live(), link); err != nil {
		t.Fatal(err)
	}
	huge, latin := filepath.Join(t.TempDir(), "huge.json"), filepath.Join(t.TempDir(), "latin.json")
	if err := os.WriteFile(latin, []byte("{\"name\": \"caf\xe9\"}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(huge, bytes.Repeat([]byte(" "), 2<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	down := []string{"DATABASE_URL=postgres://u:hunter2@127.0.0.1:1/x", i.env[1]}
	for _, c := range []struct {
		name string
		env  []string
		args []string
		code int
		says string
	}{
		{"nobody can be asked", i.env, []string{draft}, exitUsage, "say --yes"},
		{"the config itself", i.env, []string{i.live(), "--yes"}, exitUsage, "is the config in force itself"},
		{"the config itself behind a link", i.env, []string{link, "--yes"}, exitUsage, "is the config in force itself"},
		{"no file", i.env, []string{"nowhere.json", "--yes"}, exitFailed, "no such file"},
		{"a config that is not valid", i.env, []string{i.draft(t, `"max_workers"`, `"max_wokers"`), "--yes"}, exitFailed, "max_workers"},
		{"a secret", i.env, []string{i.draft(t, `"name"`, secret), "--yes"}, exitFailed, "connections.database.url"},
		{"not UTF-8", i.env, []string{latin, "--yes"}, exitFailed, "UTF-8"},
		{"a huge file", i.env, []string{huge, "--yes"}, exitFailed, "has 2097152 bytes, expected at most 1048576"},
		{"what a tick refuses", i.env, []string{i.draft(t, `"local": {`, `"aws": {"enabled": true, "regions": ["eu-west-3"]}, "local": {`), "--yes"}, exitFailed, "aws"},
		{"the database is down", down, []string{draft, "--yes"}, exitFailed, "--without-plan"},
		{"no path", nil, []string{draft, "--yes"}, exitFailed, "--to, --config or SLUICE_CONFIG"},
		{"a directory", i.env, []string{draft, "--yes", "--to", t.TempDir()}, exitFailed, "found a directory"},
	} {
		r := call{args: append([]string{"config", "push"}, c.args...), env: c.env}.run(t)
		if r.code != c.code || !strings.Contains(r.err, c.says) {
			t.Errorf("%s: ends with %d, want %d and %q: %s", c.name, r.code, c.code, c.says, r.err)
		}
		if strings.Contains(r.out+r.err, "hunter2") {
			t.Errorf("%s: a secret is shown: %s%s", c.name, r.out, r.err)
		}
	}
	if content(t, i.live()) != before {
		t.Error("the config was changed")
	}
	r := call{args: []string{"config", "push", draft, "--yes", "--without-plan"}, env: down}.run(t)
	if r.code != exitDone || content(t, i.live()) != content(t, draft) || !strings.Contains(r.out, "was not asked (--without-plan)") {
		t.Errorf("unseen: %d %s%s", r.code, r.out, r.err)
	}
}

// terminal is a pair of ends: what a person types and reads, and what a program is given.
func terminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	fd := int(person.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = person.Close(), program.Close() })
	return person, program
}

func TestATerminalIsAskedAndAnythingButYesIsNo(t *testing.T) {
	t.Parallel()
	for answer, code := range map[string]int{"y\n": exitDone, "YES\n": exitDone, "n\n": exitFailed, "\n": exitFailed, "\x04": exitFailed} {
		i := install(t, "hybrid")
		before, draft := content(t, i.live()), i.draft(t, `"max_workers": 3`, `"max_workers": 4`)
		person, program := terminal(t)
		if _, err := person.WriteString(answer); err != nil { // a terminal keeps it until it is read
			t.Fatal(err)
		}
		cmd := call{args: []string{"config", "push", draft}, env: i.env}.command(t.Context())
		var out bytes.Buffer
		cmd.Stdin, cmd.Stdout, cmd.Stderr = program, &out, &out
		_ = cmd.Run() // how it ended is read below
		if got := cmd.ProcessState.ExitCode(); got != code || (content(t, i.live()) == before) != (code == exitFailed) {
			t.Errorf("the answer %q ends with %d, want %d:\n%s", answer, got, code, out.String())
		}
		says(t, out.String(), "Write this to "+i.live()+"? [y/N]")
	}
}

// A change between the diff and the answer is somebody else's, and what was agreed to is not what would happen.
func TestAChangeWhileAPersonThinksIsNotOverwritten(t *testing.T) {
	t.Parallel()
	i := install(t, "hybrid")
	draft, theirs := i.draft(t, `"max_workers": 3`, `"max_workers": 4`), i.draft(t, `"max_workers": 3`, `"max_workers": 9`)
	person, program := terminal(t)
	cmd := call{args: []string{"config", "push", draft}, env: i.env}.command(t.Context())
	var stderr bytes.Buffer
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdin, cmd.Stderr = program, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for seen, b := "", make([]byte, 4096); !strings.Contains(seen, "[y/N]"); {
		n, err := out.Read(b)
		if seen += string(b[:n]); err != nil {
			t.Fatalf("it did not ask: %s%s", seen, stderr.String())
		}
	}
	i.must(t, "config", "push", theirs, "--yes")
	if _, err := person.WriteString("y\n"); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // how it ended is read below
	if cmd.ProcessState.ExitCode() != exitFailed || !strings.Contains(stderr.String(), "somebody else changed it, nothing was written") {
		t.Errorf("ends with %d: %s", cmd.ProcessState.ExitCode(), stderr.String())
	}
	if content(t, i.live()) != content(t, theirs) {
		t.Error("the other's change is lost")
	}
}

// Writers are killed at random moments while others write on: what is there is always one of the two, whole.
func TestAKilledPushLeavesOneOfTheTwoWhole(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	target := filepath.Join(dir, "live.json")
	drafts := [2]string{filepath.Join(dir, "a.json"), filepath.Join(dir, "b.json")}
	var texts [2]string
	for k, draft := range drafts {
		texts[k] = strings.Replace(strings.Replace(burstConfig, "MODE", "hybrid", 1), `"name"`, fmt.Sprintf(`"x-pad": %q, "name"`, strings.Repeat(string(rune('a'+k)), 400<<10)), 1)
		if err := os.WriteFile(draft, []byte(texts[k]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	push := func(k int) *exec.Cmd {
		return call{args: []string{"config", "push", drafts[k], "--to", target, "--yes", "--without-plan"}}.command(t.Context())
	}
	started := time.Now()
	if out, err := push(0).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	whole := time.Since(started)
	killed := 0
	for n := range 40 {
		cmd := push(1 - n%2)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(whole*time.Duration(n)/30, func() { _ = cmd.Process.Kill() })
		if cmd.Wait() != nil {
			killed++
		}
		if got := content(t, target); got != texts[0] && got != texts[1] {
			t.Fatalf("after push %d there are %d bytes that nobody wrote", n, len(got))
		}
	}
	if killed == 0 {
		t.Error("no push was killed")
	}
	if out, err := push(1).CombinedOutput(); err != nil || content(t, target) != texts[1] {
		t.Errorf("after all that a push fails: %v: %s", err, out)
	}
	if r := (call{args: []string{"config", "versions", "--to", target, "--json"}}).run(t); r.code != exitDone {
		t.Errorf("the versions cannot be listed: %s", r.err)
	}
}

func TestOfTwoPushesAtOnceOneWinsAndTheOtherSaysSo(t *testing.T) {
	t.Parallel()
	i := install(t, "hybrid")
	var wg sync.WaitGroup
	var results [6]result
	for k := range results {
		draft := i.draft(t, `"max_workers": 3`, fmt.Sprintf(`"max_workers": %d`, 10+k))
		wg.Go(func() {
			results[k] = call{args: []string{"config", "push", draft, "--yes", "--without-plan"}, env: i.env}.run(t)
		})
	}
	wg.Wait()
	won := 0
	for k, r := range results {
		switch {
		case r.code == exitDone:
			won++
		case !strings.Contains(r.err, "somebody else changed it, nothing was written"):
			t.Errorf("push %d ends with %d: %s", k, r.code, r.err)
		}
	}
	var kept []any
	if err := json.Unmarshal([]byte(i.must(t, "config", "versions", "--json")), &kept); err != nil || len(kept) != won || won == 0 {
		t.Errorf("%d have won and %d versions are kept, %v", won, len(kept), err)
	}
}
