package postgres_test

import (
	"errors"
	"testing"

	"sluice/core/fleet"
	"sluice/providers/postgres/postgrestest"
)

func TestARequestThatNoTickCouldActOnIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	d := postgrestest.New(t)
	assign(t, d, "ocr")
	db := d.Open(t)
	me := register(t, openWorker(t, d), "box").Worker
	for name, c := range map[string]struct {
		ask  fleet.Request
		want error
	}{
		"nobody asks":            {fleet.Request{Kind: fleet.RequestDrain, Target: me}, fleet.ErrBadRequest},
		"no reason to resume":    {fleet.Request{Kind: fleet.RequestResume, Who: "ann"}, fleet.ErrBadRequest},
		"adopt nothing":          {fleet.Request{Kind: fleet.RequestAdopt, Who: "ann"}, fleet.ErrBadRequest},
		"no such request":        {fleet.Request{Kind: "fly", Who: "ann"}, fleet.ErrBadRequest},
		"not a worker's id":      {fleet.Request{Kind: fleet.RequestDrain, Who: "ann", Target: "box"}, fleet.ErrBadRequest},
		"a worker nobody knows":  {fleet.Request{Kind: fleet.RequestDrain, Who: "ann", Target: fleet.ID("x")}, fleet.ErrNotFound},
		"a worker that is there": {fleet.Request{ID: "once", Kind: fleet.RequestDrain, Who: "ann", Target: me}, nil},
		"every machine":          {fleet.Request{Kind: fleet.RequestAdopt, Who: "ann", Target: "all"}, nil},
	} {
		if err := db.Ask(t.Context(), c.ask); !errors.Is(err, c.want) || (c.want == nil) != (err == nil) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
	if err := db.Ask(t.Context(), fleet.Request{ID: "once", Kind: fleet.RequestDrain, Who: "bob", Target: me}); err != nil {
		t.Errorf("the same request again: %v", err)
	}
	m, err := db.Recall(t.Context())
	if err != nil || len(m.Requests) != 2 {
		t.Errorf("%d requests wait, %v, want 2", len(m.Requests), err)
	}
	for _, r := range m.Requests {
		if r.Who != "ann" || r.At.IsZero() || r.ID == "" {
			t.Errorf("request %+v", r)
		}
	}
}
