package explain

import (
	"time"

	"sluice/core/fleet"
)

// Forecast says when limits are reached if all goes on as it is; empty where none is, or is already.
func Forecast(s fleet.Spend) string {
	day, period := reached("the daily limit", s.DailyAt, s.Today >= s.Daily), reached("the limit of "+s.Period.Name, s.Period.At, s.Period.Spent >= s.Period.Limit)
	switch {
	case day == "" && period == "":
		return ""
	case day == "" || period == "":
		return "at this rate " + day + period
	}
	return "at this rate " + day + ", and " + period
}

func reached(limit string, at time.Time, already bool) string {
	if at.IsZero() || already {
		return ""
	}
	return limit + " is reached at " + moment(at)
}
