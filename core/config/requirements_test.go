package config

import (
	"encoding/json"
	"maps"
	"os"
	"reflect"
	"strings"
	"testing"

	"sluice/core/fleet"
)

// baseFile is the base system's settings file with every default spelled out.
const baseFile = "../../docs/examples/base.json"

// keyCase is a key of the base file that is given another value, and what decisions then read.
type keyCase struct {
	key  string
	also map[string]any // what it takes for the key to matter, such as a provider that is enabled
	to   any
	read func(c fleet.Config) any
	want any
}

func TestEveryKeyOfTheBaseFileIsHonoured(t *testing.T) {
	t.Parallel()
	covered := map[string]bool{"$schema": true}
	for _, c := range keyCases() {
		covered[keyPattern(c.key)] = true
		t.Run(c.key, func(t *testing.T) {
			t.Parallel()
			before := edited(t, c.also)
			changes := without(c.also)
			changes[c.key] = c.to
			got := c.read(edited(t, changes))
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("with %s at %v decisions read %v, want %v", c.key, c.to, got, c.want)
			}
			if reflect.DeepEqual(c.read(before), got) {
				t.Errorf("%s changes nothing: %v", c.key, got)
			}
		})
	}
	for _, key := range leaves(baseValues(t), "") {
		if !covered[keyPattern(key)] {
			t.Errorf("no case shows that %s is honoured", key)
		}
	}
}

// enabledCloud lets the queue ocr use a provider.
func enabledCloud(name string, more map[string]any) map[string]any {
	out := map[string]any{"queues.ocr.cloud_enabled": true, "queues.ocr.cloud_provider": name, "cloud_providers." + name + ".enabled": true}
	maps.Copy(out, more)
	return out
}

