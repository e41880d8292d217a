package page

import (
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"sluice/providers/postgres"
	"sluice/providers/postgres/postgrestest"
)

// seen looks at a state on both screens: it must show its texts, fit, and complain of nothing.
func seen(t *testing.T, s *Server, state string, texts ...string) {
	t.Helper()
	b := newBrowser(t)
	for _, on := range []screen{desk(), phone()} {
		tb := b.open(s.URL(), on)
		tb.reads(texts...)
		tb.fits()
		tb.picture(state)
		tb.quiet()
	}
}

func TestAnEmptyDeploymentSaysWhatWillShowUpAndWhatToRun(t *testing.T) {
	t.Parallel()
	s := newInstall(t).serve()
	seen(t, s, "empty", "Nothing has happened here yet", "sluice validate scheduler.json", "sluice tick --config scheduler.json", "Live")
}

func TestACalmHour(t *testing.T) {
	t.Parallel()
	i := newInstall(t)
	i.vps(1)
	i.hour()
	seen(t, i.serve(), "calm", "Mode hybrid", "0.00 USD of 2.00", "1 worker lives", "Nothing was decided lately", "3 waiting, the oldest for 27 s, 1 running", "Install media-prod")
}

func TestABurst(t *testing.T) {
	t.Parallel()
	i := newInstall(t)
	i.vps(2)
	i.hour()
	i.burst()
	seen(t, i.serve(), "burst", "Scaling up ocr", "Booting", "Draining", "failed", "150 waiting")
}

func TestAQueueThatCannotBeReadIsUnknownAndNotEmpty(t *testing.T) {
	t.Parallel()
	i := newInstall(t)
	i.waiting("ocr", 3, 0, time.Minute)
	i.tick(time.Minute)
	i.unreadable("ocr", "connection refused")
	i.tick(time.Minute)
	seen(t, i.serve(), "unknown", "unknown: connection refused")
}

func TestALimitThatRefuses(t *testing.T) {
	t.Parallel()
	i := newInstall(t)
	i.config = strings.Replace(settings, "LIMIT", "45", 1)
	i.vps(4)
	i.hour()
	i.burst()
	seen(t, i.serve(), "refused", "Not scaling up", "near the limit")
}

func TestABreachSaysWhatToDo(t *testing.T) {
	t.Parallel()
	i := newInstall(t)
	i.vps(4)
	i.hour()
	i.burst()
	i.exec("UPDATE workers SET cost_per_hour_micros = 60000000, cost_from = sluice_clock() - interval '20 min' WHERE provider = 'aws' AND status = 'ready'")
	i.tick(time.Minute)
	i.tick(time.Minute)
	seen(t, i.serve(), "breach", "Spending is stopped", "sluice resume-cloud", "held there by an override", "the limit is reached")
}

func TestThousandsOfWorkersStayReadable(t *testing.T) {
	t.Parallel()
	i := newInstall(t)
	i.hour()
	i.many(3000)
	s := i.serve()
	seen(t, s, "thousands", "3,000 workers live", "and 988 more", "and 8 pools more")
	tb := newBrowser(t).open(s.URL(), desk())
	tb.reads("3,000 workers live")
	if n := eval[int](tb, "document.querySelectorAll('.card').length"); n > 7*cardsShown {
		t.Errorf("%d cards are shown of 3,000 workers", n)
	}
	tb.do(chromedp.SendKeys(chromedp.CSS("#find"), "i-2999"))
	tb.reads("1 worker matches")
	tb.picture("search")
	if n := eval[int](tb, "document.querySelectorAll('.card').length"); n != 1 {
		t.Errorf("the search shows %d cards, want 1", n)
	}
	tb.quiet()
}

func TestALostDatabaseIsSaidAndComesBackByItself(t *testing.T) {
	t.Parallel()
	i := newInstall(t)
	i.vps(1)
	i.hour()
	gate := newGate(t, i.pg.Direct)
	db, err := postgres.Open(t.Context(), postgres.URL(gate.url))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	s := serve(t, db)
	b := newBrowser(t)
	var tabs []*tab
	for _, on := range []screen{desk(), phone()} {
		tb := b.open(s.URL(), on)
		tb.reads("1 worker lives", "Live")
		tabs = append(tabs, tb)
	}
	gate.shut()
	for _, tb := range tabs {
		tb.reads("The database is lost", "Last known state", "1 worker lives")
		if got := eval[string](tb, "getComputedStyle(document.querySelector('#content')).filter"); got != "grayscale(1)" {
			t.Errorf("what is known from before is shown with the filter %q, want it grey", got)
		}
		if strings.Contains(tb.text("body"), "127.0.0.1") {
			t.Errorf("the page tells where the database is: %s", tb.text("body"))
		}
		tb.fits()
		tb.picture("lost")
	}
	gate.open()
	for _, tb := range tabs {
		tb.reads("Live")
		tb.until("!document.body.innerText.includes('The database is lost')")
		tb.picture("back")
		tb.quiet()
	}
}

