package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"sluice/core/fleet"
)

// timeLimit is for all of one message: secrets, connection, a second try, answer.
const timeLimit = 10 * time.Second

// Alerter sends to one address.
type Alerter struct {
	channel fleet.Channel
	read    func(ctx context.Context, ref string) (string, error)
	client  *http.Client
	now     func() time.Time
	limit   time.Duration
}

var _ fleet.Alerter = (*Alerter)(nil)

// New makes a channel that has not connected yet. Its references are read anew for each message.
func New(c fleet.Channel, read func(ctx context.Context, ref string) (string, error)) *Alerter {
	return &Alerter{channel: c, read: read, now: time.Now, limit: timeLimit, client: &http.Client{
		// A redirect could carry the message to somebody else: its answer is the answer.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			Proxy:             http.ProxyFromEnvironment,
			TLSClientConfig:   &tls.Config{MinVersion: tls.VersionTLS12},
			DisableKeepAlives: true, // a function sleeps between messages, and its connections die meanwhile
			ForceAttemptHTTP2: true,
		},
	}}
}

// Send implements fleet.Alerter.
func (a *Alerter) Send(ctx context.Context, m fleet.Message) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, a.limit)
	defer cancel()
	to, key, err := a.secrets(ctx)
	if err != nil {
		return "", err
	}
	b, err := body(a.channel.Format, m)
	if err != nil {
		return "", err
	}
	hidden := newHidden(to, key)
	answer, err := a.post(ctx, to, key, m.ID, b)
	if unconnected(err) { // nothing was sent
		answer, err = a.post(ctx, to, key, m.ID, b)
	}
	if err != nil {
		return "", fmt.Errorf("send to %s: %w: %s", to.Host, fleet.ErrUnavailable, hidden.from(a.cause(ctx, err)))
	}
	defer answer.Body.Close()
	return answer.Status, a.judge(to, answer, hidden)
}

// secrets are the address and the key. What is wrong with them is mended in the settings, so it is nothing that the
// other side has refused.
func (a *Alerter) secrets(ctx context.Context) (to *url.URL, key string, err error) {
	text, err := a.read(ctx, a.channel.URL)
	if err != nil {
		return nil, "", unreadable("address", err)
	}
	if to, err = address(text); err != nil {
		return nil, "", err
	}
	if a.channel.Secret == "" {
		return to, "", nil
	}
	if key, err = a.read(ctx, a.channel.Secret); err != nil {
		return nil, "", unreadable("secret", err)
	}
	return to, key, nil
}

// unreadable keeps the words of an error and not what it is: a reference that leads nowhere is no refusal of a message.
func unreadable(what string, err error) error {
	return fmt.Errorf("read the %s of the webhook: %w: %s", what, fleet.ErrUnavailable, err.Error())
}

// address checks where a message would go. Its errors show no part of it, since an address may be a secret.
func address(text string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(text))
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return nil, fmt.Errorf("read the address of the webhook: %w: what the reference leads to is no address; expected https://HOST/PATH (the value is not shown)", fleet.ErrUnavailable)
	case u.Scheme == "http" && !loopback(u.Hostname()):
		return nil, fmt.Errorf("read the address of the webhook: %w: it is http and leads to another machine, where everybody on the way could read alerts and send them on; expected https (the value is not shown)", fleet.ErrUnavailable)
	}
	return u, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (a *Alerter) post(ctx context.Context, to *url.URL, key, id string, b []byte) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	r.GetBody = nil // sent once: a repeat is ours to decide
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "sluice")
	r.Header.Set(HeaderID, id)
	if key != "" {
		r.Header.Set(HeaderSignature, Sign(key, a.now(), b))
	}
	return a.client.Do(r)
}

// unconnected says that a request never left: the address was not found, or nobody answered there.
func unconnected(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

// cause is what went wrong, without the address around it.
func (a *Alerter) cause(ctx context.Context, err error) string {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Sprintf("no answer within %s", a.limit)
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return "the connection was closed without an answer"
	}
	return err.Error()
}
