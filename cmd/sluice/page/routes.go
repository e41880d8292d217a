package page

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"path"
	"time"

	"sluice/core/fleet"
)

const (
	writeTime = 10 * time.Second // a visitor that takes nothing for so long is dropped
	pressTime = 30 * time.Second
	maxBody   = 4 << 10
)

//go:embed assets
var assets embed.FS

// site answers what a browser asks.
type site struct {
	feed      *feed
	ticks     *ticks
	controls  map[string]Control
	ended     <-chan struct{} // closed when the server is asked to end
	writeTime time.Duration
}

func (s *site) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", serveFile("index.html"))
	files, err := fs.Glob(assets, "assets/*.*")
	more, moreErr := fs.Glob(assets, "assets/uplot/*.*")
	if err == nil && moreErr == nil { // the patterns are good
		for _, f := range append(files, more...) {
			name := f[len("assets/"):]
			mux.HandleFunc("GET /assets/"+name, serveFile(name))
		}
	}
	mux.HandleFunc("GET /api/events", s.events)
	mux.HandleFunc("GET /api/workers", s.workers)
	mux.HandleFunc("GET /api/tick/{id}", s.tick)
	if len(s.controls) > 0 {
		mux.Handle("POST /api/control/{id}", http.NewCrossOriginProtection().Handler(http.HandlerFunc(s.press)))
	}
	return mux
}

// serveFile serves one file of the page. Its type is by its name alone, whatever the machine's own tables say.
func serveFile(name string) http.HandlerFunc {
	types := map[string]string{".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
	return func(w http.ResponseWriter, _ *http.Request) {
		b, err := assets.ReadFile(path.Join("assets", name))
		kind := types[path.Ext(name)]
		if err != nil || kind == "" {
			http.Error(w, "there is no such file", http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", kind+"; charset=utf-8")
		_, _ = w.Write(b)
	}
}

// events streams the state to one visitor until either hangs up.
func (s *site) events(w http.ResponseWriter, r *http.Request) {
	wake, leave, err := s.feed.join()
	if err != nil {
		w.Header().Set("Retry-After", "10")
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer leave()
	w.Header().Set("Content-Type", "text/event-stream")
	stream := http.NewResponseController(w)
	_ = stream.Flush() // a visitor that is gone is noticed below
	for seen := 0; ; {
		select {
		case <-s.ended:
			_ = write(w, stream, "event: end\ndata:\n\n", s.writeTime) // a visitor that does not hear it finds out
			return
		case <-r.Context().Done():
			return
		case <-wake:
		}
		e, version, ok := s.feed.next(seen, time.Now())
		if !ok {
			continue
		}
		if send(w, stream, e, s.writeTime) != nil {
			return
		}
		seen = version
	}
}

func send(w io.Writer, stream *http.ResponseController, e envelope, limit time.Duration) error {
	b, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return write(w, stream, "data: "+string(b)+"\n\n", limit)
}

func write(w io.Writer, stream *http.ResponseController, event string, limit time.Duration) error {
	if err := stream.SetWriteDeadline(time.Now().Add(limit)); err != nil {
		return err
	}
	if _, err := io.WriteString(w, event); err != nil {
		return err
	}
	return stream.Flush()
}

func (s *site) workers(w http.ResponseWriter, r *http.Request) {
	answer(w, http.StatusOK, s.feed.search(r.URL.Query().Get("find")))
}

func (s *site) tick(w http.ResponseWriter, r *http.Request) {
	v, err := s.ticks.tell(r.Context(), r.PathValue("id"))
	switch {
	case errors.Is(err, fleet.ErrNotFound):
		answer(w, http.StatusNotFound, problem{"There is no such tick."})
	case err != nil:
		answer(w, http.StatusServiceUnavailable, problem{"The database does not tell it now. Close this and open it again in a while."})
	default:
		answer(w, http.StatusOK, v)
	}
}

type problem struct {
	Error string `json:"error"`
}

// press is the only thing here that changes anything, and it is not there without controls.
func (s *site) press(w http.ResponseWriter, r *http.Request) {
	c, ok := s.controls[r.PathValue("id")]
	if !ok {
		answer(w, http.StatusNotFound, problem{"There is no such button."})
		return
	}
	var body struct {
		Worker string `json:"worker"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&body); err != nil {
		answer(w, http.StatusBadRequest, problem{`Want a JSON object, such as {} or {"worker": "ID"}.`})
		return
	}
	if c.PerWorker && body.Worker == "" {
		answer(w, http.StatusBadRequest, problem{`Want {"worker": "ID"}: this button is for one worker.`})
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), pressTime)
	defer cancel()
	said, err := c.Press(ctx, body.Worker)
	s.feed.ask()
	if err != nil {
		answer(w, http.StatusConflict, problem{err.Error()})
		return
	}
	answer(w, http.StatusOK, struct {
		Said string `json:"said"`
	}{said})
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the visitor has hung up
}
