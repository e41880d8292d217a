package postgres_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"sluice/core/fleet"
	"sluice/core/fleet/fleettest"
	"sluice/providers/postgres"
	"sluice/providers/postgres/postgrestest"
)

func TestStore(t *testing.T) { fleettest.Store(t, open) }

// open is a fresh database, openOn one that there is, behind a proxy that can break a connection at its COMMIT, with a clock that
// moves only when it is told to.
func open(t *testing.T) fleettest.StoreHarness {
	t.Helper()
	return openOn(t, postgrestest.New(t))
}

func openOn(t *testing.T, d postgrestest.Database) fleettest.StoreHarness {
	t.Helper()
	now, clock := time.Now().Truncate(time.Second), d.Clock(t)
	clock(now)
	p := startProxy(t, d.URL)
	db, err := postgres.Open(t.Context(), postgres.URL(p.url))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	w, err := postgres.OpenWorker(t.Context(), postgres.URL(d.URL))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return fleettest.StoreHarness{
		Store: db, History: db, Requests: db, Workers: &workers{Worker: w, db: db, conn: d.Connect(t)},
		Advance: func(by time.Duration) {
			now = now.Add(by)
			clock(now)
		},
		LoseCommit: p.loseCommit,
	}
}

func must(t *testing.T, c *pgx.Conn, sql string, args ...any) {
	t.Helper()
	if _, err := c.Exec(context.WithoutCancel(t.Context()), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// workers is the agent's client in the suite's words.
type workers struct {
	*postgres.Worker
	db   *postgres.DB
	conn *pgx.Conn
	mu   sync.Mutex
}

func (w *workers) Enqueue(ctx context.Context, j fleettest.NewJob) (string, error) {
	n := postgres.NewJob{Queue: j.Queue, Priority: j.Priority, Market: j.Market}
	if j.After > 0 {
		m, err := w.db.Recall(ctx)
		if err != nil {
			return "", err
		}
		n.Due = m.Now.Add(j.After)
	}
	ids, err := w.db.Enqueue(ctx, n)
	return ids[0], err
}

func (w *workers) Register(ctx context.Context, r fleettest.Registration) (fleettest.Registered, error) {
	s, err := w.Worker.Register(ctx, postgres.Registration{
		Provider: r.Provider, Machine: r.Machine, Pool: r.Pool, Intent: r.Intent, Spec: r.Spec, Expires: r.Expires,
		Type: r.Type, Market: r.Market, Scope: r.Scope, Zone: r.Zone,
	})
	return fleettest.Registered{Worker: s.Worker, Beat: beat(s), Wait: s.Wait}, err
}

func beat(s postgres.Standing) fleettest.Beat {
	b := fleettest.Beat{Status: string(s.Status), Drain: s.Drain}
	if s.Assignment != nil {
		b.Assignment, _ = json.Marshal(s.Assignment)
	}
	return b
}

func (w *workers) Heartbeat(ctx context.Context, worker string) (fleettest.Beat, bool, error) {
	s, err := w.Worker.Heartbeat(ctx, worker, postgres.Vitals{})
	if errors.Is(err, fleet.ErrNotFound) {
		return fleettest.Beat{}, false, nil
	}
	return beat(s), err == nil, err
}

func (w *workers) Claim(ctx context.Context, worker string, queues []string, n int) ([]fleettest.ClaimedJob, error) {
	jobs, err := w.Worker.Claim(ctx, worker, queues, n)
	var out []fleettest.ClaimedJob
	for _, j := range jobs {
		out = append(out, fleettest.ClaimedJob{Attempt: j.Attempt, Job: j.ID, Queue: j.Queue, Number: j.Number, Checkpoint: j.Checkpoint})
	}
	return out, err
}

func (w *workers) Complete(ctx context.Context, attempt string) (bool, error) {
	return w.Worker.Complete(ctx, attempt, nil)
}

func (w *workers) Fail(ctx context.Context, attempt, cause string) (string, error) {
	return w.Worker.Fail(ctx, attempt, cause, nil)
}

func (w *workers) Job(ctx context.Context, id string) (r fleettest.JobRow, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	err = w.conn.QueryRow(ctx, "SELECT status, attempts, coalesce(claimed_by::text, '') FROM processing_jobs WHERE id = $1", id).
		Scan(&r.Status, &r.Attempts, &r.ClaimedBy)
	return r, err
}

// proxy stands between Sluice and the server and breaks a connection at a COMMIT when it was told to.
type proxy struct {
	url  string
	mode atomic.Int32
	stop func() // refuses new connections and ends those that are there
}

const (
	breakNothing = iota
	breakBefore  // the server never sees the COMMIT
	breakAfter   // the server applies it, and nobody hears of it
)

func (p *proxy) loseCommit(applied bool) {
	if applied {
		p.mode.Store(breakAfter)
	} else {
		p.mode.Store(breakBefore)
	}
}

// listen takes a free port of this machine.
func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func startProxy(t *testing.T, server string) *proxy {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	l := listen(t)
	t.Cleanup(func() { _ = l.Close() })
	target := u.Host
	u.Host = l.Addr().String()
	q := u.Query()
	q.Set("sslmode", "disable") // the proxy must be able to read
	u.RawQuery = q.Encode()
	ctx := context.WithoutCancel(t.Context())
	var mu sync.Mutex
	var open []net.Conn
	p := &proxy{url: u.String(), stop: func() {
		_ = l.Close()
		mu.Lock()
		defer mu.Unlock()
		for _, c := range open {
			_ = c.Close()
		}
	}}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, client)
			mu.Unlock()
			go p.serve(ctx, client, target)
		}
	}()
	return p
}

func (p *proxy) serve(ctx context.Context, client net.Conn, target string) {
	defer func() { _ = client.Close() }()
	server, err := new(net.Dialer).DialContext(ctx, "tcp", target)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	answers := io.Writer(client)
	muted := &gate{to: answers, closed: make(chan struct{})}
	go func() {
		_, _ = io.Copy(muted, server)
		_ = client.Close()
	}()
	buf := make([]byte, 1<<16)
	for {
		n, err := client.Read(buf)
		if err != nil {
			return
		}
		if bytes.Contains(buf[:n], []byte("commit\x00")) {
			switch p.mode.Swap(breakNothing) {
			case breakBefore:
				return
			case breakAfter:
				muted.mute.Store(true)
				_, _ = server.Write(buf[:n])
				<-muted.closed // the server has answered
				return
			}
		}
		if _, err := server.Write(buf[:n]); err != nil {
			return
		}
	}
}

// gate passes answers on until it is muted; it then drops them and tells that one came.
type gate struct {
	to     io.Writer
	mute   atomic.Bool
	once   sync.Once
	closed chan struct{}
}

func (g *gate) Write(b []byte) (int, error) {
	if g.mute.Load() {
		g.once.Do(func() { close(g.closed) })
		return len(b), nil
	}
	return g.to.Write(b)
}
