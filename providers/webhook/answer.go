package webhook

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"sluice/core/fleet"
)

// judge says what an answer means. What a client did wrong stays wrong however often it is repeated; all else may pass.
func (a *Alerter) judge(to *url.URL, r *http.Response, hidden hidden) error {
	var kind error
	switch code := r.StatusCode; {
	case code >= 200 && code < 300:
		return nil // its body is of no interest
	case code >= 300 && code < 400:
		return fmt.Errorf("%s answers %s, to %s: %w: a redirect is not followed, since it could carry the message to somebody else; refer to the address that it leads to",
			to.Host, r.Status, target(r), fleet.ErrUnavailable)
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		kind = fleet.ErrDenied
	case code == http.StatusRequestTimeout, code == http.StatusTooManyRequests, code >= 500:
		kind = fleet.ErrUnavailable
	default:
		kind = fleet.ErrBadRequest
	}
	err := fmt.Errorf("%s answers %s: %w%s", to.Host, r.Status, kind, said(r.Body, hidden))
	if after := retryAfter(r.Header.Get("Retry-After"), a.now()); after > 0 && kind == fleet.ErrUnavailable { //nolint:errorlint // it is one of the three from above
		return &fleet.LaterError{After: after, Err: err}
	}
	return err
}

// target is the machine that a redirect names; the rest of an address may be a secret.
func target(r *http.Response) string {
	if u, err := r.Location(); err == nil {
		return u.Scheme + "://" + u.Host
	}
	return "no address"
}

// retryAfter reads seconds or a date; zero for none.
func retryAfter(value string, now time.Time) time.Duration {
	if n, err := strconv.Atoi(value); err == nil && n > 0 {
		return time.Duration(min(n, 7*24*3600)) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// How much of an answer is read, in bytes, and repeated, in letters.
const (
	maxAnswer = 4 << 10
	shown     = 200
)

// said is the beginning of an answer on one line.
func said(body io.Reader, h hidden) string {
	b, _ := io.ReadAll(io.LimitReader(body, maxAnswer)) // an answer that breaks off has said what it has said
	text := strings.Join(strings.Fields(h.from(string(b))), " ")
	if text == "" {
		return ""
	}
	if utf8.RuneCountInString(text) > shown {
		text = string([]rune(text)[:shown]) + " …"
	}
	return ", and says: " + text
}

// hidden are texts that no error repeats.
type hidden []string

// newHidden are what of an address and a key could be used by who reads a log.
func newHidden(to *url.URL, key string) hidden {
	out := hidden{to.String(), to.RequestURI(), to.EscapedPath(), to.RawQuery, key}
	if password, ok := to.User.Password(); ok {
		out = append(out, password)
	}
	for part := range strings.SplitSeq(to.Path, "/") {
		out = append(out, part)
	}
	for _, values := range to.Query() {
		out = append(out, values...)
	}
	return out
}

// shortest is of a text that is hidden: less would take words out of sentences.
const shortest = 6

// from takes them, and what a terminal would act on, out of a text.
func (h hidden) from(text string) string {
	text = strings.ToValidUTF8(text, "?")
	for _, s := range h {
		if len(s) >= shortest {
			text = strings.ReplaceAll(text, s, "…")
		}
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
}
