// Package docs holds the documents that the program can show as well.
package docs

import _ "embed" // the documents below

// Concepts says what Sluice's words mean.
//
//go:embed concepts.md
var Concepts string

// Configuration says what the settings file is, and ends with a table of every key.
//
//go:embed configuration.md
var Configuration string
