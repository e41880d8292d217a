package host

import (
	"context"
	"time"

	"sluice/core/fleet"
)

// lost is a database that could not be opened: whatever is asked of it fails with the reason.
type lost struct{ err error }

var _ fleet.Database = lost{}

// Recall implements fleet.Store.
func (l lost) Recall(context.Context) (fleet.Memory, error) { return fleet.Memory{}, l.err }

// Transact implements fleet.Store.
func (l lost) Transact(context.Context, func(fleet.Memory) (fleet.Plan, fleet.Record)) error {
	return l.err
}

// Begin implements fleet.Store.
func (l lost) Begin(context.Context, fleet.Claim, fleet.Attempt) error { return l.err }

// Settle implements fleet.Store.
func (l lost) Settle(context.Context, fleet.Claim, fleet.Result) error { return l.err }

// Outbox implements fleet.Store.
func (l lost) Outbox(context.Context, []fleet.Channel, int) ([]fleet.Delivery, error) {
	return nil, l.err
}

// Sent implements fleet.Store.
func (l lost) Sent(context.Context, fleet.Sending) error { return l.err }

// Read implements fleet.Queues.
func (l lost) Read(context.Context, []fleet.Queue) ([]fleet.QueueState, error) { return nil, l.err }

// Ticks implements fleet.History.
func (l lost) Ticks(context.Context, time.Time, int) ([]fleet.TickRecord, error) { return nil, l.err }

// Lines implements fleet.History.
func (l lost) Lines(context.Context, fleet.LineFilter) ([]fleet.LineRecord, error) {
	return nil, l.err
}

// Snapshot implements fleet.History.
func (l lost) Snapshot(context.Context, string) (fleet.Snapshot, []byte, error) {
	return fleet.Snapshot{}, nil, l.err
}

// Samples implements fleet.History.
func (l lost) Samples(context.Context, time.Time) ([]fleet.Sample, error) { return nil, l.err }

// Workers implements fleet.History.
func (l lost) Workers(context.Context, time.Time) ([]fleet.WorkerRecord, error) { return nil, l.err }

// Deliveries implements fleet.History.
func (l lost) Deliveries(context.Context, time.Time) ([]fleet.DeliveryRecord, error) {
	return nil, l.err
}

// Ask implements fleet.Requests.
func (l lost) Ask(context.Context, fleet.Request) error { return l.err }

// Health implements fleet.Database.
func (l lost) Health(context.Context) (fleet.DatabaseHealth, error) {
	return fleet.DatabaseHealth{}, l.err
}

// Close implements fleet.Database.
func (lost) Close() {}
