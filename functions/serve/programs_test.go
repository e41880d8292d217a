package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sluice/providers/postgres/postgrestest"
)

// emulator is the program that plays Lambda's runtime; it is built once, into the project's folder for tools.
const (
	emulator        = "aws-lambda-rie"
	emulatorPackage = "github.com/aws/aws-lambda-runtime-interface-emulator/cmd/aws-lambda-rie@v0.0.0-20261030222936-bef5c4ba774d"
)

// built are the functions as they are deployed.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "sluice-functions-")
	if err != nil {
		return "", err
	}
	for _, name := range []string{"evaluate", "reconcile"} {
		cmd := exec.Command("go", "build", "-tags", "lambda.norpc", "-trimpath", "-ldflags", "-s -w", "-o", filepath.Join(dir, name), "sluice/functions/"+name)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("%w: %s", err, out)
		}
	}
	return dir, nil
})

var installed = sync.OnceValues(func() (string, error) {
	dir, err := filepath.Abs("../../bin/tools")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, emulator)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	cmd := exec.Command("go", "install", emulatorPackage)
	cmd.Env = append(os.Environ(), "GOBIN="+dir, "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w: %s", emulator, err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, err := built(); err == nil {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

func program(t *testing.T, name string) string {
	t.Helper()
	dir, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, name)
}

// deployed is a function that runs in a process of its own.
type deployed struct {
	url string
	log output
}

// output is the file that a process writes to: what it wrote before it answered is there.
type output struct{ path string }

func (o output) String() string {
	b, err := os.ReadFile(o.path)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // closed at once
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// start runs a program until the test ends, and waits until it listens.
func start(t *testing.T, port string, env []string, command ...string) output {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }() // the child has its own
	out := output{file.Name()}
	cmd := exec.Command(command[0], command[1:]...) //nolint:noctx // our own programs, ended below
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.TempDir()}, env...)
	cmd.Stdout, cmd.Stderr = file, file
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			t.Error("the function did not end when asked")
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		}
	})
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		select {
		case <-ended:
			t.Fatalf("it ended by itself: %s", out)
		default:
		}
		if c, err := (&net.Dialer{Timeout: time.Second}).DialContext(t.Context(), "tcp", "127.0.0.1:"+port); err == nil {
			_ = c.Close()
			return out
		}
	}
	t.Fatalf("it does not listen: %s", out)
	return out
}

// world is a migrated database and a config, as the function's environment.
func world(t *testing.T, config string) []string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "scheduler.json")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"SLUICE_CONFIG=" + path, "DATABASE_URL=" + postgrestest.New(t).URL}
}

func overHTTP(t *testing.T, name string, env []string) deployed {
	t.Helper()
	port := freePort(t)
	out := start(t, port, append(env, "PORT="+port, "HOST=127.0.0.1"), program(t, name))
	return deployed{"http://127.0.0.1:" + port, out}
}

func underLambda(t *testing.T, name string, env []string) deployed {
	t.Helper()
	rie, err := installed()
	if err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	env = append(env, "AWS_LAMBDA_FUNCTION_NAME="+name, "AWS_LAMBDA_FUNCTION_TIMEOUT=60", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE=256")
	out := start(t, port, env, rie, "--runtime-api-address", "127.0.0.1:"+freePort(t),
		"--runtime-interface-emulator-address", "127.0.0.1:"+port, program(t, name))
	return deployed{"http://127.0.0.1:" + port + "/2015-03-31/functions/function/invocations", out}
}

func (d deployed) post(t *testing.T, body, schedule string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, d.url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if schedule != "" {
		r.Header.Set(scheduleTime, schedule)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatalf("%v: %s", err, d.log)
	}
	defer func() { _ = answer.Body.Close() }()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(b)
}

// lines are the log lines of ticks so far.
func (d deployed) lines() []map[string]any {
	var out []map[string]any
	for line := range strings.Lines(d.log.String()) {
		var object map[string]any
		if json.Unmarshal([]byte(line), &object) == nil && object["event"] == "tick" {
			out = append(out, object)
		}
	}
	return out
}

const event = `{"version":"0","id":"e","detail-type":"Scheduled Event","source":"aws.events","time":"2026-01-14T09:31:00Z","detail":{}}`

// called calls a function with the same due time twice, as schedules do.
func called(t *testing.T, d deployed, body, schedule string) {
	t.Helper()
	code, first := d.post(t, body, schedule)
	if code != http.StatusOK || !strings.Contains(first, "2026-01-14T09:31:00Z") || strings.Contains(first, "errorMessage") {
		t.Fatalf("the first call is answered with %d %s: %s", code, first, d.log)
	}
	code, second := d.post(t, body, schedule)
	if code != http.StatusOK || !strings.Contains(second, "Skipped") {
		t.Errorf("the second call is answered with %d %s", code, second)
	}
	lines := d.lines()
	if len(lines) != 2 || lines[0]["result"] != "nothing_to_do" || lines[1]["result"] != "skipped" {
		t.Errorf("the log has %v", lines)
	}
}

func TestFunctionsAnswerSchedules(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"evaluate", "reconcile"} {
		t.Run(name+" over HTTP", func(t *testing.T) {
			t.Parallel()
			called(t, overHTTP(t, name, world(t, "{}")), "{}", "2026-01-14T09:31:00Z")
		})
		t.Run(name+" under Lambda", func(t *testing.T) {
			t.Parallel()
			called(t, underLambda(t, name, world(t, "{}")), event, "")
		})
	}
}

