package fleettest

import (
	"encoding/json"
	"time"

	"sluice/core/fleet"
)

func jobCases() []storeCase {
	return []storeCase{
		{"a job is claimed once and completed once", claimAndComplete},
		{"the most urgent job comes first, an old one is not starved", priorities},
		{"a job that is not due is not claimed", notDue},
		{"a draining worker claims nothing", drainingClaimsNothing},
		{"a worker claims nothing when it is not ready or ended", endedClaimsNothing},
		{"a failed job is retried elsewhere, then dead", failedElsewhere},
		{"a failed job is retried on the only worker there is", failedAlone},
		{"a released job does not count as an attempt", released},
		{"jobs go back when their worker ends, and die after their last attempt", returnedOnEnd},
		{"a job whose visibility ran out goes back", sweeps},
		{"extending keeps a job in hand", extends},
		{"a checkpoint is given to the next attempt", checkpoints},
		{"a job for one market is claimed there alone", markets},
	}
}

func claimAndComplete(b *bench) {
	b.assign()
	one, two := b.running("one"), b.running("two")
	job := b.enqueue(NewJob{})
	j := b.claimOne(one)
	if j.Job != job || j.Queue != poolA || j.Number != 1 {
		b.Errorf("claimed %+v", j)
	}
	if got := b.claim(two, 1); len(got) != 0 {
		b.Errorf("claimed twice: %+v", got)
	}
	if w := b.worker(one); w.Jobs != 1 {
		b.Errorf("worker has %d jobs, want 1", w.Jobs)
	}
	if r := b.job(job); r.Status != "processing" || r.ClaimedBy != one {
		b.Errorf("row %+v", r)
	}
	b.Advance(time.Minute)
	for n, want := range []bool{true, false} {
		if ok, err := b.Workers.Complete(b.ctx, j.Attempt); ok != want || err != nil {
			b.Errorf("complete %d: %v, %v, want %v", n, ok, err, want)
		}
	}
	w := b.worker(one)
	if r := b.job(job); r.Status != "completed" || w.Jobs != 0 {
		b.Errorf("row %+v, worker has %d jobs", r, w.Jobs)
	}
	b.near("idle since", w.IdleSince, b.recall().Now)
}

func priorities(b *bench) {
	b.assign()
	worker := b.running("one")
	old := b.enqueue(NewJob{Priority: 10})
	b.Advance(time.Second)
	normal, urgent := b.enqueue(NewJob{}), b.enqueue(NewJob{Priority: 1})
	for _, want := range []string{urgent, normal} {
		if j := b.claimOne(worker); j.Job != want {
			b.Errorf("claimed %s, want %s", j.Job, want)
		}
	}
	b.Advance(48 * time.Hour)
	if _, _, err := b.Workers.Heartbeat(b.ctx, worker); err != nil {
		b.Fatal(err)
	}
	b.enqueue(NewJob{Priority: 1})
	if j := b.claimOne(worker); j.Job != old {
		b.Error("a job that has waited for two days still comes after a new one")
	}
}

func notDue(b *bench) {
	b.assign()
	worker := b.running("one")
	b.enqueue(NewJob{After: time.Hour})
	if got := b.claim(worker, 1); len(got) != 0 {
		b.Errorf("claimed %+v an hour early", got)
	}
	b.Advance(61 * time.Minute)
	b.claimOne(worker)
}

func drainingClaimsNothing(b *bench) {
	b.assign()
	worker := b.running("one")
	b.enqueue(NewJob{})
	b.change(worker, "drain.idle", drain("drain.idle"))
	if got := b.claim(worker, 1); len(got) != 0 {
		b.Errorf("claimed %+v while draining", got)
	}
	b.change(worker, "undrained", func(w *fleet.Worker, _ time.Time) {
		w.Status, w.DrainAt, w.DrainWhy = fleet.Ready, time.Time{}, ""
	})
	b.claimOne(worker)
}

func endedClaimsNothing(b *bench) {
	b.assign()
	b.enqueue(NewJob{})
	b.launched("boot", "i-boot")
	if got := b.claim(b.recall().Workers[0].ID, 1); len(got) != 0 {
		b.Errorf("claimed %+v before it registered", got)
	}
	worker := b.running("one")
	b.change(worker, "gone", end(fleet.Terminated))
	if got := b.claim(worker, 1); len(got) != 0 {
		b.Errorf("claimed %+v after its end", got)
	}
}

func failedElsewhere(b *bench) {
	b.assign()
	one, two := b.running("one"), b.running("two")
	job := b.enqueue(NewJob{})
	if s, err := b.Workers.Fail(b.ctx, b.claimOne(one).Attempt, "exit 1"); s != "queued" || err != nil {
		b.Fatalf("first failure: %q, %v", s, err)
	}
	b.Advance(time.Hour) // whatever delay the retry has
	for _, w := range []string{one, two} {
		if _, _, err := b.Workers.Heartbeat(b.ctx, w); err != nil {
			b.Fatal(err)
		}
	}
	if got := b.claim(one, 1); len(got) != 0 {
		b.Errorf("retried on the same worker although there is another")
	}
	j := b.claimOne(two)
	if j.Number != 2 {
		b.Errorf("attempt %d, want 2", j.Number)
	}
	if s, err := b.Workers.Fail(b.ctx, j.Attempt, "exit 1"); s != "dead" || err != nil {
		b.Errorf("second failure: %q, %v, want dead", s, err)
	}
	if r := b.job(job); r.Status != "dead" || r.Attempts != 2 {
		b.Errorf("row %+v", r)
	}
	if s, err := b.Workers.Fail(b.ctx, j.Attempt, "again"); s != "" || err != nil {
		b.Errorf("an attempt that is over failed again: %q, %v", s, err)
	}
}