func keyCases() []keyCase {
	ocr := func(f func(p fleet.Pool) any) func(fleet.Config) any {
		return func(c fleet.Config) any { p, _ := c.Pool("ocr"); return f(p) }
	}
	first := func(f func(o fleet.Offer) any) func(fleet.Config) any {
		return ocr(func(p fleet.Pool) any {
			if len(p.Offers) == 0 {
				return nil
			}
			return f(p.Offers[0])
		})
	}
	most := func(c fleet.Config) any {
		if len(c.Providers) == 0 {
			return nil
		}
		return c.Providers[0].MaxInstances
	}
	aws := enabledCloud("aws", map[string]any{"cloud_providers.aws.ami_id": "ami-1", "queues.ocr.spot_preferred": true})
	google := enabledCloud("google", map[string]any{"cloud_providers.google.image": "family/worker", "cloud_providers.google.project": "p", "queues.ocr.spot_preferred": true})
	ionos := enabledCloud("ionos", map[string]any{
		"cloud_providers.ionos.datacenter_id": "d", "cloud_providers.ionos.currency": "USD",
		"cloud_providers.ionos.server_types": map[string]any{"c6i.xlarge": cores(4), "large": cores(8)},
	})
	names := func(c fleet.Config) any {
		out := ""
		for _, p := range c.Providers {
			out += p.Name
		}
		return out
	}
	cheapestOfAll := map[string]any{"queues.ocr.cloud_enabled": true, "cloud_providers.aws.enabled": true, "cloud_providers.aws.ami_id": "ami-1"}
	return []keyCase{
		{"mode", nil, "hybrid", func(c fleet.Config) any { return c.Mode }, fleet.Hybrid},
		{"evaluation_interval_seconds", nil, 300, func(c fleet.Config) any { return c.Interval }, fleet.Seconds(300)},

		{"queues.ocr.baseline_workers", nil, 2, ocr(func(p fleet.Pool) any { return p.Queues[0].Baseline }), 2},
		{"queues.ocr.max_workers", nil, 7, ocr(func(p fleet.Pool) any { return p.MaxWorkers }), 7},
		{"queues.ocr.cloud_enabled", map[string]any{"cloud_providers.aws.enabled": true, "cloud_providers.aws.ami_id": "ami-1"}, true, ocr(func(p fleet.Pool) any { return p.Enabled }), true},
		{"queues.ocr.cloud_provider", cheapestOfAll, "aws", ocr(func(p fleet.Pool) any { return p.Cheapest }), false},
		{"queues.bulk.spot_preferred", enabledCloudFor("bulk"), false, func(c fleet.Config) any { p, _ := c.Pool("bulk"); return p.Offers[0].Market }, fleet.OnDemand},

		{"cloud_providers.aws.enabled", map[string]any{"cloud_providers.aws.ami_id": "ami-1"}, true, names, "aws"},
		{"cloud_providers.aws.region", aws, "eu-central-1", first(func(o fleet.Offer) any { return o.Scope }), "eu-central-1"},
		{"cloud_providers.aws.instance_type", aws, "c7g.large", first(func(o fleet.Offer) any { return o.Type }), "c7g.large"},
		{"cloud_providers.aws.ami_id", aws, "ami-2", first(func(o fleet.Offer) any { return o.Image }), "ami-2"},
		{"cloud_providers.aws.max_instances", aws, 2, most, 2},
		{"cloud_providers.aws.spot_enabled", aws, false, first(func(o fleet.Offer) any { return o.Market }), fleet.OnDemand},
		{"cloud_providers.aws.spot_max_price", aws, "0.07", first(func(o fleet.Offer) any { return o.MaxPrice }), 7 * fleet.Cent},

		{"cloud_providers.google.enabled", map[string]any{"cloud_providers.google.image": "family/worker", "cloud_providers.google.project": "p"}, true, names, "google"},
		{"cloud_providers.google.zone", google, "europe-west4-a", first(func(o fleet.Offer) any { return o.Zone }), "europe-west4-a"},
		{"cloud_providers.google.machine_type", google, "e2-small", first(func(o fleet.Offer) any { return o.Type }), "e2-small"},
		{"cloud_providers.google.image", google, "family/other", first(func(o fleet.Offer) any { return o.Image }), "family/other"},
		{"cloud_providers.google.max_instances", google, 2, most, 2},
		{"cloud_providers.google.preemptible", google, false, first(func(o fleet.Offer) any { return o.Market }), fleet.OnDemand},

		{"cloud_providers.ionos.enabled", without(ionos, "cloud_providers.ionos.enabled", "queues.ocr.cloud_enabled", "queues.ocr.cloud_provider"), true, names, "ionos"},
		{"cloud_providers.ionos.datacenter", ionos, "gb/lhr", func(c fleet.Config) any { return strings.Contains(string(c.Providers[0].Settings), "gb/lhr") }, true},
		{"cloud_providers.ionos.server_type", ionos, "large", first(func(o fleet.Offer) any { return o.Type }), "large"},
		{"cloud_providers.ionos.image", ionos, "worker-2", first(func(o fleet.Offer) any { return o.Image }), "worker-2"},
		{"cloud_providers.ionos.max_instances", ionos, 1, most, 1},

		{"scaling_rules.scale_up.queue_depth_threshold", nil, 20, ocr(func(p fleet.Pool) any { return p.Queues[0].Depth }), 20},
		{"scaling_rules.scale_up.oldest_job_age_seconds", nil, 60, ocr(func(p fleet.Pool) any { return p.Queues[0].Age }), fleet.Seconds(60)},
		{"scaling_rules.scale_up.cooldown_seconds", nil, 30, ocr(func(p fleet.Pool) any { return p.UpCooldown }), fleet.Seconds(30)},
		{"scaling_rules.scale_down.idle_minutes", nil, 5, ocr(func(p fleet.Pool) any { return p.IdleMinutes }), 5},
		{"scaling_rules.scale_down.queue_depth_below", nil, 4, ocr(func(p fleet.Pool) any { return p.Queues[0].DepthBelow }), 4},
		{"scaling_rules.scale_down.cooldown_seconds", nil, 60, ocr(func(p fleet.Pool) any { return p.DownCooldown }), fleet.Seconds(60)},

		{"cost_limits.max_hourly_spend_cents", nil, 400, func(c fleet.Config) any { return c.Limits.Hourly }, 4 * fleet.Unit},
		{"cost_limits.max_daily_spend_cents", nil, 6000, func(c fleet.Config) any { return c.Limits.Daily }, 60 * fleet.Unit},
		{"cost_limits.alert_threshold_cents", nil, 2000, func(c fleet.Config) any { return c.Limits.Alert }, 20 * fleet.Unit},
	}
}

