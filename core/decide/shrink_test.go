package decide_test

import (
	"slices"
	"testing"
	"time"

	"sluice/core/decide"
	"sluice/core/fleet"
)

func TestScaleDown(t *testing.T) {
	t.Parallel()
	keepsOne := queue(func(q *fleet.PoolQueue) { q.DepthBelow = 2 })
	for _, c := range []struct {
		name  string
		given change
		goes  map[string]string
		kept  map[string]string
	}{
		{"a second before ten minutes it stays", has("a", idle(599*time.Second)), nil, map[string]string{"a": "kept.idle"}},
		{"after ten minutes it goes", has("a", idle(600*time.Second)), map[string]string{"a": "drain.dry"}, nil},
		{"a busy one stays, however long ago it finished a job", has("a", busy1, idle(time.Hour)), nil, map[string]string{"a": "kept.busy"}},
		{"idleness begins with registering", has("a", func(w *fleet.Worker) { w.IdleSince, w.Registered = ago(time.Hour), ago(minute) }), nil, map[string]string{"a": "kept.idle"}},
		{"depth at queue_depth_below keeps it", all(keepsOne, waiting(2, 0), has("a", idle(time.Hour))), nil, map[string]string{"a": "kept.depth"}},
		{"depth below it does not", all(keepsOne, waiting(1, 0), has("a", idle(time.Hour))), map[string]string{"a": "drain.idle"}, nil},
		{"one per cooldown while work is around", all(waiting(1, 0), has("a", idle(time.Hour)), has("b", idle(2*time.Hour), func(w *fleet.Worker) { w.Registered = ago(3 * time.Hour) })), map[string]string{"b": "drain.idle"}, map[string]string{"a": "kept.cooldown"}},
		{"jobs in hand elsewhere are work around", all(inHand(1), has("a", busy1), has("b", idle(time.Hour))), map[string]string{"b": "drain.idle"}, map[string]string{"a": "kept.busy"}},
		{"none a second before the cooldown ends", all(waiting(1, 0), scaledDown(299*time.Second), has("a", idle(time.Hour))), nil, map[string]string{"a": "kept.cooldown"}},
		{"one at its end", all(waiting(1, 0), scaledDown(300*time.Second), has("a", idle(time.Hour))), map[string]string{"a": "drain.idle"}, nil},
		{"all at once when the queue is dry, whatever the cooldown", all(scaledDown(time.Second), hasMany(3, idle(11*minute))), map[string]string{"w1": "drain.dry", "w2": "drain.dry", "w3": "drain.dry"}, nil},
		{"dry is not dry while one has worked lately", all(has("a", idle(11*minute)), has("b", idle(time.Minute))), map[string]string{"a": "drain.idle"}, map[string]string{"b": "kept.idle"}},
		{"min_ready stays", all(hasMany(3, idle(time.Hour)), pool(func(p *fleet.Pool) { p.MinReady = 2 })), map[string]string{"w1": "drain.dry"}, map[string]string{"w2": "kept.wanted"}},
		{"the baseline stays in cloud_first", all(mode(fleet.CloudFirst), hasMany(2, idle(time.Hour)), queue(func(q *fleet.PoolQueue) { q.Baseline = 1 })), map[string]string{"w1": "drain.dry"}, map[string]string{"w2": "kept.wanted"}},
		{"the last one stays in cloud_first while a job waits", all(mode(fleet.CloudFirst), waiting(1, 0), has("a", idle(time.Hour))), nil, map[string]string{"a": "kept.wanted"}},
		{"what the policy would launch again stays", all(waiting(1, 0), queue(func(q *fleet.PoolQueue) { q.Steps = []fleet.Tier{{Depth: 1, Workers: 1}} }), has("a", idle(time.Hour))), nil, map[string]string{"a": "kept.wanted"}},
		{"a tier below lets the surplus go", all(waiting(1, 0), queue(func(q *fleet.PoolQueue) { q.Steps = []fleet.Tier{{Depth: 1, Workers: 1}} }), hasMany(2, idle(time.Hour))), map[string]string{"w1": "drain.idle"}, map[string]string{"w2": "kept.wanted"}},
		{"an old job keeps them although few wait", all(waiting(1, time.Hour), has("a", idle(time.Hour)), scaledUp(time.Second)), nil, map[string]string{"a": "kept.wanted"}},
		{"a paid minimum charge is used up first", has("a", idle(11*minute), func(w *fleet.Worker) { w.MinCharge = 3601 }), nil, map[string]string{"a": "kept.min_charge"}},
		{"and then it goes", has("a", idle(11*minute), func(w *fleet.Worker) { w.MinCharge = 3600 }), map[string]string{"a": "drain.dry"}, nil},
		{"an unreadable queue removes nothing", all(unreadable("refused"), has("a", idle(time.Hour))), nil, map[string]string{"a": "kept.unknown"}},
		{"a broken config removes as always", all(brokenConfig, has("a", idle(time.Hour))), map[string]string{"a": "drain.dry"}, nil},
		{"a broken config removes nothing more", all(brokenConfig, has("a", busy1), has("b", specced("old"))), nil, map[string]string{"a": "kept.busy", "b": "kept.idle"}},
		{"booting ones are not idle", has("a", booting(4*minute)), nil, map[string]string{"a": "kept.booting"}},
		{"suspended ones wait for work", all(has("a", suspended(time.Hour)), pool(func(p *fleet.Pool) { p.OnIdle, p.MaxSuspended = fleet.SuspendIdle, 1 })), nil, map[string]string{"a": "kept.suspended"}},
		{"draining ones say what they wait for", has("a", busy1, drains("drain.idle", minute)), nil, map[string]string{"a": "kept.draining"}},
		{"ending ones say so", all(has("a", drains("drain.idle", minute), acked), doing(fleet.KindTerminate, "a", 10*time.Second)), nil, map[string]string{"a": "kept.ending"}},
		{"while more is wanted nobody goes, and the reason is the want", all(waiting(50, 0), scaledUp(time.Second), queue(func(q *fleet.PoolQueue) { q.DepthBelow = 100 }), scaledDown(time.Second), has("a", idle(time.Hour))), nil, map[string]string{"a": "kept.wanted"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := decide.Decide(world(c.given))
			if c.goes == nil {
				c.goes = map[string]string{}
			}
			same(t, "drained", drained(p), c.goes)
			for w, why := range c.kept {
				if got := kept(p, w); got != why {
					t.Errorf("%s is kept for %q, want %q", w, got, why)
				}
			}
			same(t, "calls", calls(p), []string{})
		})
	}
}

