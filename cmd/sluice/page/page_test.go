package page

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice/core/fleet"
)

// still is a database that says what the test wants, and counts how often it is asked.
type still struct {
	recalls atomic.Int64
	workers []fleet.WorkerRecord
	hang    bool
}

// Recall implements Source.
func (s *still) Recall(ctx context.Context) (fleet.Memory, error) {
	n := s.recalls.Add(1)
	if s.hang {
		<-ctx.Done()
		return fleet.Memory{}, ctx.Err()
	}
	return fleet.Memory{Now: noon.Add(time.Duration(n) * time.Second)}, nil
}

// Ticks implements Source.
func (*still) Ticks(context.Context, time.Time, int) ([]fleet.TickRecord, error) { return nil, nil }

// Lines implements Source.
func (*still) Lines(context.Context, fleet.LineFilter) ([]fleet.LineRecord, error) { return nil, nil }

// Snapshot implements Source.
func (*still) Snapshot(context.Context, string) (fleet.Snapshot, []byte, error) {
	return fleet.Snapshot{}, nil, fleet.ErrNotFound
}

// Samples implements Source.
func (*still) Samples(context.Context, time.Time) ([]fleet.Sample, error) { return nil, nil }

// Workers implements Source.
func (s *still) Workers(context.Context, time.Time) ([]fleet.WorkerRecord, error) {
	return s.workers, nil
}

// visit asks one thing; changes set headers and the like. Redirects are answers.
func visit(t *testing.T, method, url string, body string, change ...func(*http.Request)) (status int, header http.Header, text string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range change {
		c(r)
	}
	client := http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, answer.Header, string(b)
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

const token = "correct-horse-battery"

func TestWithATokenNobodyGetsInWithoutIt(t *testing.T) {
	t.Parallel()
	s := serve(t, &still{}, func(o *Options) { o.Token = token })
	for _, where := range []string{"", "assets/app.js", "api/workers", "api/events", "api/tick/x", "?token=wrong", "?token="} {
		status, _, text := visit(t, http.MethodGet, s.URL()+where, "")
		if status != http.StatusUnauthorized || !strings.Contains(text, "/?token=TOKEN") {
			t.Errorf("/%s without the token: %d %s", where, status, text)
		}
	}
	if status, _, _ := visit(t, http.MethodGet, s.URL(), "", header("Authorization", "Bearer "+token)); status != http.StatusOK {
		t.Errorf("as a bearer: %d", status)
	}
	if status, _, _ := visit(t, http.MethodGet, s.URL(), "", header("Authorization", "Bearer "+token+"x")); status != http.StatusUnauthorized {
		t.Errorf("as a wrong bearer: %d", status)
	}
}

func TestATokenInTheAddressBecomesACookie(t *testing.T) {
	t.Parallel()
	s := serve(t, &still{}, func(o *Options) { o.Token = token })
	status, h, _ := visit(t, http.MethodGet, s.URL()+"/evil.example?token="+token, "")
	if status != http.StatusSeeOther || h.Get("Location") != "/" {
		t.Fatalf("answered %d to %q, want 303 to /", status, h.Get("Location"))
	}
	set := h.Get("Set-Cookie")
	for _, want := range []string{"HttpOnly", "SameSite=Strict", "Path=/"} {
		if !strings.Contains(set, want) {
			t.Errorf("the cookie %q lacks %s", set, want)
		}
	}
	if strings.Contains(set, token) {
		t.Errorf("the token itself is in the cookie: %s", set)
	}
	cookie, _, _ := strings.Cut(set, ";")
	if status, _, _ := visit(t, http.MethodGet, s.URL(), "", header("Cookie", cookie)); status != http.StatusOK {
		t.Errorf("with the cookie: %d", status)
	}
	if status, _, _ := visit(t, http.MethodGet, s.URL(), "", header("Cookie", cookieName+"="+token)); status != http.StatusUnauthorized {
		t.Errorf("with a cookie that somebody made: %d", status)
	}
}

func TestAForeignNameThatLeadsHereIsRefused(t *testing.T) {
	t.Parallel()
	s := serve(t, &still{})
	for host, want := range map[string]int{
		"evil.example": http.StatusMisdirectedRequest, "evil.example:8585": http.StatusMisdirectedRequest, "127.0.0.1.evil.example": http.StatusMisdirectedRequest,
		"localhost": http.StatusOK, "localhost:9": http.StatusOK, "127.0.0.1": http.StatusOK, "[::1]:8585": http.StatusOK, "[::1]": http.StatusOK,
	} {
		if status, _, _ := visit(t, http.MethodGet, s.URL(), "", func(r *http.Request) { r.Host = host }); status != want {
			t.Errorf("as %s: %d, want %d", host, status, want)
		}
	}
}

func TestEveryAnswerSaysWhatItMayLoad(t *testing.T) {
	t.Parallel()
	s := serve(t, &still{})
	for _, where := range []string{"", "assets/page.css", "assets/uplot/uPlot.iife.min.js", "api/workers", "nowhere"} {
		_, h, _ := visit(t, http.MethodGet, s.URL()+where, "")
		if got := h.Get("Content-Security-Policy"); !strings.Contains(got, "default-src 'none'; script-src 'self'") || strings.Contains(got, "unsafe") {
			t.Errorf("/%s has the policy %q", where, got)
		}
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("/%s has the headers %v", where, h)
		}
	}
	_, _, text := visit(t, http.MethodGet, s.URL(), "")
	if strings.Contains(text, "<script>") || strings.Contains(text, "style=") || strings.Contains(text, "://") {
		t.Errorf("the page has scripts or styles inside, or loads from elsewhere:\n%s", text)
	}
}

