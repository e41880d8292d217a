package spend_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"sluice/core/fleet"
	"sluice/core/spend"
)

var noon = time.Date(2027, 1, 14, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return noon.Add(-d) }

// hour is what a machine costs for one hour: 3,600,000 millionths, a thousand for each second.
const hour = 3_600_000 * fleet.Micro

func snapshot(changes ...func(*fleet.Snapshot)) fleet.Snapshot {
	s := fleet.Snapshot{
		Limit:  60,
		Config: fleet.Config{Timezone: "UTC", Interval: 60, Limits: fleet.Limits{Hourly: 10 * hour, Daily: 100 * hour}},
		Memory: fleet.Memory{Deployment: "dep", Now: noon},
	}
	for _, c := range changes {
		c(&s)
	}
	return s
}

func open(t *testing.T, s fleet.Snapshot) spend.Books {
	t.Helper()
	b, err := spend.Open(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func worker(f func(*fleet.Worker)) func(*fleet.Snapshot) {
	return func(s *fleet.Snapshot) {
		w := fleet.Worker{ID: "a", Place: fleet.Place{Provider: "aws"}, Machine: "i-a", Price: hour, Idle: hour / 10, Status: fleet.Ready, CostFrom: ago(time.Hour)}
		f(&w)
		s.Memory.Workers = append(s.Memory.Workers, w)
	}
}

func intent(f func(*fleet.Intent)) func(*fleet.Snapshot) {
	return func(s *fleet.Snapshot) {
		in := fleet.Intent{ID: "in", Kind: fleet.KindLaunch, State: fleet.IntentOpen, Count: 1, Reserve: hour, Created: ago(time.Minute)}
		f(&in)
		s.Memory.Intents = append(s.Memory.Intents, in)
	}
}

func span(price fleet.Money, from, to time.Time, least fleet.Seconds) func(*fleet.Snapshot) {
	return func(s *fleet.Snapshot) {
		s.Memory.Ended = append(s.Memory.Ended, fleet.Span{Provider: "aws", Price: price, From: from, To: to, MinCharge: least})
	}
}

func TestAccrual(t *testing.T) {
	t.Parallel()
	midnight := time.Date(2027, 1, 14, 0, 0, 0, 0, time.UTC)
	now := func(at time.Time) func(*fleet.Snapshot) { return func(s *fleet.Snapshot) { s.Memory.Now = at } }
	for _, c := range []struct {
		name                  string
		given                 func(*fleet.Snapshot)
		today, rate, reserved fleet.Money
	}{
		{"nothing costs nothing", now(noon), 0, 0, 0},
		{"an hour of a running machine", worker(func(*fleet.Worker) {}), hour, hour, 0},
		{"a booting one costs the same", worker(func(w *fleet.Worker) { w.Status = fleet.Provisioning }), hour, hour, 0},
		{"a draining one as well", worker(func(w *fleet.Worker) { w.Status = fleet.Draining }), hour, hour, 0},
		{"a suspended one its own price", worker(func(w *fleet.Worker) { w.Status = fleet.Suspended }), hour / 10, hour / 10, 0},
		{"the VPS costs nothing here", worker(func(w *fleet.Worker) { w.Place.Provider = fleet.VPS }), 0, 0, 0},
		{"yesterday's hours are yesterday's", worker(func(w *fleet.Worker) { w.CostFrom = ago(20 * time.Hour) }), 12 * hour, hour, 0},
		{"one of which nobody knows since when costs the whole day", worker(func(w *fleet.Worker) { w.CostFrom = time.Time{} }), 12 * hour, hour, 0},
		{"a fraction of a millionth is a millionth", worker(func(w *fleet.Worker) { w.Price, w.CostFrom = 1, ago(time.Second) }), 1, 1, 0},
		{"a minimum charge counts at once", worker(func(w *fleet.Worker) { w.CostFrom, w.MinCharge = ago(time.Minute), 3600 }), hour, hour, 0},
		{"and no more once it is used up", worker(func(w *fleet.Worker) { w.MinCharge = 3600 }), hour, hour, 0},
		{"a minimum charge across midnight counts on both days", func(s *fleet.Snapshot) {
			now(midnight.Add(5 * time.Minute))(s)
			span(hour, midnight.Add(-20*time.Minute), midnight.Add(-15*time.Minute), 3600)(s)
		}, 2 * hour / 3, 0, 0},
		{"the part of it before midnight was yesterday's", func(s *fleet.Snapshot) {
			now(midnight.Add(-time.Minute))(s)
			span(hour, midnight.Add(-20*time.Minute), midnight.Add(-15*time.Minute), 3600)(s)
		}, hour / 3, 0, 0},
		{"a line of the ledger across midnight", span(hour, midnight.Add(-time.Hour), midnight.Add(2*time.Hour), 0), 2 * hour, 0, 0},
		{"one of yesterday is not today's", span(hour, ago(20*time.Hour), ago(14*time.Hour), 0), 0, 0, 0},
		{"an orphan costs from first sight", func(s *fleet.Snapshot) {
			s.Memory.Sightings = []fleet.Sighting{{Price: hour, First: ago(2 * time.Hour), Last: ago(time.Minute)}}
		}, 2 * hour, hour, 0},
		{"an asked-for machine is reserved and accrues", intent(func(*fleet.Intent) {}), hour / 60, 0, hour},
		{"each of several", intent(func(in *fleet.Intent) { in.Count = 3; in.Bound = 1 }), 2 * (hour / 60), 0, 2 * hour},
		{"with its minimum charge", intent(func(in *fleet.Intent) { in.MinFor = 600 }), hour / 6, 0, hour},
		{"also when it was given up", intent(func(in *fleet.Intent) { in.State = fleet.IntentAbandoned }), hour / 60, 0, hour},
		{"one that was refused is not", intent(func(in *fleet.Intent) { in.State = fleet.IntentRefused }), 0, 0, 0},
		{"one that is done is not", intent(func(in *fleet.Intent) { in.State = fleet.IntentDone }), 0, 0, 0},
		{"a machine that wakes costs what it will, from the call on", func(s *fleet.Snapshot) {
			worker(func(w *fleet.Worker) { w.Status = fleet.Suspended })(s)
			intent(func(in *fleet.Intent) { in.Kind, in.Worker, in.Reserve = fleet.KindResume, "a", 0 })(s)
		}, hour/10 + hour/60, hour / 10, hour - hour/10},
		{"an end that was asked for costs nothing by itself", intent(func(in *fleet.Intent) { in.Kind = fleet.KindTerminate }), 0, 0, 0},
		{"what a bill added today is today's", func(s *fleet.Snapshot) {
			s.Memory.Bills = []fleet.Bill{{SeenAt: ago(time.Hour), Excess: 7}, {SeenAt: ago(13 * time.Hour), Excess: 9}, {SeenAt: midnight, Excess: 20}}
		}, 27, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := open(t, snapshot(c.given))
			if b.Today != c.today || b.Rate != c.rate || b.Reserved != c.reserved {
				t.Errorf("today %d, rate %d, reserved %d; want %d, %d, %d", b.Today, b.Rate, b.Reserved, c.today, c.rate, c.reserved)
			}
		})
	}
}

func TestDaysOfTwentyThreeAndTwentyFiveHours(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		zone  string
		noon  time.Time // some time of the day, UTC
		day   string
		hours fleet.Money
	}{
		{"UTC", time.Date(2027, 3, 28, 12, 0, 0, 0, time.UTC), "2027-03-28", 24},
		{"Europe/Paris", time.Date(2027, 3, 28, 12, 0, 0, 0, time.UTC), "2027-03-28", 23},
		{"Europe/Paris", time.Date(2027, 10, 31, 12, 0, 0, 0, time.UTC), "2027-10-31", 25},
		{"Europe/Paris", time.Date(2027, 10, 30, 22, 0, 0, 0, time.UTC), "2027-10-31", 25},
		{"Europe/Paris", time.Date(2027, 10, 31, 22, 59, 59, 0, time.UTC), "2027-10-31", 25},
		{"Europe/Paris", time.Date(2027, 10, 31, 23, 0, 0, 0, time.UTC), "2027-11-01", 24},
		{"America/New_York", time.Date(2027, 3, 14, 12, 0, 0, 0, time.UTC), "2027-03-14", 23},
		{"America/New_York", time.Date(2027, 11, 7, 12, 0, 0, 0, time.UTC), "2027-11-07", 25},
		{"America/New_York", time.Date(2027, 11, 6, 3, 59, 0, 0, time.UTC), "2027-11-05", 24}, // Friday 23:59 there is Saturday in UTC
	} {
		t.Run(c.day+" in "+c.zone, func(t *testing.T) {
			t.Parallel()
			name, from, to, err := spend.Day(c.noon, c.zone)
			if err != nil || name != c.day || to.Sub(from) != time.Duration(c.hours)*time.Hour || c.noon.Before(from) || !c.noon.Before(to) {
				t.Fatalf("%s from %s to %s, %v", name, from, to, err)
			}
			l := fleet.Span{Price: hour, From: from.AddDate(0, 0, -3), To: to.AddDate(0, 0, 3)}
			if got := l.Between(from, to); got != c.hours*hour {
				t.Errorf("a machine that runs all day costs %s, want %d hours", got, c.hours)
			}
		})
	}
	if _, _, _, err := spend.Day(noon, "nowhere"); err == nil {
		t.Error("an unknown zone is no error")
	}
}

