package provider_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"sluice/core/fleet"
	"sluice/core/fleet/fleettest"
	"sluice/docs/examples/provider"
)

// The suite is the contract: a provider that passes it can be linked.
func TestCompute(t *testing.T) {
	t.Parallel()
	fleettest.Compute(t, func(t *testing.T) fleettest.Harness {
		a := &account{launches: map[string][]*machine{}}
		server := httptest.NewServer(a.api())
		t.Cleanup(server.Close)
		token := func(context.Context) (string, error) { return "secret", nil }
		return fleettest.Harness{
			Cloud:   fleet.Cloud{Compute: &provider.Compute{URL: server.URL, Token: token, Client: server.Client()}, Traits: provider.Traits()},
			Offer:   fleet.Offer{Place: fleet.Place{Provider: "example", Scope: "north"}, Zone: "north-1", Type: "small", Market: fleet.Spot},
			Max:     5,
			Pages:   4,
			Step:    a.step,
			Unknown: "m-99",
			BreakList: func() {
				a.mu.Lock()
				defer a.mu.Unlock()
				a.broken = true
			},
		}
	})
}

type machine struct {
	ID      string          `json:"id"`
	State   string          `json:"state"`
	Zone    string          `json:"zone"`
	Type    string          `json:"type"`
	Spot    bool            `json:"spot"`
	Created time.Time       `json:"created"`
	Label   json.RawMessage `json:"label"`
	region  string
	name    string
}

// account is the cloud's side: five machines at once, two on a page.
type account struct {
	mu       sync.Mutex
	machines []*machine
	launches map[string][]*machine
	broken   bool // lists, from now on
}

// step lets machines boot and end.
func (a *account) step() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, m := range a.machines {
		switch m.State {
		case "new":
			m.State = "up"
		case "ending":
			m.State = "ended"
		}
	}
}

func (a *account) api() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /machines", a.list)
	mux.HandleFunc("PUT /launches/{token}", a.launch)
	mux.HandleFunc("DELETE /machines/{id}", a.end)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		mux.ServeHTTP(w, r)
	})
}

func (a *account) list(w http.ResponseWriter, r *http.Request) {
	var found []*machine
	for _, m := range a.machines {
		if m.region == r.FormValue("region") && m.name == r.FormValue("name") {
			found = append(found, m)
		}
	}
	page := 0
	_, _ = fmt.Sscan(r.FormValue("page"), &page) // the first one has none
	if a.broken {
		http.Error(w, "out of order", http.StatusServiceUnavailable)
		return
	}
	next := ""
	if 2*page+2 < len(found) {
		next = fmt.Sprint(page + 1)
	}
	answer(w, map[string]any{"machines": found[2*page : min(2*page+2, len(found))], "next": next})
}

func (a *account) launch(w http.ResponseWriter, r *http.Request) {
	token := r.PathValue("token")
	if made, known := a.launches[token]; known {
		answer(w, map[string]any{"machines": made})
		return
	}
	var asked struct {
		machine
		Count  int
		Region string
	}
	var label struct{ Name string }
	if json.NewDecoder(r.Body).Decode(&asked) != nil || json.Unmarshal(asked.Label, &label) != nil {
		http.Error(w, "not understood", http.StatusBadRequest)
		return
	}
	live := slices.DeleteFunc(slices.Clone(a.machines), func(m *machine) bool { return m.State == "ended" })
	if len(live)+asked.Count > 5 {
		http.Error(w, "five machines are the most", http.StatusConflict)
		return
	}
	for range asked.Count {
		m := asked.machine
		m.ID, m.State, m.Created, m.region, m.name = fmt.Sprintf("m-%d", len(a.machines)+1), "new", time.Now().UTC(), asked.Region, label.Name
		a.machines, a.launches[token] = append(a.machines, &m), append(a.launches[token], &m)
	}
	answer(w, map[string]any{"machines": a.launches[token]})
}

func (a *account) end(w http.ResponseWriter, r *http.Request) {
	for _, m := range a.machines {
		if m.ID == r.PathValue("id") {
			if m.State != "ended" {
				m.State = "ending"
			}
			answer(w, map[string]any{})
			return
		}
	}
	http.NotFound(w, r)
}

func answer(w http.ResponseWriter, v any) {
	_ = json.NewEncoder(w).Encode(v) // to a test that has ended
}
