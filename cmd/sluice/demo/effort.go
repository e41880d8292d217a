package demo

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"time"

	"sluice/providers/postgres"
)

// maxPasses bounds the effort on a machine that is very fast.
const maxPasses = 10_000

// A burst lasts one worker at least burstSeconds, if no job must take longer than workMost for it.
const (
	burstSeconds = 60
	workLeast    = 0.4
	workMost     = 4
)

// workEach is how many seconds of work each of n jobs shall be. A burst that one worker could cope
// with would show nothing.
func workEach(wanted float64, n int) float64 {
	if wanted > 0 {
		return wanted
	}
	return min(max(workLeast, burstSeconds/float64(n)), workMost)
}

// trials are so many that one of them is hardly slowed down by what else this computer does.
const trials = 3

// effort is how many passes make one job last about so many seconds here, by the first image that can be read to its end.
func effort(images []string, trial string, seconds float64) (int, error) {
	defer func() { _ = os.Remove(trial) }() // not there where it failed
	var err error
	for _, image := range images {
		job := Thumbnail{Source: image, Target: trial, Width: widths[1], Passes: 3}
		fastest := math.Inf(1)
		for range trials {
			begun := time.Now()
			if err = job.Make(); err != nil {
				break
			}
			fastest = min(fastest, time.Since(begun).Seconds())
		}
		if err == nil {
			pass := max(fastest/float64(job.Passes), 1e-6)
			return min(max(1, int(seconds/pass)), maxPasses), nil
		}
	}
	return 0, fmt.Errorf("try one thumbnail: %w", err)
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