// However a line is cut into days, the parts add up to the whole.
func TestPartsOfALineAddUp(t *testing.T) {
	t.Parallel()
	zones := []string{"UTC", "Europe/Paris", "America/New_York", "Asia/Kathmandu"}
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 2))
		from := time.Date(2027, time.Month(1+r.IntN(12)), 1+r.IntN(28), 0, 0, 0, 0, time.UTC).Add(time.Duration(r.Int64N(int64(24 * time.Hour))))
		l := fleet.Span{
			Price: fleet.Money(r.Int64N(3_000_000)), From: from, To: from.Add(time.Duration(r.Int64N(int64(100 * time.Hour)))),
			MinCharge: fleet.Seconds(r.IntN(2) * r.IntN(100_000)), Increment: []fleet.Seconds{0, 1, 60, 3600, 7}[r.IntN(5)],
		}
		zone := zones[r.IntN(len(zones))]
		sum, at := fleet.Money(0), from.Add(-time.Duration(r.Int64N(int64(48*time.Hour))))
		for range 12 {
			_, day, end, err := spend.Day(at, zone)
			if err != nil {
				t.Fatal(err)
			}
			sum, at = sum+l.Between(day, end), end
		}
		whole := l.To.Sub(from)
		if step := int64(l.Increment.Duration()); step > 0 {
			whole = time.Duration((int64(whole) + step - 1) / step * step)
		}
		if want := l.Price.For(max(whole, l.MinCharge.Duration())); sum != want || l.Cost() != want {
			t.Fatalf("seed %d in %s: the days add up to %d, the whole is %d", seed, zone, sum, want)
		}
	}
}

