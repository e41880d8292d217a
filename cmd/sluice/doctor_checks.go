package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"sluice/core/config"
	"sluice/core/decide"
	"sluice/core/fleet"
	"sluice/functions/host"
)

func (e *examination) checkConfig(ctx context.Context) {
	a := e.app
	path := a.options().ConfigPath()
	if path == "" {
		e.find("config", broken, "name one with --config or SLUICE_CONFIG", "no path is known")
		return
	}
	c, err := a.parseConfig(ctx, path)
	if err != nil {
		e.find("config", broken, "sluice validate "+path, "%s cannot be read: %s", path, oneLine(err))
		return
	}
	e.config = &c
	if refused := notHonoured(c); len(refused) > 0 {
		e.find("config", broken, "sluice validate "+path+" lists them", "%s is valid, and a tick refuses to run with %d of its settings", path, len(refused))
	} else {
		e.find("config", healthy, "", "%s is valid, mode %s", path, c.Mode)
	}
	w, err := host.Open(ctx, a.options(), links()...)
	if err != nil {
		e.find("config", broken, "", "what it names cannot be opened: %s", oneLine(err))
		return
	}
	e.world, e.db = w, w.DB
}

// oneLine keeps a finding to its line: drivers list their attempts below each other.
func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// The server's clock against this machine's: more is worth a word, much more makes times in logs useless.
const (
	clockDoubt  = 5 * time.Second
	clockBroken = time.Minute
	lockDoubt   = 10 // seconds; a tick's transaction is over in a fraction of one
	oldestKnown = 130000
)

func (e *examination) checkDatabase(ctx context.Context) {
	if e.db == nil {
		db, err := e.app.past(ctx)
		if err != nil {
			e.find("database", broken, "set DATABASE_URL, or connections.database.url in the config", "it cannot be opened: %s", oneLine(err))
			return
		}
		e.db = db
	}
	begun := time.Now()
	h, err := e.db.Health(ctx)
	took := time.Since(begun)
	if err != nil {
		e.find("database", broken, "check the URL, the password, and that the server lets this machine in", "it cannot be reached: %s", oneLine(err))
		return
	}
	if h.ServerNumber < oldestKnown {
		e.find("database", broken, "upgrade it to 13 or newer", "Postgres %s is older than what Sluice is tested with", h.Server)
	} else {
		e.find("database", healthy, "", "Postgres %s answers in %s%s", h.Server, took.Round(time.Millisecond), pooledWord(h))
	}
	switch {
	case len(h.Forbidden) > 0:
		e.find("role", broken, "GRANT sluice_functions TO "+h.Role, "%s lacks rights on %s", h.Role, strings.Join(h.Forbidden, ", "))
	case h.Superuser:
		e.find("role", doubtful, "make a role of its own for the scheduler", "%s is a superuser, which is more than a scheduler needs", h.Role)
	default:
		e.find("role", healthy, "", "%s has the rights that a scheduler needs", h.Role)
	}
	switch off := time.Since(h.Clock).Abs(); {
	case off > clockBroken:
		e.find("clock", broken, "have both set their clocks by NTP", "the database's clock is %s from this machine's", off.Round(time.Second))
	case off > clockDoubt:
		e.find("clock", doubtful, "have both set their clocks by NTP", "the database's clock is %s from this machine's", off.Round(time.Second))
	default:
		e.find("clock", healthy, "", "the database's clock agrees with this machine's")
	}
	if h.LockHidden {
		e.find("lock", unchecked, "GRANT pg_read_all_stats TO "+h.Role, "another role holds the single writer's lock, and since when is not shown to %s", h.Role)
	}
	if h.LockHeld > lockDoubt {
		e.find("lock", doubtful, "SELECT * FROM pg_stat_activity ORDER BY xact_start", "a transaction has held the single writer's lock for %s", h.LockHeld.Duration())
	}
	if h.MaxConnections > 0 && h.Connections*5 > h.MaxConnections*4 {
		e.find("connections", doubtful, "put a pooler in front, or raise max_connections", "%d of %d connections are in use", h.Connections, h.MaxConnections)
	}
}

func pooledWord(h fleet.DatabaseHealth) string {
	if h.Pooled {
		return ", through a pooler"
	}
	return ""
}

