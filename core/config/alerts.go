package config

import (
	"net/url"
	"slices"

	"sluice/core/fleet"
)

// of are the channels that a level names; one that is left out goes to the log.
func (l Levels) of(level fleet.Level) []string {
	names := map[fleet.Level][]string{fleet.Info: l.Info, fleet.Warning: l.Warning, fleet.Critical: l.Critical}[level]
	if names == nil {
		return []string{fleet.AlertLog}
	}
	return names
}

// resolve is nothing where all alerts go to the log.
func (a Alerts) resolve() []fleet.Channel {
	all := !slices.ContainsFunc(fleet.Levels(), func(l fleet.Level) bool { return !slices.Contains(a.Levels.of(l), fleet.AlertLog) })
	if len(a.Channels) == 0 && all {
		return nil
	}
	var out []fleet.Channel
	for _, name := range a.names() {
		c := a.Channels[name]
		ch := fleet.Channel{Name: name, Kind: fleet.ChannelKind(c.Kind), URL: c.URL.orElse(""), Secret: c.Secret.orElse(""), Topic: c.TopicARN}
		switch ch.Kind {
		case fleet.ChannelWebhook:
			ch.Format = c.Format
		case "": // the log that is there without being listed
			ch.Kind = fleet.ChannelLog
		case fleet.ChannelLog, fleet.ChannelSNS:
		}
		for _, l := range fleet.Levels() {
			if slices.Contains(a.Levels.of(l), name) {
				ch.Levels = append(ch.Levels, l)
			}
		}
		out = append(out, ch)
	}
	return out
}

// names are those of all channels that there are.
func (a Alerts) names() []string {
	names := append(sortedKeys(a.Channels), fleet.AlertLog)
	slices.Sort(names)
	return slices.Compact(names)
}

func (r *review) alerts() {
	a := r.f.Alerts
	known := a.names()
	used := map[string]bool{}
	for level, names := range map[string][]string{"info": a.Levels.of(fleet.Info), "warning": a.Levels.of(fleet.Warning), "critical": a.Levels.of(fleet.Critical)} {
		for i, n := range names {
			used[n] = true
			if !slices.Contains(known, n) && r.sound(path{"alerts", "channels", n}) {
				r.unknown(path{"alerts", "levels", level}.index(i), "channel", n, known)
			}
		}
	}
	for _, name := range sortedKeys(a.Channels) {
		p := path{"alerts", "channels", name}
		r.channel(p, name, a.Channels[name])
		if !used[name] {
			r.warn(p, "no level names this channel, so nothing goes there; name it in alerts.levels")
		}
	}
	if len(a.Levels.of(fleet.Critical)) == 0 {
		r.warn(path{"alerts", "levels", "critical"}, "critical alerts go nowhere: a breach of the daily limit would reach nobody")
	}
	r.page(path{"alerts", "page_url"}, a.PageURL)
}

func (r *review) channel(p path, n string, c Channel) {
	if !name.MatchString(n) {
		r.fail(p, "found the name %s, expected 1 to 63 letters, digits, dots, hyphens and underscores, a letter or digit first", quote(n))
	}
	if n == fleet.AlertLog && c.Kind != string(fleet.ChannelLog) {
		r.fail(p, "a channel named log is the function's own log; give this one of kind %s another name", c.Kind)
	}
	if c.Kind == string(fleet.ChannelSNS) && c.TopicARN == "" {
		r.fail(p.key("topic_arn"), "missing; a channel of kind sns needs it")
	}
	if c.Kind != string(fleet.ChannelWebhook) {
		return
	}
	if c.URL == nil {
		r.fail(p.key("url"), "missing; a channel of kind webhook needs it")
	}
	if c.Secret == nil && c.Format != "slack" {
		r.warn(p, "no secret, so its messages are not signed, and whoever knows the address can send what looks like them")
	}
}

// page checks the address that messages link to.
func (r *review) page(p path, address string) {
	u, err := url.Parse(address)
	if address == "" || err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && u.User == nil {
		return
	}
	r.fail(p, "expected the address of the page, such as https://sluice.example.org/, without a password in it")
}
