// Package fleettest holds one conformance suite per port, run by every implementation of it.
package fleettest
