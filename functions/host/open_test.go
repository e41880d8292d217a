package host

import (
	"context"
	"errors"
	"strings"
	"testing"

	"sluice/core/fleet"
)

// object is a config object in memory.
type object struct {
	text string
	err  error
}

func (o object) Get(context.Context, string) (fleet.Object, error) {
	return fleet.Object{Name: "scheduler.json", Bytes: []byte(o.text)}, o.err
}

// link is what a test's world is built with.
func link(config object) fleet.Link {
	return fleet.Link{
		Objects: func(string) fleet.Objects { return config },
		Secrets: map[string]func(context.Context, string) (string, error){
			"file": func(_ context.Context, ref string) (string, error) { return "what is in " + ref, nil },
		},
		Database: func(context.Context, fleet.Secret) (fleet.Database, error) { return nil, errors.New("no way") },
	}
}

func with(config object, o Options) refs {
	o.Config = "scheduler.json"
	return newRefs(o, []fleet.Link{link(config)})
}

func env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestTheDatabaseIsTheFlagsThenTheEnvironmentsThenTheConfigs(t *testing.T) {
	t.Parallel()
	named := object{text: `{"connections":{"database":{"url":"file:/run/db"}}}`}
	for _, c := range []struct {
		name    string
		options Options
		config  object
		want    string
	}{
		{"the flag", Options{Database: "flag", Env: env(EnvDatabase, "environment")}, named, "flag"},
		{"the environment", Options{Env: env(EnvDatabase, "environment")}, named, "environment"},
		{"the config", Options{Env: env()}, named, "what is in file:/run/db"},
	} {
		if got, err := with(c.config, c.options).database(t.Context()); err != nil || got != c.want {
			t.Errorf("%s: %q, %v, want %q", c.name, got, err, c.want)
		}
	}
}

func TestWithoutAnyDatabaseTheErrorSaysWhatToSet(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]object{
		"an empty config": {text: "{}"}, "no config yet": {err: fleet.ErrNotFound},
	} {
		if _, err := with(config, Options{Env: env()}).database(t.Context()); err == nil || !strings.Contains(err.Error(), "set DATABASE_URL") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAReferenceThatThisBuildCannotFollowIsNamed(t *testing.T) {
	t.Parallel()
	if _, err := with(object{text: `{"connections":{"database":{"url":"ssm:/prod/db"}}}`}, Options{Env: env()}).database(t.Context()); err == nil || !strings.Contains(err.Error(), `ssm:/prod/db: this build has no "ssm" references`) {
		t.Errorf("got %v", err)
	}
}

func TestABrokenConfigIsTheReasonWhyItsDatabaseIsNotFound(t *testing.T) {
	t.Parallel()
	if _, err := with(object{text: `{"mode":1}`}, Options{Env: env()}).database(t.Context()); err == nil || !strings.Contains(err.Error(), "scheduler.json:1") {
		t.Errorf("got %v", err)
	}
}

func TestPlacesAreReadFromTheEnvironment(t *testing.T) {
	t.Parallel()
	got, err := parsePlaces(" aws/eu-west-3, google/my-project ,local,")
	want := []fleet.Place{{Provider: "aws", Scope: "eu-west-3"}, {Provider: "google", Scope: "my-project"}, {Provider: "local"}}
	if err != nil || len(got) != len(want) {
		t.Fatalf("%v, %v", got, err)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("place %d is %v, want %v", i, got[i], want[i])
		}
	}
	if _, err := parsePlaces("/eu-west-3"); err == nil || !strings.Contains(err.Error(), EnvPlaces) {
		t.Errorf("a place without a provider: %v", err)
	}
}

func TestWithoutAConfigPathOpeningSaysHowToNameOne(t *testing.T) {
	t.Parallel()
	if _, err := Open(t.Context(), Options{Env: env()}, link(object{})); err == nil || !strings.Contains(err.Error(), EnvConfig) {
		t.Errorf("got %v", err)
	}
}

// What cannot be opened fails whatever is asked of it, with the reason.
func TestALostDatabaseSaysWhy(t *testing.T) {
	t.Parallel()
	w, err := Open(t.Context(), Options{Env: env(), Config: "x"}, link(object{text: "{}"}))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	_, recalled := w.DB.Recall(t.Context())
	for _, got := range []error{w.Lost(), recalled, w.DB.Ask(t.Context(), fleet.Request{}), w.DB.Sent(t.Context(), fleet.Sending{})} {
		if got == nil || got.Error() != "no way" {
			t.Errorf("got %v", got)
		}
	}
}
