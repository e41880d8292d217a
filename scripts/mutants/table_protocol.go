package main

// database are the points that Postgres keeps.
func database() []mutant {
	const functions = "migrations/00002_worker_functions.sql"
	return []mutant{
		sql("transact.go", "1", "no lock",
			`	fmt.Sprintf("SELECT pg_advisory_xact_lock(%d, hashtext((SELECT deployment::text FROM sluice_state)))", lockClass),`,
			`	fmt.Sprintf("SELECT %d", lockClass),`),
		sql("transact.go", "1", "an unknown outcome of COMMIT passes for a plain failure",
			`return fmt.Errorf("commit tick: %w: %w", fleet.ErrCommitUnknown, err)`, `return explain("commit tick", err)`),
		sql("settle.go", "5", "records that no claim guards",
			"held = `i.id = $1::uuid AND i.claim = $2 AND i.state IN ('open', $3)`", "held = `i.id = $1::uuid AND ($2 <> '' OR i.state = $3)`"),
		sql("settle.go", "3", "an answer that comes late leaves no row",
			`if machines := living(r.Machines); len(machines) > 0 {`, `if machines := living(r.Machines); len(machines) > 0 && r.State == "" {`),
		sql(functions, "9", "a claim does not lock its worker's row",
			"SELECT * INTO w FROM workers k WHERE k.id = sluice_claim.worker FOR NO KEY UPDATE;", "SELECT * INTO w FROM workers k WHERE k.id = sluice_claim.worker;"),
		sql(functions, "9", "a worker that drains claims on",
			"IF w.id IS NULL OR w.status <> 'ready' OR", "IF w.id IS NULL OR w.status NOT IN ('ready', 'draining') OR"),
		sql(functions, "4", "registration binds a machine of a launch that may have made two",
			" AND i.state = 'open' AND NOT i.idempotent)", " AND i.state = 'none' AND NOT i.idempotent)"),
		sql(functions, "7", "jobs of a worker that ended stay with it", "WHERE j.status = 'processing' AND j.claimed_by = ANY (lost_workers)",
			"WHERE j.status = 'none' AND j.claimed_by = ANY (lost_workers)"),
		sql(functions, "9", "a job goes to the worker on which it failed", "AND p.id <> ALL (avoid)", "AND (p.id <> ALL (avoid) OR true)"),
	}
}

