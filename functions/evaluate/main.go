// Evaluate is the function that a schedule calls every minute: it decides and acts.
package main

import (
	"os"

	"sluice/core/fleet"
	"sluice/core/tick"
	"sluice/functions/serve"
)

func main() {
	f := serve.Function{Name: fleet.Evaluate, Tick: tick.Evaluate, Links: links(), Env: os.Getenv, Out: os.Stdout}
	os.Exit(f.Main())
}