func TestEveryWorkerIsKeptOrDrainedWithAReason(t *testing.T) {
	t.Parallel()
	p := decide.Decide(world(has("a"), has("b", busy1), has("c", booting(minute)), has("d", drains("drain.idle", minute)),
		has("e", suspended(time.Hour)), has("f", idle(time.Hour)), has("g", silent(time.Hour)), pool(func(p *fleet.Pool) { p.MaxWorkers = 20 })))
	for _, id := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		if kept(p, id) == "" && drained(p)[id] == "" {
			t.Errorf("nothing is said about %s", id)
		}
		if kept(p, id) != "" && drained(p)[id] != "" {
			t.Errorf("%s is both kept and drained", id)
		}
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	slowest := func(s fleet.Seconds) change { return past(func(m *fleet.PoolMemory) { m.SlowestBoot = s }) }
	for _, c := range []struct {
		name  string
		given change
		goes  map[string]string
		notes []string
	}{
		{"five minutes of booting are allowed, less a second", has("a", booting(299*time.Second)), nil, nil},
		{"at five minutes it is given up", has("a", booting(300*time.Second)), map[string]string{"a": "drain.boot_timeout"}, nil},
		{"boots that were seen to take longer are allowed half as much again", all(slowest(315), has("a", booting(472*time.Second))), nil, nil},
		{"and no more", all(slowest(316), has("a", booting(474*time.Second))), map[string]string{"a": "drain.boot_timeout"}, nil},
		{"boots that were faster shorten nothing", all(slowest(10), has("a", booting(299*time.Second))), nil, nil},
		{"silence of two minutes drains", has("a", busy1, silent(2*minute)), map[string]string{"a": "drain.unhealthy"}, nil},
		{"a second less does not", has("a", busy1, silent(119*time.Second)), nil, nil},
		{"registering is being heard of", has("a", busy1, silent(time.Hour), func(w *fleet.Worker) { w.Registered = ago(minute) }), nil, nil},
		{"slow heartbeats are allowed four", all(func(s *fleet.Snapshot) { s.Config.Workers.Heartbeat = 60 }, has("a", busy1, silent(239*time.Second))), nil, nil},
		{"two of three silent at once: the fault is elsewhere", all(has("a", silent(3*minute)), has("b", silent(3*minute)), has("c")), nil, []string{"all_unhealthy"}},
		{"two of ten are two faults", all(hasMany(8, busy1), has("x", silent(3*minute)), has("y", silent(3*minute)), pool(func(p *fleet.Pool) { p.MaxWorkers = 20 })), map[string]string{"x": "drain.unhealthy", "y": "drain.unhealthy"}, nil},
		{"the shield ends with the workers' own patience", all(has("a", silent(1020*time.Second)), has("b", silent(1019*time.Second))), map[string]string{"a": "drain.unhealthy"}, []string{"all_unhealthy"}},
		{"an end of life within the drain's time drains", has("a", busy1, func(w *fleet.Worker) { w.Expires = noon.Add(300 * time.Second) }), map[string]string{"a": "drain.expiry"}, nil},
		{"a second more does not", has("a", busy1, func(w *fleet.Worker) { w.Expires = noon.Add(301 * time.Second) }), nil, nil},
		{"another spec drains when idle", has("a", specced("old")), map[string]string{"a": "drain.stale"}, nil},
		{"another spec does not when busy", has("a", busy1, specced("old")), nil, nil},
		{"the config's spec stays", has("a", specced(decide.Spec(offer(), nil))), nil, nil},
		{"a person's wish drains, busy or not", all(has("a", busy1), requested(fleet.RequestDrain, "a")), map[string]string{"a": "drain.requested"}, nil},
		{"a wish about the VPS drains nothing", all(vps, requested(fleet.RequestDrain, "vps")), nil, nil},
		{"a wish about nobody drains nobody", all(has("a", busy1), requested(fleet.RequestDrain, "b")), nil, nil},
		{"what answers a launch that was given up drains", all(has("a", booting(minute), func(w *fleet.Worker) { w.Intent = "in" }), asked("in", minute, abandoned, bound(1))), map[string]string{"a": "drain.abandoned"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := decide.Decide(world(c.given))
			if c.goes == nil {
				c.goes = map[string]string{}
			}
			same(t, "drained", drained(p), c.goes)
			for _, n := range c.notes {
				if !slices.Contains(notes(p), n) {
					t.Errorf("notes %v lack %s", notes(p), n)
				}
			}
		})
	}
}

