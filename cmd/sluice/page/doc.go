// Package page serves the live state of a deployment to browsers: read from its database, pushed as server-sent events.
package page
