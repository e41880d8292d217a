package config

import (
	"fmt"
	"slices"

	"sluice/core/fleet"
)

// CheckFunction says whether a cloud's schedule, which fires once a minute at most, can keep the interval.
func CheckFunction(c fleet.Config) error {
	if c.Interval < 60 {
		return fmt.Errorf("check evaluation_interval_seconds: found %d, expected at least 60: schedules of functions fire once a minute at most; shorter intervals work in the local run only", c.Interval)
	}
	return nil
}

// Unlinked are the enabled providers that a build does not have.
func Unlinked(c fleet.Config, linked []string) []string {
	var out []string
	for _, p := range c.Providers {
		if !slices.Contains(linked, p.Name) {
			out = append(out, p.Name)
		}
	}
	return out
}
