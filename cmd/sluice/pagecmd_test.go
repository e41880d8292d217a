package main

import (
	"bufio"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// served starts `sluice page` and returns where it is, and what ends it as Ctrl-C does and tells its exit code.
func served(t *testing.T, i installation, args ...string) (url string, end func() int) {
	t.Helper()
	cmd := call{args: append([]string{"page", "--listen", "127.0.0.1:0", "--json"}, args...), env: i.env}.command(t.Context())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var said struct{ URL string }
	if err := json.NewDecoder(bufio.NewReader(out)).Decode(&said); err != nil {
		t.Fatalf("what it says is no JSON: %v", err)
	}
	return said.URL, func() int {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // the code tells
		return cmd.ProcessState.ExitCode()
	}
}

// asked is the answer's code.
func asked(t *testing.T, method, url string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	client := http.Client{Timeout: 10 * time.Second}
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}

func TestThePageIsServedReadOnlyUntilCtrlC(t *testing.T) {
	t.Parallel()
	url, end := served(t, install(t, "hybrid"))
	if code := asked(t, http.MethodGet, url); code != http.StatusOK {
		t.Errorf("the page answers %d", code)
	}
	if code := asked(t, http.MethodPost, url+"api/control/pause"); code != http.StatusNotFound {
		t.Errorf("a button answers %d, want that there is none", code)
	}
	if code := end(); code != exitDone {
		t.Errorf("Ctrl-C ends it with %d", code)
	}
}

func TestThePageTakesItsTokenFromTheEnvironment(t *testing.T) {
	t.Parallel()
	i := install(t, "hybrid")
	i.env = append(i.env, "SLUICE_PAGE_TOKEN=correct-horse-battery")
	url, end := served(t, i)
	if code := asked(t, http.MethodGet, url); code != http.StatusUnauthorized {
		t.Errorf("without the token: %d", code)
	}
	if code := end(); code != exitDone {
		t.Errorf("Ctrl-C ends it with %d", code)
	}
}

func TestAPageThatCannotBeServedSaysWhy(t *testing.T) {
	t.Parallel()
	i := install(t, "hybrid")
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--listen", "0.0.0.0:0"}, exitUsage, "SLUICE_PAGE_TOKEN"},
		{[]string{"--listen", "nowhere"}, exitUsage, "want HOST:PORT"},
		{[]string{"--token", "short"}, exitUsage, "at least 16 characters"},
		{[]string{"--listen", l.Addr().String()}, exitFailed, "--listen"},
		{[]string{"more"}, exitUsage, "got 1 arguments"},
	} {
		r := i.sluice(t, append([]string{"page"}, c.args...)...)
		if r.code != c.code || !strings.Contains(r.err, c.want) {
			t.Errorf("page %v ends with %d: %s", c.args, r.code, r.err)
		}
	}
	if r := (call{args: []string{"page"}}).run(t); r.code != exitFailed || !strings.Contains(r.err, "DATABASE_URL") {
		t.Errorf("without a database: %d %s", r.code, r.err)
	}
}
