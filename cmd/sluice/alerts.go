package main

import (
	"context"

	"sluice/core/fleet"
)

// alertsAloud is what channels of kind log write to where a person runs a tick.
type alertsAloud struct{ *app }

var _ fleet.Alerter = alertsAloud{}

// Send implements fleet.Alerter.
func (a alertsAloud) Send(_ context.Context, m fleet.Message) (string, error) {
	return "said", a.say("Alert (%s): %s", m.Level, m.Title)
}
