package sim_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

var (
	seedsFlag    = flag.Int("seeds", 500, "how many fresh seeds the torture draws beside the 2000 fixed ones")
	fixedFlag    = flag.Int("fixed", 2000, "how many fixed seeds, from 1, the torture runs")
	durationFlag = flag.Duration("duration", 0, "how long the torture draws fresh seeds, instead of a number of them")
	seedFlag     = flag.Uint64("seed", 0, "one seed to replay, with -v for its whole story")
)

// TestTorture holds the production code to every invariant in random worlds with random faults. A
// failure prints its seed; go test ./core/sim -run TestTorture -seed N -v replays it exactly.
func TestTorture(t *testing.T) {
	if *seedFlag != 0 {
		replay(t, *seedFlag)
		return
	}
	fresh, fixed, drawn := rand.Uint64()>>1, uint64(*fixedFlag/share), uint64(*seedsFlag/share)
	t.Logf("fixed seeds 1 to %d, fresh seeds from %d on", fixed, fresh)
	seen := newCoverage()
	var next atomic.Uint64
	end := time.Now().Add(*durationFlag)
	more := func() (uint64, bool) {
		n := next.Add(1)
		if n <= fixed {
			return n, true
		}
		n -= fixed
		return fresh + n, *durationFlag > 0 && time.Now().Before(end) || *durationFlag == 0 && n <= drawn
	}
	t.Run("seeds", func(t *testing.T) {
		for i := range runtime.GOMAXPROCS(0) {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				failed := 0
				for seed, ok := more(); ok && failed < tooMany; seed, ok = more() {
					if !torture(t, seed, seen) {
						failed++
					}
				}
			})
		}
	})
	seen.report(t, *durationFlag > 0 || fixed+drawn >= 2500)
}

// tooMany failures end a run: they are likely to be one.
const tooMany = 3

// torture runs a seed and, where it fails, runs it again for its story.
func torture(t *testing.T, seed uint64, seen *coverage) bool {
	failed := run(t, seed, seen, nil)
	if failed == "" {
		return true
	}
	t.Errorf("seed %d: %s", seed, failed)
	var story []string
	run(t, seed, newCoverage(), func(format string, args ...any) { story = append(story, fmt.Sprintf(format, args...)) })
	for _, line := range story[max(0, len(story)-60):] {
		t.Log(line)
	}
	t.Logf("replay: go test ./core/sim -run TestTorture -seed %d -v", seed)
	return false
}

func replay(t *testing.T, seed uint64) {
	if failed := run(t, seed, newCoverage(), t.Logf); failed != "" {
		t.Errorf("seed %d: %s", seed, failed)
	}
}

// The same seed gives the same story, line for line, or a failure could not be looked into.
func TestReplay(t *testing.T) {
	t.Parallel()
	for seed := uint64(1); seed <= 10; seed++ {
		var first, second []string
		run(t, seed, newCoverage(), func(format string, args ...any) { first = append(first, fmt.Sprintf(format, args...)) })
		run(t, seed, newCoverage(), func(format string, args ...any) { second = append(second, fmt.Sprintf(format, args...)) })
		for i := range first {
			if i >= len(second) || first[i] != second[i] {
				t.Fatalf("seed %d, line %d of its story:\n%s\n%s", seed, i, first[i], second[min(i, len(second)-1)])
			}
		}
	}
}