func failedAlone(b *bench) {
	b.assign()
	worker := b.running("one")
	b.enqueue(NewJob{})
	if s, err := b.Workers.Fail(b.ctx, b.claimOne(worker).Attempt, "exit 1"); s != "queued" || err != nil {
		b.Fatalf("failure: %q, %v", s, err)
	}
	b.Advance(time.Hour)
	b.claimOne(worker)
}

func released(b *bench) {
	b.assign()
	worker := b.running("one")
	job := b.enqueue(NewJob{})
	for range 3 {
		j := b.claimOne(worker)
		if ok, err := b.Workers.Release(b.ctx, j.Attempt); !ok || err != nil {
			b.Fatalf("release: %v, %v", ok, err)
		}
	}
	if r := b.job(job); r.Status != "queued" || r.Attempts != 0 || b.worker(worker).Jobs != 0 {
		b.Errorf("row %+v, worker has %d jobs", r, b.worker(worker).Jobs)
	}
}

func returnedOnEnd(b *bench) {
	b.assign()
	one, two := b.running("one"), b.running("two")
	job := b.enqueue(NewJob{})
	first := b.claimOne(one)
	b.change(one, "drain.forced", end(fleet.Terminated))
	if r := b.job(job); r.Status != "queued" || r.Attempts != 1 || r.ClaimedBy != "" {
		b.Errorf("row %+v, want queued with one attempt counted", r)
	}
	if ok, err := b.Workers.Complete(b.ctx, first.Attempt); ok || err != nil {
		b.Errorf("an attempt that was taken away completed: %v, %v", ok, err)
	}
	b.Advance(time.Hour)
	if _, _, err := b.Workers.Heartbeat(b.ctx, two); err != nil {
		b.Fatal(err)
	}
	b.claimOne(two)
	b.change(two, "gone", end(fleet.Failed))
	if r := b.job(job); r.Status != "dead" || r.Attempts != 2 {
		b.Errorf("row %+v, want dead after its second attempt", r)
	}
}

func sweeps(b *bench) {
	b.assign()
	worker := b.running("one")
	job := b.enqueue(NewJob{})
	j := b.claimOne(worker)
	b.Advance(9 * time.Minute)
	if n, err := b.Workers.Sweep(b.ctx); n != 0 || err != nil {
		b.Errorf("swept %d, %v before the visibility ran out", n, err)
	}
	b.Advance(2 * time.Minute)
	if n, err := b.Workers.Sweep(b.ctx); n != 1 || err != nil {
		b.Errorf("swept %d, %v, want 1", n, err)
	}
	if r := b.job(job); r.Status != "queued" || r.Attempts != 1 || b.worker(worker).Jobs != 0 {
		b.Errorf("row %+v, worker has %d jobs", r, b.worker(worker).Jobs)
	}
	if ok, err := b.Workers.Complete(b.ctx, j.Attempt); ok || err != nil {
		b.Errorf("completed after the sweep: %v, %v", ok, err)
	}
}

func extends(b *bench) {
	b.assign()
	job := b.enqueue(NewJob{})
	j := b.claimOne(b.running("one"))
	for range 3 {
		b.Advance(8 * time.Minute)
		if ok, err := b.Workers.Extend(b.ctx, j.Attempt); !ok || err != nil {
			b.Fatalf("extend: %v, %v", ok, err)
		}
	}
	if n, err := b.Workers.Sweep(b.ctx); n != 0 || err != nil || b.job(job).Status != "processing" {
		b.Errorf("swept %d, %v, row %+v", n, err, b.job(job))
	}
}

func checkpoints(b *bench) {
	b.assign()
	worker := b.running("one")
	b.enqueue(NewJob{})
	j := b.claimOne(worker)
	if ok, err := b.Workers.Checkpoint(b.ctx, j.Attempt, json.RawMessage(`{"at":7}`)); !ok || err != nil {
		b.Fatalf("checkpoint: %v, %v", ok, err)
	}
	if ok, err := b.Workers.Release(b.ctx, j.Attempt); !ok || err != nil {
		b.Fatalf("release: %v, %v", ok, err)
	}
	var got struct{ At int }
	if err := json.Unmarshal(b.claimOne(worker).Checkpoint, &got); err != nil || got.At != 7 {
		b.Errorf("checkpoint %+v, %v", got, err)
	}
}

func markets(b *bench) {
	b.assign()
	spot := b.running("one")
	b.enqueue(NewJob{Market: fleet.OnDemand})
	if got := b.claim(spot, 1); len(got) != 0 {
		b.Errorf("a spot worker claimed %+v, which may not be interrupted", got)
	}
	want := b.enqueue(NewJob{Market: fleet.Spot})
	if j := b.claimOne(spot); j.Job != want {
		b.Errorf("claimed %s, want %s", j.Job, want)
	}
}
