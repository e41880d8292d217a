package redis_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"sluice/core/fleet"
	"sluice/providers/redis"
	"sluice/scripts/services"
)

// certDir holds a certificate that this test binary trusts: roots are read once per process.
var certDir string

func TestMain(m *testing.M) {
	logging.Disable()
	dir, err := os.MkdirTemp("", "sluice-redis")
	if err == nil {
		err = makeCert(dir)
	}
	if err == nil {
		err = os.Setenv("SSL_CERT_FILE", filepath.Join(dir, "cert.pem"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	certDir = dir
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

func makeCert(dir string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	c := x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, &c, &c, &key.PublicKey, key)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	for name, block := range map[string]*pem.Block{"cert.pem": {Type: "CERTIFICATE", Bytes: der}, "key.pem": {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// shared is the server that all tests share; each keeps to keys of its own.
func shared(t *testing.T) string {
	t.Helper()
	url := os.Getenv("REDIS_URL")
	if url == "" {
		t.Fatal("REDIS_URL is not set: run make test, which starts a Redis")
	}
	return url
}

// prefix is a part of the key space for one test.
func prefix() string { return "test:" + rand.Text() + ":" }

// ask is a client of the tests' own, to prepare and to look.
func ask(t *testing.T, url string) *goredis.Client {
	t.Helper()
	o, err := goredis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	c := goredis.NewClient(o)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func fixed(url string) fleet.Secret {
	return func(context.Context) (string, error) { return url, nil }
}

func open(t *testing.T, url string) *redis.Client {
	t.Helper()
	c := redis.New(fixed(url))
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// serve starts a redis-server of the test's own and returns its address.
func serve(t *testing.T, config ...string) string {
	t.Helper()
	bin, env, err := services.Bring(t.Context(), t.Output(), "redis-server", "/usr/bin", "redis-server")
	if err != nil {
		t.Fatal(err)
	}
	addr := freeAddr(t)
	_, port, _ := net.SplitHostPort(addr)
	dir := t.TempDir()
	lines := append([]string{"bind 127.0.0.1", `save ""`, "appendonly no", "dir " + dir}, config...)
	if !strings.Contains(strings.Join(config, "\n"), "tls-port") {
		lines = append(lines, "port "+port)
	}
	text := strings.ReplaceAll(strings.Join(lines, "\n"), "PORT", port)
	file := filepath.Join(dir, "redis.conf")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), bin, file)
	cmd.Env = append(os.Environ(), env...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	var dialer net.Dialer
	until(t, "redis-server listens", func() bool {
		c, err := dialer.DialContext(t.Context(), "tcp", addr)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	return addr
}

func freeAddr(t *testing.T) string {
	t.Helper()
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // nothing was accepted
	return l.Addr().String()
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range 2000 {
		if ok() {
			return
		}
		<-tick.C
	}
	t.Fatalf("it never came to pass that %s", what)
}
