package redis_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"sluice/providers/redis"
)

// ledger is a job table that loses answers where it is told to.
type ledger struct {
	pending []redis.Move
	noted   []redis.Move
	lose    error
}

func (l *ledger) Pending(_ context.Context, n int) ([]redis.Move, error) {
	return slices.Clone(l.pending[:min(n, len(l.pending))]), nil
}

func (l *ledger) Done(_ context.Context, moves []redis.Move) error {
	if l.lose != nil {
		return l.lose
	}
	l.noted = append(l.noted, moves...)
	l.pending = slices.DeleteFunc(l.pending, func(m redis.Move) bool { return slices.Contains(moves, m) })
	return nil
}

func lists(t *testing.T, content ...string) (*goredis.Client, *redis.Client, string) {
	t.Helper()
	url, key := shared(t), prefix()+"queue:ocr"
	db := ask(t, url)
	t.Cleanup(func() { db.Del(context.Background(), key) })
	for _, id := range content {
		db.LPush(t.Context(), key, id)
	}
	return db, open(t, url), key
}

func has(t *testing.T, db *goredis.Client, key string, want ...string) {
	t.Helper()
	if got := db.LRange(t.Context(), key, 0, -1).Val(); !slices.Equal(got, want) {
		t.Errorf("list holds %v, want %v", got, want)
	}
}

func TestClaimedIdsLeaveTheListAndDueIdsEnterIt(t *testing.T) {
	t.Parallel()
	db, c, key := lists(t, "a", "b", "c")
	l := &ledger{pending: []redis.Move{{Job: "b", Key: key, Action: redis.Unlist}, {Job: "d", Key: key, Action: redis.Relist}}}
	n, err := redis.Sweeper{Lists: c, Ledger: l}.Sweep(t.Context())
	if err != nil || n != 2 {
		t.Errorf("sweep made %d moves (%v), want 2", n, err)
	}
	has(t, db, key, "d", "c", "a")
}

func TestASweepThatCouldNotNoteItsMovesIsRepeatedWithoutHarm(t *testing.T) {
	t.Parallel()
	db, c, key := lists(t, "a", "b")
	l := &ledger{pending: []redis.Move{{Job: "a", Key: key, Action: redis.Unlist}, {Job: "d", Key: key, Action: redis.Relist}}, lose: errors.New("lost")}
	if _, err := (redis.Sweeper{Lists: c, Ledger: l}).Sweep(t.Context()); !errors.Is(err, l.lose) {
		t.Fatalf("sweep: %v, want %v", err, l.lose)
	}
	l.lose = nil
	if _, err := (redis.Sweeper{Lists: c, Ledger: l}).Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	has(t, db, key, "d", "b")
}

func TestAMoveThatFailsStopsNoOther(t *testing.T) {
	t.Parallel()
	db, c, key := lists(t, "a")
	bad := key + ":hash"
	db.HSet(t.Context(), bad, "f", "v")
	t.Cleanup(func() { db.Del(context.Background(), bad) })
	poison := redis.Move{Job: "x", Key: bad, Action: redis.Relist}
	l := &ledger{pending: []redis.Move{poison, {Job: "a", Key: key, Action: redis.Unlist}}}
	n, err := redis.Sweeper{Lists: c, Ledger: l}.Sweep(t.Context())
	if n != 1 || err == nil || !strings.Contains(err.Error(), bad) {
		t.Errorf("sweep made %d moves (%v), want 1 and an error that names %s", n, err, bad)
	}
	if !slices.Equal(l.pending, []redis.Move{poison}) {
		t.Errorf("still pending: %v, want the move that failed", l.pending)
	}
	has(t, db, key)
}

func TestAllBatchesAreSwept(t *testing.T) {
	t.Parallel()
	db, c, key := lists(t)
	l := &ledger{}
	for i := range 1200 {
		l.pending = append(l.pending, redis.Move{Job: fmt.Sprint("job ", i), Key: key, Action: redis.Relist})
	}
	if n, err := (redis.Sweeper{Lists: c, Ledger: l}).Sweep(t.Context()); err != nil || n != 1200 {
		t.Errorf("sweep made %d moves (%v), want 1200", n, err)
	}
	if n := db.LLen(t.Context(), key).Val(); n != 1200 {
		t.Errorf("list holds %d ids, want 1200", n)
	}
	if id := db.RPop(t.Context(), key).Val(); id != "job 0" {
		t.Errorf("the first consumer gets %q, want the first that was due", id)
	}
}

func TestASweepWithoutRedisNotesNothing(t *testing.T) {
	t.Parallel()
	l := &ledger{pending: []redis.Move{{Job: "a", Key: "queue:ocr", Action: redis.Unlist}}}
	n, err := redis.Sweeper{Lists: open(t, "redis://"+freeAddr(t)), Ledger: l}.Sweep(t.Context())
	if n != 0 || err == nil || len(l.noted) > 0 {
		t.Errorf("sweep made %d moves, noted %v (%v), want an error and nothing noted", n, l.noted, err)
	}
}
