package sim_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"sluice/core/fleet"
	"sluice/core/sim"
)

// coverage counts what a run has reached, so that a torture that tortures nothing is noticed.
type coverage struct {
	mu                                 sync.Mutex
	reasons, outcomes, crashes, faults map[string]int
}

func newCoverage() *coverage {
	return &coverage{reasons: map[string]int{}, outcomes: map[string]int{}, crashes: map[string]int{}, faults: map[string]int{}}
}

func (c *coverage) add(m map[string]int, key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m[key]++
}

func (c *coverage) reason(code string) { c.add(c.reasons, code) }
func (c *coverage) outcome(o string)   { c.add(c.outcomes, o) }
func (c *coverage) fault(f string)     { c.add(c.faults, f) }

func (c *coverage) crash(op sim.Op, after bool) { c.add(c.crashes, boundary(op, after)) }

func boundary(op sim.Op, after bool) string {
	if after {
		return "after " + string(op)
	}
	return "before " + string(op)
}

// report prints what was reached and fails for what must be and was not.
func (c *coverage) report(t *testing.T, must bool) {
	var b strings.Builder
	missing := slices.Concat(
		table(&b, "reasons", c.reasons, wantedReasons()),
		table(&b, "outcomes", c.outcomes, wantedOutcomes()),
		table(&b, "crashes", c.crashes, wantedCrashes()),
		table(&b, "faults", c.faults, append(sortedFaults(), allHappenings...)),
	)
	if must || testing.Verbose() {
		t.Log(b.String())
	}
	if must && len(missing) > 0 {
		t.Errorf("never reached: %s", strings.Join(missing, ", "))
	}
}

func table(b *strings.Builder, title string, got map[string]int, wanted []string) (missing []string) {
	fmt.Fprintf(b, "\n%s:\n", title)
	rows := slices.Clone(wanted)
	for k := range got {
		if !slices.Contains(rows, k) {
			rows = append(rows, k)
		}
	}
	slices.Sort(rows)
	for _, k := range rows {
		fmt.Fprintf(b, "%9d %s\n", got[k], k)
		if got[k] == 0 && slices.Contains(wanted, k) {
			missing = append(missing, title+" "+k)
		}
	}
	return missing
}

// wantedReasons are all that there are.
func wantedReasons() []string {
	var out []string
	for _, r := range fleet.Reasons() {
		out = append(out, r.Code())
	}
	return out
}

func wantedOutcomes() []string {
	return []string{
		"tick done", "tick skipped", "tick failed visibly", "busy worker ended by force", "busy worker ended by its expiry", "resume had",
	}
}

func wantedCrashes() []string {
	var out []string
	for _, op := range sim.Ops() {
		out = append(out, boundary(op, false), boundary(op, true))
	}
	return out
}