func TestLateRegistrationUndrains(t *testing.T) {
	t.Parallel()
	late := func(w *fleet.Worker) {
		booting(6 * minute)(w)
		drains("drain.boot_timeout", minute)(w)
		w.Registered, w.Heartbeat, w.IdleSince = ago(45*time.Second), ago(5*time.Second), ago(45*time.Second)
	}
	p := decide.Decide(world(has("a", late)))
	if w := row(p, "a"); w.Status != fleet.Ready || w.DrainWhy != "" || !slices.Contains(notes(p), "undrained") {
		t.Errorf("it registered at 5:15 and may work: %s", text(w))
	}
	same(t, "calls", calls(p), []string{})
	gone := decide.Decide(world(has("a", booting(6*minute), drains("drain.boot_timeout", minute))))
	same(t, "one that has not registered ends", calls(gone), []string{"terminate i-a"})
	same(t, "one whose end was asked for ends", drainedBack(decide.Decide(world(has("a", late), doing(fleet.KindTerminate, "a", 10*time.Second)))), []string{})
}

// drainedBack are the workers that a plan lets claim again.
func drainedBack(p fleet.Plan) []string {
	var out []string
	for _, c := range p.Workers {
		if c.From == fleet.Draining && c.Worker.Status == fleet.Ready {
			out = append(out, c.Worker.ID)
		}
	}
	return out
}

func TestASilentWorkerThatIsHeardOfAgainComesBack(t *testing.T) {
	t.Parallel()
	same(t, "back", drainedBack(decide.Decide(world(has("a", busy1, drains("drain.unhealthy", minute))))), []string{"a"})
	same(t, "not while it is silent", drainedBack(decide.Decide(world(has("a", busy1, silent(4*minute), drains("drain.unhealthy", minute))))), []string{})
	same(t, "not near its expiry", drainedBack(decide.Decide(world(has("a", busy1, drains("drain.unhealthy", minute), func(w *fleet.Worker) { w.Expires = noon.Add(minute) })))), []string{})
	same(t, "not one that a person drained", drainedBack(decide.Decide(world(waiting(50, 0), has("a", busy1, drains("drain.idle", minute)), requested(fleet.RequestDrain, "a")))), []string{})
}

