package sim_test

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain collects garbage less often: thousands of small worlds come and go.
func TestMain(m *testing.M) {
	debug.SetGCPercent(800)
	os.Exit(m.Run())
}
