package explain

import (
	"fmt"

	"sluice/core/fleet"
)

func (words) intent(r fleet.Reason) string {
	switch r := r.(type) {
	case fleet.Adopted:
		return tail(fmt.Sprintf("machine %s was adopted (%s)", r.Machine, r.Cause), ", it answers intent ", r.Intent)
	case fleet.Repeated:
		return fmt.Sprintf("the %s of intent %s is sent again under the same token, call %d", r.Kind, r.Intent, r.Calls)
	case fleet.Waiting:
		return fmt.Sprintf("intent %s has an unanswered call that may still take effect, waiting until %s", r.Intent, moment(r.Until))
	case fleet.Abandoned:
		return fmt.Sprintf("intent %s is given up: %s; its money stays reserved until two late lists show nothing", r.Intent, cause(r.Cause))
	case fleet.Released:
		return fmt.Sprintf("intent %s showed nothing in two late lists, its money is free again", r.Intent)
	}
	return ""
}

// cause spells out why an intent was given up.
func cause(code string) string {
	switch code {
	case "not_wanted":
		return "no longer wanted"
	case "too_old":
		return "too old to be repeated safely"
	}
	return code
}

func (w words) orphan(r fleet.Reason) string {
	switch r := r.(type) {
	case fleet.OrphanSeen:
		whose := "our tag, no row"
		if r.Foreign {
			whose = "our name with another deployment's id"
		}
		return fmt.Sprintf("orphan %s machine %s: %s, first seen %s; it counts as spend and goes if it is seen again",
			r.Provider, r.Machine, whose, moment(r.First))
	case fleet.OrphanRemoved:
		return tail(fmt.Sprintf("orphan %s machine %s: our tag, no row, first seen %s, about %s; it is removed",
			r.Provider, r.Machine, moment(r.First), w.money(r.Cost)), "; its tag names intent ", r.Intent)
	case fleet.OrphansTooMany:
		return fmt.Sprintf("%d of %s look orphaned: the database is suspected and none is removed; "+
			"check which database this is, then run `sluice adopt --all`", r.Orphans, machines(r.Machines))
	case fleet.PlaceUnknown:
		return tail(r.Place+" could not be listed, so nothing there is taken for gone", ": ", r.Cause)
	}
	return ""
}

func (w words) books(r fleet.Reason) string {
	switch r := r.(type) {
	case fleet.DailyLimit:
		return fmt.Sprintf("daily limit %s: %s %s + still to come %s = %s; mode is vps_only until `sluice resume-cloud`, %s",
			w.money(r.Limit), sourceWord(r.Source), amount(r.Accrued), amount(r.Tail), // what is reserved is to come
			amount(r.Accrued+r.Tail), draining(r.Draining, r.Jobs))
	case fleet.PeriodLimit:
		return fmt.Sprintf("limit %s of %s: accrued %s + still to come %s = %s; mode is vps_only until `sluice resume-cloud`, %s",
			w.money(r.Limit), r.Period, amount(r.Accrued), amount(r.Tail), // what is reserved is to come
			amount(r.Accrued+r.Tail), draining(r.Draining, r.Jobs))
	case fleet.NearDailyLimit:
		return tail(fmt.Sprintf("today's spend %s has reached the alert threshold %s of the daily limit %s",
			amount(r.Accrued), amount(r.Threshold), w.money(r.Limit)), "; ", Forecast(fleet.Spend{Today: r.Accrued, Daily: r.Limit, DailyAt: r.At}))
	case fleet.ResumedCloud:
		return tail(fmt.Sprintf("%s lifted the override, the config's mode holds again", r.Who), ": ", r.Why)
	case fleet.ResumeRefused:
		budget, way := "today's budget", "raise max_daily_spend_cents or wait for the next day"
		if r.Period != "" {
			budget, way = "the budget of "+r.Period, "raise max_period_spend_cents or wait for the next period"
		}
		return fmt.Sprintf("the override stays: %s of %s is left and the cheapest pool costs %s per hour; %s", w.money(r.Left), budget, amount(r.Cheapest), way)
	case fleet.BootFailing:
		return fmt.Sprintf("%s in a row never registered: launches stop but for one probe at a time; look at the image and its agent",
			machines(r.Failures))
	case fleet.ConfigBroken:
		return tail("the config cannot be read, the last good one holds and nothing grows", ": ", r.Cause)
	}
	return ""
}

func sourceWord(source string) string {
	if source == "bill" {
		return "billed"
	}
	return "accrued"
}

func draining(workers, inHand int) string {
	return fmt.Sprintf("%s drained with %s in hand", isOrAre(workers, "worker", "workers"), jobs(inHand))
}
