package fleettest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"sluice/core/fleet"
)

// Versions runs the conformance suite of fleet.Versions; open gives a config that is not there yet.
func Versions(t *testing.T, open func(t *testing.T) fleet.Versions) {
	t.Helper()
	for _, c := range []struct {
		name string
		run  func(b *versionsBench)
	}{
		{"what is not there is not found, and has no versions", versionsNone},
		{"the first one is written where there is none", versionsFirst},
		{"what is replaced is kept with who and why", versionsKept},
		{"bytes are kept as they are", versionsBytes},
		{"a change in between is not overwritten", versionsCondition},
		{"of many writers at once one wins", versionsRace},
		{"a version put back is newer than what it replaces", versionsBack},
		{"the newest are kept, not all", versionsBounded},
		{"what is too large is refused and changes nothing", versionsLarge},
		{"a version that is not kept is not found", versionsUnknown},
		{"an ended context writes nothing", versionsEnded},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			c.run(&versionsBench{T: t, Versions: open(t), ctx: ctx})
		})
	}
}

type versionsBench struct {
	*testing.T
	fleet.Versions
	ctx context.Context
}

func (b *versionsBench) put(old, content string) fleet.Object {
	b.Helper()
	o, err := b.Put(b.ctx, fleet.Change{Old: old, Bytes: []byte(content), Who: "ann", Why: "for " + content})
	if err != nil {
		b.Fatalf("put %q: %v", content, err)
	}
	if string(o.Bytes) != content {
		b.Fatalf("put %q answers %q", content, o.Bytes)
	}
	return o
}

func (b *versionsBench) holds(content string) fleet.Object {
	b.Helper()
	o, err := b.Get(b.ctx, "")
	if err != nil || string(o.Bytes) != content {
		b.Fatalf("it holds %q, %v, want %q", o.Bytes, err, content)
	}
	return o
}

func (b *versionsBench) kept() []fleet.KeptObject {
	b.Helper()
	kept, err := b.Kept(b.ctx)
	if err != nil {
		b.Fatal(err)
	}
	return kept
}

func versionsNone(b *versionsBench) {
	if _, err := b.Get(b.ctx, ""); !errors.Is(err, fleet.ErrNotFound) {
		b.Errorf("get: %v", err)
	}
	if kept := b.kept(); len(kept) != 0 {
		b.Errorf("kept %v", kept)
	}
}

func versionsFirst(b *versionsBench) {
	if _, err := b.Put(b.ctx, fleet.Change{Old: "some etag", Bytes: []byte("x")}); !errors.Is(err, fleet.ErrChanged) {
		b.Errorf("where one was expected: %v", err)
	}
	first := b.put("", "one")
	if got := b.holds("one"); got.ETag != first.ETag || got.ETag == "" || got.Modified.IsZero() {
		b.Errorf("get answers %+v, put %+v", got, first)
	}
	if _, err := b.Get(b.ctx, first.ETag); !errors.Is(err, fleet.ErrNotModified) {
		b.Errorf("get again: %v", err)
	}
	if kept := b.kept(); len(kept) != 0 {
		b.Errorf("nothing was replaced, and kept is %v", kept)
	}
}

func versionsKept(b *versionsBench) {
	one := b.put("", "one")
	two := b.put(one.ETag, "two")
	b.put(two.ETag, "three")
	kept := b.kept()
	if len(kept) != 2 {
		b.Fatalf("kept %v, want two", kept)
	}
	for i, want := range []struct {
		object fleet.Object
		why    string
	}{{two, "for three"}, {one, "for two"}} {
		k := kept[i]
		if k.ETag != want.object.ETag || k.Who != "ann" || k.Why != want.why || !k.Modified.Equal(want.object.Modified) || k.Replaced.IsZero() {
			b.Errorf("kept %d is %+v, want that of %q, because %q", i, k, want.object.Bytes, want.why)
		}
		got, err := b.Version(b.ctx, k.ID)
		if err != nil || !bytes.Equal(got.Bytes, want.object.Bytes) || got.ETag != k.ETag {
			b.Errorf("version %s is %q, %v", k.ID, got.Bytes, err)
		}
	}
}

