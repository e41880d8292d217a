package services

import (
	"context"
	"io"
)

// Bring returns where a file of a Debian package is, such as a program that tests run beside the services, and the
// environment in which it finds its libraries. What is missing is installed as the services are.
func Bring(ctx context.Context, log io.Writer, pkg, folder, name string) (path string, env []string, err error) {
	h := &home{log: log}
	p, err := h.find(ctx, tool{name: name, pkg: pkg, places: []string{folder}})
	return p.path, p.env, err
}

// Psql is Postgres's client of the same version as the server that Start finds.
func Psql(ctx context.Context, log io.Writer) (path string, env []string, err error) {
	h := &home{log: log}
	p, err := h.find(ctx, initdbTool())
	p = p.sibling("psql")
	return p.path, p.env, err
}
