package fleet

import (
	"encoding/json"
	"slices"
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

// Levels lists them, the loudest last.
func Levels() []Level { return []Level{Info, Warning, Critical} }

// Alert is a message to people. Key makes it unique: a second one with the same key is not stored.
type Alert struct {
	Key   string          `json:"key"`
	Level Level           `json:"level"`
	Title string          `json:"title"`           // one sentence, filled in by explain
	Facts json.RawMessage `json:"facts,omitempty"` // a JSON object, filled in by explain
	At    time.Time       `json:"at"`
	Why   Reason          `json:"-"` // set where the alert is decided
}

// Message is an alert on its way to people.
type Message struct {
	Alert
	ID      string // the same each time the alert is sent, so that a receiver knows repeats
	Install string
	Page    string // where people look; may be empty
	Test    bool   // sent by a person to see whether it arrives
}

// Message addresses an alert. Two installations that share a channel have ids of their own.
func (c Config) Message(a Alert) Message {
	return Message{Alert: a, ID: ID(c.Name, "alert", a.Key), Install: c.Name, Page: c.Page}
}

// ChannelKind is a technology that reaches people.
type ChannelKind string

// Kinds of channels.
const (
	ChannelLog     ChannelKind = "log"
	ChannelWebhook ChannelKind = "webhook"
	ChannelSNS     ChannelKind = "sns"
)

// Channel is a way to reach people, and the levels that go there.
type Channel struct {
	Name   string      `json:"name"`
	Kind   ChannelKind `json:"kind"`
	Levels []Level     `json:"levels"`
	Format string      `json:"format,omitempty"`    // of a webhook's messages
	URL    string      `json:"url,omitempty"`       // a reference
	Secret string      `json:"secret,omitempty"`    // a reference
	Topic  string      `json:"topic_arn,omitempty"` // of SNS
}

// Takes says that alerts of a level go there.
func (c Channel) Takes(l Level) bool { return slices.Contains(c.Levels, l) }

// AlertLog is the name of the function's own log as a channel; it needs no setting.
const AlertLog = "log"

// Routes are the channels that alerts go to: those of the config, or else the log.
func (c Config) Routes() []Channel {
	if len(c.Channels) == 0 {
		return []Channel{{Name: AlertLog, Kind: ChannelLog, Levels: Levels()}}
	}
	return c.Channels
}

// DeliveryState is how far an alert got on one channel.
type DeliveryState string

// States of a delivery; all but the first are final.
const (
	DeliveryWaiting   DeliveryState = "waiting"
	DeliveryDelivered DeliveryState = "delivered"
	DeliveryRefused   DeliveryState = "refused" // the other side will never take it
	DeliveryClosed    DeliveryState = "closed"  // the config has no such channel any more
)

// Delivery is one alert that is due on one channel.
type Delivery struct {
	Alert
	Channel  string
	Attempts int // of this alert, before
	Failures int // of the channel, since it last answered
}

// Sending is how one attempt of a delivery ended.
type Sending struct {
	Key     string
	Channel string
	State   DeliveryState
	Answer  string // of the other side, or what went wrong; without secrets
	// Retry is when this alert may be tried again, and Hold when the channel may, from now; of a waiting one.
	Retry, Hold time.Duration
}

// DeliveryRecord is a delivery as it is shown to people.
type DeliveryRecord struct {
	Alert
	Channel  string        `json:"channel"`
	State    DeliveryState `json:"state"`
	Attempts int           `json:"attempts"`
	Tried    time.Time     `json:"tried_at,omitzero"`
	Next     time.Time     `json:"next_at,omitzero"` // of a waiting one
	Answer   string        `json:"answer,omitempty"`
}
