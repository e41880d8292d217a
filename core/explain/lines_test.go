package explain

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"sluice/core/fleet"
)

var usd = fleet.Config{Name: "prod", Currency: "USD", Mode: fleet.Hybrid}

var spotOffer = fleet.Offer{
	Place: fleet.Place{Provider: "aws", Scope: "eu-west-3"}, Zone: "eu-west-3b", Type: "c6a.xlarge", Market: fleet.Spot,
}

// busyPlan has one of everything that a line is written for.
func busyPlan() fleet.Plan {
	return fleet.Plan{
		Function: fleet.Evaluate, Due: noon, Now: noon.Add(400 * time.Millisecond),
		Spend: fleet.Spend{Rate: 237_000, Reserved: 79_000, Today: 1_860_000, Hourly: 5 * fleet.Unit, Daily: 50 * fleet.Unit},
		Pools: []fleet.PoolPlan{
			{
				Pool: "bulk", Have: 0, Want: 0, Hybrid: 0,
				Steps: []fleet.Step{{From: 0, To: 0, Why: fleet.BelowThreshold{Queue: "bulk", Depth: 8, Oldest: 40}}},
			},
			{
				Pool: "gpu", Have: 2, Want: 2, Hybrid: 2,
				Steps: []fleet.Step{
					{From: 2, To: 3, Why: fleet.BacklogAge{Queue: "gpu", Depth: 5, Oldest: 130, Threshold: 120}},
					{From: 3, To: 2, Why: fleet.LimitHourly{Running: 5_710_000, Next: 530_000, Limit: 6 * fleet.Unit, Over: 240_000}},
				},
				Kept: []fleet.Kept{{Worker: "w-5", Why: fleet.KeptBusy{Jobs: 2}}},
			},
			{
				Pool: "media", Have: 1, Want: 0,
				Steps: []fleet.Step{{From: 1, To: 0, Why: fleet.Idle{Workers: 1}}},
				Drain: []fleet.Drained{{Worker: "w-7", Why: fleet.DrainIdle{Minutes: 12}}, {Worker: "w-8", Why: fleet.DrainUnhealthy{SilentS: 130}}},
			},
			{
				Pool: "ocr", Have: 1, Want: 3, Hybrid: 3, Launch: 1, Undrain: []string{"w-3"}, Offer: &spotOffer, Price: 79_000,
				Steps: []fleet.Step{{From: 1, To: 3, Why: fleet.BacklogStep{Queue: "ocr", Depth: 42, Oldest: 310, Tier: 2, Workers: 3}}},
				Rejected: []fleet.Rejected{
					{Offer: "ionos/de/fra//c6i.xlarge/on_demand", Why: fleet.OfferDearer{Price: 98_000, Best: 79_000}},
				},
			},
			{
				Pool: "video", Have: 1, Want: 1, Hybrid: 2, // which a cooldown holds, not the mode
				Steps: []fleet.Step{
					{From: 1, To: 2, Why: fleet.BacklogDepth{Queue: "video", Depth: 11, Oldest: 12, Threshold: 10}},
					{From: 2, To: 1, Why: fleet.LimitCooldown{Direction: "up", Last: noon, LeftS: 80}},
				},
			},
		},
		Notes: []fleet.Note{
			{Level: fleet.Critical, Why: fleet.DailyLimit{Accrued: 59_450_000, Tail: 580_000, Limit: 60 * fleet.Unit, Source: "accrual", Draining: 22, Jobs: 19}},
			{Level: fleet.Warning, Why: fleet.OrphanRemoved{Provider: "ionos", Machine: "3fd1", Intent: "i-88", First: noon, Cost: 70_000}},
			{Level: fleet.Info, Pool: "gone", Worker: "w-11", Why: fleet.DrainNotEnabled{}},
			{Level: fleet.Info, Pool: "media", Worker: "w-9", Why: fleet.DrainDone{Why: "drain.idle", ForS: 20}},
		},
		Intents: []fleet.Intent{
			{ID: "i-1", Kind: fleet.KindLaunch, State: fleet.IntentOpen, Pool: "ocr", Count: 1},
			{ID: "i-2", Kind: fleet.KindTerminate, State: fleet.IntentOpen, Pool: "media", Worker: "w-9", Ref: fleet.Ref{Place: spotOffer.Place, Machine: "m-9"}},
		},
		Calls:  []fleet.Call{{Intent: "i-1"}, {Intent: "i-2"}},
		Alerts: []fleet.Alert{{Key: "daily", Level: fleet.Critical, Why: fleet.NearDailyLimit{Accrued: 31 * fleet.Unit, Threshold: 30 * fleet.Unit, Limit: 50 * fleet.Unit}}},
	}
}

func quietPlan() fleet.Plan {
	return fleet.Plan{
		Function: fleet.Evaluate, Due: noon, Now: noon, Spend: fleet.Spend{Rate: 79_000, Today: 1_910_000},
		Pools: []fleet.PoolPlan{
			{
				Pool: "bulk", Hybrid: 2,
				Steps: []fleet.Step{
					{From: 0, To: 2, Why: fleet.BacklogDepth{Queue: "bulk", Depth: 812, Oldest: 900, Threshold: 10}},
					{From: 2, To: 0, Why: fleet.LimitMode{Mode: fleet.VPSOnly}},
				},
			},
			{
				Pool: "ocr", Have: 1, Want: 1, Hybrid: 1,
				Steps: []fleet.Step{{From: 1, To: 1, Why: fleet.BelowThreshold{Queue: "ocr"}}},
				Kept:  []fleet.Kept{{Worker: "w-1", Why: fleet.KeptIdle{Minutes: 4, Limit: 10}}},
			},
		},
	}
}

