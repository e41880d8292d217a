package page

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// Server is a page that is being served.
type Server struct {
	url  string
	http *http.Server
	end  context.CancelFunc
	done chan struct{}
	err  error // once done is closed
}

// Start serves the page until the context ends or it is closed.
func Start(ctx context.Context, o Options) (*Server, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.Listen)
	if err != nil {
		return nil, fmt.Errorf("serve page on %s: %w; if another program has the port, name a free one with --listen, such as --listen 127.0.0.1:0", o.Listen, err)
	}
	host, _, _ := net.SplitHostPort(o.Listen) // complete has seen that it is one
	ctx, end := context.WithCancel(ctx)
	feed := newFeed(o)
	site := &site{feed: feed, ticks: &ticks{source: o.Source, told: map[string]*toldTick{}}, controls: byID(o.Controls), ended: ctx.Done(), writeTime: writeTime}
	s := &Server{url: "http://" + shown(l.Addr()) + "/", end: end, done: make(chan struct{})}
	s.http = &http.Server{
		Handler:           guard{token: o.Token, local: loopback(host), next: site.routes()},
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	go s.serve(l, func() { feed.run(ctx) })
	context.AfterFunc(ctx, s.goodbye)
	return s, nil
}

// goodbye lets streams say that they end, for a moment.
func (s *Server) goodbye() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if s.http.Shutdown(ctx) != nil {
		_ = s.http.Close()
	}
}

// serve is done when nothing of the page runs any more, the reader included.
func (s *Server) serve(l net.Listener, read func()) {
	defer close(s.done)
	var reader sync.WaitGroup
	reader.Go(read)
	if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		s.err = fmt.Errorf("serve page: %w", err)
	}
	s.end()
	reader.Wait()
}

// shown is an address that a browser on this machine can open.
func shown(a net.Addr) string {
	host, port, err := net.SplitHostPort(a.String())
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() {
		return net.JoinHostPort("localhost", port)
	}
	return a.String()
}

// URL is where the page is; a token is not part of it.
func (s *Server) URL() string { return s.url }

// Wait returns when the page is served no longer: nil where it was asked to end.
func (s *Server) Wait() error {
	<-s.done
	return s.err
}

// Close ends it, visitors included, and waits.
func (s *Server) Close() error {
	s.end()
	return s.Wait()
}

func byID(controls []Control) map[string]Control {
	out := make(map[string]Control, len(controls))
	for _, c := range controls {
		out[c.ID] = c
	}
	return out
}
