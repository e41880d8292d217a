package main

import (
	"sluice/core/fleet"
	"sluice/providers/file"
	"sluice/providers/local"
	"sluice/providers/postgres"
	"sluice/providers/redis"
	"sluice/providers/webhook"
)

// links are the providers that this program carries.
func links() []fleet.Link {
	return []fleet.Link{file.Link(), postgres.Link(), redis.Link(), local.Link(), webhook.Link()}
}
