package postgres

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"sluice/core/fleet"
)

// advice is what a person does about an error of the server, by its code.
func advice(pg *pgconn.PgError) string {
	switch pg.Code {
	case "3D000":
		return "the database does not exist: create it, then run `sluice migrate`"
	case "53300":
		return "the server has no connection left: put a pooler in front or raise max_connections"
	case "25006":
		return "the server is read-only: name the primary in the database URL, not a replica"
	case "42501":
		return "the role may not do this: GRANT sluice_functions (for functions and people) or sluice_worker (for workers) to it"
	case "55P03":
		return "another tick has held the lock for too long"
	case "57P01", "57P02", "57P03":
		return "the server is starting or stopping: try again"
	}
	return ""
}

// explain adds what was done and what to do. It never adds the URL; pgx leaves the password out.
func explain(verb string, err error) error {
	if err == nil || errors.Is(err, fleet.ErrSchema) {
		return err
	}
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		var connect *pgconn.ConnectError
		if errors.As(err, &connect) {
			return fmt.Errorf("%s: %w (is the server running, and reachable from here?)", verb, err)
		}
		return fmt.Errorf("%s: %w", verb, err)
	}
	if refusedLogin(err) {
		return fmt.Errorf("%s: %w: %s: check the user and password that the secret's reference leads to", verb, fleet.ErrAuth, pg.Message)
	}
	switch what := advice(pg); {
	case what != "":
		return fmt.Errorf("%s: %w: %s", verb, err, what)
	case pg.Hint != "":
		return fmt.Errorf("%s: %w: %s", verb, err, pg.Hint)
	}
	return fmt.Errorf("%s: %w", verb, err)
}

// poolerRefused recognises PgBouncer, which has one code for all of its refusals.
func poolerRefused(pg *pgconn.PgError) bool {
	return pg.Code == "08P01" && (strings.Contains(pg.Message, "authentication failed") ||
		strings.Contains(pg.Message, "login failed") || strings.Contains(pg.Message, "auth failed"))
}

// missing says that a table or a column is not there.
func missing(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "42P01" || pg.Code == "42703" || pg.Code == "42883")
}

// severe says that the server ended the connection with this error, so that what it had done by then is not known.
func severe(pg *pgconn.PgError) bool { return pg.Severity == "FATAL" || pg.Severity == "PANIC" }
