package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"sluice/core/fleet"
)

func parse(t *testing.T, text string) Parsed {
	t.Helper()
	p, err := Parse("f.json", []byte(text), Env{})
	if err != nil {
		t.Fatalf("refused:\n%v", err)
	}
	return p
}

// refused parses and returns the lines of the error.
func refused(t *testing.T, text string) []string {
	t.Helper()
	_, err := Parse("f.json", []byte(text), Env{})
	if err == nil {
		t.Fatalf("accepted: %s", text)
	}
	return strings.Split(err.Error(), "\n")
}

func pool(t *testing.T, p Parsed, name string) fleet.Pool {
	t.Helper()
	got, ok := p.Config.Pool(name)
	if !ok {
		t.Fatalf("no pool %s", name)
	}
	return got
}

func TestRulesAreMergedFromTheTopOverThePoolToTheQueue(t *testing.T) {
	t.Parallel()
	p := parse(t, `{
		"scaling_rules": { "scale_up": { "queue_depth_threshold": 20, "oldest_job_age_seconds": 200 }, "scale_down": { "idle_minutes": 20 } },
		"queues": {
			"a": { "max_workers": 5, "scaling_rules": { "scale_up": { "queue_depth_threshold": 40 } } },
			"b": { "max_workers": 5 },
			"c": { "scaling_rules": { "scale_down": { "drain_timeout_seconds": 60 } } }
		},
		"pools": { "p": { "queues": ["b", "a"], "max_workers": 5, "scaling_rules": { "scale_up": { "queue_depth_threshold": 30, "cooldown_seconds": 7 } } } }
	}`)
	got := pool(t, p, "p")
	want := []fleet.PoolQueue{{Name: "a", Depth: 40, Age: 200, DepthBelow: 2}, {Name: "b", Depth: 30, Age: 200, DepthBelow: 2}}
	same(t, "queues of the pool", got.Queues, want)
	if got.UpCooldown != 7 || got.DownCooldown != 300 || got.IdleMinutes != 20 || got.DrainTimeout != 300 {
		t.Errorf("the pool has %+v", got)
	}
	own := pool(t, p, "c")
	if own.Queues[0].Depth != 20 || own.DrainTimeout != 60 || own.IdleMinutes != 20 {
		t.Errorf("the queue of its own has %+v", own)
	}
}

func TestEachEffectiveValueSaysWhereItCameFrom(t *testing.T) {
	t.Parallel()
	p := parse(t, `{
  "scaling_rules": { "scale_up": { "queue_depth_threshold": 20 } },
  "queues": {
    "a": { "scaling_rules": { "scale_up": { "cooldown_seconds": 5 } } }
  },
  "pools": {
    "p": { "queues": ["a"], "max_workers": 4, "idle_minutes": 3 }
  }
}`)
	from := map[string]string{
		"queues.a.scaling_rules.scale_up.queue_depth_threshold":  "scaling_rules.scale_up.queue_depth_threshold, line 2",
		"queues.a.scaling_rules.scale_up.cooldown_seconds":       "line 4",
		"queues.a.scaling_rules.scale_up.oldest_job_age_seconds": "default",
		"queues.a.scaling_rules.scale_down.idle_minutes":         "pools.p.idle_minutes, line 7",
		"queues.a.max_workers":                                   "pools.p.max_workers",
		"queues.a.source.kind":                                   "no Redis URL is set",
		"mode":                                                   "default",
	}
	for _, v := range p.Effective {
		want, asked := from[v.Path]
		if asked && v.From != want {
			t.Errorf("%s is from %q, expected %q", v.Path, v.From, want)
		}
		delete(from, v.Path)
	}
	if len(from) > 0 {
		t.Errorf("not told: %v", from)
	}
}

