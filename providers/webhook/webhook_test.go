package webhook

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/core/fleet"
	"sluice/core/fleet/fleettest"
)

// receiver is a real server with a certificate of its own.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	got    []request
	answer http.HandlerFunc // nil: 200
}

type request struct {
	header http.Header
	body   string
}

func receive(t *testing.T, answer http.HandlerFunc) *receiver {
	t.Helper()
	r := &receiver{answer: answer}
	r.Server = httptest.NewUnstartedServer(http.HandlerFunc(r.serve))
	r.Config.ErrorLog = log.New(io.Discard, "", 0) // a certificate that is not trusted is what some tests are about
	r.StartTLS()
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) serve(w http.ResponseWriter, q *http.Request) {
	b, _ := io.ReadAll(q.Body)
	r.mu.Lock()
	r.got = append(r.got, request{q.Header, string(b)})
	answer := r.answer
	r.mu.Unlock()
	if answer != nil {
		answer(w, q)
	}
}

func (r *receiver) set(answer http.HandlerFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

func (r *receiver) requests() []request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]request(nil), r.got...)
}

// path of every address is a secret, as Slack's are.
const path = "/services/T0SECRET/B0SECRET/hunter2hunter2"

// vault are the secrets by their references.
type vault map[string]string

func (v vault) read(_ context.Context, ref string) (string, error) {
	if s, ok := v[ref]; ok {
		return s, nil
	}
	return "", fmt.Errorf("resolve secret %s: the environment variable is not set: %w", ref, fleet.ErrBadRequest)
}

// to is a channel to a receiver that trusts its certificate.
func (r *receiver) to(format string) *Alerter {
	a := New(fleet.Channel{Name: "ops", Kind: fleet.ChannelWebhook, Format: format, URL: "env:HOOK", Secret: "env:KEY"},
		vault{"env:HOOK": r.URL + path, "env:KEY": "k-hunter2"}.read)
	roots := x509.NewCertPool()
	roots.AddCert(r.Certificate())
	a.client.Transport.(*http.Transport).TLSClientConfig.RootCAs = roots
	return a
}

func alarm(level fleet.Level, title string) fleet.Message {
	return fleet.Config{Name: "prod", Page: "https://sluice.example.org/"}.Message(fleet.Alert{
		Key: "daily_limit/2027-01-14", Level: level, Title: title, At: time.Date(2027, 1, 14, 9, 31, 0, 0, time.UTC),
		Facts: []byte(`{"code":"daily_limit","accrued_usd":50.1,"limit_usd":50,"source":"accrual"}`),
	})
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

func TestAlerter(t *testing.T) {
	t.Parallel()
	for _, format := range []string{formatJSON, formatSlack, formatConsole} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			fleettest.Alerter(t, func(t *testing.T) fleettest.AlerterHarness {
				t.Helper()
				r := receive(t, nil)
				return fleettest.AlerterHarness{
					Alerter: r.to(format), Repeats: true,
					Refuse: func() { r.set(status(404)) }, Fail: func() { r.set(status(503)) },
					Got: func() (out []string) {
						for _, q := range r.requests() {
							out = append(out, q.header.Get(HeaderID)+" "+q.body)
						}
						return out
					},
				}
			})
		})
	}
}

// TestWhatAnAnswerMeans: later is a message that is tried again, refused one that is not.
func TestWhatAnAnswerMeans(t *testing.T) {
	t.Parallel()
	for code, want := range map[int]string{
		200: "delivered", 201: "delivered", 204: "delivered", 301: "later", 302: "later", 307: "later", 308: "later",
		400: "refused", 401: "refused", 403: "refused", 404: "refused", 405: "refused", 410: "refused", 413: "refused", 422: "refused",
		408: "later", 429: "later", 500: "later", 501: "later", 502: "later", 503: "later", 504: "later",
	} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			t.Parallel()
			r := receive(t, status(code))
			_, err := r.to(formatJSON).Send(t.Context(), alarm(fleet.Critical, "x"))
			got := "later"
			switch {
			case err == nil:
				got = "delivered"
			case errors.Is(err, fleet.ErrBadRequest), errors.Is(err, fleet.ErrDenied):
				got = "refused"
			}
			if got != want || len(r.requests()) != 1 {
				t.Errorf("%s after %d requests, want %s: %v", got, len(r.requests()), want, err)
			}
			if err != nil && !strings.Contains(err.Error(), fmt.Sprint(code)) {
				t.Errorf("the error does not say the code: %v", err)
			}
		})
	}
}

func TestARedirectIsNotFollowedAndItsSecretNotShown(t *testing.T) {
	t.Parallel()
	elsewhere := receive(t, nil)
	r := receive(t, func(w http.ResponseWriter, q *http.Request) {
		http.Redirect(w, q, elsewhere.URL+"/token-hunter3", http.StatusTemporaryRedirect)
	})
	_, err := r.to(formatJSON).Send(t.Context(), alarm(fleet.Info, "x"))
	if len(elsewhere.requests()) != 0 {
		t.Error("the message went elsewhere")
	}
	if err == nil || !strings.Contains(err.Error(), "to "+elsewhere.URL) || strings.Contains(err.Error(), "hunter3") {
		t.Errorf("got %v", err)
	}
}

