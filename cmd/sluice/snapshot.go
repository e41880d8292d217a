package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"sluice/core/fleet"
)

func readAtMost(r io.Reader, name string) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxInput+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if len(b) > maxInput {
		return nil, fmt.Errorf("read %s: it is larger than %d MB, which no config or snapshot is", name, maxInput>>20)
	}
	return b, nil
}

// parseSnapshot is strict: a misspelt key would silently be a zero, and the answer wrong.
func parseSnapshot(name string, b []byte) (fleet.Snapshot, error) {
	var s fleet.Snapshot
	if err := json.Unmarshal(b, &s, json.RejectUnknownMembers(true)); err != nil {
		return s, fmt.Errorf("%s: %w; docs/snapshot.md describes every field", position(name, b, err), plain(err))
	}
	switch {
	case s.Version != 1:
		return s, fmt.Errorf("%s: version: found %d, expected 1", name, s.Version)
	case s.Due.IsZero():
		return s, fmt.Errorf("%s: due: expected the time that the tick was fired for, such as 2027-01-14T09:31:00Z", name)
	case s.Memory.Now.IsZero():
		return s, fmt.Errorf("%s: memory.now: expected the database's time, such as 2027-01-14T09:31:00Z", name)
	}
	if s.Function == "" {
		s.Function = fleet.Evaluate
	}
	return s, nil
}

// position is where in a file an error is: FILE:LINE: PATH.
func position(name string, b []byte, err error) string {
	offset, path := int64(-1), jsontext.Pointer("")
	var semantic *json.SemanticError
	var syntactic *jsontext.SyntacticError
	switch {
	case errors.As(err, &semantic):
		offset, path = semantic.ByteOffset, semantic.JSONPointer
	case errors.As(err, &syntactic):
		offset, path = syntactic.ByteOffset, syntactic.JSONPointer
	}
	if offset < 0 || offset > int64(len(b)) {
		return name
	}
	at := fmt.Sprintf("%s:%d", name, 1+bytes.Count(b[:offset], []byte("\n")))
	if path != "" {
		at += ": " + string(path)
	}
	return at
}

// plain is the cause alone, without the library's own idea of a position.
func plain(err error) error {
	var semantic *json.SemanticError
	var syntactic *jsontext.SyntacticError
	switch {
	case errors.Is(err, json.ErrUnknownName):
		return errors.New("there is no such key")
	case errors.Is(err, jsontext.ErrDuplicateName):
		return errors.New("the key stands here twice")
	case errors.As(err, &semantic) && semantic.Err != nil:
		return fmt.Errorf("not %s: %w", semantic.GoType, semantic.Err)
	case errors.As(err, &semantic):
		return fmt.Errorf("found a %s, which is not %s", semantic.JSONKind, semantic.GoType)
	case errors.As(err, &syntactic):
		return fmt.Errorf("not JSON: %w", syntactic.Err)
	}
	return err
}
