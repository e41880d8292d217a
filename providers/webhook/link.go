package webhook

import (
	"context"

	"sluice/core/fleet"
)

// Link is this provider as a program is built with it.
func Link() fleet.Link {
	return fleet.Link{
		Provider: "webhook",
		Alerters: map[fleet.ChannelKind]func(fleet.Channel, func(context.Context, string) (string, error)) fleet.Alerter{
			fleet.ChannelWebhook: func(c fleet.Channel, read func(context.Context, string) (string, error)) fleet.Alerter {
				return New(c, read)
			},
		},
	}
}
