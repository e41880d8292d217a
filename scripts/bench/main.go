// Command bench measures ticks on a real Postgres and Redis, decisions alone, and the evaluate function, and prints one table.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"text/tabwriter"
)

func main() {
	one := flag.String("tick", "", "measure one size only, as JSON, such as 5x20 (queues x workers)")
	evaluate := flag.String("evaluate", "bin/evaluate", "the built evaluate function")
	flag.Parse()
	if err := run(context.Background(), *one, *evaluate); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, one, evaluate string) error {
	if os.Getenv("DATABASE_URL") == "" || os.Getenv("REDIS_URL") == "" {
		return errors.New("DATABASE_URL and REDIS_URL are not set: run `make bench`, which starts both")
	}
	if one != "" {
		return measureOne(ctx, one)
	}
	out := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(out, "tick, warm\tp50\tp99\tround trips: postgres\tredis\tallocations\tpeak memory\t")
	for _, size := range []string{"5x20", "1000x10000"} {
		t, err := inChild(ctx, size)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s queues x workers\t%.1f ms\t%.1f ms\t%d\t%d\t%d\t%d MiB\t\n",
			strings.ReplaceAll(size, "x", " x "), t.P50, t.P99, t.Postgres, t.Redis, t.Allocs, t.PeakMiB)
	}
	fmt.Fprintln(out, "\t\t\t\t\t\t\t\ndecide alone\tper decision\tper queue\t\t\tallocations\t\t")
	for _, n := range []int{1, 10, 100, 1000} {
		d := decisions(n)
		fmt.Fprintf(out, "%d x %d queues x workers\t%.3f ms\t%.1f us\t\t\t%d\t\t\n", n, 4*n, d.ms, d.ms*1000/float64(n), d.allocs)
	}
	f, err := function(ctx, evaluate)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "\t\t\t\t\t\t\t\nevaluate function\tstart to first answer\tbinary\t\t\t\tresident\t")
	fmt.Fprintf(out, "\t%.0f ms\t%.1f MiB\t\t\t\t%d MiB\t\n", f.startMS, f.sizeMiB, f.residentMiB)
	return out.Flush()
}

// inChild measures in a process of its own, so that peak memory is that size's alone.
func inChild(ctx context.Context, size string) (ticks, error) {
	var t ticks
	self, err := os.Executable()
	if err != nil {
		return t, err
	}
	cmd := exec.CommandContext(ctx, self, "-tick", size)
	cmd.Stderr = os.Stderr
	raw, err := cmd.Output()
	if err != nil {
		return t, fmt.Errorf("measure %s: %w", size, err)
	}
	return t, json.Unmarshal(raw, &t)
}
