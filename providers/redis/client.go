package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"sluice/core/fleet"
)

// Client speaks to one Redis server or cluster. It connects when it is first used, and reads its
// secret again when that is refused.
type Client struct {
	secret fleet.Secret
	mu     sync.Mutex
	conn   redis.UniversalClient
}

// New makes a client that has not connected yet. The secret is the server's URL: redis://user:password@host:6379/0,
// rediss:// for TLS, several hosts or ?cluster=true for a cluster.
func New(secret fleet.Secret) *Client { return &Client{secret: secret} }

// Close ends all connections; the client may be used again.
func (c *Client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closeLocked()
}

func (c *Client) closeLocked() error {
	if c.conn == nil {
		return nil
	}
	conn := c.conn
	c.conn = nil
	if err := conn.Close(); err != nil {
		return fmt.Errorf("close redis: %w", err)
	}
	return nil
}

// do makes a call, and once more with a fresh secret where authentication failed: the password may have changed.
func (c *Client) do(ctx context.Context, call func(redis.UniversalClient) error) error {
	conn, err := c.open(ctx, nil)
	if err != nil {
		return err
	}
	if err = call(conn); !redis.IsAuthError(err) {
		return err
	}
	if conn, err = c.open(ctx, conn); err != nil {
		return err
	}
	return call(conn)
}

// open returns the current connection, or a new one where there is none or only the stale one.
func (c *Client) open(ctx context.Context, stale redis.UniversalClient) (redis.UniversalClient, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != nil && c.conn != stale {
		return c.conn, nil
	}
	raw, err := c.secret(ctx)
	if err != nil {
		return nil, fmt.Errorf("read redis url: %w", err)
	}
	conn, err := connect(raw)
	if err != nil {
		return nil, err
	}
	_ = c.closeLocked() // it was refused: nothing on it is worth keeping
	c.conn = conn
	return conn, nil
}

var errURL = errors.New("redis url is not valid: want redis://user:password@host:6379/0, or rediss:// for TLS, with characters such as @ : / ? # in the password written as %40 %3A %2F %3F %23")

// connect makes a client of a URL. Its errors do not repeat the URL, which has a password in it.
func connect(raw string) (redis.UniversalClient, error) {
	u, hosts, err := split(raw)
	if err != nil {
		return nil, err
	}
	query := u.Query()
	cluster := len(hosts) > 1 || query.Has("addr") || query.Get("cluster") == "true"
	query.Del("cluster")
	for _, h := range hosts[1:] {
		query.Add("addr", h)
	}
	u.RawQuery = query.Encode()
	if cluster {
		return connectCluster(u)
	}
	o, err := redis.ParseURL(u.String())
	if err != nil {
		return nil, unreadable(err)
	}
	o.ContextTimeoutEnabled, o.DisableIdentity = true, true
	o.MaxRetries, o.DialerRetries, o.PipelinePoolSize = 1, 1, -1
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return redis.NewClient(o), nil
}

func connectCluster(u *url.URL) (redis.UniversalClient, error) {
	u.Path = "" // a cluster has one database only
	o, err := redis.ParseClusterURL(u.String())
	if err != nil {
		return nil, unreadable(err)
	}
	o.ContextTimeoutEnabled, o.DisableIdentity = true, true
	o.MaxRetries, o.DialerRetries, o.PipelinePoolSize = 1, 1, -1
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return redis.NewClusterClient(o), nil
}

// split parses a URL whose authority may list several hosts, which net/url does not know.
func split(raw string) (*url.URL, []string, error) {
	scheme, rest, ok := strings.Cut(strings.TrimSpace(raw), "://")
	if !ok || (scheme != "redis" && scheme != "rediss") {
		return nil, nil, errURL
	}
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	at := strings.LastIndexByte(rest[:end], '@') + 1
	hosts := strings.Split(rest[at:end], ",")
	u, err := url.Parse(scheme + "://" + rest[:at] + hosts[0] + rest[end:])
	if err != nil || u.Hostname() == "" || u.Fragment != "" {
		return nil, nil, errURL
	}
	return u, hosts, nil
}

// unreadable keeps the parser's words about options, and none of the URL itself.
func unreadable(err error) error {
	if text := err.Error(); strings.HasPrefix(text, "redis: unexpected option") || strings.HasPrefix(text, "redis: invalid database number") {
		return fmt.Errorf("redis url: %s", strings.TrimPrefix(text, "redis: "))
	}
	return errURL
}

// advise turns a failure of the whole server into words that say what to do.
func advise(err error) error {
	var dns *net.DNSError
	switch {
	case redis.IsAuthError(err):
		return fmt.Errorf("%w: redis refused the user or password, also after the secret was read again (%s): put the current ones into the redis url", fleet.ErrAuth, firstWord(err))
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return fmt.Errorf("%w: redis did not answer in time: %w", fleet.ErrUnavailable, err)
	case errors.As(err, &dns), isDial(err):
		return fmt.Errorf("%w: redis cannot be reached: %w: check that it runs, and the host and port of the redis url", fleet.ErrUnavailable, err)
	case errors.Is(err, errURL):
		return err
	}
	return fmt.Errorf("%w: redis: %w", fleet.ErrUnavailable, err)
}

func isDial(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// firstWord is the code that Redis begins its errors with, such as WRONGPASS.
func firstWord(err error) string {
	word, _, _ := strings.Cut(err.Error(), " ")
	return word
}
