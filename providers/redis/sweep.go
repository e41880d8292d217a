package redis

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// Action is what a list has to do with a job's id.
type Action string

// Actions.
const (
	Unlist Action = "unlist" // the job was claimed past the list
	Relist Action = "relist" // the job is due, again or at last
)

// Move is one id that a list shall lose or get.
type Move struct {
	Job    string
	Queue  string
	Key    string // the list
	Action Action
}

// Ledger is where the job table notes what its lists have not heard of yet.
type Ledger interface {
	// Pending returns up to n moves that are not done; a move stays until Done is told of it.
	Pending(ctx context.Context, n int) ([]Move, error)
	Done(ctx context.Context, moves []Move) error
}

// batch bounds one pipeline, and with it how long Redis is kept busy at a stretch.
const batch = 500

// Sweeper carries what happened in the job table over to the lists. It may be stopped at any point,
// and several may run: a move that is made twice does no harm.
type Sweeper struct {
	Lists  *Client
	Ledger Ledger
}

// Sweep makes the moves that are pending, one batch after the other, and returns how many it made.
func (s Sweeper) Sweep(ctx context.Context) (int, error) {
	for total := 0; ; {
		moves, err := s.Ledger.Pending(ctx, batch)
		if err != nil {
			return total, fmt.Errorf("read pending moves: %w", err)
		}
		if len(moves) == 0 {
			return total, nil
		}
		made, failed := s.Lists.apply(ctx, moves)
		if err := s.Ledger.Done(ctx, made); err != nil {
			return total, errors.Join(fmt.Errorf("note moves: %w", err), failed)
		}
		total += len(made)
		if failed != nil || len(moves) < batch {
			return total, failed
		}
	}
}

// apply makes moves in one pipeline and returns those that were made; one that fails stops no other.
func (c *Client) apply(ctx context.Context, moves []Move) ([]Move, error) {
	results := make([]redis.Cmder, len(moves))
	err := c.do(ctx, func(conn redis.UniversalClient) error {
		_, err := conn.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i, m := range moves {
				results[i] = queue(ctx, p, m)
			}
			return nil
		})
		return whole(err, results)
	})
	if err != nil {
		return nil, fmt.Errorf("move ids in redis: %w", advise(err))
	}
	var made []Move
	var failed error
	for i, r := range results {
		switch err := r.Err(); {
		case err == nil:
			made = append(made, moves[i])
		case failed == nil:
			failed = fmt.Errorf("%s in redis list %s: %w", moves[i].Action, moves[i].Key, err)
		}
	}
	return made, failed
}

// queue adds the commands of a move. A claimed id is near the end that consumers pop from, so the search
// begins there and ends with the first found: a repeated id that stays behind is stale, and stale ids do
// no harm. Before an id is pushed, its earlier copies go, so that they cannot pile up.
func queue(ctx context.Context, p redis.Pipeliner, m Move) redis.Cmder {
	if m.Action == Unlist {
		return p.LRem(ctx, m.Key, -1, m.Job)
	}
	p.LRem(ctx, m.Key, 0, m.Job)
	return p.LPush(ctx, m.Key, m.Job)
}
