// Reconcile is the function that a schedule calls every 15 minutes: it holds the books against the bills.
package main

import (
	"os"

	"sluice/core/fleet"
	"sluice/core/tick"
	"sluice/functions/serve"
)

func main() {
	f := serve.Function{Name: fleet.Reconcile, Tick: tick.Reconcile, Links: links(), Env: os.Getenv, Out: os.Stdout}
	os.Exit(f.Main())
}