func TestAFailedTickIsAFailedCall(t *testing.T) {
	t.Parallel()
	lost := []string{"SLUICE_CONFIG=/nowhere/scheduler.json", "DATABASE_URL=postgres://u:secret@127.0.0.1:1/x"}
	t.Run("over HTTP", func(t *testing.T) {
		t.Parallel()
		d := overHTTP(t, "evaluate", lost)
		if code, answer := d.post(t, "", ""); code != http.StatusInternalServerError {
			t.Errorf("answered with %d %s", code, answer)
		}
		failedLine(t, d)
	})
	t.Run("under Lambda", func(t *testing.T) {
		t.Parallel()
		d := underLambda(t, "evaluate", lost)
		if _, answer := d.post(t, event, ""); !strings.Contains(answer, "errorMessage") {
			t.Errorf("answered with %s", answer)
		}
		failedLine(t, d)
	})
}

func failedLine(t *testing.T, d deployed) {
	t.Helper()
	lines := d.lines()
	if len(lines) != 1 || lines[0]["result"] != "failed" || lines[0]["level"] != "ERROR" {
		t.Errorf("the log has %v", lines)
	}
	if strings.Contains(d.log.String(), "secret") {
		t.Errorf("the log has the password: %s", d.log)
	}
}

func TestAnIntervalBelowAMinuteFailsTheCallAndSaysWhy(t *testing.T) {
	t.Parallel()
	d := overHTTP(t, "evaluate", world(t, `{"evaluation_interval_seconds": 2}`))
	if code, answer := d.post(t, "", ""); code != http.StatusInternalServerError {
		t.Errorf("answered with %d %s", code, answer)
	}
	if !strings.Contains(d.log.String(), "evaluation_interval_seconds") {
		t.Errorf("the log does not name the key: %s", d.log)
	}
}

func TestAConfigThatIsNotThereYetIsNoFailure(t *testing.T) {
	t.Parallel()
	env := world(t, "{}")
	env[0] = "SLUICE_CONFIG=/nowhere/scheduler.json"
	d := overHTTP(t, "evaluate", env)
	if code, answer := d.post(t, "", ""); code != http.StatusOK || !strings.Contains(answer, "not configured yet") {
		t.Errorf("answered with %d %s", code, answer)
	}
}

func TestWithoutLambdaAndWithoutAPortItSaysWhatToSet(t *testing.T) {
	t.Parallel()
	out, err := exec.Command(program(t, "evaluate")).Output() //nolint:noctx // our own program
	if err == nil || !strings.Contains(string(out), "set PORT") {
		t.Errorf("%v: %s", err, out)
	}
}

const redisConfig = `{"queues": {"images": {"source": {"kind": "redis"}, "run": {"command": ["true"]}}}}`

func TestEveryLineOfTheLogIsJSONAlsoWhereAServerIsDown(t *testing.T) {
	t.Parallel()
	d := overHTTP(t, "evaluate", append(world(t, redisConfig), "REDIS_URL=redis://:hunter2@127.0.0.1:1"))
	if code, answer := d.post(t, "", ""); code != http.StatusOK {
		t.Errorf("answered with %d %s", code, answer)
	}
	log := d.log.String()
	for line := range strings.Lines(log) {
		if !json.Valid([]byte(line)) {
			t.Errorf("a line is not JSON: %s", line)
		}
	}
	if strings.Contains(log, "hunter2") || len(d.lines()) != 1 {
		t.Errorf("the log has a password, or no tick: %s", log)
	}
}

func TestOfAHundredCallsAtOnceForOneDueTimeExactlyOneActs(t *testing.T) {
	t.Parallel()
	d := overHTTP(t, "evaluate", world(t, "{}"))
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			if code, answer := d.post(t, "", "2026-01-14T09:31:00Z"); code != http.StatusOK {
				t.Errorf("answered with %d %s", code, answer)
			}
		})
	}
	wg.Wait()
	results := map[any]int{}
	for _, line := range d.lines() {
		results[line["result"]]++
	}
	if results["nothing_to_do"] != 1 || results["skipped"] != 99 {
		t.Errorf("the results are %v, want one that acts and 99 that are skipped", results)
	}
}