func TestDrainsEnd(t *testing.T) {
	t.Parallel()
	keeps := pool(func(p *fleet.Pool) { p.OnIdle, p.MaxSuspended, p.MaxSuspendedFor = fleet.SuspendIdle, 1, 7200 })
	lapsed := func(w *fleet.Worker) { w.Expires = noon }
	for _, c := range []struct {
		name  string
		given change
		calls []string
	}{
		{"acknowledged and empty: it ends", has("a", drains("drain.idle", minute), acked), []string{"terminate i-a"}},
		{"not acknowledged: a claim may be on its way", has("a", drains("drain.idle", minute)), nil},
		{"acknowledged, jobs in hand: they are waited for", has("a", busy1, drains("drain.idle", minute), acked), nil},
		{"a second before five minutes they still are", has("a", busy1, drains("drain.idle", 299*time.Second), acked), nil},
		{"at five minutes it is forced", has("a", busy1, drains("drain.idle", 300*time.Second), acked), []string{"terminate i-a"}},
		{"also without any acknowledgement", has("a", busy1, silent(time.Hour), drains("drain.unhealthy", 300*time.Second)), []string{"terminate i-a"}},
		{"at its expiry it is forced at once", has("a", busy1, drains("drain.expiry", minute), lapsed), []string{"terminate i-a"}},
		{"one that never registered has nothing to acknowledge", has("a", booting(6*minute), drains("drain.boot_timeout", minute)), []string{"terminate i-a"}},
		{"never by the decision that drains it", has("a", idle(time.Hour), func(w *fleet.Worker) { w.DrainAck = noon }), nil},
		{"never twice", all(has("a", drains("drain.idle", minute), acked), doing(fleet.KindTerminate, "a", 30*time.Second)), nil},
		{"not in a place that cannot be listed", all(has("a", drains("drain.idle", time.Hour), acked), placeUnknown), nil},
		{"there not even by force", all(has("a", busy1, drains("drain.idle", time.Hour)), placeUnknown), nil},
		{"but at its expiry", all(has("a", busy1, drains("drain.idle", time.Hour), lapsed), placeUnknown), []string{"terminate i-a"}},
		{"and while the mode allows no cloud", all(has("a", drains("drain.mode", minute), acked), placeUnknown, mode(fleet.VPSOnly)), []string{"terminate i-a"}},
		{"and while the override stands", all(has("a", busy1, drains("drain.mode", 300*time.Second)), placeUnknown, overridden), []string{"terminate i-a"}},
		{"not for idleness while the queue cannot be read", all(has("a", drains("drain.idle", minute), acked), unreadable("refused")), nil},
		{"for its own fault it is", all(has("a", drains("drain.stale", minute), acked), unreadable("refused")), []string{"terminate i-a"}},
		{"an idle one is suspended where the pool keeps some", all(keeps, has("a", drains("drain.idle", minute), acked)), []string{"suspend i-a"}},
		{"one for each place that is free", all(keeps, has("a", drains("drain.dry", minute), acked), has("b", drains("drain.dry", minute), acked)), []string{"suspend i-a", "terminate i-b"}},
		{"a faulty one is never suspended", all(keeps, has("a", drains("drain.unhealthy", minute), acked, silent(3*minute))), []string{"terminate i-a"}},
		{"nor one of another spec", all(keeps, has("a", drains("drain.idle", minute), acked, specced("old"))), []string{"terminate i-a"}},
		{"nor one by force", all(keeps, has("a", busy1, drains("drain.idle", 300*time.Second), acked)), []string{"terminate i-a"}},
		{"nor where the provider cannot", all(keeps, has("a", drains("drain.idle", minute), acked), func(s *fleet.Snapshot) { s.Traits = nil }), []string{"terminate i-a"}},
		{"nor while the mode allows no cloud", all(keeps, has("a", drains("drain.idle", minute), acked), mode(fleet.VPSOnly)), []string{"terminate i-a"}},
		{"a suspended one waits a second less than its allowance", all(keeps, has("a", suspended(7199*time.Second))), nil},
		{"and ends at it", all(keeps, has("a", suspended(7200*time.Second))), []string{"terminate i-a"}},
		{"not where it cannot be seen", all(keeps, has("a", suspended(7200*time.Second)), placeUnknown), nil},
		{"a suspended one of another spec ends", all(keeps, has("a", suspended(minute), specced("old"))), []string{"terminate i-a"}},
		{"but not on a broken config", all(keeps, has("a", suspended(minute), specced("old")), brokenConfig), nil},
		{"a suspended one ends with the mode", all(keeps, has("a", suspended(minute)), mode(fleet.VPSOnly)), []string{"terminate i-a"}},
		{"a suspended one ends because a person asked", all(keeps, has("a", suspended(minute)), requested(fleet.RequestDrain, "a")), []string{"terminate i-a"}},
		{"a suspended one ends a minute before its expiry", all(keeps, has("a", suspended(minute), func(w *fleet.Worker) { w.Expires = noon.Add(minute) })), []string{"terminate i-a"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			same(t, "calls", calls(decide.Decide(world(c.given))), c.calls)
		})
	}
	forced := decide.Decide(world(has("a", busy1, drains("drain.idle", 300*time.Second))))
	if in := forced.Intents[0]; !in.Forced || !slices.Contains(notes(forced), "drain.forced") {
		t.Errorf("a forced end is marked: %s", text(in))
	}
	if in := decide.Decide(world(has("a", drains("drain.idle", minute), acked))).Intents[0]; in.Forced || in.Worker != "a" || in.Kind != fleet.KindTerminate {
		t.Errorf("a regular end is not: %s", text(in))
	}
}
