package fleettest

import (
	"strconv"
	"time"

	"sluice/core/fleet"
)

func derivedCases() []storeCase {
	return []storeCase{
		{"the cooldown up runs from the last launch that was not refused", lastUp},
		{"a resume counts as growth", lastUpResume},
		{"the cooldown down runs from the last drain for idleness", lastDown},
		{"workers lost since the last launch are counted", lost},
		{"the slowest of the last ten boots is kept", slowestBoot},
		{"boots that fail in a row are counted until one succeeds", bootFailures},
		{"spot is refused since the first refusal without a success", spotRefused},
	}
}

func lastUp(b *bench) {
	first := b.launched("first", "i-1")
	b.Advance(time.Minute)
	b.near("after a launch", b.pool(poolA).LastUp, first.Created)
	second := b.open("second", 1)
	b.near("while a launch is open", b.pool(poolA).LastUp, second.Created)
	if up := b.pool(poolA).LastUp; !up.After(first.Created) {
		b.Errorf("last up %v is not the second launch", up)
	}
	b.begin(second, 0)
	b.settle(second, fleet.Result{Outcome: fleet.OutcomeRefused, Code: "quota", State: fleet.IntentRefused})
	if up := b.pool(poolA).LastUp; !up.Equal(first.Created) {
		b.Errorf("last up %v, want the first launch %v: the second was refused", up, first.Created)
	}
}

func lastUpResume(b *bench) {
	b.assign()
	worker := b.running("one")
	b.Advance(time.Hour)
	var at time.Time
	b.commit(func(m fleet.Memory, p *fleet.Plan, _ *fleet.Record) {
		in := ending("resume", worker, m.Now)
		in.Kind, at = fleet.KindResume, m.Now
		p.Intents = []fleet.Intent{in}
	})
	b.near("last up", b.pool(poolA).LastUp, at)
}

func lastDown(b *bench) {
	b.assign()
	idle, sick := b.running("idle"), b.running("sick")
	b.change(sick, "drain.unhealthy", drain("drain.unhealthy"))
	if down := b.pool(poolA).LastDown; !down.IsZero() {
		b.Errorf("last down %v after a drain for another reason", down)
	}
	b.change(idle, "drain.idle", drain("drain.idle"))
	at := b.worker(idle).DrainAt
	b.near("last down", b.pool(poolA).LastDown, at)
	b.change(idle, "gone", end(fleet.Terminated))
	b.near("last down when it has ended", b.pool(poolA).LastDown, at)
}

func lost(b *bench) {
	b.assign()
	asked, gone := b.running("asked"), b.running("gone")
	b.Advance(time.Minute)
	b.change(asked, "drain.idle", drain("drain.idle"))
	b.change(asked, "gone", end(fleet.Terminated))
	if n := b.pool(poolA).Lost; n != 0 {
		b.Errorf("%d lost, want 0: it was asked to end", n)
	}
	b.change(gone, "gone", end(fleet.Failed))
	if n := b.pool(poolA).Lost; n != 1 {
		b.Errorf("%d lost, want 1", n)
	}
	b.Advance(time.Minute)
	b.open("replacement", 1)
	if n := b.pool(poolA).Lost; n != 0 {
		b.Errorf("%d lost after the replacement was asked for, want 0", n)
	}
}

func slowestBoot(b *bench) {
	b.assign()
	boot := func(n int, d time.Duration) {
		word := "boot-" + strconv.Itoa(n)
		in := b.launched(word, "i-"+word)
		b.Advance(d)
		b.register("i-"+word, in.ID)
	}
	boot(0, 10*time.Minute)
	for n := 1; n < 10; n++ {
		boot(n, time.Duration(n)*10*time.Second)
	}
	if s := b.pool(poolA).SlowestBoot; s < 595 || s > 615 {
		b.Errorf("slowest boot %d s, want about 600", s)
	}
	boot(10, time.Second)
	if s := b.pool(poolA).SlowestBoot; s < 88 || s > 100 {
		b.Errorf("slowest boot %d s, want about 90: the ten-minute boot is the eleventh last", s)
	}
}

func bootFailures(b *bench) {
	b.assign()
	var last time.Time
	fail := func(word string) {
		b.launched(word, "i-"+word)
		b.Advance(5 * time.Minute)
		for _, w := range b.recall().Workers {
			if w.Machine == "i-"+word {
				b.change(w.ID, "drain.boot_timeout", drain("drain.boot_timeout"))
				last = b.worker(w.ID).DrainAt
				b.change(w.ID, "gone", end(fleet.Terminated))
			}
		}
	}
	fail("one")
	fail("two")
	p := b.pool(poolA)
	if p.BootFailures != 2 {
		b.Errorf("%d failures, want 2", p.BootFailures)
	}
	b.near("last failure", p.LastFailure, last)
	b.running("three")
	if n := b.pool(poolA).BootFailures; n != 0 {
		b.Errorf("%d failures after a boot that succeeded, want 0", n)
	}
	fail("four")
	if n := b.pool(poolA).BootFailures; n != 1 {
		b.Errorf("%d failures, want 1", n)
	}
}

func spotRefused(b *bench) {
	refuse := func(word string, n int) time.Time {
		in := b.open(word, 1)
		b.begin(in, 0)
		if n == 1 {
			b.settle(in, fleet.Result{Outcome: fleet.OutcomeRefused, Code: "no_capacity", State: fleet.IntentOpen})
			b.begin(in, 1)
		}
		b.settle(in, fleet.Result{Attempt: n, Outcome: fleet.OutcomeRefused, Code: "no_capacity", State: fleet.IntentRefused})
		return in.Created
	}
	if s := b.pool(poolA).SpotRefusedSince; !s.IsZero() {
		b.Errorf("refused since %v before anything was asked", s)
	}
	first := refuse("first", 0)
	b.Advance(20 * time.Minute)
	refuse("second", 1)
	b.near("refused since", b.pool(poolA).SpotRefusedSince, first)
	b.Advance(time.Minute)
	b.launched("success", "i-1") // with the first offer, spot
	if s := b.pool(poolA).SpotRefusedSince; !s.IsZero() {
		b.Errorf("refused since %v after a success", s)
	}
	b.Advance(time.Minute)
	again := refuse("third", 0)
	b.near("refused again since", b.pool(poolA).SpotRefusedSince, again)
}