func render(lines []fleet.Line) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	for _, l := range lines {
		if err := e.Encode(l); err != nil {
			return err.Error()
		}
	}
	return b.String()
}

func TestLines(t *testing.T) {
	t.Parallel()
	skipped := fleet.Plan{Function: fleet.Evaluate, Due: noon, Now: noon, Skipped: fleet.SkipRepeated{Due: noon, Last: noon}}
	books := fleet.Plan{Function: fleet.Reconcile, Due: noon, Now: noon}
	for name, p := range map[string]fleet.Plan{
		"busy": busyPlan(), "quiet": quietPlan(), "skipped": skipped, "books": books,
	} {
		golden(t, "lines_"+name+".jsonl", render(Lines(p, usd)))
	}
}

func TestEqualPlansHaveEqualLines(t *testing.T) {
	t.Parallel()
	a, b := Lines(busyPlan(), usd), Lines(busyPlan(), usd)
	if !reflect.DeepEqual(a, b) {
		t.Errorf("the same plan is explained in two ways:\n%s\n%s", render(a), render(b))
	}
}

func TestEveryLineHasItsOwnID(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, l := range Lines(busyPlan(), usd) {
		if seen[l.ID] {
			t.Errorf("two lines are called %s", l.ID)
		}
		seen[l.ID] = true
	}
}

func TestEveryTickHasOneLineNamedTickAndItNamesEveryPool(t *testing.T) {
	t.Parallel()
	for _, p := range []fleet.Plan{busyPlan(), quietPlan()} {
		var ticks []fleet.Line
		for _, l := range Lines(p, usd) {
			if l.Event == "tick" {
				ticks = append(ticks, l)
			}
		}
		if len(ticks) != 1 {
			t.Fatalf("%d tick lines, want 1", len(ticks))
		}
		var facts struct {
			Pools map[string]struct{ Why string }
		}
		if err := json.Unmarshal(ticks[0].Facts, &facts); err != nil {
			t.Fatal(err)
		}
		for _, pool := range p.Pools {
			if facts.Pools[pool.Pool].Why == "" {
				t.Errorf("the tick line does not say why %s is as it is: %s", pool.Pool, ticks[0].Facts)
			}
		}
	}
}

func TestTheTwoSentencesOfTheLogAreAsTheyAlwaysWere(t *testing.T) {
	t.Parallel()
	messages := map[string]bool{}
	for _, l := range Lines(busyPlan(), usd) {
		messages[l.Message] = true
	}
	for _, want := range []string{"Scaling up ocr: depth=42, oldest=310s", "Scaling down worker w-7: idle for 12 minutes"} {
		if !messages[want] {
			t.Errorf("no line says %q", want)
		}
	}
}

func TestNothingIsRefusedByTheModeOrACooldown(t *testing.T) {
	t.Parallel()
	for _, cut := range []fleet.Reason{fleet.LimitMode{}, fleet.LimitNotEnabled{}, fleet.LimitManual{}, fleet.LimitCooldown{}} {
		p := fleet.PoolPlan{Steps: []fleet.Step{{From: 0, To: 1, Why: fleet.BacklogDepth{}}, {From: 1, To: 0, Why: cut}}}
		if got, ok := refusal(p); ok {
			t.Errorf("%s refuses with %v", cut.Code(), got)
		}
	}
	for _, cut := range []fleet.Reason{fleet.LimitHourly{}, fleet.LimitDaily{}, fleet.LimitCeiling{}, fleet.LimitOffers{}, fleet.LimitOverride{}} {
		p := fleet.PoolPlan{Steps: []fleet.Step{{From: 0, To: 1, Why: fleet.BacklogDepth{}}, {From: 1, To: 0, Why: cut}}}
		if _, ok := refusal(p); !ok {
			t.Errorf("%s refuses silently", cut.Code())
		}
	}
}

func TestATickOnABrokenConfigSaysSo(t *testing.T) {
	t.Parallel()
	p := quietPlan()
	p.Alerts = []fleet.Alert{{Why: fleet.ConfigBroken{Cause: "scheduler.json:3: mode"}}}
	got := Lines(p, usd)[0]
	if got.Level != fleet.Warning || !strings.Contains(got.Message, "the last good one holds") || !strings.Contains(string(got.Facts), `"config_broken":"scheduler.json:3: mode"`) {
		t.Errorf("the tick line is %+v %s", got, got.Facts)
	}
}

func TestAlertsHaveATitleAndFacts(t *testing.T) {
	t.Parallel()
	a := Alerts(busyPlan(), usd)[0]
	if want := "Today's spend 31.00 has reached the alert threshold 30.00 of the daily limit 50.00 USD"; a.Title != want {
		t.Errorf("title %q, want %q", a.Title, want)
	}
	if want := `{"install":"prod","code":"daily_limit.near","accrued_usd":31,"threshold_usd":30,"limit_usd":50}`; string(a.Facts) != want {
		t.Errorf("facts %s, want %s", a.Facts, want)
	}
}

func TestStory(t *testing.T) {
	t.Parallel()
	s := fleet.Snapshot{
		Config: usd,
		Queues: []fleet.QueueState{
			{Name: "bulk", Depth: 8, Running: 1, Oldest: 40}, {Name: "gpu", Unknown: "redis: connection refused"},
			{Name: "ocr", Depth: 42, NoAge: true}, {Name: "video"},
		},
		Listings: []fleet.Listing{
			{Place: spotOffer.Place, Machines: make([]fleet.Machine, 3)},
			{Place: fleet.Place{Provider: "ionos"}, Unknown: "time-out"},
		},
	}
	golden(t, "story.txt", Story(busyPlan(), s))
}