func (e *examination) checkSchema(ctx context.Context) {
	if !e.needs("schema", e.db != nil, "it needs a database") {
		return
	}
	m, err := e.db.Recall(ctx)
	switch {
	case errors.Is(err, fleet.ErrSchema):
		e.find("schema", broken, "sluice migrate, where this is the right database", "%s", oneLine(err))
	case err != nil:
		e.find("schema", unchecked, "", "not checked: %s", oneLine(err))
	default:
		e.memory = &m
		e.find("schema", healthy, "", "the tables fit this program; deployment %s", m.Deployment)
	}
}

func (e *examination) checkTicks(ctx context.Context) {
	if !e.needs("ticks", e.memory != nil, needsDatabase) {
		return
	}
	ticks, err := e.db.Ticks(ctx, time.Time{}, ticksLookedAt)
	if err != nil {
		e.find("ticks", unchecked, "", "not checked: %s", oneLine(err))
		return
	}
	const mend = "look whether the timer or the cloud's schedule fires, and at the log of evaluate; `sluice tick` runs one by hand"
	var c fleet.Config
	if e.config != nil {
		c = *e.config
	}
	i := slices.IndexFunc(ticks, func(t fleet.TickRecord) bool { return t.Function == fleet.Evaluate })
	switch {
	case i < 0:
		e.find("ticks", broken, mend, "evaluate has never run here")
	case c.Late(ticks[i].At, e.memory.Now):
		e.find("ticks", broken, mend, "evaluate ran last %s ago", ago(e.memory.Now, ticks[i].At))
	default:
		e.find("ticks", healthy, "", "evaluate ran %s ago: %s", ago(e.memory.Now, ticks[i].At), ticks[i].Message)
	}
	const rare = 31 * time.Minute // two of its rounds
	switch last := e.memory.LastDue[fleet.Reconcile]; {
	case last.IsZero():
		e.find("ticks", doubtful, "have `sluice tick --reconcile` or the function reconcile run every 15 minutes", "reconcile has never run here")
	case e.memory.Now.Sub(last) > rare:
		e.find("ticks", doubtful, "look whether its timer or schedule fires", "reconcile ran last %s ago", ago(e.memory.Now, last))
	}
}

func (e *examination) checkOverride(context.Context) {
	if e.memory != nil && e.memory.Override != nil {
		o := e.memory.Override
		e.find("mode", broken, `sluice resume-cloud --reason "…", once what was spent is understood`, "held at vps_only since %s: %s", o.At.UTC().Format(time.DateTime), o.Why)
	}
}

func (e *examination) checkQueues(ctx context.Context) {
	if !e.needs("queues", e.world != nil, needsConfig) {
		return
	}
	bySource := map[fleet.SourceKind][]fleet.Queue{}
	for _, q := range e.config.Queues {
		bySource[q.Source.Kind] = append(bySource[q.Source.Kind], q)
	}
	for _, kind := range slices.Sorted(maps.Keys(bySource)) {
		queues := bySource[kind]
		source := e.world.Queues[kind]
		if source == nil {
			e.find("queues", broken, "", "this program cannot read queues of kind %s", kind)
			continue
		}
		states, err := source.Read(ctx, queues)
		if err != nil {
			e.find("queues", broken, "check that its server runs and that its address is right", "none of kind %s can be read: %s", kind, oneLine(err))
			continue
		}
		for _, s := range states {
			if s.Unknown != "" {
				e.find("queue "+s.Name, broken, "see what is at its key or in its table", "it cannot be read: %s", s.Unknown)
			} else {
				e.find("queue "+s.Name, healthy, "", "%s", queueWords(s))
			}
		}
	}
}

