// Package redis counts the jobs that wait in Redis lists and keeps those lists in step with the job table.
package redis