func TestTail(t *testing.T) {
	t.Parallel()
	if got := spend.Tail(snapshot().Config, 60); got != 10*time.Minute {
		t.Errorf("a drain, three ticks, a call and a minute are %s, want 10 min", got)
	}
	slow := snapshot(func(s *fleet.Snapshot) {
		s.Config.Interval = 300
		s.Config.Pools = []fleet.Pool{{DrainTimeout: 60}, {DrainTimeout: 900}}
	})
	if got := spend.Tail(slow.Config, 120); got != (15+15+2+1)*time.Minute {
		t.Errorf("the longest drain and slow ticks are %s, want 33 min", got)
	}
	late := snapshot(worker(func(*fleet.Worker) {}), func(s *fleet.Snapshot) { s.Memory.Now = noon.Add(11*time.Hour + 57*time.Minute) })
	if b := open(t, late); b.Tail != hour/20 {
		t.Errorf("three minutes before midnight the tail is %s, want three minutes' worth", b.Tail)
	}
}

func TestBreach(t *testing.T) {
	t.Parallel()
	at := func(daily fleet.Money) *spend.Books {
		b := open(t, snapshot(worker(func(*fleet.Worker) {}), func(s *fleet.Snapshot) { s.Config.Limits.Daily = daily }))
		return &b
	}
	edge := hour + hour/6
	if at(edge).Breached() || !at(edge-1).Breached() {
		t.Error("a day that would end exactly at its limit is no breach, one millionth above is")
	}
	left := func(daily fleet.Money) fleet.Money {
		most, _ := at(daily).Left()
		return most
	}
	if left(edge) != 0 || left(edge+5) != 5 || left(edge-5) != 0 {
		t.Error("left is what the limit has beyond what would still accrue, never below zero")
	}
	b := at(edge)
	if b.Near(0) || !b.Near(hour) || b.Near(hour+1) {
		t.Error("the alert threshold is reached at its figure; zero is none")
	}
}

