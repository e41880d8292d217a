package host

import "sluice/core/fleet"

// alerters open channels: the host's own log, and what providers bring along.
func (r refs) alerters() map[fleet.ChannelKind]func(fleet.Channel) fleet.Alerter {
	out := map[fleet.ChannelKind]func(fleet.Channel) fleet.Alerter{}
	if r.options.Log != nil {
		out[fleet.ChannelLog] = func(fleet.Channel) fleet.Alerter { return r.options.Log }
	}
	for _, l := range r.links {
		for kind, open := range l.Alerters {
			out[kind] = func(c fleet.Channel) fleet.Alerter { return open(c, r.resolve) }
		}
	}
	return out
}

// Alerters open the channels of a config, for who tries them out.
func Alerters(o Options, links ...fleet.Link) map[fleet.ChannelKind]func(fleet.Channel) fleet.Alerter {
	return newRefs(o, links).alerters()
}
