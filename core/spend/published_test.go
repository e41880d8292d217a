package spend_test

import (
	"testing"
	"time"

	"sluice/core/fleet"
)

// What providers publish of how they count time, and the amounts that follow, worked out by hand. The prices are examples.
const (
	ec2    = "https://aws.amazon.com/about-aws/whats-new/2017/10/announcing-amazon-ec2-per-second-billing/" // by the second, at least 60
	ebs    = "https://repost.aws/knowledge-center/ebs-volume-charges"                                       // 30 GB for 24 of 720 hours are a GB-month, as 1 GB for all of them
	gce    = "https://cloud.google.com/compute/vm-instance-pricing"                                         // 30 seconds are billed as a minute, then by the second
	hourly = "https://www.lima-city.de/hilfe/cloud-abrechnung"                                              // begun hours are rounded up
)

func TestPublishedBillingExamples(t *testing.T) {
	t.Parallel()
	seconds := fleet.Terms{MinCharge: 60, Increment: 1}
	hours := fleet.Terms{Increment: 3600}
	for _, c := range []struct {
		source string
		terms  fleet.Terms
		price  string // per hour
		ran    time.Duration
		amount string
	}{
		{ec2, seconds, "0.17", 30 * time.Second, "0.002834"},             // 60 s: 0.17 / 60 = 0.0028333…
		{ec2, seconds, "0.17", time.Minute, "0.002834"},                  // the same
		{ec2, seconds, "0.17", 90*time.Second + 1, "0.004298"},           // 91 s: 0.17 x 91 / 3600 = 0.0042972…
		{ec2, seconds, "0.17", 2 * time.Hour, "0.34"},                    // 7200 s
		{gce, seconds, "0.067006", 30 * time.Second, "0.001117"},         // 60 s: 0.067006 / 60 = 0.0011167…
		{gce, seconds, "0.067006", 61200 * time.Millisecond, "0.001154"}, // 62 s: 0.067006 x 62 / 3600 = 0.0011539…
		{hourly, hours, "0.0089", 5 * time.Minute, "0.0089"},             // 1 h
		{hourly, hours, "0.0089", time.Hour, "0.0089"},                   // 1 h
		{hourly, hours, "0.0089", 61 * time.Minute, "0.0178"},            // 2 h
		{ebs, fleet.Terms{}, "0.03", 24 * time.Hour, "0.72"},             // 30 GB at 0.72 a GB-month are 30 x 0.72 / 720 = 0.03 an hour
		{ebs, fleet.Terms{}, "0.001", 720 * time.Hour, "0.72"},           // 1 GB: 0.001 an hour
		{ebs, fleet.Terms{}, "0.001", 36 * time.Minute, "0.0006"},        // and a part of an hour is a part of the price
	} {
		price, err := fleet.ParseMoney(c.price)
		if err != nil {
			t.Fatal(err)
		}
		want, err := fleet.ParseMoney(c.amount)
		if err != nil {
			t.Fatal(err)
		}
		s := fleet.Span{Price: price, From: noon, To: noon.Add(c.ran), MinCharge: c.terms.MinCharge, Increment: c.terms.Increment}
		if got := s.Cost(); got != want {
			t.Errorf("%s at %s costs %s, want %s by %s", c.ran, c.price, got, want, c.source)
		}
	}
}
