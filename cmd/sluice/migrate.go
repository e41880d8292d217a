package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"sluice/functions/host"
	"sluice/providers/postgres"
)

func (a *app) migrateCommand() *cobra.Command {
	grants := map[string]*string{"sluice_worker": new(string), "sluice_functions": new(string)}
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Bring the database to the schema of this program",
		Long: "Makes or updates the tables. Safe to repeat, and on a database where a host's tables exist already.\n" +
			"Workers and functions need less than the owner's rights: grant their login roles with the two flags.",
		Example: "  sluice migrate --database postgres://owner@db/app\n  sluice migrate --worker-role app_worker --functions-role app_scheduler",
		Args:    exactly(0),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.migrate(cmd.Context(), grants) },
	}
	cmd.Flags().StringVar(grants["sluice_worker"], "worker-role", "", "login role that shall be able to work: register, claim, complete")
	cmd.Flags().StringVar(grants["sluice_functions"], "functions-role", "", "login role that shall be able to evaluate and reconcile")
	return cmd
}

func (a *app) migrate(ctx context.Context, grants map[string]*string) error {
	url, err := host.DatabaseURL(ctx, a.options(), links()...)
	if err != nil {
		return err
	}
	notices, err := postgres.Migrate(ctx, url)
	if err != nil {
		return err
	}
	for _, group := range []string{"sluice_worker", "sluice_functions"} {
		if role := *grants[group]; role != "" {
			err = errors.Join(err, grant(ctx, url, group, role))
		}
	}
	if err != nil {
		return err
	}
	if a.asJSON {
		return a.writeJSON(map[string]any{"schema": postgres.Version, "notices": append([]string{}, notices...)})
	}
	for _, n := range notices {
		a.complain("%s", n)
	}
	return a.say("The database has schema %d.", postgres.Version)
}

func grant(ctx context.Context, url, group, role string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return errors.New("grant " + group + ": the database cannot be reached any more")
	}
	defer func() { _ = conn.Close(ctx) }() // nothing is left to be done on it
	if _, err := conn.Exec(ctx, "GRANT "+group+" TO "+pgx.Identifier{role}.Sanitize()); err != nil {
		return fmt.Errorf("grant %s to %s: %w; is it the name of a role, and may this user grant?", group, role, err)
	}
	return nil
}
