package explain

import (
	"fmt"
	"strings"

	"sluice/core/fleet"
)

// words speaks of money in one currency.
type words struct{ currency string }

// Reason says why in one clause, without a capital or a full stop, so that it can stand alone or
// after a colon. Amounts have no currency; Lines and Story name the config's.
func Reason(r fleet.Reason) string { return words{}.reason(r) }

func (w words) reason(r fleet.Reason) string {
	if r == nil {
		return "no reason was given"
	}
	if s := w.say(r); s != "" {
		return s
	}
	facts, err := fleet.MarshalReason(r)
	if err != nil {
		return r.Code()
	}
	return r.Code() + " " + string(facts)
}

// say asks each family of reasons for its words; empty means that none has any.
func (w words) say(r fleet.Reason) string {
	families := [...]func(fleet.Reason) string{
		w.skipped, w.demand, w.floor, w.limit, w.spendLimit, w.offer,
		w.kept, w.drained, w.ended, w.intent, w.orphan, w.books,
	}
	for _, family := range families {
		if s := family(r); s != "" {
			return s
		}
	}
	return ""
}

func (words) skipped(r fleet.Reason) string {
	switch r := r.(type) {
	case fleet.SkipRepeated:
		return fmt.Sprintf("due time %s was handled already, the last one was %s", moment(r.Due), moment(r.Last))
	case fleet.SkipNotDue:
		return fmt.Sprintf("not due: the last tick was due at %s and the interval is %s", moment(r.Last), span(r.Interval))
	case fleet.SkipNotConfigured:
		return tail("not configured yet: no config was ever loaded", "; put one at ", r.Where)
	}
	return ""
}

// queueFigures are the two figures that a queue is judged by, written as the log always had them.
func queueFigures(depth int, oldest fleet.Seconds) string {
	return fmt.Sprintf("depth=%d, oldest=%ds", depth, oldest)
}

func (words) demand(r fleet.Reason) string {
	switch r := r.(type) {
	case fleet.Unobserved:
		return tail("queue "+r.Queue+" could not be read, so nothing is removed", ": ", r.Cause)
	case fleet.BacklogDepth:
		return fmt.Sprintf("queue %s: %s, and depth %d is enough", r.Queue, queueFigures(r.Depth, r.Oldest), r.Threshold)
	case fleet.BacklogAge:
		return fmt.Sprintf("queue %s: %s, and an age of %ds is enough", r.Queue, queueFigures(r.Depth, r.Oldest), r.Threshold)
	case fleet.BacklogStep:
		return fmt.Sprintf("queue %s: %s, and tier %d wants %s in all",
			r.Queue, queueFigures(r.Depth, r.Oldest), r.Tier, count(r.Workers, "worker", "workers"))
	case fleet.Awaiting:
		return tail(fmt.Sprintf("queue %s: %s, and %s booting for it, awaited for up to %s more",
			r.Queue, queueFigures(r.Depth, r.Oldest), isOrAre(r.Booting, "machine", "machines"), span(r.LeftS)),
			": ", strings.Join(r.Workers, ", "))
	case fleet.BelowThreshold:
		return fmt.Sprintf("queue %s: %s, below its thresholds", r.Queue, queueFigures(r.Depth, r.Oldest))
	case fleet.TopTier:
		return fmt.Sprintf("queue %s has reached the highest tier of its policy: %s", r.Queue, queueFigures(r.Depth, r.Oldest))
	}
	return ""
}

func isOrAre(n int, one, many string) string {
	if n == 1 {
		return "1 " + one + " is"
	}
	return fmt.Sprintf("%d %s are", n, many)
}

func (words) floor(r fleet.Reason) string {
	switch r := r.(type) {
	case fleet.FloorBaseline:
		return fmt.Sprintf("queue %s: cloud workers hold its baseline of %d", r.Queue, r.Baseline)
	case fleet.FloorWork:
		return fmt.Sprintf("queue %s has work and no cloud worker: depth=%d, running=%d", r.Queue, r.Depth, r.Running)
	case fleet.FloorMinReady:
		return fmt.Sprintf("min_ready keeps %s", count(r.MinReady, "worker", "workers"))
	case fleet.Idle:
		return count(r.Workers, "worker has", "workers have") + " nothing to do and may go"
	}
	return ""
}