func TestADatabaseOfSomethingElseNamesMigrate(t *testing.T) {
	t.Parallel()
	s := serve(t, postgrestest.Empty(t).Open(t))
	seen(t, s, "schema", "This database has no tables that fit", "sluice migrate", "Nothing was read yet")
}

func TestHostileNamesAreText(t *testing.T) {
	t.Parallel()
	i := newInstall(t)
	i.hour()
	const name = `<img src=x onerror="document.title='taken'"><script>document.title='taken'</script>`
	i.exec(`UPDATE sluice_samples SET queues = jsonb_build_array(jsonb_build_object('name', $1::text, 'depth', 3, 'running', 0, 'oldest_seconds', 5))`, name)
	i.exec(`INSERT INTO workers (pool, provider, machine_id, status) VALUES ($1, $1, $1, 'ready')`, name)
	i.exec(`INSERT INTO sluice_lines (tick, seq, id, at, event, level, pool, worker, message, facts) SELECT id, 99, 'd-1', at, 'scale_up', 'info', $1, $1, $1, jsonb_build_object('x', $1::text) FROM sluice_ticks ORDER BY at DESC LIMIT 1`, name)
	tb := newBrowser(t).open(i.serve().URL(), desk())
	tb.reads(name)
	tb.do(chromedp.Click(chromedp.CSS("#decisions summary")))
	tb.reads("The facts of this line")
	if n := eval[int](tb, "document.querySelectorAll('#content img, #content script').length"); n != 0 {
		t.Errorf("%d elements were made of names", n)
	}
	if title := eval[string](tb, "document.title"); title != "Sluice" {
		t.Errorf("the title is %q: a name was run", title)
	}
	tb.quiet()
}

func TestADecisionOpensToAllThatWasThought(t *testing.T) {
	t.Parallel()
	i := newInstall(t)
	i.vps(2)
	i.hour()
	i.burst()
	s := i.serve()
	b := newBrowser(t)
	for _, on := range []screen{desk(), phone()} {
		tb := b.open(s.URL(), on)
		tb.reads("Scaling up bulk")
		tb.do(chromedp.Evaluate[chromedp.Void]("[...document.querySelectorAll('#decisions summary')].find((e) => e.innerText.includes('Scaling up bulk')).click()"))
		tb.reads("The ladder that was walked", "Rejected", "Steps", "Today's code decides the same", "sluice explain")
		tb.fits()
		tb.picture("decision")
		tb.quiet()
	}
}

func TestEverythingIsReachedByKeyboard(t *testing.T) {
	t.Parallel()
	i := newInstall(t)
	i.vps(2)
	i.hour()
	i.burst()
	pressed := make(chan string, 1)
	s := i.serve(func(o *Options) {
		o.Controls = []Control{{ID: "pause", Label: "Pause", Help: "No ticks meanwhile", On: func() bool { return false }, Press: note(pressed)}}
	})
	tb := newBrowser(t).open(s.URL(), desk())
	tb.reads("Scaling up ocr")
	want := map[string]bool{"Skip to the content": false, "Pause": false, "find": false, "Scaling up": false}
	for range 60 {
		tb.do(chromedp.KeyEvent("\t"))
		at := eval[string](tb, "document.activeElement === document.body ? '' : document.activeElement.innerText + ' ' + document.activeElement.id")
		for text := range want {
			if strings.Contains(at, text) {
				want[text] = true
			}
		}
		if strings.Contains(at, "Pause") {
			if outline := eval[string](tb, "getComputedStyle(document.activeElement).outline"); !strings.Contains(outline, "solid 3px") {
				t.Errorf("the focus is drawn as %q, want a line of 3px", outline)
			}
			tb.do(chromedp.KeyEvent("\r"))
			select {
			case <-pressed:
			case <-tb.ctx.Done():
				t.Fatal("Enter pressed nothing")
			}
			tb.reads("Done: pause")
		}
	}
	for text, reached := range want {
		if !reached {
			t.Errorf("%q is not reached by Tab", text)
		}
	}
	tb.quiet()
}

