package sim

import (
	"context"
	"fmt"
	"time"

	"sluice/core/fleet"
)

// How long a transaction waits for the lock, and how long it may idle before the database ends it.
const (
	lockTimeout = 5 * time.Second
	idleTimeout = 10 * time.Second
)

// lock is the one that transactions take; its fields are guarded by World.mu.
type lock struct {
	holder *txn
	freed  chan struct{} // closed when the holder is gone
}

// txn is an open transaction.
type txn struct {
	p     *Process
	since time.Time
}

func (l *lock) drop() {
	if l.holder != nil {
		l.holder = nil
		close(l.freed)
	}
}

func (l *lock) dropOf(p *Process) {
	if l.holder != nil && l.holder.p == p {
		l.drop()
	}
}

// Locked says that a transaction is open, so that others would have to wait.
func (w *World) Locked() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.locked()
}

func (w *World) locked() bool {
	if w.lock.holder != nil && w.now().Sub(w.lock.holder.since) >= idleTimeout {
		w.lock.drop()
	}
	return w.lock.holder != nil
}

// open begins a transaction under the lock, waiting for it.
func (w *World) open(ctx context.Context, p *Process) (*txn, error) {
	ctx, cancel := context.WithTimeout(ctx, lockTimeout)
	defer cancel()
	for {
		w.mu.Lock()
		if !w.locked() {
			t := &txn{p, w.now()}
			w.lock = lock{t, make(chan struct{})}
			w.mu.Unlock()
			return t, nil
		}
		freed := w.lock.freed
		w.mu.Unlock()
		select {
		case <-freed:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the lock: %w: %w", fleet.ErrUnavailable, ctx.Err())
		}
	}
}

// holds says that a transaction is still open; the caller holds the mutex.
func (w *World) holds(t *txn) bool {
	w.locked()
	return w.lock.holder == t
}

// write waits until no transaction is open, as rows that one has read are locked, and then runs f.
func (w *World) write(ctx context.Context, p *Process, f func() error) error {
	t, err := w.open(ctx, p)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	defer w.lock.dropOf(t.p)
	return f()
}
