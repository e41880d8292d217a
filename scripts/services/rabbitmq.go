package services

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
)

const rabbitmqConfig = `listeners.tcp.1 = 127.0.0.1:%d
management.tcp.ip = 127.0.0.1
management.tcp.port = %d
default_user = sluice
default_pass = %s
log.console = true
log.console.level = warning
log.file = false
`

// rabbitmqTool is the script itself: Debian's own wrapper changes to a user
// with a fixed folder.
func rabbitmqTool() tool {
	return tool{name: "rabbitmq-server", pkg: "rabbitmq-server", places: []string{
		"/usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin", "/opt/homebrew/opt/rabbitmq/sbin", "/usr/local/opt/rabbitmq/sbin",
	}}
}

// startRabbitMQ starts a broker with its management API, and the port mapper
// that Erlang would otherwise start for good and for the whole machine.
func (s *Services) startRabbitMQ(ctx context.Context) error {
	bin, err := s.home.find(ctx, rabbitmqTool())
	if err != nil {
		return err
	}
	dir, err := s.home.fresh(RabbitMQ)
	if err != nil {
		return err
	}
	mapperPort, err := s.startPortMapper(ctx, dir)
	if err != nil {
		return err
	}
	return s.startBroker(ctx, bin, dir, mapperPort)
}

func (s *Services) startPortMapper(ctx context.Context, dir string) (int, error) {
	bin, err := s.home.find(ctx, tool{name: "epmd", pkg: "rabbitmq-server", places: sbin()})
	if err != nil {
		return 0, err
	}
	configure := func(port int) (command, error) {
		args := []string{"-port", strconv.Itoa(port), "-address", "127.0.0.1"}
		return command{name: "epmd", program: bin, args: args, dir: dir}, nil
	}
	p, port, err := s.home.launch(ctx, configure, dial)
	if err != nil {
		return 0, err
	}
	s.keep(p)
	return port, nil
}

func (s *Services) startBroker(ctx context.Context, bin program, dir string, mapperPort int) error {
	password := rand.Text()
	var management string
	configure := func(port int) (command, error) {
		managementPort, err := freePort(ctx)
		if err != nil {
			return command{}, err
		}
		management = (&url.URL{Scheme: "http", User: url.UserPassword("sluice", password), Host: loopback(managementPort)}).String()
		return s.home.rabbitmqCommand(ctx, bin, dir, mapperPort, fmt.Sprintf(rabbitmqConfig, port, managementPort, password))
	}
	p, port, err := s.home.launch(ctx, configure, func(ctx context.Context, port int) error {
		return errors.Join(dial(ctx, port), getOK(ctx, management+"/api/overview"))
	})
	if err != nil {
		return err
	}
	s.keep(p)
	s.AMQPURL = (&url.URL{Scheme: "amqp", User: url.UserPassword("sluice", password), Host: loopback(port), Path: "/"}).String()
	s.RabbitMQURL = management
	return nil
}

func (h *home) rabbitmqCommand(ctx context.Context, bin program, dir string, mapperPort int, config string) (command, error) {
	nodePort, err := freePort(ctx)
	if err != nil {
		return command{}, err
	}
	if err := h.write(filepath.Join(dir, "rabbitmq.conf"), config); err != nil {
		return command{}, err
	}
	if err := h.write(filepath.Join(dir, "enabled_plugins"), "[rabbitmq_management].\n"); err != nil {
		return command{}, err
	}
	bin.env = append(bin.env, rabbitmqEnv(dir, mapperPort, nodePort)...)
	return command{name: RabbitMQ, program: bin, dir: dir}, nil
}

// rabbitmqEnv keeps every file in dir and every port on loopback.
func rabbitmqEnv(dir string, mapperPort, nodePort int) []string {
	return []string{
		"RUNNING_UNDER_SYSTEMD=true", // its script then becomes the broker, rather than waiting for it
		"HOME=" + dir,
		"RABBITMQ_MNESIA_BASE=" + filepath.Join(dir, "mnesia"),
		"RABBITMQ_LOG_BASE=" + dir,
		"RABBITMQ_LOGS=-",
		"RABBITMQ_CONFIG_FILE=" + filepath.Join(dir, "rabbitmq.conf"),
		"RABBITMQ_CONF_ENV_FILE=" + filepath.Join(dir, "none"),
		"RABBITMQ_ENABLED_PLUGINS_FILE=" + filepath.Join(dir, "enabled_plugins"),
		"RABBITMQ_PID_FILE=" + filepath.Join(dir, "node.pid"),
		"RABBITMQ_NODENAME=sluice@localhost",
		"RABBITMQ_DIST_PORT=" + strconv.Itoa(nodePort),
		"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=-kernel inet_dist_use_interface {127,0,0,1}",
		"ERL_EPMD_ADDRESS=127.0.0.1",
		"ERL_EPMD_PORT=" + strconv.Itoa(mapperPort),
	}
}

func dial(ctx context.Context, port int) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp4", loopback(port))
	if err != nil {
		return err
	}
	return conn.Close()
}

// getOK reports anything but an answer of 200. The error leaves out the URL,
// which has a password.
func getOK(ctx context.Context, target string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return errors.New("make request: malformed url")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return errors.Unwrap(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("get %s: status %s", strings.TrimSpace(req.URL.Path), resp.Status)
	}
	return nil
}