func versionsBytes(b *versionsBench) {
	const odd = "\xef\xbb\xbf{\r\n  \"x-why\": \"\xff\x00\"\r\n}\n\n"
	first := b.put("", odd)
	b.put(first.ETag, "{}")
	if got, err := b.Version(b.ctx, b.kept()[0].ID); err != nil || string(got.Bytes) != odd {
		b.Errorf("kept as %q, %v", got.Bytes, err)
	}
}

func versionsCondition(b *versionsBench) {
	one := b.put("", "one")
	b.put(one.ETag, "two")
	for _, old := range []string{one.ETag, ""} {
		if _, err := b.Put(b.ctx, fleet.Change{Old: old, Bytes: []byte("three")}); !errors.Is(err, fleet.ErrChanged) {
			b.Errorf("on the condition of %q: %v", old, err)
		}
	}
	b.holds("two")
	if kept := b.kept(); len(kept) != 1 {
		b.Errorf("what was refused has left a version: %v", kept)
	}
}

func versionsRace(b *versionsBench) {
	old := ""
	for round := range 2 { // where there is none, and where there is one
		var wg sync.WaitGroup
		errs := make([]error, 8)
		for i := range errs {
			wg.Go(func() {
				_, errs[i] = b.Put(b.ctx, fleet.Change{Old: old, Bytes: fmt.Appendf(nil, "%d by %d", round, i)})
			})
		}
		wg.Wait()
		won := 0
		for i, err := range errs {
			if err == nil {
				won++
				old = b.holds(fmt.Sprintf("%d by %d", round, i)).ETag
			} else if !errors.Is(err, fleet.ErrChanged) {
				b.Errorf("writer %d: %v", i, err)
			}
		}
		if won != 1 {
			b.Fatalf("%d writers have won in round %d", won, round)
		}
	}
}

func versionsBack(b *versionsBench) {
	one := b.put("", "one")
	two := b.put(one.ETag, "two")
	back := b.put(two.ETag, "one")
	if back.ETag != one.ETag || !back.Modified.After(two.Modified) || !two.Modified.After(one.Modified) {
		b.Errorf("written at %s, %s, and put back at %s", one.Modified, two.Modified, back.Modified)
	}
}

func versionsBounded(b *versionsBench) {
	o := b.put("", "0")
	for i := range 40 {
		o = b.put(o.ETag, fmt.Sprint(i+1))
	}
	kept := b.kept()
	if len(kept) < 10 || len(kept) >= 40 || kept[0].Why != "for 40" {
		b.Fatalf("%d are kept, the newest is %+v", len(kept), kept[0])
	}
	for i := range kept[1:] {
		if !kept[i].Replaced.After(kept[i+1].Replaced) {
			b.Errorf("kept %d was replaced at %s, the one after it at %s", i, kept[i].Replaced, kept[i+1].Replaced)
		}
	}
}

func versionsLarge(b *versionsBench) {
	one := b.put("", "one")
	if _, err := b.Put(b.ctx, fleet.Change{Old: one.ETag, Bytes: bytes.Repeat([]byte(" "), 64<<20)}); !errors.Is(err, fleet.ErrBadRequest) {
		b.Errorf("64 MB: %v", err)
	}
	b.holds("one")
}

func versionsUnknown(b *versionsBench) {
	b.put("", "one")
	for _, id := range []string{"", "..", "../../etc/passwd", "lock", "20270114T093100.000Z-1a2b3c4d5e6f"} {
		if _, err := b.Version(b.ctx, id); !errors.Is(err, fleet.ErrNotFound) {
			b.Errorf("version %q: %v", id, err)
		}
	}
}

func versionsEnded(b *versionsBench) {
	one := b.put("", "one")
	ctx, cancel := context.WithCancel(b.ctx)
	cancel()
	if _, err := b.Put(ctx, fleet.Change{Old: one.ETag, Bytes: []byte("two")}); !errors.Is(err, context.Canceled) {
		b.Errorf("put: %v", err)
	}
	b.holds("one")
}
