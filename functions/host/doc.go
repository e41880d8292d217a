// Package host opens the world of a tick from config and environment, and writes what ticks did to the log.
package host
