package postgres_test

import (
	"testing"
	"time"

	"sluice/core/fleet"
	"sluice/providers/postgres"
	"sluice/providers/postgres/postgrestest"
)

func TestSmoke(t *testing.T) {
	t.Parallel()
	d := postgrestest.New(t)
	db := d.Open(t)
	due := time.Now().Truncate(time.Minute)
	asg := fleet.Assignment{Queues: []fleet.Queue{{Name: "ocr", Run: fleet.Run{Slots: 2}, Source: fleet.Source{Kind: "redis", Rows: true}}}, Visibility: 60, MaxAttempts: 2, DrainTimeout: 300}
	err := db.Transact(t.Context(), func(m fleet.Memory) (fleet.Plan, fleet.Record) {
		l := fleet.Launch{Token: "tok", Count: 1, Offer: fleet.Offer{Place: fleet.Place{Provider: "local"}, Type: "x", Market: fleet.Spot}, Tags: fleet.Tags{Spec: "abc", Expires: m.Now.Add(time.Hour)}, Settings: []byte(`{"b":1, "a":2}`)}
		in := fleet.Intent{ID: fleet.ID("a"), Kind: fleet.KindLaunch, State: fleet.IntentOpen, Pool: "ocr", Count: 1, Offers: []fleet.Offer{l.Offer}, Prices: []fleet.Money{1234}, Reserve: 5000, Created: m.Now, Changed: m.Now, ClaimedUntil: m.Now.Add(time.Minute), Claim: "c1", Attempts: []fleet.Attempt{{Launch: &l, First: m.Now, Calls: 1, Outcome: fleet.OutcomePending}}}
		return fleet.Plan{Function: fleet.Evaluate, Due: due, Now: m.Now, Intents: []fleet.Intent{in}},
			fleet.Record{Snapshot: &fleet.Snapshot{Version: 1, Memory: m}, Lines: []fleet.Line{{ID: "1", Event: "tick", Message: "hello", Facts: []byte(`{"code":"x"}`)}},
				Assignments: map[string]fleet.Assignment{"ocr": asg, "vps": asg}, Samples: []fleet.QueueState{{Name: "ocr"}}}
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Settle(t.Context(), fleet.Claim{Intent: fleet.ID("a"), Token: "c1"}, fleet.Result{Outcome: fleet.OutcomeDone, State: fleet.IntentDone, Machines: []fleet.Machine{{ID: "m1"}}}); err != nil {
		t.Fatal(err)
	}
	m, err := db.Recall(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", m)
	w, err := postgres.OpenWorker(t.Context(), postgres.URL(d.URL))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	s, err := w.Register(t.Context(), postgres.Registration{Provider: "local", Machine: "m1", Pool: "ocr", Intent: fleet.ID("a")})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", s)
	ids, err := db.Enqueue(t.Context(), postgres.NewJob{Queue: "ocr", Payload: []byte(`{"x":1}`)}, postgres.NewJob{Queue: "ocr", Priority: 1, User: "u"})
	if err != nil {
		t.Fatal(err, ids)
	}
	states, err := db.Read(t.Context(), []fleet.Queue{{Name: "none"}, {Name: "ocr"}})
	t.Logf("%+v %v", states, err)
	jobs, err := w.Claim(t.Context(), s.Worker, []string{"ocr"}, 5)
	t.Logf("%+v %v", jobs, err)
	v := float32(3)
	hb, err := w.Heartbeat(t.Context(), s.Worker, postgres.Vitals{CPUPercent: &v})
	t.Logf("%+v %v", hb, err)
	for _, j := range jobs {
		if _, err := w.Fail(t.Context(), j.Attempt, "boom", nil); err != nil {
			t.Fatal(err)
		}
	}
	p, err := w.RedisPending(t.Context(), 10)
	t.Logf("%+v %v", p, err)
	wr, err := db.Workers(t.Context(), time.Time{})
	t.Logf("%+v %v", wr, err)
	tk, err := db.Ticks(t.Context(), time.Time{}, 10)
	t.Logf("%+v %v", tk, err)
	ls, err := db.Lines(t.Context(), fleet.LineFilter{Code: "x"})
	t.Logf("%+v %v", ls, err)
	sn, pl, err := db.Snapshot(t.Context(), tk[0].ID)
	t.Logf("%+v %s %v", sn.Version, pl, err)
}