func pressing(pressed chan<- string) func(*Options) {
	return func(o *Options) {
		o.Controls = []Control{
			{ID: "pause", Label: "Pause", Press: note(pressed)},
			{ID: "kill", Label: "Kill", PerWorker: true, Press: note(pressed)},
			{ID: "fail", Label: "Fail", Press: func(context.Context, string) (string, error) { return "", errors.New("no worker is left") }},
		}
	}
}

func TestOnlyThePageItselfPressesButtons(t *testing.T) {
	t.Parallel()
	pressed := make(chan string, 9)
	s := serve(t, &still{}, pressing(pressed))
	for name, c := range map[string]struct {
		change func(*http.Request)
		want   int
	}{
		"its own":          {header("Sec-Fetch-Site", "same-origin"), 200},
		"another site":     {header("Sec-Fetch-Site", "cross-site"), 403},
		"another port":     {header("Sec-Fetch-Site", "same-site"), 403},
		"an old browser":   {header("Origin", "https://evil.example"), 403},
		"its own, old":     {header("Origin", strings.TrimSuffix(s.URL(), "/")), 200},
		"a sandboxed page": {header("Origin", "null"), 403},
	} {
		status, _, text := visit(t, http.MethodPost, s.URL()+"api/control/pause", "{}", c.change)
		if status != c.want {
			t.Errorf("%s: %d %s, want %d", name, status, text, c.want)
		}
	}
	if n := len(pressed); n != 2 {
		t.Errorf("it was pressed %d times, want twice", n)
	}
}

func TestBadPressesSayWhatIsWanted(t *testing.T) {
	t.Parallel()
	pressed := make(chan string, 9)
	s := serve(t, &still{}, pressing(pressed))
	for _, c := range []struct {
		method, where, body string
		status              int
		want                string
	}{
		{http.MethodPost, "nothing", "{}", 404, "There is no such button."},
		{http.MethodPost, "kill", "{}", 400, `this button is for one worker`},
		{http.MethodPost, "kill", "worker=1", 400, "Want a JSON object"},
		{http.MethodPost, "kill", `{"worker":"` + strings.Repeat("x", maxBody) + `"}`, 400, "Want a JSON object"},
		{http.MethodPost, "fail", "{}", 409, "no worker is left"},
		{http.MethodGet, "pause", "", 405, "Method Not Allowed"},
		{http.MethodDelete, "pause", "", 405, "Method Not Allowed"},
		{http.MethodPost, "kill", `{"worker":"w-1"}`, 200, "Done: kill"},
	} {
		status, _, text := visit(t, c.method, s.URL()+"api/control/"+c.where, c.body)
		if status != c.status || !strings.Contains(text, c.want) {
			t.Errorf("%s %s %.30s: %d %s, want %d %s", c.method, c.where, c.body, status, text, c.status, c.want)
		}
	}
	if got := <-pressed; got != "w-1" || len(pressed) != 0 {
		t.Errorf("pressed for %q, and %d times more", got, len(pressed))
	}
}

