package explain

import (
	"fmt"
	"strings"
	"time"

	"sluice/core/fleet"
)

// amountUnit is the finest amount shown to people: a ten-thousandth.
const amountUnit = fleet.Unit / 10_000

// amount writes money with two to four decimals. What is there but too small to show is shown as
// the smallest amount, because "over by 0.00" reads as a mistake.
func amount(m fleet.Money) string {
	rounded := (m + amountUnit/2) / amountUnit * amountUnit
	if m > 0 && rounded == 0 {
		rounded = amountUnit
	}
	return rounded.String()
}

// money is amount with the currency, where one is known.
func (w words) money(m fleet.Money) string {
	if w.currency == "" {
		return amount(m)
	}
	return amount(m) + " " + w.currency
}

// moment writes a time in full, since a line may be read days later.
func moment(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}

// span writes a duration as people say it, with at most two units.
func span(s fleet.Seconds) string {
	switch h, m := s/3600, s/60; {
	case s < 120:
		return fmt.Sprintf("%d s", s)
	case s < 7200:
		return twoUnits(m, "min", s%60, "s")
	case h < 48:
		return twoUnits(h, "h", m%60, "min")
	default:
		return twoUnits(h/24, "days", h%24, "h")
	}
}

func twoUnits(big fleet.Seconds, bigUnit string, small fleet.Seconds, smallUnit string) string {
	if small == 0 {
		return fmt.Sprintf("%d %s", big, bigUnit)
	}
	return fmt.Sprintf("%d %s %d %s", big, bigUnit, small, smallUnit)
}

// count writes a number with its noun.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func jobs(n int) string     { return count(n, "job", "jobs") }
func machines(n int) string { return count(n, "machine", "machines") }

// minutes says how long somebody was idle. None is possible where a config asks for no idle time.
func minutes(n int) string {
	if n == 0 {
		return "less than a minute"
	}
	return count(n, "minute", "minutes")
}

// tail adds a cause or a figure to a sentence where there is one.
func tail(sentence, before, more string) string {
	if more == "" {
		return sentence
	}
	return sentence + before + more
}

func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
