// Package agent lives on a worker: it registers, heartbeats, claims jobs, runs their commands and leaves without losing one.
package agent
