// Package local is a cloud whose machines are processes on this computer, each running sluice-agent in a session of its own.
package local
