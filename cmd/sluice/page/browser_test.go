package page

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	cdruntime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"sluice/scripts/services"
)

// picturesEnv names a folder for the pictures that the tests take; without it they are looked at by nobody.
const picturesEnv = "SLUICE_PAGE_PICTURES"

// browserTime bounds what one tab does in a test.
const browserTime = 60 * time.Second

// screen is what a visitor looks at.
type screen struct {
	name   string
	width  int64
	scheme string // prefers-color-scheme
}

func desk() screen  { return screen{"1280-light", 1280, "light"} }
func phone() screen { return screen{"375-dark", 375, "dark"} }

// browser is one headless Chromium for a test.
type browser struct {
	t   *testing.T
	ctx context.Context
}

func newBrowser(t *testing.T) browser {
	t.Helper()
	path, env, err := services.Bring(t.Context(), t.Output(), "chromium", "/usr/lib/chromium", "chromium")
	if err != nil {
		t.Fatal(err)
	}
	options := []chromedp.ExecAllocatorOption{chromedp.ExecPath(path), chromedp.Env(env...), chromedp.UserDataDir(t.TempDir()), chromedp.WSURLReadTimeout(browserTime)}
	for _, flag := range []string{
		"headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-background-networking",
		"disable-component-update", "disable-sync", "hide-scrollbars", "no-default-browser-check", "disable-dev-shm-usage",
	} {
		options = append(options, chromedp.Flag(flag, true))
	}
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start chromium: %v", err)
	}
	return browser{t, ctx}
}

// tab is a page in the browser, with what it complained of.
type tab struct {
	t      *testing.T
	ctx    context.Context
	screen screen

	mu       sync.Mutex
	problems []string
}

func (b browser) open(url string, s screen) *tab {
	b.t.Helper()
	tb := &tab{t: b.t, screen: s}
	ctx, cancel := chromedp.NewContext(b.ctx, chromedp.WithListener(tb.hear))
	b.t.Cleanup(cancel)
	tb.ctx, cancel = context.WithTimeout(ctx, browserTime)
	b.t.Cleanup(cancel)
	height := int64(900)
	if s.width < 600 {
		height = 812
	}
	tb.do(
		command(log.Enable, cdp.Empty{}),
		chromedp.EmulateViewport(s.width, height),
		command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: s.scheme}}}),
		chromedp.Navigate(url),
	)
	return tb
}

// hear keeps what a developer would see in red.
func (tb *tab) hear(event any) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	switch e := event.(type) {
	case *cdruntime.EventExceptionThrown:
		tb.problems = append(tb.problems, fmt.Sprint(*e.ExceptionDetails))
	case *cdruntime.EventConsoleAPICalled:
		if e.Type == cdruntime.ConsoleAPICalledTypeError || e.Type == cdruntime.ConsoleAPICalledTypeWarning {
			tb.problems = append(tb.problems, fmt.Sprint(e.Args))
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError {
			tb.problems = append(tb.problems, e.Entry.Text+" "+e.Entry.URL)
		}
	}
}

// quiet fails where the page complained.
func (tb *tab) quiet() {
	tb.t.Helper()
	tb.mu.Lock()
	defer tb.mu.Unlock()
	for _, p := range tb.problems {
		tb.t.Errorf("the browser complains: %s", p)
	}
}

// command is a command of the protocol that answers nothing.
func command[P any](c cdp.Command[P, cdp.Empty], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, c, params)
		return err
	})
}

func (tb *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	tb.t.Helper()
	if err := chromedp.Do(tb.ctx, actions...); err != nil {
		tb.t.Fatal(err)
	}
}

// ask does an action that answers.
func ask[T any](tb *tab, a chromedp.Action[T]) T {
	tb.t.Helper()
	v, err := chromedp.Run(tb.ctx, a)
	if err != nil {
		tb.t.Fatal(err)
	}
	return v
}

// eval is a JavaScript expression's value.
func eval[T any](tb *tab, expression string) T {
	tb.t.Helper()
	return ask(tb, chromedp.Evaluate[T](expression))
}

// text is what somebody reads in an element.
func (tb *tab) text(selector string) string {
	tb.t.Helper()
	return eval[string](tb, fmt.Sprintf("document.querySelector(%q)?.innerText ?? ''", selector))
}

// until waits for an expression to be true.
func (tb *tab) until(expression string) {
	tb.t.Helper()
	if err := chromedp.Do(tb.ctx, chromedp.Poll[chromedp.Void](expression, chromedp.WithPollingTimeout(20*time.Second))); err != nil {
		tb.t.Fatalf("wait for %s: %v; the page reads:\n%s", expression, err, tb.text("body"))
	}
}

// reads waits until the page has each of the texts on it.
func (tb *tab) reads(texts ...string) {
	tb.t.Helper()
	for _, text := range texts {
		tb.until(fmt.Sprintf("document.body.innerText.includes(%q)", text))
	}
}

// fits fails where the page is wider than the screen.
func (tb *tab) fits() {
	tb.t.Helper()
	if wide := eval[int64](tb, "document.documentElement.scrollWidth"); wide > tb.screen.width {
		culprits := eval[[]string](tb, `[...document.querySelectorAll('body *')].filter((e) => e.getBoundingClientRect().right > innerWidth + 1).slice(0, 5).map((e) => e.tagName + '.' + e.className + '#' + e.id)`)
		tb.t.Errorf("on %s the page is %d wide: %v", tb.screen.name, wide, culprits)
	}
}

// picture is taken for people, of the whole page.
func (tb *tab) picture(state string) {
	tb.t.Helper()
	dir := os.Getenv(picturesEnv)
	if dir == "" {
		dir = tb.t.TempDir()
	}
	tb.until("document.getAnimations().length === 0")
	png := ask(tb, chromedp.FullScreenshot(100))
	path := filepath.Join(dir, strings.ReplaceAll(state, " ", "-")+"-"+tb.screen.name+".png")
	if err := os.WriteFile(path, png, 0o600); err != nil {
		tb.t.Fatal(err)
	}
}
