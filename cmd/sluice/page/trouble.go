package page

import (
	"context"
	"errors"
	"strings"
	"time"

	"sluice/core/fleet"
)

// troubleView is why there is nothing new, in words that give nothing away: addresses and names stay with who serves the page.
type troubleView struct {
	Since  time.Time `json:"since"`
	For    int64     `json:"for_seconds"`
	Title  string    `json:"title"`
	Advice string    `json:"advice"`
}

// trouble puts an error into words.
func trouble(err error, since, now time.Time) *troubleView {
	t := &troubleView{Since: since.UTC().Truncate(time.Second), For: int64(now.Sub(since) / time.Second)}
	switch {
	case errors.Is(err, fleet.ErrSchema) && strings.Contains(err.Error(), "upgrade"):
		t.Title = "The database is newer than this program"
		t.Advice = "Serve the page with the version of sluice that migrated the database."
	case errors.Is(err, fleet.ErrSchema):
		t.Title = "This database has no tables that fit"
		t.Advice = "If it is the right one, run `sluice migrate`. If it is another program's, start the page with the right --database."
	case errors.Is(err, fleet.ErrAuth):
		t.Title = "The database refuses the password"
		t.Advice = "Check the user and the password of the database URL that the page was started with."
	case errors.Is(err, context.DeadlineExceeded):
		t.Title = "The database does not answer in time"
		t.Advice = "The page goes on trying. What is running goes on running; nothing is decided without the database."
	default:
		t.Title = "The database is lost"
		t.Advice = "The page goes on trying; the exact error is where the page was started. What is running goes on running; nothing is decided without the database."
	}
	return t
}
