package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/core/fleet"
	"sluice/core/tick"
	"sluice/functions/host"
	"sluice/providers/file"
	"sluice/providers/postgres"
	"sluice/providers/postgres/postgrestest"
	"sluice/providers/webhook"
)

// sink is a receiver of one channel, which answers as a test says.
type sink struct {
	*httptest.Server
	mu     sync.Mutex
	answer func(w http.ResponseWriter, title string)
	got    []string // titles
	ids    []string
}

func newSink(t *testing.T) *sink {
	t.Helper()
	s := &sink{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct{ Title string }
		b, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(b, &m) // an empty title is what a test sees then
		s.mu.Lock()
		defer s.mu.Unlock()
		s.got, s.ids = append(s.got, m.Title), append(s.ids, r.Header.Get("Idempotency-Key"))
		if s.answer != nil {
			s.answer(w, m.Title)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *sink) set(answer func(http.ResponseWriter, string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

// take returns what has arrived since it was last asked.
func (s *sink) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	got := s.got
	s.got = nil
	return got
}

func code(n int) func(http.ResponseWriter, string) {
	return func(w http.ResponseWriter, _ string) { w.WriteHeader(n) }
}

// desk is a whole installation with two channels, on a database whose clock a test sets.
type desk struct {
	*testing.T
	world     *host.World
	db        postgrestest.Database
	clock     func(time.Time)
	now       time.Time
	ops, page *sink
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{T: t, db: postgrestest.New(t), ops: newSink(t), page: newSink(t), now: time.Date(2027, 1, 14, 9, 0, 0, 0, time.UTC)}
	path := filepath.Join(t.TempDir(), "scheduler.json")
	settings := `{"name": "prod", "alerts": {"levels": {"info": ["ops", "page"], "warning": ["ops", "page"], "critical": ["ops", "page"]}, "channels": {` +
		`"ops": {"kind": "webhook", "url": "file:` + filepath.Join(filepath.Dir(path), "ops") + `"}, "page": {"kind": "webhook", "url": "file:` + filepath.Join(filepath.Dir(path), "page") + `"}}}}`
	for name, text := range map[string]string{path: settings, filepath.Join(filepath.Dir(path), "ops"): d.ops.URL, filepath.Join(filepath.Dir(path), "page"): d.page.URL} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	world, err := host.Open(t.Context(), host.Options{Env: func(string) string { return "" }, Config: path, Database: d.db.URL, Limit: time.Minute, MinInterval: 1},
		file.Link(), postgres.Link(), webhook.Link())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(world.Close)
	d.world, d.clock = world, d.db.Clock(t)
	d.clock(d.now)
	return d
}

// raise stores alerts as a tick would.
func (d *desk) raise(level fleet.Level, titles ...string) {
	d.Helper()
	c := d.db.Connect(d.T)
	for i, title := range titles {
		if _, err := c.Exec(d.Context(), "INSERT INTO sluice_alerts (key, level, title, at) VALUES ($1, $2, $1, $3)", title, string(level), d.now.Add(time.Duration(i)*time.Millisecond)); err != nil {
			d.Fatal(err)
		}
	}
}

// tick is the next minute's; it must succeed, whatever channels do.
func (d *desk) tick() tick.Report {
	d.Helper()
	d.now = d.now.Add(time.Minute)
	d.clock(d.now)
	r, err := tick.Evaluate(d.Context(), d.world.World, d.now)
	if err != nil {
		d.Fatal(err)
	}
	return r
}

func (d *desk) waits() (n int) {
	d.Helper()
	list, err := d.world.DB.Deliveries(d.Context(), d.now.Add(time.Hour))
	if err != nil {
		d.Fatal(err)
	}
	return len(list)
}

func (d *desk) same(what string, got []string, want ...string) {
	d.Helper()
	if !slices.Equal(got, want) {
		d.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func TestAChannelThatAnswers500ForAnHourLosesNothingAndHoldsNothingUp(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.ops.set(code(500))
	d.raise(fleet.Warning, "first")
	tries := 0
	for minute := range 60 {
		if minute == 30 {
			d.raise(fleet.Warning, "second")
			d.raise(fleet.Critical, "third")
		}
		d.tick()
		tries += len(d.ops.take())
		switch got := d.page.take(); minute {
		case 0:
			d.same("the other channel", got, "first")
		case 30:
			d.same("the other channel, critical first", got, "third", "second")
		default:
			d.same("the other channel", got)
		}
	}
	if tries < 12 || tries > 16 {
		t.Errorf("the channel that is down was tried %d times in an hour, want 12 to 16", tries)
	}
	d.ops.set(nil)
	for range 5 {
		d.tick()
	}
	d.same("after it is up again, the loudest first, then what was tried least", d.ops.take(), "third", "second", "first")
	if n := d.waits(); n != 0 {
		t.Errorf("%d wait", n)
	}
}

func TestTwentyAlertsThatAChannelRefusesForEver(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.ops.set(func(w http.ResponseWriter, title string) {
		if strings.HasPrefix(title, "bad") {
			http.Error(w, "unknown field", http.StatusBadRequest)
		}
	})
	var bad []string
	for i := range 20 {
		bad = append(bad, fmt.Sprintf("bad %02d", i))
	}
	d.raise(fleet.Info, bad...)
	if r := d.tick(); len(r.Unsent) != 20 || r.Unsent[0].State != fleet.DeliveryRefused || !strings.Contains(r.Unsent[0].Answer, "says: unknown field") {
		t.Errorf("%d unsent: %+v", len(r.Unsent), r.Unsent[:1])
	}
	d.same("each was tried once", d.ops.take(), bad...)
	d.same("elsewhere all arrive", d.page.take(), bad...)
	d.raise(fleet.Info, "new")
	if r := d.tick(); len(r.Unsent) != 0 {
		t.Errorf("they are tried again: %+v", r.Unsent)
	}
	d.same("the new one goes out at once", d.ops.take(), "new")
	d.same("and elsewhere", d.page.take(), "new")
}

// One alert that its channel cannot digest must not take the others with it.
func TestAnAlertThatAlwaysFailsHoldsNoOtherBack(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.ops.set(func(w http.ResponseWriter, title string) {
		if title == "poison" {
			w.WriteHeader(500)
		}
	})
	d.raise(fleet.Critical, "poison")
	d.tick()
	d.raise(fleet.Critical, "after")
	d.tick()
	d.tick()
	if got := d.ops.take(); !slices.Contains(got, "after") {
		t.Errorf("arrived %q", got)
	}
}

func TestRetryAfterIsKept(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.ops.set(func(w http.ResponseWriter, _ string) {
		w.Header().Set("Retry-After", "600")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	d.raise(fleet.Critical, "a", "b")
	d.tick()
	d.same("the first try", d.ops.take(), "a")
	d.ops.set(nil)
	for range 9 {
		d.tick()
	}
	d.same("within ten minutes", d.ops.take())
	d.tick()
	d.same("after them", d.ops.take(), "b", "a")
}

// killed loses its connection to the database between sending and marking.
type killed struct{ fleet.Store }

func (killed) Sent(context.Context, fleet.Sending) error { return fleet.ErrUnavailable }

func TestATickThatIsKilledBetweenSendingAndMarkingSendsAgainUnderTheSameID(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.raise(fleet.Critical, "a")
	whole := d.world.Store
	d.world.Store = killed{whole}
	d.tick()
	d.world.Store = whole
	d.tick()
	d.tick()
	d.same("it arrived twice and no more", d.ops.take(), "a", "a")
	if ids := d.ops.ids; len(ids) != 2 || ids[0] == "" || ids[0] != ids[1] {
		t.Errorf("ids %q", ids)
	}
}

func TestWhatIsOldIsForgotten(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.ops.set(code(503))
	d.raise(fleet.Critical, "a")
	d.tick()
	rows := func() (n int) {
		if err := d.db.Connect(t).QueryRow(t.Context(), "SELECT count(*) FROM sluice_deliveries").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	d.now = d.now.AddDate(0, 0, 29)
	if d.tick(); rows() != 2 {
		t.Errorf("%d deliveries are kept for a month, want 2", rows())
	}
	d.now = d.now.AddDate(0, 0, 2)
	if d.tick(); rows() != 0 {
		t.Errorf("%d deliveries are left after it", rows())
	}
}
