// Package postgres keeps Sluice's memory, its clock and its lock in a Postgres database, and holds the jobs and what workers may do with them.
package postgres