func TestWithoutControlsNothingCanBeChanged(t *testing.T) {
	t.Parallel()
	s := serve(t, &still{})
	for _, where := range []string{"api/control/pause", "api/events", "api/workers", "api/tick/x", ""} {
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch} {
			if status, _, _ := visit(t, method, s.URL()+where, "{}"); status != http.StatusNotFound && status != http.StatusMethodNotAllowed {
				t.Errorf("%s /%s: %d", method, where, status)
			}
		}
	}
}

func TestWhatWouldBeOpenToEverybodyIsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		listen, token, want string
	}{
		{"0.0.0.0:0", "", "SLUICE_PAGE_TOKEN"},
		{":0", "", "SLUICE_PAGE_TOKEN"},
		{"[::]:0", "", "SLUICE_PAGE_TOKEN"},
		{"192.0.2.1:0", "", "SLUICE_PAGE_TOKEN"},
		{"page.example:0", "", "SLUICE_PAGE_TOKEN"},
		{"0.0.0.0:0", "short", "at least 16 characters"},
		{"8585", "", "want HOST:PORT"},
		{"127.0.0.1", "", "want HOST:PORT"},
		{"127.0.0.1:many", "", "--listen"},
	} {
		s, err := Start(t.Context(), Options{Listen: c.listen, Token: c.token, Source: &still{}})
		if err == nil {
			_ = s.Close()
			t.Errorf("%s with the token %q is served", c.listen, c.token)
			continue
		}
		if !strings.Contains(err.Error(), c.want) || c.token != "" && strings.Contains(err.Error(), c.token) {
			t.Errorf("%s with the token %q: %v, want %s in it", c.listen, c.token, err, c.want)
		}
	}
}

func TestAPortInUseIsNamedWithTheFlag(t *testing.T) {
	t.Parallel()
	first := serve(t, &still{})
	address := strings.TrimSuffix(strings.TrimPrefix(first.URL(), "http://"), "/")
	_, err := Start(t.Context(), Options{Listen: address, Source: &still{}})
	if err == nil || !strings.Contains(err.Error(), address) || !strings.Contains(err.Error(), "--listen") {
		t.Errorf("a port in use: %v", err)
	}
}

// follow opens a stream and returns its events as they come.
func follow(t *testing.T, url string) <-chan envelope {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"api/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := (&http.Client{Transport: &http.Transport{}}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("the stream answers %d as %s", answer.StatusCode, answer.Header.Get("Content-Type"))
	}
	out := make(chan envelope, 1000)
	go func() {
		defer close(out)
		lines := bufio.NewScanner(answer.Body)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var e envelope
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && json.Unmarshal([]byte(data), &e) == nil {
				out <- e
			}
		}
	}()
	return out
}

func TestAStateIsSentOnceAndThenOnlyItsAge(t *testing.T) {
	t.Parallel()
	s := serve(t, &still{})
	events := follow(t, s.URL())
	for n := range 4 {
		e := <-events
		if e.At == nil || e.Trouble != nil || (e.State != nil) != (n == 0) {
			t.Errorf("event %d is %+v", n, e)
		}
	}
}

