package config

import (
	"fmt"

	"sluice/core/fleet"
)

// Parsed is a settings file that is valid.
type Parsed struct {
	Config fleet.Config
	// File is the file with everything filled in that it leaves out.
	File File
	// Effective are all values that hold, with where each came from.
	Effective []Value
	// EffectiveJSON is the same as a settings file, which means what the original means.
	EffectiveJSON []byte
	Connections   Refs
	// Warnings are about what is allowed and probably not meant.
	Warnings []string
	// Meaning says in sentences what the settings come to.
	Meaning []string
}

// Parse reads a settings file. Its error is an *Errors with everything that is wrong; name is what it calls the file.
func Parse(name string, b []byte, env Env) (Parsed, error) {
	root, list := read(b)
	if root == nil {
		return Parsed{}, problems(name, b, list)
	}
	c := &checker{problems: list}
	if !c.check(root, rootShape(), nil) {
		return Parsed{}, problems(name, b, c.problems)
	}
	complete(root, rootShape(), env)
	f, err := decode(root)
	if err != nil {
		return Parsed{}, fmt.Errorf("read %s: %w", name, err)
	}
	r := &review{f: f, root: root, bad: c.bad, problems: c.problems}
	r.all()
	if err := problems(name, b, r.problems); err != nil {
		return Parsed{}, err
	}
	return r.parsed(name, b)
}

func (r *review) parsed(name string, b []byte) (Parsed, error) {
	c, err := resolver{f: r.f, root: r.root}.config()
	if err != nil {
		return Parsed{}, fmt.Errorf("resolve %s: %w", name, err)
	}
	return Parsed{
		Config:        c,
		File:          r.f,
		Effective:     effective(r.root, newPlaces(b)),
		EffectiveJSON: indented(r.root),
		Connections:   r.f.Connections.refs(),
		Warnings:      append(r.warnings, doubts(c)...),
		Meaning:       meaning(r.f, c),
	}, nil
}
