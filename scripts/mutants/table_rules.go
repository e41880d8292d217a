package main

// rules are what is wanted and what limits it.
func rules() []mutant {
	const (
		census = "core/decide/census.go"
		demand = "core/decide/demand.go"
		shrink = "core/decide/shrink.go"
		limits = "core/decide/limits.go"
		grow   = "core/decide/grow.go"
		health = "core/decide/health.go"
	)
	return []mutant{
		in(demand, "rule", "an unreadable queue counts as empty", "if st, ok := d.queues[q.Name]; !ok || st.Unknown != \"\" {", "if st := d.queues[q.Name]; false && st.Unknown != \"\" {"),
		in(demand, "rule", "the depth threshold is passed, not reached", "deep := q.Depth > 0 && st.Depth >= q.Depth", "deep := q.Depth > 0 && st.Depth > q.Depth"),
		in(demand, "rule", "the age threshold is passed, not reached", "st.Oldest >= q.Age\n	switch", "st.Oldest > q.Age\n	switch"),
		in(demand, "rule", "booting workers do not answer for the backlog", "case deep && st.Depth >= q.Depth*(boots+1):", "case deep:"),
		in(demand, "rule", "booting workers do not answer for an old job", "case old && boots == 0:", "case old:"),
		in(census, "rule", "workers that drain count as available", "	return len(c.ready) + len(c.silent) +", "	return len(c.draining) + len(c.ready) + len(c.silent) +"),
		in(census, "rule", "workers that drain do not count against the ceiling", "return c.have() + len(c.draining) +", "return c.have() +"),
		in(census, "rule", "the VPS does not count against the ceiling", "len(c.suspended) + c.doomed + c.vps", "len(c.suspended) + c.doomed"),
		in(census, "rule", "machines asked for do not count", "len(c.booting) + c.asked + len(c.resuming)\n}\n\n// boots", "len(c.booting) + len(c.resuming)\n}\n\n// boots"),
		in(demand, "rule", "the lowest tier reached wins", "for i := len(q.Steps) - 1; i >= 0; i-- {", "for i := range q.Steps {"),
		in(demand, "rule", "the top tier alerts nobody", "if !ok || b.Tier < len(q.Steps) {", "if !ok || b.Tier <= len(q.Steps) {"),
		in(shrink, "rule", "busy workers may go", "	if w.Busy() {\n		return fleet.KeptBusy{Jobs: w.Jobs}\n	}\n", ""),
		in(shrink, "rule", "idle for no time at all", "idle < time.Duration(f.IdleMinutes)*time.Minute", "idle < 0"),
		in(shrink, "rule", "workers go while their queue has work", "if st.Depth >= q.DepthBelow {", "if false {"),
		in(shrink, "rule", "the minimum charge is thrown away", "if left := w.CostFrom.Add(w.MinCharge.Duration()).Sub(d.now); left > 0 {", "if left := time.Duration(0); left > 0 {"),
		in(shrink, "rule", "scale-in is no fixed point", "&& d.policy(f, f.want-n-1, f.boots()) <= f.want-n-1 {", "{"),
		in(shrink, "rule", "the cooldown of scale-down is ignored", "if left := d.coolingDown(f); left > 0 {\n			f.step", "if left := d.coolingDown(f); left < 0 {\n			f.step"),
		in(limits, "rule", "the mode starts machines", "case d.s.Config.Mode == fleet.VPSOnly:\n		why = fleet.LimitMode", "case false:\n		why = fleet.LimitMode"),
		in(limits, "rule", "the override is ignored", "case o != nil:\n		why = fleet.LimitOverride", "case o != nil && o.ID == \"\":\n		why = fleet.LimitOverride"),
		in(limits, "rule", "a queue that is not enabled starts machines", "case !f.known || !f.Enabled:\n		why", "case !f.known:\n		why"),
		in(limits, "rule", "automatic: false starts machines", "if !f.Automatic && f.want > have {", "if false {"),
		in(limits, "rule", "max_workers is not a ceiling", "	if f.want > most {\n		f.step(most, fleet.LimitCeiling{", "	if f.want > most+1000 {\n		f.step(most, fleet.LimitCeiling{"),
		in(limits, "rule", "the cooldown of scale-up is ignored", "if left > 0 && f.want > most {", "if left < 0 && f.want > most {"),
		in(limits, "rule", "a replacement waits for the cooldown", "have + max(f.memory.Lost, len(d.undrainable(f)))", "have + len(d.undrainable(f))"),
		in(limits, "rule", "no breaker", "f.memory.BootFailures < breakerAfter {", "f.memory.BootFailures < 1000*breakerAfter {"),
		in(grow, "rule", "max_instances of a provider is no limit", "n = min(n, d.room(best.Provider))", "n = min(n, 1000+d.room(best.Provider))"),
		in(grow, "rule", "an offer that cools off is tried", "case d.now.Before(cool.Until):", "case false:"),
		in(grow, "rule", "launches in a place that cannot be seen", "case !listed || !l.Complete():", "case !listed && !l.Complete() && d.now.IsZero():"),
		in(grow, "rule", "above spot_max_price", "case o.MaxPrice > 0 &&", "case o.MaxPrice < 0 &&"),
		in(grow, "rule", "on-demand where it was forbidden", "return fleet.OfferWaitsForSpot{Never: true}", "return nil"),
		in(grow, "rule", "the dearest offer first", "cmp.Compare(a.price, b.price) })", "cmp.Compare(b.price, a.price) })"),
		in(health, "rule", "the boot timeout does not follow observed boots", "max(c.Workers.BootTimeout.Duration(), m.SlowestBoot.Duration()*3/2)", "c.Workers.BootTimeout.Duration()"),
		in(health, "rule", "silence is never noticed", "quiet >= d.silence() {\n		w.silent", "quiet < 0 {\n		w.silent"),
		in(health, "rule", "a silent database drains everything", "if silent < 2 || silent*5 <= of {", "if true {"),
		in(health, "rule", "workers live past their expiry", "if d.expiresWithin(w, p.DrainTimeout.Duration()) {\n		return", "if false {\n		return"),
		in("core/decide/drains.go", "rule", "a drain is never forced", "forced := age >= p.DrainTimeout.Duration() || expired", "forced := expired"),
		in("core/decide/drains.go", "rule", "the force comes at once", "forced := age >= p.DrainTimeout.Duration() || expired", "forced := age >= 0 || expired"),
		in("core/tick/observe.go", "rule", "stale ids of a list start machines", "if list.Unknown == \"\" && list.Depth < rows.Depth {", "if list.Unknown == \"\" {"),
		in("core/tick/observe.go", "rule", "keys that are not honoured are ignored", "keys := slices.Clone(c.NotHonoured)", "keys := []string(nil)"),
	}
}

