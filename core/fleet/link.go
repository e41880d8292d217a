package fleet

import (
	"context"
	"time"
)

// Secret reads a secret from where it is kept, anew each time, so that a rotated one is found.
type Secret func(ctx context.Context) (string, error)

// Database is a store with all that people and agents ask of it.
type Database interface {
	Store
	Queues
	History
	Requests
	// Health looks at the server and at what this role may do on it; it needs no tables. Repeats are harmless.
	Health(ctx context.Context) (DatabaseHealth, error)
	Close()
}

// DatabaseHealth is what the doctor asks of a database.
type DatabaseHealth struct {
	Server         string    // version
	ServerNumber   int       // such as 150008
	Role           string    // whom the server takes this program for
	Superuser      bool      //
	Clock          time.Time // the server's own
	Pooled         bool      // a pooler stands in between
	Connections    int       // to all databases, now
	MaxConnections int       //
	Forbidden      []string  // tables of Sluice on which this role lacks a right that the functions need
	LockHeld       Seconds   // how long a transaction has held the single writer's lock
	LockHidden     bool      // another role holds it, and since when is not shown
}

// Link is a provider as a program is built with it: how to open what it has; nil for what it has not.
// Each provider has a function Link; a program lists those that it carries.
type Link struct {
	Provider string
	// Objects opens a config by its path.
	Objects func(path string) Objects
	// Versions opens one that can be written.
	Versions func(path string) Versions
	// Secrets resolve references, by their scheme: the ref is the whole of "env:NAME".
	Secrets  map[string]func(ctx context.Context, ref string) (string, error)
	Database func(ctx context.Context, url Secret) (Database, error)
	// Queues are sources beside the database's own table.
	Queues map[SourceKind]func(url Secret) Queues
	Cloud  func(Setup) (Cloud, error)
	// Alerters open channels; read resolves the references of one, anew for each message.
	Alerters map[ChannelKind]func(c Channel, read func(ctx context.Context, ref string) (string, error)) Alerter
}

// Setup is what a cloud may be opened with, beside the settings that each launch carries.
type Setup struct {
	Env func(string) string
	// WorkerDatabase is the reference to the URL that workers on its machines use, as the config has it now.
	WorkerDatabase func(ctx context.Context) (string, error)
}
