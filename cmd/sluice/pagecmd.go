package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"sluice/cmd/sluice/page"
)

const envPageToken = "SLUICE_PAGE_TOKEN" //nolint:gosec // the name of a variable

func (a *app) pageCommand() *cobra.Command {
	o := page.Options{}
	cmd := &cobra.Command{
		Use:   "page",
		Short: "Serve a page with the live state of a deployment, read-only",
		Long: "Serves a page that shows queues, workers, money and decisions as they are in the database, until it is\n" +
			"interrupted. It changes nothing. It is served to this machine alone unless --listen says otherwise; then\n" +
			"a token is needed, which visitors give once as /?token=TOKEN.",
		Example: "  sluice page\n  sluice page --database postgres://sluice@db.internal/app --listen 127.0.0.1:9000\n" +
			"  SLUICE_PAGE_TOKEN=$(openssl rand -hex 16) sluice page --listen 0.0.0.0:8585",
		Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Token == "" {
				o.Token = a.env(envPageToken)
			}
			return a.page(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.Listen, "listen", page.DefaultListen, "host and port to serve on; port 0 is any free one")
	cmd.Flags().StringVar(&o.Token, "token", "", "what visitors have to know (better: "+envPageToken+", which no process list shows)")
	return cmd
}

func (a *app) page(ctx context.Context, o page.Options) error {
	if err := o.Check(); err != nil {
		return usageError{err}
	}
	db, err := a.past(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	o.Source, o.Report = db, a.reportDatabase
	s, err := page.Start(ctx, o)
	if err != nil {
		return err
	}
	if err := a.sayPage(s.URL(), o.Token != ""); err != nil {
		return errors.Join(err, s.Close())
	}
	return s.Wait()
}

func (a *app) reportDatabase(err error) {
	if err != nil {
		a.complain("the page cannot read the database, and goes on trying: %v", err)
		return
	}
	a.complain("the page reads the database again")
}

func (a *app) sayPage(url string, token bool) error {
	if a.asJSON {
		return a.writeJSON(struct {
			URL   string `json:"url"`
			Token bool   `json:"token"`
		}{url, token})
	}
	how := ""
	if token {
		how = "?token=TOKEN (once; then without)"
	}
	return a.say("The page is at %s%s\nIt changes nothing. Ctrl-C ends it.", url, how)
}
