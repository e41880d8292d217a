package explain

import (
	"time"

	"sluice/core/fleet"
)

// Forecast says when limits are reached if all goes on as it is; empty where none is, or is already.
func Forecast(s fleet.Spend) string {
	day, period := reached("daily limit", s.DailyAt, s.Today >= s.Daily), reached("limit of "+s.Period.Name, s.Period.At, s.Period.Spent >= s.Period.Limit)
	if day == "" {
		return period
	}
	return tail(day, "; ", period)
}

func reached(limit string, at time.Time, already bool) string {
	if at.IsZero() || already {
		return ""
	}
	return "at this rate the " + limit + " is reached at " + moment(at)
}