// protocol are the points that the pure decision and the tick keep.
func protocol() []mutant {
	const (
		decide    = "core/decide/decide.go"
		recover   = "core/decide/recover.go"
		drains    = "core/decide/drains.go"
		inventory = "core/decide/inventory.go"
		orphans   = "core/decide/orphans.go"
		grow      = "core/decide/grow.go"
		tick      = "core/tick/tick.go"
		act       = "core/tick/act.go"
	)
	return []mutant{
		in(tick, "1", "acting after a COMMIT of unknown outcome",
			"	if err != nil {\n		return r, fmt.Errorf(\"write the decision: %w\", err)", "	if err != nil && !errors.Is(err, fleet.ErrCommitUnknown) {\n		return r, fmt.Errorf(\"write the decision: %w\", err)"),
		in("core/decide/admit.go", "1", "an older config may still launch", "case d.s.ConfigAt.Before(d.s.Memory.ConfigAt):", "case false:"),
		in(decide, "1", "a due time in the future is stored as it is", "if d.plan.Due.After(now) {", "if false {"),
		in("core/decide/admit.go", "1", "repeated due times are not skipped", "if !last.IsZero() && !due.After(last) {", "if false {"),
		in(grow, "2", "no reservation", "	d.books.Reserve(n, in.Reserve, in.Terms())\n", ""),
		in(grow, "2", "reservation for the cheapest offer only", "in.Reserve, in.MinFor = max(in.Reserve, o.price),", "in.Reserve, in.MinFor = offers[0].price,"),
		in(act, "2", "a new token on a repeat", "	for {\n		cloud, ok := w.Clouds", "	if repeat {\n		l := *a.Launch\n		l.Token += \"-again\"\n		a.Launch = &l\n	}\n	for {\n		cloud, ok := w.Clouds"),
		in(act, "3", "the next offer after an unknown outcome", "more := res.Outcome == fleet.OutcomeRefused &&", "more := res.Outcome != fleet.OutcomeDone &&"),
		in(act, "3", "the next offer after a refused repeat", "res.Outcome == fleet.OutcomeRefused && !repeat &&", "res.Outcome == fleet.OutcomeRefused &&"),
		in(recover, "4", "never repeat", "		d.take(in, true)\n		d.note(fleet.Warning, in.Pool, \"\", fleet.Repeated", "		d.note(fleet.Warning, in.Pool, \"\", fleet.Repeated"),
		in(recover, "4", "a repeat is judged at decision time only", "d.now.Add(d.s.Limit.Duration()).Sub(in.Last().First) > repeatFor", "d.now.Sub(in.Last().First) > repeatFor"),
		in(recover, "4", "no idempotency: repeat at once", " || !in.Idempotent && !in.absent:", " || in.absent && in.Calls() == 0:"),
		in(recover, "4", "no idempotency: repeat after one list", "in.lost, in.absent = true, twice", "in.lost, in.absent = true, late"),
		in(decide, "4", "no idempotency: a repeat does not start the count again", "in.Changed, in.dirty, in.EmptySince = d.now, true, time.Time{}", "in.Changed, in.dirty = d.now, true"),
		in(recover, "4", "no idempotency: adopt from a lagging list while a repeat is in flight", "if in.State == fleet.IntentOpen && d.risky(in) && !d.settled(in) {", "if false {"),
		in(recover, "4", "reservation released without the deadline", "return in.ClaimedUntil.Add(visibility.Duration())", "return in.Created.Add(0 * visibility.Duration())"),
		in(recover, "4", "cancel at once", "	d.settle(in, fleet.IntentAbandoned)\n	d.note(fleet.Warning", "	d.settle(in, fleet.IntentClosed)\n	d.note(fleet.Warning"),
		in(recover, "4", "no adoption", "		for _, o := range tagged[in.ID] {\n			d.bind(in, o)\n		}\n", "		_ = tagged\n"),
		in(act, "5", "a goroutine outlives the handler and sends later", "	wg.Wait()\n	slices.Sort(left)", "	slices.Sort(left)"),
		in(grow, "5", "un-draining a worker with a terminate intent", "if w.was == fleet.Draining && w.ending == nil && d.heard(w)", "if w.was == fleet.Draining && d.heard(w)"),
		in(recover, "5", "terminate not repeated", "	d.take(in, true)\n	d.note(fleet.Info, in.Pool, in.Worker", "	d.note(fleet.Info, in.Pool, in.Worker"),
		in(decide, "5", "claims that are too short", "d.now.Add(d.s.Limit.Duration()+claimMargin)", "d.now.Add(claimMargin/30)"),
		in(inventory, "6", "gone below the minimum age", "&& begun.Sub(w.BootAt) >= old {", "&& old > 0 {"),
		in(inventory, "6", "a partial list believed", "if !ok || !l.Complete() {\n		return\n	}\n	w.listed", "if !ok {\n		return\n	}\n	w.listed"),
		in(inventory, "6", "gone after one list", "if begun.Sub(since) >= goneApart &&", "if begun.Sub(since) >= -goneApart &&"),
		in(inventory, "6", "an observation speaks about rows changed after it", "func (d *decision) absent(w *worker, begun time.Time) {\n	if !begun.After(w.Changed) {\n		return\n	}\n", "func (d *decision) absent(w *worker, begun time.Time) {\n"),
		in(orphans, "6", "a machine listed under an ended row stays forgotten", "if !l.Begun.After(sp.To) {", "if true {"),
		in(orphans, "7", "orphans never removed", "	d.act(fleet.KindTerminate, \"\", ref, o.Machine.Tags.Pool, why.Code())\n", ""),
		in(orphans, "7", "orphans removed at first sight", "if o.Last.Sub(o.First) < orphanGrace {", "if false {"),
		in(orphans, "7", "removed however many there are", "tooMany := len(found) > 1 && len(found)*5 > machines", "tooMany := len(found) < 0 && machines > 0"),
		in(act, "8", "expired machines stay", "over := !m.Tags.Expires.IsZero() &&", "over := m.Tags.Expires.IsZero() &&"),
		in(drains, "6/9", "idle check and terminate in one transaction", "case w.Status == fleet.Draining && w.was == fleet.Draining && w.DrainAt.Before(d.now):", "case w.Status == fleet.Draining:"),
		in(drains, "6/9", "a drain that does not wait", "done := w.Jobs == 0 && (!w.DrainAck.IsZero() || w.Registered.IsZero())", "done := w.Jobs >= 0"),
		in(drains, "6/9", "a drain that does not wait for the acknowledgement", "(!w.DrainAck.IsZero() || w.Registered.IsZero())", "true"),
		in(grow, "10", "a stale suspended machine is resumed", "!expiring && !d.stale(w, f.pool) && !d.coolingOff", "!expiring && !d.coolingOff"),
		in("core/decide/health.go", "10", "a stale idle machine goes on", "if d.stale(w, p) && !w.Busy() {", "if false {"),
		in("core/tick/observe.go", "12", "no config yet is a failure", "case m.LastGood == nil && errors.Is(broken, fleet.ErrNotFound):", "case false:"),
	}
}
