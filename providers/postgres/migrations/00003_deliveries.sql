-- Alerts are delivered to each channel by itself: one that is down holds no other up.

-- +goose Up

-- An alert's sent_at is when it was handed over to the channels of its level; each channel has its row here.
CREATE TABLE sluice_deliveries (
    alert text NOT NULL REFERENCES sluice_alerts (key) ON DELETE CASCADE,
    channel text NOT NULL,
    state text NOT NULL DEFAULT 'waiting',
    attempts integer NOT NULL DEFAULT 0,
    next_at timestamptz NOT NULL,
    tried_at timestamptz,
    answer text NOT NULL DEFAULT '',
    PRIMARY KEY (alert, channel)
);
CREATE INDEX sluice_deliveries_waiting ON sluice_deliveries (channel, next_at) WHERE state = 'waiting';

-- How a channel has behaved since it last answered.
CREATE TABLE sluice_channels (
    name text PRIMARY KEY,
    failures integer NOT NULL DEFAULT 0,
    held_until timestamptz
);
