//go:build !race

package sim_test

const share = 1