func TestAfford(t *testing.T) {
	t.Parallel()
	worth := 25 * time.Minute // the tail, and long enough to be worth it
	for _, c := range []struct {
		name          string
		hourly, daily fleet.Money
		at            time.Time
		n, want       int
		least, step   fleet.Seconds
		why           string
	}{
		{"none are asked for", 0, 0, noon, 0, 0, 0, 0, ""},
		{"three at exactly the hourly limit", 3 * hour, 100 * hour, noon, 3, 3, 0, 0, ""},
		{"two a millionth below it", 3*hour - 1, 100 * hour, noon, 3, 2, 0, 0, "limit.hourly"},
		{"two at exactly the daily limit", 10 * hour, 2 * hour.For(worth), noon, 2, 2, 0, 0, ""},
		{"one a millionth below it", 10 * hour, 2*hour.For(worth) - 1, noon, 2, 1, 0, 0, "limit.daily"},
		{"a longer minimum charge counts instead", 10 * hour, hour, noon, 1, 1, 3600, 0, ""},
		{"exactly", 10 * hour, hour - 1, noon, 1, 0, 3600, 0, "limit.daily"},
		{"before midnight only the rest of the day counts", 10 * hour, hour / 60, noon.Add(12*time.Hour - time.Minute), 1, 1, 0, 0, ""},
		{"exactly as well", 10 * hour, hour/60 - 1, noon.Add(12*time.Hour - time.Minute), 1, 0, 0, 0, "limit.daily"},
		{"an hour that is begun is paid", 10 * hour, hour, noon, 1, 1, 60, 3600, ""},
		{"to the millionth", 10 * hour, hour - 1, noon, 1, 0, 60, 3600, "limit.daily"},
		{"but a minimum charge counts whole", 10 * hour, hour / 60, noon.Add(12*time.Hour - time.Minute), 1, 0, 3600, 0, "limit.daily"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := open(t, snapshot(func(s *fleet.Snapshot) {
				s.Config.Limits, s.Memory.Now = fleet.Limits{Hourly: c.hourly, Daily: c.daily}, c.at
			}))
			n, why := b.Afford(c.n, hour, fleet.Terms{MinCharge: c.least, Increment: c.step})
			code := ""
			if why != nil {
				code = why.Code()
			}
			if n != c.want || code != c.why {
				t.Errorf("%d of %d (%s), want %d (%s)", n, c.n, code, c.want, c.why)
			}
		})
	}
}

func TestWhatIsReservedIsNotThereForTheNext(t *testing.T) {
	t.Parallel()
	b := open(t, snapshot(func(s *fleet.Snapshot) { s.Config.Limits.Hourly = 2 * hour }))
	b.Reserve(1, hour, fleet.Terms{MinCharge: 600})
	if b.Reserved != hour || b.Today != hour/6 || b.Tail != hour/6 {
		t.Errorf("reserved %s, today %s, tail %s", b.Reserved, b.Today, b.Tail)
	}
	if n, _ := b.Afford(2, hour, fleet.Terms{MinCharge: 600}); n != 1 {
		t.Errorf("%d more, want 1", n)
	}
	both := 2 * hour.For(25*time.Minute)
	for daily, want := range map[fleet.Money]int{both: 1, both - 1: 0} {
		b := open(t, snapshot(func(s *fleet.Snapshot) { s.Config.Limits.Daily = daily }))
		b.Reserve(1, hour, fleet.Terms{})
		if n, _ := b.Afford(1, hour, fleet.Terms{}); n != want {
			t.Errorf("%d more where %s is for two, want %d", n, daily, want)
		}
	}
}

