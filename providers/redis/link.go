package redis

import "sluice/core/fleet"

// Link is this provider as a program is built with it.
func Link() fleet.Link {
	return fleet.Link{
		Provider: "redis",
		Queues: map[fleet.SourceKind]func(fleet.Secret) fleet.Queues{
			fleet.SourceRedis: func(url fleet.Secret) fleet.Queues { return New(url) },
		},
	}
}