func (e *examination) checkWorkers(context.Context) {
	if !e.needs("workers", e.memory != nil, needsDatabase) {
		return
	}
	m, vps, stale := e.memory, false, map[string]int{}
	rules := fleet.WorkerRules{Heartbeat: 15, BootTimeout: 600}
	if e.config != nil {
		rules = e.config.Workers
	}
	for _, w := range m.Workers {
		vps = vps || !w.Cloud()
		switch {
		case w.Status == fleet.Provisioning && m.Now.Sub(w.BootAt) > rules.BootTimeout.Duration():
			e.find("worker "+w.ID, doubtful, "see the machine's console: does its agent start, and reach the database?", "it was started %s ago and has not registered", ago(m.Now, w.BootAt))
		case w.Status == fleet.Ready && m.Now.Sub(w.Heartbeat) > 4*rules.Heartbeat.Duration():
			e.find("worker "+w.ID, doubtful, "see whether its sluice-agent runs", "it was heard of last %s ago", ago(m.Now, w.Heartbeat))
		}
		if e.config != nil && decide.Stale(*e.config, w) {
			stale[w.Pool]++
		}
	}
	for _, pool := range slices.Sorted(maps.Keys(stale)) {
		e.find("pool "+pool, doubtful, fmt.Sprintf("sluice roll %s --reason \"…\", or wait until they are idle", pool), "%d of its machines were launched from an older spec", stale[pool])
	}
	if !vps {
		e.find("workers", doubtful, "start sluice-agent on the VPS", "no VPS worker is registered: in vps_only nobody works")
	} else {
		e.find("workers", healthy, "", "%d live", len(m.Workers))
	}
}

func (e *examination) checkIntents(context.Context) {
	if e.memory == nil {
		return // said already
	}
	const long = 15 * time.Minute // a call is repeated no longer than that
	for _, in := range e.memory.Intents {
		if age := e.memory.Now.Sub(in.Created); in.State == fleet.IntentOpen && age > long {
			e.find("intent "+in.ID, doubtful, "wait: two complete lists of the provider decide whether it is given up; its money stays reserved until then",
				"a %s of pool %s has been unanswered for %s", in.Kind, in.Pool, age.Truncate(time.Second))
		}
	}
}

func (e *examination) checkAlerts(ctx context.Context) {
	if e.memory == nil {
		return // said already
	}
	waiting, err := e.db.Deliveries(ctx, e.memory.Now) // newest first
	if err != nil {
		e.find("alerts", unchecked, "", "not checked: %s", oneLine(err))
	}
	if n := len(waiting); n > 0 {
		oldest := waiting[n-1]
		e.find("alerts", doubtful, "look at what the channel answered, and at its address", "%d wait to be delivered, the oldest for %s to %s%s",
			n, ago(e.memory.Now, oldest.At), oldest.Channel, tail(oldest.Answer))
	}
}

func (e *examination) checkProviders(ctx context.Context) {
	if e.world == nil {
		return // said with the queues
	}
	for _, p := range e.config.Providers {
		cloud, ok := e.world.Clouds[p.Name]
		if !ok {
			continue // not linked, which the config's check says
		}
		machines, _, err := cloud.List(ctx, p.Scope, e.config.Name)
		if err != nil {
			e.find("provider "+p.Name, broken, "check its credentials and its region", "its machines cannot be listed: %s", oneLine(err))
			continue
		}
		e.find("provider "+p.Name, healthy, "", "it answers, and shows %d machines of %s", len(machines), e.config.Name)
	}
}

// checkBill says what could be spent at worst, with this program at work and without it.
func (e *examination) checkBill(context.Context) {
	if !e.needs("bill", e.config != nil, needsConfig) {
		return
	}
	c := *e.config
	hourly, unpriced := config.WorstHour(c)
	if hourly == 0 && unpriced > 0 { // unknown is not zero
		e.find("bill", unchecked, "give prices in the config", "what could be spent at worst is not known: none of its %d offers has a known price", unpriced)
		return
	}
	alone, unbounded := config.Unattended(c)
	e.find("bill", healthy, "", "at most %s %s an hour and %s a day while ticks run: the limits hold (all machines at their maximum would be %s an hour)",
		min(hourly, c.Limits.Hourly), c.Currency, min(hourly.For(24*time.Hour), c.Limits.Daily), hourly)
	state, mend := healthy, ""
	if alone > c.Limits.Daily {
		state, mend = doubtful, "lower workers.max_lifetime_hours, max_workers or max_instances"
	}
	e.find("bill", state, mend, "were scheduler and database gone at once: up to %s %s until every machine's lifetime of %s ends it; the daily limit is %s",
		alone, c.Currency, c.Workers.MaxLifetime.Duration(), c.Limits.Daily)
	if len(unbounded) > 0 {
		e.find("bill", doubtful, "delete its machines by hand should that happen", "on %s a machine that has shut itself down is billed until it is deleted: without the scheduler there is no bound", strings.Join(unbounded, ", "))
	}
	if unpriced > 0 {
		e.find("bill", doubtful, "give their prices in the config", "offers without a known price, which none of these figures has: %d", unpriced)
	}
}