// money is the guard before each launch, and the daily rule.
func money() []mutant {
	const spend, judge, span, inventory = "core/spend/spend.go", "core/decide/money.go", "core/fleet/span.go", "core/decide/inventory.go"
	return []mutant{
		in(spend, "money", "no hourly limit", "over := b.Rate + b.Reserved + add - b.Hourly; over > 0", "over := b.Rate + b.Reserved + add - b.Hourly; over > 1<<60"),
		in(spend, "money", "what is reserved does not count against the hourly limit", "over := b.Rate + b.Reserved + add - b.Hourly", "over := b.Rate + add - b.Hourly"),
		in(spend, "money", "no daily limit before a launch", "over := b.Today + tail + next*fleet.Money(n) - b.Daily; over > 0", "over := b.Today + tail + next*fleet.Money(n) - b.Daily; over > 1<<60"),
		in(spend, "money", "a breach is noticed when the limit is passed", "return b.Today+b.Tail > b.Daily", "return b.Today > b.Daily"),
		in(span, "money", "no minimum charge", "return max(t.rounded(d), t.MinCharge.Duration())", "return t.rounded(d)"),
		in(span, "money", "a begun increment is not charged whole", "return d + step - d%step", "return d"),
		in("core/spend/account.go", "money", "what is begun before the end of a drain is not foreseen", "more := l.Terms().More(ran, o.ahead, whole)", "more := o.ahead"),
		in(inventory, "money", "a suspended machine of an unknown price costs nothing", "return price\n	}\n	return w.Price", "return price\n	}\n	return 0"),
		in(spend, "money", "orphans cost nothing", "	for _, o := range m.Sightings {\n		rate += o.Price\n	}\n", ""),
		in(spend, "money", "a bill is never dearer than own books", "sum += b.Excess", "sum += 0 * b.Excess"),
		in(spend, "money", "suspended machines cost as if they ran", "return w.Idle", "return w.Price"),
		in(judge, "money", "the override is lifted whatever is left", "if !d.books.Breached() && left >= cheapest {", "if true {"),
		in(judge, "money", "the threshold alerts nobody", "if d.books.Near(d.s.Config.Limits.Alert) {", "if false {"),
		in(judge, "money", "extras cost nothing", "out[o.Key()] = price + s.Config.Limits.Extras", "out[o.Key()] = price"),
		in("core/decide/pool.go", "money", "the least urgent pool is served first", "cmp.Compare(a.Urgency, b.Urgency)", "cmp.Compare(b.Urgency, a.Urgency)"),
	}
}
