package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"strings"
	"time"

	"sluice/core/fleet"
	"sluice/core/tick"
)

// Log writes one JSON line per decision, and one per tick.
type Log struct{ logger *slog.Logger }

// NewLog writes to w, a function's standard output.
func NewLog(w io.Writer) Log {
	return Log{slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{ReplaceAttr: rename}))}
}

// rename gives the fields their names in docs/logs.md.
func rename(groups []string, a slog.Attr) slog.Attr {
	if len(groups) > 0 {
		return a
	}
	switch a.Key {
	case slog.MessageKey:
		a.Key = "message"
	case slog.TimeKey:
		a.Value = slog.TimeValue(a.Value.Time().UTC())
	}
	return a
}

// Tick is one run of a function, as the log tells it.
type Tick struct {
	Function fleet.Function
	Due      time.Time
	Report   tick.Report
	Err      error
	Took     time.Duration
}

// Write writes the lines of a tick; a tick that failed says so in its own line.
func (l Log) Write(ctx context.Context, t Tick) {
	lines := t.Report.Lines
	if len(lines) == 0 {
		lines = []fleet.Line{{Event: "tick"}}
	}
	for _, line := range lines {
		l.write(ctx, t, line)
	}
	for _, u := range t.Report.Unsent {
		l.unsent(ctx, u)
	}
}

// unsent says that an alert did not get through, and all of it where it will not be tried again.
func (l Log) unsent(ctx context.Context, u tick.Unsent) {
	event, level, message, facts := "alert_waiting", slog.LevelWarn, "Alert waits for channel "+u.Channel+": "+u.Title, []slog.Attr(nil)
	if u.State == fleet.DeliveryRefused {
		event, level, message, facts = "alert_refused", Level(u.Level), u.Title, factAttrs(u.Facts)
	}
	attrs := []slog.Attr{
		slog.String("event", event), slog.String("channel", u.Channel), slog.String("key", u.Key), slog.Time("at", u.At.UTC()), slog.String("error", u.Answer),
	}
	l.logger.LogAttrs(ctx, level, message, append(appendSet(attrs, "install", u.Install), facts...)...)
}

func (l Log) write(ctx context.Context, t Tick, line fleet.Line) {
	attrs := []slog.Attr{
		slog.String("event", line.Event), slog.String("function", string(t.Function)), slog.Time("due", t.Due.UTC()),
	}
	attrs = appendSet(attrs, "install", t.Report.Snapshot.Config.Name)
	attrs = appendSet(attrs, "id", line.ID)
	attrs = appendSet(attrs, "pool", line.Pool)
	attrs = appendSet(attrs, "worker", line.Worker)
	facts := factAttrs(line.Facts)
	level, message := Level(line.Level), line.Message
	if line.Event == "tick" {
		level, message, facts = ended(t, level, message, facts)
	}
	l.logger.LogAttrs(ctx, level, message, append(attrs, facts...)...)
}

// ended adds to a tick's own line how it went.
func ended(t Tick, level slog.Level, message string, facts []slog.Attr) (slog.Level, string, []slog.Attr) {
	facts = append(facts, slog.Int64("ms", t.Took.Milliseconds()))
	if len(t.Report.Left) > 0 {
		facts = append(facts, slog.Any("left", t.Report.Left))
	}
	if t.Err == nil {
		return level, message, facts
	}
	facts = append(without(facts, "result"), slog.String("result", "failed"), slog.String("error", oneLine(t.Err)))
	return slog.LevelError, "Failed: " + oneLine(t.Err), facts
}

func without(attrs []slog.Attr, key string) []slog.Attr {
	var out []slog.Attr
	for _, a := range attrs {
		if a.Key != key {
			out = append(out, a)
		}
	}
	return out
}

// oneLine joins what errors.Join has put on lines of their own.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

func appendSet(attrs []slog.Attr, key, value string) []slog.Attr {
	if value == "" {
		return attrs
	}
	return append(attrs, slog.String(key, value))
}

// Level maps how loud an alert is to a log's levels.
func Level(l fleet.Level) slog.Level {
	switch l {
	case fleet.Warning:
		return slog.LevelWarn
	case fleet.Critical:
		return slog.LevelError
	case fleet.Info:
	}
	return slog.LevelInfo
}

// factAttrs are the members of a JSON object, in its order.
func factAttrs(object json.RawMessage) []slog.Attr {
	d := json.NewDecoder(bytes.NewReader(object))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil
	}
	var attrs []slog.Attr
	for d.More() {
		key, err := d.Token()
		name, ok := key.(string)
		var value json.RawMessage
		if err = errors.Join(err, d.Decode(&value)); err != nil || !ok {
			return attrs
		}
		attrs = append(attrs, slog.Any(name, value))
	}
	return attrs
}

// Alerter writes alerts to the log.
func (l Log) Alerter() fleet.Alerter { return logAlerter(l) }

type logAlerter struct{ logger *slog.Logger }

var _ fleet.Alerter = logAlerter{}

// Send implements fleet.Alerter.
func (a logAlerter) Send(ctx context.Context, m fleet.Message) (string, error) {
	attrs := []slog.Attr{slog.String("event", "alert"), slog.String("key", m.Key), slog.Time("at", m.At.UTC())}
	attrs = appendSet(attrs, "install", m.Install)
	if m.Test {
		attrs = append(attrs, slog.Bool("test", true))
	}
	a.logger.LogAttrs(ctx, Level(m.Level), m.Title, append(attrs, factAttrs(m.Facts)...)...)
	return "written to the log", nil
}
