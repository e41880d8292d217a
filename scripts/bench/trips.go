package main

import (
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
)

// meter forwards connections to a server and counts round trips on the wire: how often the client speaks
// after the server has spoken. It believes no library's own count.
type meter struct {
	net.Listener
	target string
	trips  atomic.Int64
}

// through starts a meter before the server of a URL, and returns the URL that leads through it.
func through(raw string) (*meter, string, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, "", err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // answers at once
	if err != nil {
		return nil, "", err
	}
	m := &meter{Listener: l, target: u.Host}
	u.Host = l.Addr().String()
	go m.serve()
	return m, u.String(), nil
}

func (m *meter) serve() {
	for {
		client, err := m.Accept()
		if err != nil {
			return
		}
		go m.join(client)
	}
}

func (m *meter) join(client net.Conn) {
	server, err := net.Dial("tcp", m.target) //nolint:noctx // a server of this computer
	if err != nil {
		_ = client.Close()
		return
	}
	var answered atomic.Bool
	answered.Store(true)
	var both sync.WaitGroup
	both.Go(func() {
		m.copy(server, client, func() {
			if answered.Swap(false) {
				m.trips.Add(1)
			}
		})
	})
	both.Go(func() { m.copy(client, server, func() { answered.Store(true) }) })
	both.Wait()
}

func (m *meter) copy(to io.WriteCloser, from io.Reader, seen func()) {
	defer to.Close() //nolint:errcheck // the other side is gone
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			seen()
			if _, werr := to.Write(buf[:n]); werr != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
