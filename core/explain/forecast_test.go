package explain

import (
	"strings"
	"testing"
	"time"

	"sluice/core/fleet"
)

func TestForecast(t *testing.T) {
	t.Parallel()
	day, period := noon.Add(4*time.Hour+40*time.Minute), noon.Add(72*time.Hour)
	books := fleet.Spend{Today: 3, Daily: 50, DailyAt: day}
	both := books
	both.Period = fleet.PeriodSpend{Name: "2027-01", Spent: 3, Limit: 90, At: period}
	for want, s := range map[string]fleet.Spend{
		"": {Today: 3, Daily: 50},
		"at this rate the daily limit is reached at 2027-01-14 16:40:00 UTC":                                                                 books,
		"at this rate the daily limit is reached at 2027-01-14 16:40:00 UTC, and the limit of 2027-01 is reached at 2027-01-17 12:00:00 UTC": both,
		"at this rate the limit of 2027-01 is reached at 2027-01-17 12:00:00 UTC":                                                            {Today: 3, Daily: 50, Period: both.Period},
	} {
		if got := Forecast(s); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	over := both
	over.Today, over.Period.Spent = 50, 90
	if got := Forecast(over); got != "" {
		t.Errorf("of limits that are reached it says %q", got)
	}
}

func TestTheTickLineHasTheForecastAndThePeriod(t *testing.T) {
	t.Parallel()
	p := fleet.Plan{Function: fleet.Evaluate, Spend: fleet.Spend{
		Rate: fleet.Unit, Today: 2 * fleet.Unit, Daily: 50 * fleet.Unit, DailyAt: noon.Add(time.Hour),
		Period: fleet.PeriodSpend{Name: "2027-W02", Spent: 7 * fleet.Unit, Limit: 90 * fleet.Unit, At: noon.Add(48 * time.Hour), Unknown: true},
	}}
	lines := Lines(p, fleet.Config{Currency: "USD"})
	got, want := string(lines[len(lines)-1].Facts), `"usd":{"hour":1,"today":2,"day_limit":50,"day_limit_at":"2027-01-14T13:00:00Z",`+
		`"period":"2027-W02","in_period":7,"period_limit":90,"period_limit_at":"2027-01-16T12:00:00Z","period_unknown":true}`
	if !strings.Contains(got, want) {
		t.Errorf("facts %s, want %s among them", got, want)
	}
	p.Spend = fleet.Spend{Rate: fleet.Unit, Today: 2 * fleet.Unit, Daily: 50 * fleet.Unit}
	if got := string(Lines(p, fleet.Config{Currency: "USD"})[0].Facts); strings.Contains(got, "_at") || strings.Contains(got, "period") {
		t.Errorf("without a forecast: %s", got)
	}
}
