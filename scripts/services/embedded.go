package services

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

// embeddedPostgresDir holds the programs of the embedded distribution.
func embeddedPostgresDir() string {
	return filepath.Join(cacheDir(), "embedded-postgres")
}

// downloadPostgres brings the embedded distribution, for systems without
// apt-get. Its library can only bring the programs by running a server, so
// one is started and stopped.
func (h *home) downloadPostgres(ctx context.Context) error {
	if os.Geteuid() == 0 {
		return errors.New("there is no apt-get here, and Postgres can be downloaded as an ordinary user only: install postgresql by hand, or run this as an ordinary user")
	}
	h.logf("downloading Postgres into %s", embeddedPostgresDir())
	port, err := freePort(ctx)
	if err != nil {
		return err
	}
	scratch, err := h.fresh("postgres.download")
	if err != nil {
		return err
	}
	server := embeddedpostgres.NewDatabase(embeddedpostgres.DefaultConfig().
		Port(uint32(port)). //nolint:gosec // a port fits
		Password(rand.Text()).
		BinariesPath(embeddedPostgresDir()).
		CachePath(filepath.Join(scratch, "cache")).
		RuntimePath(filepath.Join(scratch, "runtime")).
		Logger(h.log))
	if err := server.Start(); err != nil {
		return fmt.Errorf("download postgres: %w; or install postgresql by hand so that initdb is on PATH", err)
	}
	return errors.Join(server.Stop(), os.RemoveAll(scratch))
}
