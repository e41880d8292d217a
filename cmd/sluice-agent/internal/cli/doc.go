// Package cli is the command line of sluice-agent: it turns flags and environment into an agent.
package cli