func TestAHundredVisitorsAreOneReader(t *testing.T) {
	t.Parallel()
	source := &still{}
	s := serve(t, source)
	var all sync.WaitGroup
	for range 100 {
		events := follow(t, s.URL())
		all.Go(func() {
			for range 5 {
				<-events
			}
		})
	}
	all.Wait()
	begun := time.Now()
	before := source.recalls.Load()
	one := follow(t, s.URL())
	for range 10 {
		<-one
	}
	reads, most := source.recalls.Load()-before, int64(time.Since(begun)/(50*time.Millisecond))+2
	if reads > most {
		t.Errorf("for 100 visitors the database is read %d times, want at most %d", reads, most)
	}
}

func TestWithoutVisitorsNothingIsRead(t *testing.T) {
	t.Parallel()
	source := &still{}
	f := newFeed(Options{Source: source, Every: time.Millisecond, Report: func(error) {}})
	ctx, end := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer end()
	f.run(ctx)
	if n := source.recalls.Load(); n != 0 {
		t.Errorf("read %d times for nobody", n)
	}
}

func TestAVisitorThatNeverReadsIsDropped(t *testing.T) {
	t.Parallel()
	source := &still{}
	f := newFeed(Options{Source: source, Every: time.Millisecond, Report: func(error) {}})
	var n atomic.Int64
	f.read = func(context.Context) (reading, error) { // each a new one, and a megabyte
		return reading{at: noon, state: state{Title: fmt.Sprint(n.Add(1)) + strings.Repeat("x", 1<<20)}}, nil
	}
	site := &site{feed: f, writeTime: 200 * time.Millisecond}
	ctx, end := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer end()
	all.Go(func() { f.run(ctx) })
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: site.routes(), ReadHeaderTimeout: time.Second}
	all.Go(func() { _ = server.Serve(l) })
	defer func() { _ = server.Close() }()
	events := follow(t, "http://"+l.Addr().String()+"/")
	lazy, err := (&net.Dialer{}).DialContext(ctx, "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lazy.Close() }()
	if _, err := io.WriteString(lazy, "GET /api/events HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(lazy, make([]byte, 12)); err != nil { // it is in
		t.Fatal(err)
	}
	for f.count() != 1 { // and is gone, while another is served on
		<-events
	}
}

func (f *feed) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.visitors)
}

func TestTooManyVisitorsAreToldSo(t *testing.T) {
	t.Parallel()
	f := newFeed(Options{Source: &still{}, Every: time.Second, Report: func(error) {}})
	for range maxVisitors {
		if _, _, err := f.join(); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := f.join(); !errors.Is(err, errFull) {
		t.Errorf("one more: %v", err)
	}
}

func TestADatabaseThatHangsIsGivenUpInTime(t *testing.T) {
	t.Parallel()
	var told atomic.Value
	s := serve(t, &still{hang: true}, func(o *Options) { o.Report = func(err error) { told.Store(err) } })
	begun := time.Now()
	e := <-follow(t, s.URL())
	if e.Trouble == nil || e.Trouble.Title != "The database does not answer in time" || e.At != nil {
		t.Errorf("the event is %+v", e)
	}
	if took := time.Since(begun); took > 2*queryTime {
		t.Errorf("it was given up after %s", took)
	}
	if err, ok := told.Load().(error); !ok || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("who serves the page is told %v", told.Load())
	}
}

func TestUnknownTicksAreNotFound(t *testing.T) {
	t.Parallel()
	i := newInstall(t)
	s := i.serve()
	for _, id := range []string{"x", "5f0c2c1e-6f0e-4a8b-9c55-0d8f4c8f7a11", "%27"} {
		if status, _, text := visit(t, http.MethodGet, s.URL()+"api/tick/"+id, ""); status != http.StatusNotFound || !strings.Contains(text, "There is no such tick") {
			t.Errorf("tick %s: %d %s", id, status, text)
		}
	}
}

