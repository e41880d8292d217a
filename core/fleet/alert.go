package fleet

import (
	"encoding/json"
	"time"
)

// Level is how loud an alert is.
type Level string

// Levels.
const (
	Info     Level = "info"
	Warning  Level = "warning"
	Critical Level = "critical"
)

// Alert is a message to people. Key makes it unique: a second one with the same key is not stored.
type Alert struct {
	Key   string          `json:"key"`
	Level Level           `json:"level"`
	Title string          `json:"title"`           // one sentence, filled in by explain
	Facts json.RawMessage `json:"facts,omitempty"` // a JSON object, filled in by explain
	At    time.Time       `json:"at"`
	Why   Reason          `json:"-"` // set where the alert is decided
}