func TestDarkIsDarkAndLightIsLight(t *testing.T) {
	t.Parallel()
	s := newInstall(t).serve()
	b := newBrowser(t)
	for _, on := range []screen{desk(), phone()} {
		tb := b.open(s.URL(), on)
		tb.reads("Nothing has happened here yet")
		got := eval[string](tb, "getComputedStyle(document.body).backgroundColor")
		want := map[string]string{"light": "rgb(244, 246, 248)", "dark": "rgb(16, 22, 28)"}[on.scheme]
		if got != want {
			t.Errorf("in the %s the ground is %s, want %s", on.scheme, got, want)
		}
	}
}

func TestButtonsOfARunStandOnThePageAndOnEachWorker(t *testing.T) {
	t.Parallel()
	i := newInstall(t)
	i.vps(2)
	i.hour()
	i.burst()
	killed := make(chan string, 1)
	var paused atomic.Bool
	s := i.serve(func(o *Options) {
		o.Title = "Sluice, here"
		o.Controls = []Control{
			{ID: "pause", Label: "Pause", Help: "No ticks meanwhile", On: paused.Load, Press: toggle(&paused)},
			{ID: "work", Label: "Add work", Help: "Forty jobs more", Press: note(make(chan string, 9))},
			{ID: "kill", Label: "Kill", Help: "End it without asking", PerWorker: true, Press: note(killed)},
		}
	})
	b := newBrowser(t)
	for _, on := range []screen{desk(), phone()} {
		tb := b.open(s.URL(), on)
		tb.reads("Sluice, here", "Scaling up ocr", "Add work", "Kill")
		tb.fits()
		tb.picture("controls")
		tb.quiet()
	}
	tb := b.open(s.URL(), desk())
	tb.reads("Kill")
	tb.do(chromedp.Click(chromedp.CSS("[data-key='pause']")))
	tb.until("document.querySelector('[data-key=pause]').getAttribute('aria-pressed') === 'true'")
	tb.do(chromedp.Click(chromedp.CSS(".column[data-key='working'] .card button")))
	tb.reads("Done: kill")
	id := eval[string](tb, "document.querySelector('.column[data-key=working] .card').dataset.key")
	if got := <-killed; got != id {
		t.Errorf("worker %q is killed, want %q", got, id)
	}
	tb.quiet()
}

func TestAStreamThatEndsIsOpenedAnew(t *testing.T) {
	t.Parallel()
	i := newInstall(t)
	i.vps(1)
	i.hour()
	s := i.serve()
	here := func(o *Options) { o.Listen = strings.TrimSuffix(strings.TrimPrefix(s.URL(), "http://"), "/") }
	w := newWire(t, strings.TrimSuffix(strings.TrimPrefix(s.URL(), "http://"), "/"))
	tb := newBrowser(t).open("http://"+w.Addr().String()+"/", desk())
	tb.reads("1 worker lives")
	w.cut(true)
	tb.reads("The page's server does not answer")
	tb.picture("server lost")
	w.cut(false)
	tb.reads("Live")
	tb.until("!document.body.innerText.includes('does not answer')")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	tb.reads("This page has ended")
	tb.picture("ended")
	i.serve(here)
	tb.reads("Live")
	tb.until("!document.body.innerText.includes('has ended')")
}

// wire is a way to a server that can be cut.
type wire struct {
	net.Listener
	mu   sync.Mutex
	dead bool
	open []net.Conn
}

func newWire(t *testing.T, to string) *wire {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{Listener: l}
	t.Cleanup(func() { _ = l.Close(); w.cut(true) })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			server, err := (&net.Dialer{}).DialContext(context.WithoutCancel(t.Context()), "tcp", to)
			if err != nil {
				_ = c.Close()
				continue
			}
			w.join(c, server)
		}
	}()
	return w
}

// join carries bytes both ways until either side or the wire is gone.
func (w *wire) join(a, b net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead {
		_, _ = a.Close(), b.Close()
		return
	}
	w.open = append(w.open, a, b)
	for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
		go func() {
			_, _ = io.Copy(way[0], way[1])
			_, _ = way[0].Close(), way[1].Close()
		}()
	}
}

// cut hangs up on everybody, or lets new ones through again.
func (w *wire) cut(dead bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dead = dead
	for _, c := range w.open {
		_ = c.Close()
	}
	w.open = nil
}