func TestAServerThatNamesATimeIsBelieved(t *testing.T) {
	t.Parallel()
	now := time.Date(2027, 1, 14, 9, 31, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"120": 2 * time.Minute, "Thu, 14 Jan 2027 09:36:00 GMT": 5 * time.Minute, "Thu, 14 Jan 2027 09:00:00 GMT": 0, "soon": 0, "-5": 0, "": 0,
		"99999999999": 7 * 24 * time.Hour,
	} {
		for _, code := range []int{429, 503} {
			r := receive(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", value)
				w.WriteHeader(code)
			})
			a := r.to(formatJSON)
			a.now = func() time.Time { return now }
			_, err := a.Send(t.Context(), alarm(fleet.Info, "x"))
			var got time.Duration
			if later, ok := errors.AsType[*fleet.LaterError](err); ok {
				got = later.After
			}
			if got != want || !errors.Is(err, fleet.ErrUnavailable) {
				t.Errorf("%d with Retry-After %q: %s, want %s (%v)", code, value, got, want, err)
			}
		}
	}
}

func TestAServerThatHangsIsGivenUp(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{})
	t.Cleanup(func() { close(gone) })
	for name, answer := range map[string]http.HandlerFunc{
		"before its answer": func(_ http.ResponseWriter, q *http.Request) { wait(q, gone) },
		"within an error": func(w http.ResponseWriter, q *http.Request) {
			w.WriteHeader(500)
			_, _ = io.WriteString(w, "wait for it")
			_ = http.NewResponseController(w).Flush()
			wait(q, gone)
		},
	} {
		a := receive(t, answer).to(formatJSON)
		a.limit = 300 * time.Millisecond
		begun := time.Now()
		_, err := a.Send(t.Context(), alarm(fleet.Info, "x"))
		if err == nil || errors.Is(err, fleet.ErrBadRequest) || time.Since(begun) > 5*time.Second {
			t.Errorf("%s: %v after %s", name, err, time.Since(begun))
		}
	}
	if timeLimit != 10*time.Second {
		t.Errorf("a message may take %s", timeLimit)
	}
}

func wait(q *http.Request, gone <-chan struct{}) {
	select {
	case <-q.Context().Done():
	case <-gone:
	}
}

func TestTheBodyOfASuccessIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{})
	t.Cleanup(func() { close(gone) })
	for name, answer := range map[string]http.HandlerFunc{
		"it hangs": func(w http.ResponseWriter, q *http.Request) {
			_, _ = io.WriteString(w, "o")
			_ = http.NewResponseController(w).Flush()
			wait(q, gone)
		},
		"it breaks off": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, "ok")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		},
		"it is 10 MB": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat("x", 10<<20)) },
	} {
		if answer, err := receive(t, answer).to(formatJSON).Send(t.Context(), alarm(fleet.Info, "x")); err != nil || answer != "200 OK" {
			t.Errorf("%s: %q, %v", name, answer, err)
		}
	}
}

func TestAnErrorShowsTheBeginningOfTheAnswerAndNoSecret(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ says, want string }{
		"words":            {"invalid_payload: no text", "says: invalid_payload: no text"},
		"10 MB":            {strings.Repeat("word ", 2<<20), " …"},
		"its own address":  {"no such hook " + path + " here", "no such hook … here"},
		"a part of it":     {"team T0SECRET is gone", "team … is gone"},
		"the key":          {"bad key k-hunter2!", "bad key …!"},
		"colours and more": {"\x1b[31mred\x1b[0m\r\nnext\x00", "[31mred [0m next"},
		"bytes":            {"\xff\xfe", "says: ?"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := receive(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(400)
				_, _ = io.WriteString(w, c.says)
			})
			_, err := r.to(formatJSON).Send(t.Context(), alarm(fleet.Info, "x"))
			if err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 400 {
				t.Errorf("got %v", err)
			}
			noSecret(t, err)
		})
	}
}

func noSecret(t *testing.T, err error) {
	t.Helper()
	for _, s := range []string{"hunter2", "T0SECRET", "k-hunter2", "\x1b"} {
		if strings.Contains(fmt.Sprint(err), s) {
			t.Errorf("%q is in %v", s, err)
		}
	}
}

func TestACertificateThatNobodyTrustsIsRefused(t *testing.T) {
	t.Parallel()
	r := receive(t, nil)
	a := r.to(formatJSON)
	a.client.Transport.(*http.Transport).TLSClientConfig.RootCAs = nil
	_, err := a.Send(t.Context(), alarm(fleet.Info, "x"))
	if !errors.Is(err, fleet.ErrUnavailable) || !strings.Contains(err.Error(), "certificate") || len(r.requests()) != 0 {
		t.Errorf("got %v after %d requests", err, len(r.requests()))
	}
	noSecret(t, err)
	other := r.to(formatJSON)
	other.read = vault{"env:HOOK": strings.Replace(r.URL, "127.0.0.1", "localhost", 1) + path, "env:KEY": "k"}.read
	if _, err = other.Send(t.Context(), alarm(fleet.Info, "x")); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a certificate of another name: %v", err)
	}
}

