// Package file reads settings and secrets from the filesystem and the environment.
package file
