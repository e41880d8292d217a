package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"
)

// scheduleTime is the header in which Cloud Scheduler tells what time a call was due.
const scheduleTime = "X-CloudScheduler-ScheduleTime"

// http serves until the context ends, and then waits for the ticks in hand.
func (f *Function) http(ctx context.Context) error {
	port, err := strconv.Atoi(f.Env("PORT"))
	if err != nil || port < 1 || port > 65535 {
		return errors.New("set PORT to the port to listen on; without a Lambda runtime this function is called by HTTP")
	}
	l, err := net.Listen("tcp", net.JoinHostPort(f.Env("HOST"), strconv.Itoa(port))) //nolint:noctx // ends with Shutdown
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	server := &http.Server{Handler: f, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	select {
	case err := <-done:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), defaultLimit)
	defer cancel()
	return server.Shutdown(end)
}

// ServeHTTP does one tick per POST. A tick goes on when its caller hangs up: it has calls to record.
func (f *Function) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "want POST, which does one tick", http.StatusMethodNotAllowed)
		return
	}
	due := thisMinute()
	if value := r.Header.Get(scheduleTime); value != "" {
		var err error
		if due, err = parseDue(scheduleTime, value); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	answer, err := f.Do(context.WithoutCancel(r.Context()), due)
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		answer.Message = "failed; the log says why" // an error may name what a caller need not know
	}
	_ = json.NewEncoder(w).Encode(answer) // the caller has hung up
}