func TestATickThatChangedNothingHasItsLines(t *testing.T) {
	t.Parallel()
	i := newInstall(t)
	i.tick(time.Minute)
	ticks, err := i.db.Ticks(t.Context(), time.Time{}, 1)
	if err != nil || len(ticks) != 1 {
		t.Fatal(ticks, err)
	}
	status, _, text := visit(t, http.MethodGet, i.serve().URL()+"api/tick/"+ticks[0].ID, "")
	var told toldTick
	if err := json.Unmarshal([]byte(text), &told); err != nil || status != http.StatusOK {
		t.Fatalf("%d %s", status, text)
	}
	if !strings.Contains(told.Missing, "it changed nothing") || len(told.Lines) != 1 || !strings.HasPrefix(told.Lines[0].Message, "Nothing to do") {
		t.Errorf("told: %+v", told)
	}
}

func TestADatabaseThatWasRestoredIsReadAnew(t *testing.T) {
	t.Parallel()
	i := newInstall(t)
	r := &reader{source: i.db}
	i.waiting("ocr", 8, 0, time.Minute)
	i.tick(time.Minute)
	if got, err := r.read(t.Context()); err != nil || len(got.state.Lines) != 1 {
		t.Fatalf("%+v, %v", got.state.Lines, err)
	}
	i.exec("TRUNCATE sluice_ticks, sluice_lines, sluice_snapshots, sluice_samples")
	got, err := r.read(t.Context())
	if err != nil || len(got.state.Lines) != 0 || got.state.Tick != nil || got.state.Queues.At != nil {
		t.Errorf("after it was emptied: %+v, %v", got.state, err)
	}
}

func TestASuspendedWorkerCostsWhatItCostsAsleep(t *testing.T) {
	t.Parallel()
	w := fleet.Worker{ID: "w-1", Place: fleet.Place{Provider: "aws"}, Status: fleet.Suspended, Price: fleet.Unit, Idle: fleet.Cent}
	c := workerCard(fleet.WorkerRecord{Worker: w})
	if c.Price != 0.01 || c.State != fleet.LifeSuspended || column(c.State) != columnSuspended {
		t.Errorf("the card is %+v", c)
	}
}

func TestWhatIsSaidOnEveryTickIsOneLine(t *testing.T) {
	t.Parallel()
	i := newInstall(t)
	i.config = strings.Replace(settings, "LIMIT", "10", 1)
	r := &reader{source: i.db}
	var got reading
	for range 3 {
		i.waiting("ocr", 8, 0, time.Minute)
		i.tick(time.Minute)
		var err error
		if got, err = r.read(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	anew, err := (&reader{source: i.db}).read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, lines := range [][]lineView{got.state.Lines, anew.state.Lines} {
		if len(lines) != 1 || lines[0].Times != 3 || !lines[0].From.Equal(noon.Add(time.Minute)) || !lines[0].At.Equal(noon.Add(3*time.Minute)) || lines[0].Key == lines[0].ID {
			t.Errorf("three refusals are %+v", lines)
		}
	}
}

func TestThePeakOfAHalfMinuteIsKept(t *testing.T) {
	t.Parallel()
	var s samples
	for n, depth := range []int{1, 9, 2, 3} {
		s.add([]fleet.Sample{{At: noon.Add(time.Duration(n) * 10 * time.Second), Queues: []fleet.QueueState{{Name: "ocr", Depth: depth, Oldest: 5}}}})
	}
	s.add([]fleet.Sample{{At: noon.Add(15 * time.Minute), Queues: []fleet.QueueState{{Name: "ocr", Unknown: "down"}}}})
	v := s.series("ocr")
	got := make([]string, len(v.Depth))
	for i, d := range v.Depth {
		got[i] = "unknown"
		if d != nil {
			got[i] = fmt.Sprint(*d)
		}
	}
	if want := "9 3 unknown unknown"; strings.Join(got, " ") != want {
		t.Errorf("the hour is %v, want %s", got, want)
	}
}

func TestTheChartsLibraryIsAsItCame(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
		"uPlot.min.css":     "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
		"LICENSE":           "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd",
	} {
		b, err := assets.ReadFile(path.Join("assets/uplot", name))
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(b); hex.EncodeToString(sum[:]) != want {
			t.Errorf("%s has the checksum %x", name, sum)
		}
	}
}
