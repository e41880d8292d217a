package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
)

// secret reads what a reference names, anew each time: file:/path or env:NAME. The reference is in the
// variable refName; where that is empty, it is env:fallback.
func secret(getenv func(string) string, refName, fallback string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) {
		ref := getenv(refName)
		if ref == "" {
			ref = "env:" + fallback
		}
		kind, name, _ := strings.Cut(ref, ":")
		switch kind {
		case "env":
			if value := getenv(name); value != "" {
				return value, nil
			}
			return "", fmt.Errorf("the variable %s is not set: set it, or %s to file:/path", name, refName)
		case "file":
			return readSecret(name)
		}
		return "", errors.New(refName + ": want file:/path or env:NAME; a value in its place is not taken, and not shown")
	}
}

func readSecret(path string) (string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read secret: %w", err)
	}
	value := strings.TrimSpace(string(content))
	if value == "" {
		return "", fmt.Errorf("read secret: %s is empty", path)
	}
	return value, nil
}
