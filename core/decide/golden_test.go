package decide_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/core/decide"
	"sluice/core/explain"
	"sluice/core/fleet"
)

var update = flag.Bool("update", false, "write the golden files")

// scenarios are worlds that a person may read about in testdata: the snapshot, and what was decided from it.
func scenarios() map[string]fleet.Snapshot {
	tiers := queue(func(q *fleet.PoolQueue) {
		q.Steps = []fleet.Tier{{Depth: 6, Age: 120, Workers: 1}, {Depth: 21, Age: 300, Workers: 3}, {Depth: 101, Age: 600, Max: true, Alert: fleet.Critical}}
	})
	keeps := pool(func(p *fleet.Pool) { p.OnIdle, p.MaxSuspended, p.MaxSuspendedFor = fleet.SuspendIdle, 2, 86400 })
	spotFirst := all(offering(prices, spot, small), fallback(600))
	media := func(s *fleet.Snapshot) {
		p := s.Config.Pools[0]
		p.Name, p.Urgency, p.Queues = "media", 10, []fleet.PoolQueue{{Name: "media", Depth: 5, Age: 300, DepthBelow: 2}}
		s.Config.Pools = append(s.Config.Pools, p)
		s.Queues = append(s.Queues, fleet.QueueState{Name: "media", Depth: 12, Oldest: 400})
	}
	return map[string]fleet.Snapshot{
		"quiet":                    world(vps),
		"first_burst_launches_one": world(vps, waiting(42, 310*time.Second)),
		"five_jobs_wait_for_the_machine_that_boots":   world(vps, waiting(5, 200*time.Second), has("w1", booting(150*time.Second)), scaledUp(150*time.Second)),
		"deep_backlog_adds_one_per_cooldown":          world(vps, waiting(42, 400*time.Second), has("w1", booting(2*minute)), scaledUp(2*minute)),
		"top_tier_wants_all_and_alerts":               world(vps, tiers, waiting(140, 700*time.Second), has("w1", busy1)),
		"vps_only_tells_what_hybrid_would_do":         world(vps, mode(fleet.VPSOnly), waiting(42, 310*time.Second)),
		"cloud_first_gives_the_first_job_a_worker":    world(mode(fleet.CloudFirst), waiting(1, time.Second)),
		"unreadable_queue_holds_and_age_still_counts": world(vps, unreadable("dial tcp 127.0.0.1:6379: connection refused"), waiting(8, 310*time.Second), has("w1", idle(time.Hour))),
		"unlisted_place_removes_and_launches_nothing": world(vps, waiting(42, 310*time.Second), has("w1", drains("drain.stale", 10*minute), acked), placeUnknown),
		"spot_is_cooling_off_and_on_demand_waits": world(vps, spotFirst, waiting(42, 310*time.Second), past(func(m *fleet.PoolMemory) { m.SpotRefusedSince = ago(200 * time.Second) }), func(s *fleet.Snapshot) {
			s.Memory.CoolOffs = []fleet.CoolOff{{Offer: spot.Key(), Until: noon.Add(45 * time.Second), Count: 2, Code: "no_capacity"}}
		}),
		"money_for_one_goes_to_the_more_urgent_pool":      world(vps, media, waiting(42, 310*time.Second), limits(dime, 50*fleet.Unit)),
		"daily_limit_is_reached_and_everything_drains":    world(vps, waiting(42, 310*time.Second), has("w1", busy1), has("w2", booting(minute)), spent(dime), limits(5*fleet.Unit, 2*dime)),
		"override_is_lifted_and_a_worker_comes_back":      world(vps, overridden, requested(fleet.RequestResume, ""), waiting(42, 310*time.Second), has("w1", busy1, drains("drain.mode", minute))),
		"idle_worker_goes_one_per_cooldown":               world(vps, waiting(1, time.Second), has("w1", idle(12*minute)), has("w2", idle(11*minute)), has("w3", busy1)),
		"dry_queue_sends_all_home":                        world(vps, has("w1", idle(12*minute)), has("w2", idle(11*minute)), has("w3", idle(10*minute)), scaledDown(minute)),
		"drain_ends_when_acknowledged_and_is_forced_late": world(vps, has("w1", drains("drain.idle", minute), acked), has("w2", drains("drain.idle", minute)), has("w3", busy1, drains("drain.idle", 5*minute), acked)),
		"new_work_undrains_resumes_then_launches":         world(vps, keeps, tiers, waiting(140, 700*time.Second), has("w1", drains("drain.idle", minute)), has("w2", suspended(time.Hour))),
		"late_registration_is_welcome": world(vps, waiting(8, 400*time.Second), has("w1", func(w *fleet.Worker) {
			booting(6 * minute)(w)
			drains("drain.boot_timeout", minute)(w)
			w.Registered, w.Heartbeat, w.IdleSince = ago(45*time.Second), ago(5*time.Second), ago(45*time.Second)
		})),
		"failing_boots_open_the_breaker":               world(vps, waiting(42, 900*time.Second), has("w1", booting(5*minute)), past(func(m *fleet.PoolMemory) { m.BootFailures, m.LastFailure = 2, ago(6*minute) })),
		"mass_silence_drains_nobody":                   world(vps, has("w1", busy1, silent(3*minute)), has("w2", busy1, silent(3*minute)), has("w3", busy1)),
		"lost_answer_is_repeated_under_the_same_token": world(vps, waiting(8, 400*time.Second), asked("5b6b8d4e-0000-5000-8000-000000000001", 2*minute)),
		"given_up_launch_turns_up_and_drains":          world(vps, asked("5b6b8d4e-0000-5000-8000-000000000001", 3*minute, abandoned), listed("i-late", tagged("5b6b8d4e-0000-5000-8000-000000000001"))),
		"orphan_is_removed_after_its_grace": world(vps, hasMany(9, busy1), pool(func(p *fleet.Pool) { p.MaxWorkers = 20 }), listed("i-stray"), func(s *fleet.Snapshot) {
			s.Memory.Sightings = []fleet.Sighting{{Place: aws, Machine: s.Listings[0].Machines[9], First: ago(6 * minute), Last: ago(minute), Price: dime}}
		}),
		"restored_database_removes_nothing": world(vps, listed("i-1"), listed("i-2"), listed("i-3")),
		"broken_config_adds_nothing": world(vps, waiting(42, 310*time.Second), has("w1", busy1), func(s *fleet.Snapshot) {
			s.ConfigBroken = "scheduler.json:12: queues.ocr.max_worker: unknown key, did you mean max_workers?"
		}),
	}
}

func TestScenarios(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for name, made := range scenarios() {
		known[name] = true
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			golden(t, name+".json", text(made)+"\n")
			var s fleet.Snapshot
			b, err := os.ReadFile(filepath.Join("testdata", name+".json"))
			if err != nil {
				t.Fatal(err)
			}
			strict := json.NewDecoder(bytes.NewReader(b))
			strict.DisallowUnknownFields()
			if err := strict.Decode(&s); err != nil {
				t.Fatal(err)
			}
			golden(t, name+".txt", explain.Story(decide.Decide(s), s))
		})
	}
	files, err := filepath.Glob("testdata/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(f), ".json"), ".txt")
		if !known[name] {
			t.Errorf("%s belongs to no scenario", f)
		}
	}
}

// golden holds what is got against a file, or writes it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (run with -update to accept):\n%s", path, got)
	}
}