func TestAQueueWithoutASourceIsARedisListWhereARedisURLIsSet(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		file string
		env  Env
		want fleet.Source
	}{
		{"no Redis URL", `{"queues":{"q":{}}}`, Env{}, fleet.Source{Kind: "postgres", Rows: true}},
		{"REDIS_URL is set", `{"queues":{"q":{}}}`, Env{RedisURLSet: true}, fleet.Source{Kind: "redis", Key: "queue:q", Rows: true}},
		{"the config has a reference", `{"connections":{"redis":{"url":"file:/run/redis"}},"queues":{"q":{}}}`, Env{}, fleet.Source{Kind: "redis", Key: "queue:q", Rows: true}},
		{"the config says there is none", `{"connections":{"redis":{"url":null}},"queues":{"q":{}}}`, Env{}, fleet.Source{Kind: "postgres", Rows: true}},
		{"the queue says so itself", `{"queues":{"q":{"source":{"kind":"postgres"}}}}`, Env{RedisURLSet: true}, fleet.Source{Kind: "postgres", Rows: true}},
		{"a list of its own without rows", `{"queues":{"q":{"source":{"kind":"redis","key":"k","job_rows":false}}}}`, Env{}, fleet.Source{Kind: "redis", Key: "k"}},
		{"a broker's queue", `{"queues":{"q":{"source":{"kind":"rabbitmq","queue":"r"}}}}`, Env{}, fleet.Source{Kind: "rabbitmq", Key: "r", Rows: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, err := Parse("f.json", []byte(tt.file), tt.env)
			if err != nil {
				t.Fatal(err)
			}
			if got := p.Config.Queues[0].Source; got != tt.want {
				t.Errorf("have %+v, want %+v", got, tt.want)
			}
		})
	}
}

const twoClouds = `"cloud_providers": {
	"aws": { "enabled": true, "region": "eu-west-3", "instance_types": ["a", "b"], "ami_id": "ami-1", "spot_enabled": %s, "spot_max_price": "0.05" },
	"google": { "enabled": true, "project": "p", "zones": ["z1", "z2"], "machine_type": "g", "image": "i", "preemptible": %s } }`

func TestOffersOfAPoolThatListsNone(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		queue    string
		spot     string
		want     []string
		cheapest bool
		fallback string
	}{
		{"on-demand of every provider, the cheapest first", `{}`, "true",
			[]string{"aws/eu-west-3//a/on_demand", "aws/eu-west-3//b/on_demand", "google/p/z1/g/on_demand", "google/p/z2/g/on_demand"}, true, "0"},
		{"spot first where it is preferred and sold", `{"spot_preferred": true, "cloud_provider": "google"}`, "true",
			[]string{"google/p/z1/g/spot", "google/p/z2/g/spot", "google/p/z1/g/on_demand", "google/p/z2/g/on_demand"}, false, "0"},
		{"spot preferred and not sold: nothing to wait for", `{"spot_preferred": true, "cloud_provider": "google", "on_demand_fallback_seconds": 600}`, "false",
			[]string{"google/p/z1/g/on_demand", "google/p/z2/g/on_demand"}, false, "0"},
		{"on-demand later", `{"spot_preferred": true, "cloud_provider": "aws", "on_demand_fallback_seconds": 600}`, "true",
			[]string{"aws/eu-west-3//a/spot", "aws/eu-west-3//b/spot", "aws/eu-west-3//a/on_demand", "aws/eu-west-3//b/on_demand"}, false, "600"},
		{"on-demand never", `{"spot_preferred": true, "cloud_provider": "aws", "on_demand_fallback_seconds": null}`, "true",
			[]string{"aws/eu-west-3//a/spot", "aws/eu-west-3//b/spot", "aws/eu-west-3//a/on_demand", "aws/eu-west-3//b/on_demand"}, false, "never"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			queue := strings.Replace(tt.queue, "{", `{"cloud_enabled": true, `, 1)
			queue = strings.Replace(queue, ", }", "}", 1)
			p := pool(t, parse(t, fmt.Sprintf(`{"queues": {"q": %s}, `+twoClouds+`}`, queue, tt.spot, tt.spot)), "q")
			var keys []string
			for _, o := range p.Offers {
				keys = append(keys, o.Key())
				if most := fleet.Money(50_000); o.Provider == "aws" && o.Market == fleet.Spot && o.MaxPrice != most {
					t.Errorf("%s has the cap %s", o.Key(), o.MaxPrice)
				}
				if o.Market == fleet.OnDemand && o.MaxPrice != 0 {
					t.Errorf("%s has the cap of spot", o.Key())
				}
			}
			fallback := "never"
			if p.FallbackAfter != nil {
				fallback = fmt.Sprint(*p.FallbackAfter)
			}
			if !slices.Equal(keys, tt.want) || p.Cheapest != tt.cheapest || fallback != tt.fallback {
				t.Errorf("have %v, cheapest %v, fallback %s", keys, p.Cheapest, fallback)
			}
		})
	}
}

