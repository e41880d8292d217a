package config

import (
	"slices"

	"sluice/core/fleet"
)

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
