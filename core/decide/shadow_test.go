package decide_test

import (
	"testing"
	"time"

	"sluice/core/decide"
	"sluice/core/fleet"
)

// minutes are readings of the queue, one per minute; the oldest job's age grows with them while jobs wait.
func minutes(depths ...int) []fleet.Sample {
	var out []fleet.Sample
	age := fleet.Seconds(0)
	for i, d := range depths {
		st := fleet.QueueState{Name: "ocr", Depth: d}
		if d > 0 {
			st.Oldest = age
			age += 60
		} else {
			age = 0
		}
		out = append(out, fleet.Sample{At: noon.Add(time.Duration(i) * minute), Queues: []fleet.QueueState{st}})
	}
	return out
}

func times64(n, depth int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = depth
	}
	return out
}

// burst is 20 minutes in which 8 jobs wait, and 20 quiet ones. The depth launches one machine at 12:00. It is there at
// 12:03, idle from 12:19, the last reading with work, drained at 12:29 and ended at 12:30: half an hour.
func burst() []fleet.Sample { return minutes(append(times64(20, 8), times64(20, 0)...)...) }

func TestShadow(t *testing.T) {
	t.Parallel()
	config := func(changes ...change) fleet.Config {
		return world(append([]change{mode(fleet.VPSOnly), queue(func(q *fleet.PoolQueue) { q.Age = 0 }), pool(func(p *fleet.Pool) { p.MaxWorkers = 2 })}, changes...)...).Config
	}
	for _, c := range []struct {
		name    string
		config  fleet.Config
		samples []fleet.Sample
		want    decide.ShadowPool
	}{
		{"one burst, one machine for half an hour", config(), burst(), decide.ShadowPool{
			Pool: "ocr", Enabled: true, Launches: 1, Machine: 1800, HasPrice: true, Cost: dime / 2, Boot: 180,
			Longest: 1140, P95: 1080, LongestHybrid: 180, P95Hybrid: 180,
		}},
		{"extras are part of the cost", config(func(s *fleet.Snapshot) { s.Config.Limits.Extras = dime }), burst(), decide.ShadowPool{
			Pool: "ocr", Enabled: true, Launches: 1, Machine: 1800, HasPrice: true, Cost: dime, Boot: 180,
			Longest: 1140, P95: 1080, LongestHybrid: 180, P95Hybrid: 180,
		}},
		{"without a price the launches still count, and the cost is said to be none", config(func(s *fleet.Snapshot) { s.Config.Prices = nil }), burst(), decide.ShadowPool{
			Pool: "ocr", Enabled: true, Launches: 1, Machine: 1800, Boot: 180, Longest: 1140, P95: 1080, LongestHybrid: 180, P95Hybrid: 180,
		}},
		{"a provider that says how long its machines boot", config(func(s *fleet.Snapshot) { s.Config.Providers[0].Settings = []byte(`{"boot_seconds":60}`) }), burst(), decide.ShadowPool{
			Pool: "ocr", Enabled: true, Launches: 1, Machine: 1800, HasPrice: true, Cost: dime / 2, Boot: 60,
			Longest: 1140, P95: 1080, LongestHybrid: 60, P95Hybrid: 60,
		}},
		{"the age at which it is asked for is waited before", config(queue(func(q *fleet.PoolQueue) { q.Depth, q.Age = 100, 300 })), burst(), decide.ShadowPool{
			Pool: "ocr", Enabled: true, Launches: 1, Machine: 1500, HasPrice: true, Cost: dime.For(25 * minute), Boot: 180,
			Longest: 1140, P95: 1080, LongestHybrid: 480, P95Hybrid: 480,
		}},
		{"the VPS counts against max_workers", config(pool(func(p *fleet.Pool) { p.MaxWorkers = 1 })), burst(), decide.ShadowPool{
			Pool: "ocr", Enabled: true, HasPrice: true, Boot: 180, Longest: 1140, P95: 1080, LongestHybrid: 1140, P95Hybrid: 1080,
		}},
		{"a pool that may not use the cloud would have launched nothing", config(pool(func(p *fleet.Pool) { p.Enabled = false })), burst(), decide.ShadowPool{
			Pool: "ocr", HasPrice: true, Boot: 180, Longest: 1140, P95: 1080, LongestHybrid: 1140, P95Hybrid: 1080,
		}},
		{"machines that still run are paid to the end", config(), minutes(times64(11, 8)...), decide.ShadowPool{
			Pool: "ocr", Enabled: true, Launches: 1, Machine: 600, HasPrice: true, Cost: dime.For(10 * minute), Boot: 180,
			Longest: 600, P95: 600, LongestHybrid: 180, P95Hybrid: 180,
		}},
		{"two bursts far apart are two launches", config(), append(burst(), later(burst(), time.Hour)...), decide.ShadowPool{
			Pool: "ocr", Enabled: true, Launches: 2, Machine: 3600, HasPrice: true, Cost: dime, Boot: 180,
			Longest: 1140, P95: 1080, LongestHybrid: 180, P95Hybrid: 180,
		}},
		{"nothing waited", config(), minutes(times64(30, 0)...), decide.ShadowPool{Pool: "ocr", Enabled: true, HasPrice: true, Boot: 180}},
		{"no readings", config(), nil, decide.ShadowPool{Pool: "ocr", Enabled: true, HasPrice: true, Boot: 180}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := decide.Shadow(c.config, c.samples)
			same(t, "pool", r.Pools, []decide.ShadowPool{c.want})
			if r.Samples != len(c.samples) || r.Currency != "USD" || len(c.samples) > 0 && (!r.From.Equal(noon) || r.To.Before(r.From)) {
				t.Errorf("report %s", text(r))
			}
		})
	}
}

func later(samples []fleet.Sample, by time.Duration) []fleet.Sample {
	for i := range samples {
		samples[i].At = samples[i].At.Add(by)
	}
	return samples
}

func TestShadowKeepsToTheDailyLimitAndBeginsAnewTheNextDay(t *testing.T) {
	t.Parallel()
	c := world(pool(func(p *fleet.Pool) { p.MaxWorkers = 2 }), limits(fleet.Unit, dime)).Config
	r := decide.Shadow(c, minutes(times64(36*60, 8)...))
	if len(r.LimitReached) != 2 || r.LimitReached[0] != "2027-01-14" || r.LimitReached[1] != "2027-01-15" {
		t.Errorf("the limit of an hour per day is reached on both days: %v", r.LimitReached)
	}
	if p := r.Pools[0]; p.Cost > 2*dime || p.Cost < dime {
		t.Errorf("two days cost %s, and the limit is %s for each", p.Cost, dime)
	}
}

func TestShadowHoldsWhereAQueueCouldNotBeRead(t *testing.T) {
	t.Parallel()
	samples := burst()
	for i := range samples[20:] {
		samples[20+i].Queues[0] = fleet.QueueState{Name: "ocr", Unknown: "refused"}
	}
	c := world(queue(func(q *fleet.PoolQueue) { q.Age = 0 }), pool(func(p *fleet.Pool) { p.MaxWorkers = 2 })).Config
	if p := decide.Shadow(c, samples).Pools[0]; p.Launches != 1 || p.Machine != 39*60 || p.Longest != 1140 {
		t.Errorf("it runs to the end, and what was not read is no wait: %s", text(p))
	}
}