func TestOffersThatAPoolLists(t *testing.T) {
	t.Parallel()
	p := pool(t, parse(t, fmt.Sprintf(`{"queues": {"q": {"cloud_enabled": true, "max_workers": 3}},
		"pools": {"p": {"queues": ["q"], "offers": [
			{"provider": "google", "market": "spot", "instance_types": ["x"], "zones": ["z9"], "image": "own"},
			{"provider": "google", "market": "on_demand", "instance_types": ["y"]} ]}}, `+twoClouds+`}`, "true", "true")), "p")
	want := []fleet.Offer{
		{Place: fleet.Place{Provider: "google", Scope: "p"}, Zone: "z9", Type: "x", Market: fleet.Spot, Image: "own"},
		{Place: fleet.Place{Provider: "google", Scope: "p"}, Zone: "z1", Type: "y", Market: fleet.OnDemand, Image: "i"},
		{Place: fleet.Place{Provider: "google", Scope: "p"}, Zone: "z2", Type: "y", Market: fleet.OnDemand, Image: "i"},
	}
	same(t, "offers", p.Offers, want)
	if p.Cheapest || p.MaxWorkers != 3 {
		t.Errorf("cheapest is %v, at most %d", p.Cheapest, p.MaxWorkers)
	}
}

func TestAQueueThatMayNotUseTheCloudHasNoOffers(t *testing.T) {
	t.Parallel()
	p := pool(t, parse(t, fmt.Sprintf(`{"queues": {"q": {}}, `+twoClouds+`}`, "true", "true")), "q")
	if p.Enabled || len(p.Offers) > 0 {
		t.Errorf("have %+v", p)
	}
}

func TestPricesOfEnabledProviders(t *testing.T) {
	t.Parallel()
	p := parse(t, `{"currency": "EUR", "cloud_providers": {
		"aws": {"enabled": true, "currency": "EUR", "region": "r", "instance_type": "a", "ami_id": "i", "prices": {"a:spot": "0.03", "a": "0.1", "x-note": "from the price page"}},
		"google": {"enabled": false, "prices": {"g": "1"}},
		"ionos": {"enabled": true, "datacenter_id": "d", "server_type": "s", "image": "i", "server_types": {"s": {"cores": 1, "ram_gb": 1, "price_per_hour": "0.0000001"}, "t": {"cores": 1, "ram_gb": 1}}},
		"local": {"enabled": true}}}`)
	same(t, "prices", p.Config.Prices, []fleet.Price{
		{Provider: "aws", Type: "a", Market: fleet.OnDemand, Price: 100_000},
		{Provider: "aws", Type: "a", Market: fleet.Spot, Price: 30_000},
		{Provider: "ionos", Type: "s", Market: fleet.OnDemand, Price: 1}, // rounded up, never to nothing
		{Provider: "local", Type: "local", Market: fleet.OnDemand, Price: 0},
	})
}

func TestPricesOfSuspendedMachines(t *testing.T) {
	t.Parallel()
	p := parse(t, `{"currency": "EUR", "cloud_providers": {
		"aws": {"enabled": true, "currency": "EUR", "region": "r", "instance_type": "a", "ami_id": "i", "prices": {"a": "0.1", "a:suspended": "0.0033", "b:suspended": "0"}},
		"google": {"enabled": false, "prices": {"g:suspended": "1"}},
		"ionos": {"enabled": true, "datacenter_id": "d", "server_type": "s", "image": "i", "server_types": {"s": {"cores": 1, "ram_gb": 1, "price_per_hour": "0.1", "suspended_price_per_hour": "0.01"}}},
		"local": {"enabled": true, "price_per_hour": "0.2", "suspended_price_per_hour": "0"}}}`)
	same(t, "what is told, and zero of this computer alone", p.Config.Suspended, []fleet.SuspendedPrice{
		{Provider: "aws", Type: "a", Price: 3_300},
		{Provider: "ionos", Type: "s", Price: 10_000},
		{Provider: "local", Type: "local", Price: 0},
	})
	if len(p.Config.Prices) != 3 {
		t.Errorf("they are no prices of machines that run: %+v", p.Config.Prices)
	}
}

