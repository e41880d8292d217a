package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"sluice/cmd/sluice/demo"
	"sluice/cmd/sluice/page"
)

func (a *app) runCommand() *cobra.Command {
	o := demo.Options{Env: a.env, Log: a.err, Home: ".sluice", Links: links()}
	agent := ""
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Watch it work here: a burst of real work on a stack of its own",
		Long: "Brings up what it needs (DATABASE_URL and REDIS_URL where they are set, else private ones in .sluice/), starts one\n" +
			"worker, puts a burst of thumbnails in that it cannot cope with, and ticks every two seconds in hybrid mode, with processes on\n" +
			"this computer as the cloud. A page shows all of it, with buttons to add work and to break things. Ends by itself when the\n" +
			"work is done and the machines are gone, with --watch on Ctrl-C; Ctrl-C ends everything at once, and nothing is left running.",
		Example: "  sluice run\n  sluice run --watch                     # goes on, and takes more work\n  sluice run --dir ~/Pictures --jobs 0   # thumbnails of all your own images",
		Args:    exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Jobs < 0 || !(o.Work >= 0 && o.Work <= 60) { // written so that NaN is none of it
				return usageError{fmt.Errorf("want --jobs of at least 0 and --work between 0 and 60 seconds")}
			}
			if o.Token == "" {
				o.Token = a.env(envPageToken)
			}
			if err := (page.Options{Listen: o.Listen, Token: o.Token}).Check(); err != nil {
				return usageError{err}
			}
			return a.run(cmd.Context(), o, agent)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Dir, "dir", "", "folder of images; without it some are made")
	flags.StringVar(&o.Home, "home", o.Home, "folder of the private stack and of the results")
	flags.IntVar(&o.Jobs, "jobs", 200, "at most so many thumbnails; 0 for every image at every width")
	flags.Float64Var(&o.Work, "work", 0, "seconds of work in one thumbnail (default: 0.4, and more where there are few)")
	flags.StringVar(&agent, "agent", "", "the sluice-agent program (default: beside this one)")
	flags.BoolVar(&o.Watch, "watch", false, "go on until Ctrl-C, and take more work on the page")
	flags.StringVar(&o.Listen, "listen", "", "address of the page (default: "+page.DefaultListen+", or any free port where that is taken)")
	flags.BoolVar(&o.Force, "force", false, "use DATABASE_URL and REDIS_URL although they are in use")
	flags.StringVar(&o.Token, "token", "", "what visitors of the page have to know (better: "+envPageToken+", which no process list shows)")
	return cmd
}

func (a *app) run(ctx context.Context, o demo.Options, agent string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	o.Self = self
	if o.Agent, err = demo.FindAgent(agent, self); err != nil {
		return err
	}
	o.Say = func(format string, args ...any) { _ = a.say(format, args...) }
	if a.asJSON {
		o.Say = a.complainPlain
	}
	s, err := demo.Run(ctx, o)
	if err != nil {
		return err
	}
	if a.asJSON {
		err = a.writeJSON(s)
	} else {
		err = a.say("\n%s", s.Words())
	}
	if err != nil {
		return err
	}
	return s.Err()
}

// complainPlain keeps standard output for the answer.
func (a *app) complainPlain(format string, args ...any) {
	_, _ = fmt.Fprintln(a.err, wrap(fmt.Sprintf(format, args...), a.width))
}
