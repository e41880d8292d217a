package file

import (
	"context"

	"sluice/core/fleet"
)

// MaxConfig is more than any config has.
const MaxConfig = 1 << 20

// Link is this provider as a program is built with it.
func Link() fleet.Link {
	return fleet.Link{
		Provider: "file",
		Objects:  func(path string) fleet.Objects { return &Objects{Path: path, MaxBytes: MaxConfig} },
		Versions: func(path string) fleet.Versions { return &Objects{Path: path, MaxBytes: MaxConfig} },
		Secrets:  map[string]func(context.Context, string) (string, error){"env": Resolve, "file": Resolve},
	}
}