func TestForeignPricesAreConverted(t *testing.T) {
	t.Parallel()
	ionos := `"cloud_providers": {"ionos": {"enabled": %v, "datacenter_id": "d", "server_type": "s", "image": "i", "server_types": {"s": {"cores": 1, "ram_gb": 1, "price_per_hour": "0.10"}}}}`
	p := parse(t, `{"exchange_rates": {"EUR": "1.1133", "GBP": "1.3"}, `+fmt.Sprintf(ionos, true)+`}`)
	if got := p.Config.Prices[0].Price; got != 111_330 {
		t.Errorf("the price is %s", got)
	}
	if len(p.Config.NotHonoured) > 0 || p.Config.Providers[0].Currency != "EUR" || p.Config.ExchangeRates["GBP"] != "1.3" {
		t.Errorf("not honoured: %v, providers %+v, rates %v", p.Config.NotHonoured, p.Config.Providers, p.Config.ExchangeRates)
	}
}

func TestProviderSettingsAreTheBlockWithDefaultsAndWithoutComments(t *testing.T) {
	t.Parallel()
	a := parse(t, `{"cloud_providers": {"local": {"x-note": "hi", "price_per_hour": "0.2", "enabled": true}}}`)
	b := parse(t, `{"cloud_providers": {"local": {"enabled": true, "max_instances": 5, "price_per_hour": "0.2"}}}`)
	want := `{"enabled":true,"max_instances":5,"boot_seconds":5,"price_per_hour":"0.2"}`
	for _, p := range []Parsed{a, b} {
		if got := string(p.Config.Providers[0].Settings); got != want {
			t.Errorf("have %s, want %s", got, want)
		}
	}
	if got := a.Config.Providers[0].Place(); got != (fleet.Place{Provider: "local"}) {
		t.Errorf("the place is %v", got)
	}
}

func TestWhatDoesNotMatterIsNotNamedAsNotHonoured(t *testing.T) {
	t.Parallel()
	for _, file := range []string{
		`{"telemetry": {"metrics": "summary", "log_retention_days": 30}, "alerts": {"levels": {"info": []}, "repeat_minutes": 5}}`,
		`{"connections": {"rabbitmq": {"vhost": "v", "ca": "env:CA"}, "redis": {"ca": "env:CA"}}}`,
		`{"billing": {"aws_cost_explorer_hours": 24, "google_billing_export": "a.b.c", "ionos_billing_hours": null}}`,
		`{"cost_limits": {"period": "week"}}`,
		`{"queues": {"q": {"run": {"checkpoint": false, "memory_mb": null}}}, "pools": {"p": {"kind": "burst", "queues": ["q"], "migrate": false, "windows": [], "jobs_per_worker": null}}}`,
		`{"routing": [], "exchange_rates": {}}`,
		`{"queues": {"q": {"automatic": false, "urgency": 3, "spot_preferred": true}}, "timezone": "Europe/Paris", "currency": "EUR", "cost_limits": {"extras_cents_per_machine_hour": 2}, "workers": {"max_lifetime_hours": 3}}`,
	} {
		if p := parse(t, file); len(p.Config.NotHonoured) > 0 {
			t.Errorf("%s: %v", file, p.Config.NotHonoured)
		}
	}
}

