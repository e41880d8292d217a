package proc

import (
	"fmt"
	"strings"
	"sync"
)

// Tail is a writer that never blocks and keeps the last bytes written to it.
type Tail struct {
	keep    int
	mu      sync.Mutex
	buf     []byte
	dropped int64
}

// NewTail keeps the last n bytes.
func NewTail(n int) *Tail { return &Tail{keep: n, buf: make([]byte, 0, 4096)} }

// Write implements io.Writer and never fails.
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(p)
	if n > t.keep {
		t.dropped += int64(n - t.keep)
		p = p[n-t.keep:]
	}
	t.buf = append(t.buf, p...)
	if len(t.buf) > 2*t.keep { // rarely, so that a flood costs one copy per byte
		t.trim()
	}
	return n, nil
}

func (t *Tail) trim() {
	if over := len(t.buf) - t.keep; over > 0 {
		t.dropped += int64(over)
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
}

// String is what was kept, as valid text that any database takes, after a note of what was dropped.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.trim()
	text := strings.ToValidUTF8(strings.ReplaceAll(string(t.buf), "\x00", "\uFFFD"), "\uFFFD")
	if t.dropped > 0 {
		return fmt.Sprintf("(%d bytes before this were dropped)\n%s", t.dropped, text)
	}
	return text
}

// LastLine is the last line that is not blank, and whether all of it was kept.
func (t *Tail) LastLine() ([]byte, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.trim()
	text := strings.TrimRight(string(t.buf), " \t\r\n")
	i := strings.LastIndexByte(text, '\n')
	return []byte(text[i+1:]), i >= 0 || t.dropped == 0
}
