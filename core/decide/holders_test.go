package decide_test

import (
	"fmt"
	"testing"
	"time"

	"sluice/core/decide"
	"sluice/core/fleet"
)

// heldBy are the pools that the last step of the first pool names.
func heldBy(t *testing.T, p fleet.Plan) []string {
	t.Helper()
	steps := first(t, p).Steps
	switch why := steps[len(steps)-1].Why.(type) {
	case fleet.LimitHourly:
		return why.HeldBy
	case fleet.LimitDaily:
		return why.HeldBy
	}
	t.Fatalf("no limit of money stops it: %s", text(steps))
	return nil
}

// others have so many machines each, in pools that the config no longer has.
func others(pools map[string]int) func(*fleet.Snapshot) {
	return func(s *fleet.Snapshot) {
		for pool, n := range pools {
			for i := range n {
				id := fmt.Sprintf("%s-%d", pool, i)
				has(id, busy1)(s)
				s.Memory.Workers[len(s.Memory.Workers)-1].Pool = pool
			}
		}
	}
}

func TestARefusalNamesThePoolsThatHoldTheRate(t *testing.T) {
	t.Parallel()
	p := decide.Decide(world(waiting(50, minute), others(map[string]int{"bulk": 1, "media": 3, "images": 2}), limits(6*dime, 50*fleet.Unit)))
	same(t, "the dearest first", heldBy(t, p), []string{"media", "images", "bulk"})
	p = decide.Decide(world(waiting(50, minute), others(map[string]int{"a": 1, "b": 1, "c": 1, "d": 1, "e": 1, "f": 2}), limits(7*dime, 50*fleet.Unit)))
	same(t, "a few", heldBy(t, p), []string{"f", "a", "b", "c", "d"})
	p = decide.Decide(world(waiting(50, minute), limits(dime-1, 50*fleet.Unit)))
	same(t, "a limit below one machine is held by nobody", heldBy(t, p), []string(nil))
}

func TestARefusalNamesThePoolsThatHaveSpentTheDay(t *testing.T) {
	t.Parallel()
	ended := func(s *fleet.Snapshot) {
		for pool, price := range map[string]fleet.Money{"bulk": 3 * dime, "media": 8 * dime} {
			s.Memory.Ended = append(s.Memory.Ended, fleet.Span{Machine: pool, Pool: pool, Price: price, From: s.Memory.Now.Add(-2 * time.Hour), To: s.Memory.Now.Add(-time.Hour)})
		}
	}
	p := decide.Decide(world(waiting(50, minute), ended, limits(50*fleet.Unit, 11*dime+1)))
	same(t, "although none of them runs now", heldBy(t, p), []string{"media", "bulk"})
}
