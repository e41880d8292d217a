package file

import (
	"context"
	"fmt"
	"os"
	"strings"

	"sluice/core/fleet"
)

// maxSecret is far more than a URL or a certificate needs.
const maxSecret = 64 << 10

// Resolve reads the secret that a reference names: env:NAME or file:/path. It reads anew each time, so that a
// rotated secret is found; errors never hold a secret.
func Resolve(ctx context.Context, ref string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", fmt.Errorf("resolve secret: %w", err)
	}
	scheme, name, found := strings.Cut(ref, ":")
	switch {
	case !found:
		return "", fmt.Errorf("resolve secret: found a value, expected a reference such as env:NAME or file:/path: %w", fleet.ErrBadRequest)
	case scheme == "env":
		return fromEnvironment(name)
	case scheme == "file":
		return fromFile(name)
	case linkedElsewhere(scheme):
		return "", fmt.Errorf("resolve secret %s: references of kind %s are not linked in this build; expected env:NAME or file:/path: %w", ref, scheme, fleet.ErrBadRequest)
	}
	return "", fmt.Errorf("resolve secret: found an unknown kind of reference, or a value; expected env:NAME or file:/path: %w", fleet.ErrBadRequest)
}

// linkedElsewhere are the kinds that other builds can read; only those are repeated in an error.
func linkedElsewhere(scheme string) bool {
	switch scheme {
	case "ssm", "aws-sm", "gcp-sm", "workload-identity":
		return true
	}
	return false
}

func fromEnvironment(name string) (string, error) {
	if !variable(name) {
		return "", fmt.Errorf("resolve secret: what follows env: is no name of an environment variable: %w", fleet.ErrBadRequest)
	}
	v, set := os.LookupEnv(name)
	if !set || v == "" {
		return "", fmt.Errorf("resolve secret env:%s: the environment variable %s is not set: %w", name, name, fleet.ErrNotFound)
	}
	return v, nil
}

// variable says that a text can be repeated: it is a name and not a secret behind a prefix.
func variable(name string) bool {
	if name == "" {
		return false
	}
	return strings.IndexFunc(name, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) < 0
}

func fromFile(path string) (string, error) {
	if !strings.HasPrefix(path, "/") {
		return "", fmt.Errorf("resolve secret: expected an absolute path after file: %w", fleet.ErrBadRequest)
	}
	b, _, err := readPrivate(path, maxSecret)
	if err != nil {
		return "", fmt.Errorf("resolve secret file:%s: %w", path, err)
	}
	v := strings.TrimRight(string(b), "\r\n")
	if v == "" {
		return "", fmt.Errorf("resolve secret file:%s: the file is empty: %w", path, fleet.ErrNotFound)
	}
	return v, nil
}
