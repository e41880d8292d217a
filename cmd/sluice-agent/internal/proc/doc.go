// Package proc runs one command with bounded output and leaves none of its descendants behind, whatever they do.
package proc
