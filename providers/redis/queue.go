package redis

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"sluice/core/fleet"
)

var _ fleet.Queues = (*Client)(nil)

// Read counts all lists in one pipeline. Redis knows no ages and nothing of jobs that run.
func (c *Client) Read(ctx context.Context, queues []fleet.Queue) ([]fleet.QueueState, error) {
	if len(queues) == 0 {
		return nil, nil
	}
	counts := make([]*redis.IntCmd, len(queues))
	err := c.do(ctx, func(conn redis.UniversalClient) error {
		_, err := conn.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i, q := range queues {
				counts[i] = p.LLen(ctx, Key(q))
			}
			return nil
		})
		return whole(err, counts)
	})
	if err != nil {
		return nil, fmt.Errorf("count redis lists: %w", advise(err))
	}
	states := make([]fleet.QueueState, len(queues))
	for i, q := range queues {
		states[i] = state(q, counts[i])
	}
	return states, nil
}

// Key is the list of a queue.
func Key(q fleet.Queue) string {
	if q.Source.Key != "" {
		return q.Source.Key
	}
	return "queue:" + q.Name
}

// whole is the error that all commands have in common; nil where one was answered, or failed because of
// its key. A connection that is refused as a whole leaves no error on the commands, which then look like
// empty lists: the pipeline's own error tells them apart.
func whole[C redis.Cmder](pipeline error, commands []C) error {
	clean, failed := 0, 0
	for _, c := range commands {
		switch err := c.Err(); {
		case err == nil:
			clean++
		case redis.IsAuthError(err):
			return err
		case !ofKey(err):
			failed++
		}
	}
	if clean == len(commands) || failed == len(commands) {
		return pipeline
	}
	return nil
}

// ofKey says that an error is about the command's key and not about the server.
func ofKey(err error) bool {
	return redis.HasErrorPrefix(err, "WRONGTYPE") || redis.IsPermissionError(err)
}

func state(q fleet.Queue, n *redis.IntCmd) fleet.QueueState {
	s := fleet.QueueState{Name: q.Name, NoAge: true}
	switch err := n.Err(); {
	case err == nil:
		s.Depth = int(n.Val())
	case redis.HasErrorPrefix(err, "WRONGTYPE"):
		s.Unknown = fmt.Sprintf("redis key %s is not a list: give the queue another source key, or rename what is there", Key(q))
	case redis.IsPermissionError(err):
		s.Unknown = fmt.Sprintf("the redis user may not count %s: grant it ~%s and +llen", Key(q), Key(q))
	default:
		s.Unknown = advise(err).Error()
	}
	return s
}
