package page

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
)

// gate is a way to a database that can be shut.
type gate struct {
	url    string
	target string
	closed atomic.Bool
	mu     sync.Mutex
	conns  []net.Conn
}

func newGate(t *testing.T, database string) *gate {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{target: u.Host}
	u.Host = l.Addr().String()
	g.url = u.String()
	var all sync.WaitGroup
	all.Go(func() { g.accept(t.Context(), l) })
	t.Cleanup(func() {
		g.shut()
		_ = l.Close()
		all.Wait()
	})
	return g
}

func (g *gate) accept(ctx context.Context, l net.Listener) {
	for {
		in, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			g.join(ctx, in)
		}
	}
}

func (g *gate) join(ctx context.Context, in net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed.Load() {
		_ = in.Close()
		return
	}
	out, err := (&net.Dialer{}).DialContext(ctx, "tcp", g.target)
	if err != nil {
		_ = in.Close()
		return
	}
	g.conns = append(g.conns, in, out)
	go func() { _, _ = io.Copy(out, in); _ = out.Close() }()
	go func() { _, _ = io.Copy(in, out); _ = in.Close() }()
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed.Store(true)
	for _, c := range g.conns {
		_ = c.Close()
	}
	g.conns = nil
}

func (g *gate) open() { g.closed.Store(false) }

// note is a button that tells which worker it was pressed for.
func note(pressed chan<- string) func(context.Context, string) (string, error) {
	return func(_ context.Context, worker string) (string, error) {
		pressed <- worker
		return "Done: " + map[bool]string{true: "pause", false: "kill"}[worker == ""], nil
	}
}

func toggle(on *atomic.Bool) func(context.Context, string) (string, error) {
	return func(context.Context, string) (string, error) {
		on.Store(!on.Load())
		return "Paused", nil
	}
}
