package config

import (
	"regexp"
	"slices"
	"time"
)

// names of queues and pools become tags, keys and metrics.
var name = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

func (r *review) named(p path, what, n string) {
	if !name.MatchString(n) {
		r.fail(p, "found the name %s, expected 1 to 63 letters, digits, dots, hyphens and underscores, a letter or digit first", quote(n))
	}
	if n == "vps" {
		r.fail(p, "a %s cannot be named vps; that is the name of the VPS's own workers", what)
	}
}

func (r *review) general() {
	r.zone(path{"timezone"}, r.f.Timezone)
	if r.f.Connections.Database.URL == nil {
		r.fail(path{"connections", "database", "url"}, "found null, but nothing works without the database; expected a reference such as env:DATABASE_URL")
	}
	for from, rate := range r.f.ExchangeRates {
		r.rate(path{"exchange_rates", from}, from, rate)
	}
}

var currency = regexp.MustCompile(`^[A-Z]{3}$`)

func (r *review) rate(p path, from string, rate Rate) {
	if !currency.MatchString(from) {
		r.fail(p, "found the key %s, expected a currency code such as EUR", quote(from))
		return
	}
	if zero(Price(rate)) {
		r.fail(p, "found 0, expected what one %s is worth in %s", from, r.f.Currency)
	}
}

func (r *review) zone(p path, zone string) {
	if zone == "" || zone == "Local" {
		r.fail(p, "found %s, expected an IANA time zone such as Europe/Paris, or UTC", quote(zone))
		return
	}
	if _, err := time.LoadLocation(zone); err != nil {
		r.fail(p, "found %s, which is no known time zone; expected an IANA name such as Europe/Paris, or UTC", quote(zone))
	}
}

func (r *review) limits() {
	l := r.f.CostLimits
	p := path{"cost_limits"}
	if l.AlertThresholdCents > l.MaxDailySpendCents {
		r.fail(p.key("alert_threshold_cents"), "%d is above max_daily_spend_cents %d, so the alert would come after the limit; expected at most %d%s",
			l.AlertThresholdCents, l.MaxDailySpendCents, l.MaxDailySpendCents, r.byDefault(p.key("alert_threshold_cents")))
	}
	if l.MaxHourlySpendCents > l.MaxDailySpendCents {
		r.fail(p.key("max_hourly_spend_cents"), "%d is above max_daily_spend_cents %d, so it would limit nothing; expected at most %d%s",
			l.MaxHourlySpendCents, l.MaxDailySpendCents, l.MaxDailySpendCents, r.byDefault(p.key("max_hourly_spend_cents")))
	}
	if most := l.MaxPeriodSpendCents; most != nil && *most < l.MaxDailySpendCents {
		r.fail(p.key("max_period_spend_cents"), "%d is below max_daily_spend_cents %d; expected at least %d", *most, l.MaxDailySpendCents, l.MaxDailySpendCents)
	}
	if r.f.Mode != "vps_only" && slices.ContainsFunc(r.f.views(), func(v view) bool { return v.enabled(r.f) }) {
		r.positive(p.key("max_hourly_spend_cents"), l.MaxHourlySpendCents)
		r.positive(p.key("max_daily_spend_cents"), l.MaxDailySpendCents)
	}
}

// byDefault reminds of a figure that the file does not mention.
func (r *review) byDefault(p path) string {
	if r.set(p) {
		return ""
	}
	return "; it is the default, so set it too"
}

func (r *review) positive(p path, cents int) {
	if cents == 0 {
		r.fail(p, "found 0 while the mode is %s and a queue is cloud_enabled, so nothing could ever be started; expected a limit above 0, or mode vps_only", r.f.Mode)
	}
}

func (r *review) workers() {
	w := r.f.Workers
	p := path{"workers"}
	if w.VisibilityTimeoutSeconds < 2*w.HeartbeatSeconds {
		r.fail(p.key("visibility_timeout_seconds"), "%d is less than two heartbeats of %d s, so jobs in hand would be given away; expected at least %d",
			w.VisibilityTimeoutSeconds, w.HeartbeatSeconds, 2*w.HeartbeatSeconds)
	}
	if w.LostDatabaseMinutes*60 < 2*w.HeartbeatSeconds {
		r.fail(p.key("lost_database_minutes"), "%d is less than two heartbeats of %d s, so one lost heartbeat would end a worker", w.LostDatabaseMinutes, w.HeartbeatSeconds)
	}
	if w.BootTimeoutSeconds >= w.MaxLifetimeHours*3600 {
		r.fail(p.key("boot_timeout_seconds"), "%d is not below max_lifetime_hours %d, so a machine could end before it works", w.BootTimeoutSeconds, w.MaxLifetimeHours)
	}
}
