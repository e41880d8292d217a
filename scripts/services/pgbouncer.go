package services

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"
)

// pgbouncerConfig lets every database name through. The superuser's password
// is in the user list; PgBouncer looks up other roles in the server with that
// role and logs in as them, so a role works as soon as it has a password.
const pgbouncerConfig = `[databases]
* = host=%[1]s port=%[2]d

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %[3]d
unix_socket_dir =
pool_mode = transaction
auth_type = scram-sha-256
auth_file = %[4]s
auth_user = %[5]s
ignore_startup_parameters = extra_float_digits
default_pool_size = 20
max_client_conn = 500
`

// startPgBouncer puts a pool by transaction in front of DatabaseURL's server.
func (s *Services) startPgBouncer(ctx context.Context) error {
	bin, err := s.home.find(ctx, tool{name: "pgbouncer", pkg: "pgbouncer", places: sbin()})
	if err != nil {
		return err
	}
	server, err := pgx.ParseConfig(s.DatabaseURL)
	if err != nil {
		return fmt.Errorf("read DATABASE_URL: %w", err)
	}
	dir, err := s.home.fresh(PgBouncer)
	if err != nil {
		return err
	}
	configure := func(port int) (command, error) { return s.home.pgbouncerCommand(bin, dir, server, port) }
	p, port, err := s.home.launch(ctx, configure, func(ctx context.Context, port int) error {
		return pingPostgres(ctx, poolURL(server, port))
	})
	if err != nil {
		return err
	}
	s.keep(p)
	s.PgBouncerURL = poolURL(server, port)
	return nil
}

func (h *home) pgbouncerCommand(bin program, dir string, server *pgx.ConnConfig, port int) (command, error) {
	users, config := filepath.Join(dir, "userlist.txt"), filepath.Join(dir, "pgbouncer.ini")
	if err := h.write(users, fmt.Sprintf("%s %s\n", quoted(server.User), quoted(server.Password))); err != nil {
		return command{}, err
	}
	content := fmt.Sprintf(pgbouncerConfig, server.Host, server.Port, port, users, server.User)
	if err := h.write(config, content); err != nil {
		return command{}, err
	}
	return command{name: PgBouncer, program: bin, args: []string{config}, dir: dir}, nil
}

// quoted writes a word as PgBouncer's user list has it.
func quoted(word string) string {
	return `"` + strings.ReplaceAll(word, `"`, `""`) + `"`
}

func poolURL(server *pgx.ConnConfig, port int) string {
	return (&url.URL{
		Scheme: "postgres", User: url.UserPassword(server.User, server.Password), Host: loopback(port),
		Path: "/" + server.Database, RawQuery: "sslmode=disable",
	}).String()
}