// Only a connection that was never made is tried a second time at once: anything else may have arrived.
func TestASecondTryIsForConnectionsThatWereNotMade(t *testing.T) {
	t.Parallel()
	r := receive(t, nil)
	dials := 0
	a := r.to(formatJSON)
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		if dials++; dials == 1 {
			return nil, &net.OpError{Op: "dial", Net: network, Err: errors.New("connection refused")}
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	a.client.Transport.(*http.Transport).DialContext = dial
	if _, err := a.Send(t.Context(), alarm(fleet.Info, "x")); err != nil || dials != 2 || len(r.requests()) != 1 {
		t.Errorf("%d connections, %d requests, %v", dials, len(r.requests()), err)
	}

	cut := receive(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	_, err := cut.to(formatJSON).Send(t.Context(), alarm(fleet.Info, "x"))
	if err == nil || !strings.Contains(err.Error(), "closed without an answer") || len(cut.requests()) != 1 {
		t.Errorf("%d requests, %v", len(cut.requests()), err)
	}

	down := receive(t, nil)
	down.Close()
	if _, err := down.to(formatJSON).Send(t.Context(), alarm(fleet.Info, "x")); !errors.Is(err, fleet.ErrUnavailable) || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("nobody there: %v", err)
	}
}

// What is wrong with the settings is no refusal: once it is mended the message goes out.
func TestAnAddressThatCannotBeUsedIsSaidWithoutIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hook string
		want string
	}{
		"http to another machine": {"http://hunter2.example.org/x", "expected https"},
		"no address":              {"hunter2", "expected https://HOST/PATH"},
		"another scheme":          {"file:///etc/hunter2", "expected https://HOST/PATH"},
		"no host":                 {"https:///hunter2", "expected https://HOST/PATH"},
		"broken":                  {"https://hunter2\x7f/", "expected https://HOST/PATH"},
		"not there":               {"", "env:HOOK"},
	} {
		v := vault{"env:KEY": "k"}
		if c.hook != "" {
			v["env:HOOK"] = c.hook
		}
		_, err := New(fleet.Channel{URL: "env:HOOK", Secret: "env:KEY", Format: formatJSON}, v.read).Send(t.Context(), alarm(fleet.Info, "x"))
		if !errors.Is(err, fleet.ErrUnavailable) || errors.Is(err, fleet.ErrBadRequest) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		noSecret(t, err)
	}
	r := receive(t, nil)
	a := r.to(formatJSON)
	a.read = vault{"env:HOOK": r.URL}.read
	if _, err := a.Send(t.Context(), alarm(fleet.Info, "x")); err == nil || !strings.Contains(err.Error(), "secret of the webhook") || len(r.requests()) != 0 {
		t.Errorf("a key that is not there: %v; a message without its signature must not leave", err)
	}
}

func TestHTTPIsForTheSameMachineOnly(t *testing.T) {
	t.Parallel()
	for text, good := range map[string]bool{
		"http://127.0.0.1:1/x": true, "http://localhost/x": true, "http://[::1]:80/": true, "https://example.org/x": true, " https://example.org/x\n": true,
		"http://example.org/": false, "http://127.0.0.1.example.org/": false, "http://10.0.0.1/": false, "http://localhost.example.org/": false, "http://[::2]/": false,
	} {
		if _, err := address(text); (err == nil) != good {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestASecretIsReadAnewForEachMessage(t *testing.T) {
	t.Parallel()
	r := receive(t, nil)
	a := r.to(formatJSON)
	a.now = func() time.Time { return time.Unix(1_800_000_000, 0) }
	for _, key := range []string{"one", "two"} {
		a.read = vault{"env:HOOK": r.URL, "env:KEY": key}.read
		if _, err := a.Send(t.Context(), alarm(fleet.Info, "x")); err != nil {
			t.Fatal(err)
		}
	}
	got := r.requests()
	for i, key := range []string{"one", "two"} {
		if want := Sign(key, a.now(), []byte(got[i].body)); got[i].header.Get(HeaderSignature) != want {
			t.Errorf("signed %s, want %s", got[i].header.Get(HeaderSignature), want)
		}
	}
}

func TestWithoutASecretNothingIsSigned(t *testing.T) {
	t.Parallel()
	r := receive(t, nil)
	a := r.to(formatSlack)
	a.channel.Secret = ""
	if _, err := a.Send(t.Context(), alarm(fleet.Info, "x")); err != nil {
		t.Fatal(err)
	}
	if h := r.requests()[0].header; h.Get(HeaderSignature) != "" || h.Get("Content-Type") != "application/json" || h.Get("User-Agent") != "sluice" {
		t.Errorf("headers %v", h)
	}
}
