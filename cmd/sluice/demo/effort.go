package demo

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"sluice/providers/postgres"
)

// maxPasses bounds the effort on a machine that is very fast.
const maxPasses = 10_000

// effort is how many passes make one job last about so many seconds here. A burst that one worker
// could cope with would show nothing.
func effort(image, trial string, seconds float64) (int, error) {
	defer func() { _ = os.Remove(trial) }() // not there where it failed
	job := Thumbnail{Source: image, Target: trial, Width: widths[1], Passes: 3}
	begun := time.Now()
	if err := job.Make(); err != nil {
		return 0, fmt.Errorf("try one thumbnail: %w", err)
	}
	pass := max(time.Since(begun).Seconds()/float64(job.Passes), 1e-6)
	return min(max(1, int(seconds/pass)), maxPasses), nil
}

// rows are the jobs as the table has them.
func rows(jobs []Thumbnail) []postgres.NewJob {
	out := make([]postgres.NewJob, len(jobs))
	for i, j := range jobs {
		payload, err := json.Marshal(j)
		if err != nil { // a struct of strings and numbers always marshals
			payload = []byte("{}")
		}
		out[i] = postgres.NewJob{Queue: queueName, Payload: payload}
	}
	return out
}
