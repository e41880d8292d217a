// Package config turns the bytes of a settings file into a fleet.Config, strictly: every mistake is named with its place, all of them at once.
package config