func enabledCloudFor(queue string) map[string]any {
	return map[string]any{"queues." + queue + ".cloud_enabled": true, "cloud_providers.aws.enabled": true, "cloud_providers.aws.ami_id": "ami-1"}
}

func cores(n int) map[string]any {
	return map[string]any{"cores": n, "ram_gb": 8, "price_per_hour": "0.1"}
}

func without(m map[string]any, keys ...string) map[string]any {
	out := map[string]any{}
	maps.Copy(out, m)
	for _, k := range keys {
		delete(out, k)
	}
	return out
}

// What the base file says, key by key, is what holds without it, but for the queues that it names.
func TestTheBaseFileSpellsOutTheDefaults(t *testing.T) {
	t.Parallel()
	base := parse(t, string(mustRead(t, baseFile))).Config
	var short map[string]any
	if err := json.Unmarshal([]byte(`{"queues": {
		"images": {"baseline_workers": 1}, "documents": {"baseline_workers": 1}, "ocr": {"max_workers": 3}, "media": {"max_workers": 3},
		"bulk": {"max_workers": 5, "spot_preferred": true}}}`), &short); err != nil {
		t.Fatal(err)
	}
	same(t, "config", base, parse(t, marshalled(t, short)).Config)
	for name, want := range map[string]int{"images": 1, "documents": 1, "ocr": 3, "media": 3, "bulk": 5} {
		if p := pool(t, Parsed{Config: base}, name); p.MaxWorkers != want || p.Enabled || len(p.Offers) > 0 {
			t.Errorf("pool %s: %+v", name, p)
		}
	}
}

// Without their keys the providers allow as many machines as the base file lets them.
func TestProvidersAllowAsManyMachinesAsInTheBaseFile(t *testing.T) {
	t.Parallel()
	p := parse(t, `{"cloud_providers": {
		"aws": {"enabled": true, "region": "r", "instance_type": "a", "ami_id": "ami-1"},
		"google": {"enabled": true, "project": "p", "zone": "z", "machine_type": "g", "image": "i"},
		"ionos": {"enabled": true, "currency": "USD", "datacenter_id": "d", "server_type": "s", "image": "i", "server_types": {"s": {"cores": 1, "ram_gb": 1}}}}}`)
	got := map[string]int{}
	for _, pr := range p.Config.Providers {
		got[pr.Name] = pr.MaxInstances
	}
	same(t, "max_instances", got, map[string]int{"aws": 5, "google": 5, "ionos": 3})
}

func mustRead(t *testing.T, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func marshalled(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func baseValues(t *testing.T) map[string]any {
	t.Helper()
	var out map[string]any
	if err := json.Unmarshal(mustRead(t, baseFile), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// edited is the base file with some keys at other values.
func edited(t *testing.T, changes map[string]any) fleet.Config {
	t.Helper()
	file := baseValues(t)
	for key, v := range changes {
		at := file
		words := split(key)
		for _, w := range words[:len(words)-1] {
			at = at[w].(map[string]any)
		}
		at[words[len(words)-1]] = v
	}
	return parse(t, marshalled(t, file)).Config
}

func split(key string) []string { return strings.Split(key, ".") }

// leaves are the paths of all values.
func leaves(v map[string]any, prefix string) []string {
	var out []string
	for k, x := range v {
		if m, ok := x.(map[string]any); ok {
			out = append(out, leaves(m, prefix+k+".")...)
		} else {
			out = append(out, prefix+k)
		}
	}
	return out
}

// keyPattern is a key without the name of its queue.
func keyPattern(key string) string {
	words := split(key)
	if words[0] == "queues" {
		words[1] = "NAME"
	}
	return strings.Join(words, ".")
}
