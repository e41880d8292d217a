package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// age is a flag for a time back from now. Days are allowed, since people think in them.
type age struct{ d *time.Duration }

// String implements pflag.Value.
func (a *age) String() string {
	if *a.d == 0 {
		return ""
	}
	return a.d.String()
}

// Type implements pflag.Value.
func (*age) Type() string { return "age" }

// Set implements pflag.Value.
func (a *age) Set(s string) error {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.Atoi(days)
		if err != nil || n < 0 || n > 3650 {
			return fmt.Errorf("want a time such as 90m, 24h or 7d")
		}
		*a.d = time.Duration(n) * 24 * time.Hour
		return nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return fmt.Errorf("want a time such as 90m, 24h or 7d")
	}
	*a.d = d
	return nil
}
