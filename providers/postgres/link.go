package postgres

import (
	"context"

	"sluice/core/fleet"
)

// Link is this provider as a program is built with it.
func Link() fleet.Link {
	return fleet.Link{
		Provider: "postgres",
		Database: func(ctx context.Context, url fleet.Secret) (fleet.Database, error) {
			db, err := Open(ctx, url)
			if err != nil {
				return nil, err
			}
			return db, nil
		},
	}
}
