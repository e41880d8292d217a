//go:build race

package sim_test

// share is the part of the seeds that runs under the race detector, which is five times as slow: make test runs all without it.
const share = 10