func TestACeilingIsTheSmallestThatIsSet(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		file  string
		want  int
		warns bool
	}{
		{"the pool's, where its queues say nothing", `{"queues": {"a": {}, "b": {}}, "pools": {"p": {"queues": ["a", "b"], "max_workers": 6}}}`, 6, false},
		{"its smallest queue's, where the pool says nothing", `{"queues": {"a": {"max_workers": 3}, "b": {"max_workers": 4}}, "pools": {"p": {"queues": ["a", "b"]}}}`, 3, false},
		{"a queue's below the pool's", `{"queues": {"a": {"max_workers": 3}}, "pools": {"p": {"queues": ["a"], "max_workers": 6}}}`, 3, true},
		{"the pool's in packed pools, where queues count instances", `{"queues": {"a": {"max_workers": 3}}, "pools": {"p": {"kind": "packed", "queues": ["a"], "max_workers": 6}}}`, 6, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := parse(t, tt.file)
			if got := pool(t, p, "p").MaxWorkers; got != tt.want || len(p.Warnings) > 0 != tt.warns {
				t.Errorf("at most %d, warnings %v", got, p.Warnings)
			}
		})
	}
}

func TestMistakesThatFollowFromAnotherAreNotTold(t *testing.T) {
	t.Parallel()
	for _, file := range []string{
		`{"queues": {"q": {"cloud_enabled": true}}, "cloud_providers": {"local": {"enabled": "true"}}}`,
		`{"queues": {"q": 1}, "pools": {"p": {"queues": ["q"]}}}`,
		`{"queues": {"q": {}}, "pools": {"p": {"max_workers": 2}}, "routing": [{"name": "r", "when": {}, "to": ["p"]}]}`,
		`{"cloud_providers": {"aws": {"enabled": true, "region": 1, "instance_type": "a", "ami_id": "i"}}}`,
	} {
		if lines := refused(t, file); len(lines) != 1 {
			t.Errorf("%s:\n%s", file, strings.Join(lines, "\n"))
		}
	}
}

func TestAMistakeInInheritedRulesIsToldOnceWhereItStands(t *testing.T) {
	t.Parallel()
	lines := refused(t, `{"queues": {"a": {}, "b": {}, "c": {}}, "scaling_rules": {"scale_up": {"steps": [{"workers": 1}]}}}`)
	if len(lines) != 1 || !strings.HasPrefix(lines[0], "f.json:1:82: scaling_rules.scale_up.steps[0]: ") {
		t.Errorf("have %s", strings.Join(lines, "\n"))
	}
}

func TestColumnsCountCharacters(t *testing.T) {
	t.Parallel()
	lines := refused(t, "{\n  \"x-é\": \"é\", \"mod\": 1, \"nam\": 1 }")
	want := []string{`f.json:2:15: mod: unknown key; did you mean "mode"?`, `f.json:2:25: nam: unknown key; did you mean "name"?`}
	if !slices.Equal(lines, want) {
		t.Errorf("have %q", lines)
	}
}

func TestErrorsAreJSONAsWell(t *testing.T) {
	t.Parallel()
	_, err := Parse("f.json", []byte(`{"mode": "hybird"}`), Env{})
	var list *Errors
	if !errors.As(err, &list) {
		t.Fatal(err)
	}
	got, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"file":"f.json","line":1,"column":10,"path":"mode","message":"found \"hybird\", expected \"vps_only\", \"hybrid\" or \"cloud_first\"; did you mean \"hybrid\"?",` +
		`"found":"\"hybird\"","expected":"\"vps_only\", \"hybrid\" or \"cloud_first\"","nearest":"hybrid"}]`
	if string(got) != want {
		t.Errorf("have %s", got)
	}
}

func TestThresholdsMayBeOneAndNoLess(t *testing.T) {
	t.Parallel()
	p := parse(t, `{"queues": {"q": {"scaling_rules": {"scale_up": {"queue_depth_threshold": 1, "oldest_job_age_seconds": null}, "scale_down": {"idle_minutes": 0, "queue_depth_below": 1}}}}}`)
	q := pool(t, p, "q")
	if q.Queues[0].Depth != 1 || q.Queues[0].Age != 0 || q.IdleMinutes != 0 || q.Queues[0].DepthBelow != 1 {
		t.Errorf("have %+v", q)
	}
	refused(t, `{"scaling_rules": {"scale_up": {"oldest_job_age_seconds": 0}}}`)
}