func (w words) limit(r fleet.Reason) string {
	switch r := r.(type) {
	case fleet.LimitMode:
		return fmt.Sprintf("mode %s allows no cloud worker", r.Mode)
	case fleet.LimitOverride:
		return tail(fmt.Sprintf("held at vps_only since %s until somebody runs `sluice resume-cloud`", moment(r.Since)), ": ", r.Why)
	case fleet.LimitNotEnabled:
		return fmt.Sprintf("pool %s may not use the cloud: no queue of it is cloud_enabled, or its provider is not enabled", r.Pool)
	case fleet.LimitManual:
		return "automatic is false: only people start machines here"
	case fleet.LimitCeiling:
		return fmt.Sprintf("max_workers %d is reached: VPS %d, active %d, draining %d, suspended %d",
			r.Max, r.VPS, r.Active, r.Draining, r.Suspended)
	case fleet.LimitProvider:
		return fmt.Sprintf("max_instances %d of %s is reached: %d there or asked for", r.Max, r.Provider, r.Running)
	case fleet.LimitCooldown:
		return fmt.Sprintf("cooldown: last scaled %s at %s, %s left", r.Direction, moment(r.Last), span(r.LeftS))
	case fleet.LimitBreaker:
		return fmt.Sprintf("%s in a row never registered; the next attempt is at %s", machines(r.Failures), moment(r.Until))
	case fleet.LimitFrozen:
		return tail("nothing grows on this config", ": ", r.Cause)
	case fleet.LimitOffers:
		return count(r.Offers, "offer was", "offers were") + " looked at and none can be had"
	}
	return ""
}

func (w words) spendLimit(r fleet.Reason) string {
	switch r := r.(type) {
	case fleet.LimitHourly:
		return fmt.Sprintf("hourly limit %s, running %s, %snext machine %s, over by %s",
			w.money(r.Limit), amount(r.Running), w.reserved(r.Reserved), amount(r.Next), amount(r.Over)) + holders("held by", r.HeldBy)
	case fleet.LimitDaily:
		return fmt.Sprintf("daily limit %s, accrued %s, still to come %s, next machine %s, over by %s",
			w.money(r.Limit), amount(r.Accrued), amount(r.Tail), amount(r.Next), amount(r.Over)) + holders("spent by", r.HeldBy)
	case fleet.LimitPeriod:
		if r.Unknown {
			return fmt.Sprintf("limit %s of %s: what it has cost so far is not known until the next tick", w.money(r.Limit), r.Period)
		}
		return fmt.Sprintf("limit %s of %s, accrued %s, still to come %s, next machine %s, over by %s",
			w.money(r.Limit), r.Period, amount(r.Accrued), amount(r.Tail), amount(r.Next), amount(r.Over))
	}
	return ""
}

// holders names pools; who reads it knows whose machines to look at.
func holders(how string, pools []string) string {
	if len(pools) == 0 {
		return ""
	}
	return ", " + how + " " + strings.Join(pools, ", ")
}

func (words) reserved(m fleet.Money) string {
	if m == 0 {
		return ""
	}
	return "reserved " + amount(m) + ", "
}

func (w words) offer(r fleet.Reason) string {
	switch r := r.(type) {
	case fleet.OfferNoPrice:
		if r.Currency != "" {
			return fmt.Sprintf("it is quoted in %s, and exchange_rates.%s is missing: its price is unknown, and unknown is not free", r.Currency, r.Currency)
		}
		return "its price is unknown, and unknown is not free; name one under prices"
	case fleet.OfferDearer:
		return fmt.Sprintf("dearer: %s per hour, another costs %s", w.money(r.Price), amount(r.Best))
	case fleet.OfferAboveCap:
		return fmt.Sprintf("costs %s per hour, above spot_max_price %s", w.money(r.Price), amount(r.Cap))
	case fleet.OfferCoolingOff:
		return tail("cooling off until "+moment(r.Until), " after a refusal: ", r.Refused)
	case fleet.OfferPlaceUnknown:
		return tail("its machines could not be listed, so none is started there", ": ", r.Cause)
	case fleet.OfferFull:
		return fmt.Sprintf("max_instances %d of the provider is reached: %d run", r.Max, r.Running)
	case fleet.OfferWaitsForSpot:
		if r.Never {
			return "on-demand is never bought for this pool"
		}
		return fmt.Sprintf("on-demand waits %s more for spot", span(r.LeftS))
	case fleet.OfferOverBudget:
		return fmt.Sprintf("at %s per hour it would pass a limit", w.money(r.Price))
	}
	return ""
}