func TestReconcile(t *testing.T) {
	t.Parallel()
	const today, yesterday = "2027-01-14", "2027-01-13"
	bill := func(day string, amount fleet.Money) fleet.Bill {
		return fleet.Bill{Provider: "aws", Day: day, Amount: amount}
	}
	seen := func(day string, amount, excess fleet.Money, before time.Duration) func(*fleet.Snapshot) {
		return func(s *fleet.Snapshot) {
			s.Memory.Bills = append(s.Memory.Bills, fleet.Bill{Provider: "aws", Day: day, Amount: amount, Excess: excess, SeenAt: ago(before)})
		}
	}
	own := worker(func(w *fleet.Worker) { w.CostFrom = ago(18 * time.Hour) }) // 6 hours yesterday, 12 today
	none := func(*fleet.Snapshot) {}
	for _, c := range []struct {
		name   string
		given  func(*fleet.Snapshot)
		told   []fleet.Bill
		excess []fleet.Money
	}{
		{"a bill below own accrual adds nothing", own, []fleet.Bill{bill(today, 11*hour)}, []fleet.Money{0}},
		{"one above adds the difference", own, []fleet.Bill{bill(today, 13*hour)}, []fleet.Money{hour}},
		{"a late one is held against its own day", own, []fleet.Bill{bill(yesterday, 7*hour)}, []fleet.Money{hour}},
		{"the same figure again is no news", seen(today, 5*hour, 5*hour, time.Hour), []fleet.Bill{bill(today, 5*hour)}, nil},
		{"a corrected one adds what is new", seen(today, 5*hour, 5*hour, time.Hour), []fleet.Bill{bill(today, 8*hour)}, []fleet.Money{3 * hour}},
		{"a lower one takes nothing back", seen(today, 5*hour, 5*hour, time.Hour), []fleet.Bill{bill(today, 2*hour)}, []fleet.Money{0}},
		{"and when it rises again only what is above the highest adds", func(s *fleet.Snapshot) {
			seen(today, 5*hour, 5*hour, 2*time.Hour)(s)
			seen(today, 2*hour, 0, time.Hour)(s)
		}, []fleet.Bill{bill(today, 6*hour)}, []fleet.Money{hour}},
		{"the same day twice in one answer counts once", none, []fleet.Bill{bill(today, 4*hour), bill(today, 4*hour)}, []fleet.Money{4 * hour}},
		{"rising within one answer, as well", none, []fleet.Bill{bill(today, 4*hour), bill(today, 6*hour)}, []fleet.Money{4 * hour, 2 * hour}},
		{"zero is an answer that is kept", none, []fleet.Bill{bill(today, 0)}, []fleet.Money{0}},
		{"a credit is no money to spend", none, []fleet.Bill{bill(today, -hour)}, []fleet.Money{0}},
		{"a day beyond the ledger's reach is kept and not compared", none, []fleet.Bill{bill("2027-01-11", hour)}, []fleet.Money{0}},
		{"so is a day that is none", none, []fleet.Bill{bill("soon", hour)}, []fleet.Money{0}},
		{"another provider's accrual covers nothing", own, []fleet.Bill{{Provider: "google", Day: today, Amount: hour}}, []fleet.Money{hour}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := snapshot(c.given)
			had := len(s.Memory.Bills)
			got := spend.Reconcile(s.Memory, c.told)
			if len(got) != len(c.excess) {
				t.Fatalf("%d bills are news, want %d: %+v", len(got), len(c.excess), got)
			}
			for i, b := range got {
				if b.Excess != c.excess[i] || !b.SeenAt.Equal(noon) {
					t.Errorf("bill %d adds %s, want %s: %+v", i, b.Excess, c.excess[i], b)
				}
			}
			if len(s.Memory.Bills) != had {
				t.Error("memory was changed")
			}
		})
	}
}
