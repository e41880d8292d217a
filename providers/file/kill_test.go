package file

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/core/fleet"
)

// writerPath makes this test's program a writer that never ends by itself.
const writerPath = "SLUICE_TEST_WRITER"

func TestMain(m *testing.M) {
	if path := os.Getenv(writerPath); path != "" {
		writeForEver(path)
	}
	os.Exit(m.Run())
}

// texts are the two configs that a writer puts in turn; each is long enough to be seen half written.
func texts() [2]string {
	return [2]string{strings.Repeat("a", 300<<10), strings.Repeat("b", 200<<10)}
}

func writeForEver(path string) {
	o, ctx := &Objects{Path: path, MaxBytes: MaxConfig}, context.Background()
	_ = os.Stdout.Close() // says that it begins
	for n := 0; ; n++ {
		now, err := o.Get(ctx, "")
		if err == nil {
			_, err = o.Put(ctx, fleet.Change{Old: now.ETag, Bytes: []byte(texts()[n%2]), Who: "ann", Why: "again"})
		}
		if err != nil {
			_, _ = os.Stderr.WriteString(err.Error() + "\n")
			os.Exit(1)
		}
	}
}

func TestAWriterThatIsKilledLeavesOneOfTheTwoWhole(t *testing.T) {
	t.Parallel()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := write(t, texts()[0], 0o640)
	o := &Objects{Path: path, MaxBytes: MaxConfig}
	puts := map[string]bool{}
	for n := range 40 {
		cmd := exec.CommandContext(t.Context(), program)
		cmd.Env = []string{writerPath + "=" + path}
		var said strings.Builder
		cmd.Stderr = &said
		begins, err := cmd.StdoutPipe()
		if err = errors.Join(err, cmd.Start()); err != nil {
			t.Fatal(err)
		}
		_, _ = io.ReadAll(begins)
		time.AfterFunc(rand.N(time.Duration(n+1)*5*time.Millisecond), func() { _ = cmd.Process.Kill() }) // a random moment
		if _ = cmd.Wait(); said.Len() > 0 {
			t.Fatalf("after kill %d a writer says %s", n, said.String())
		}
		b, err := os.ReadFile(path)
		if err != nil || string(b) != texts()[0] && string(b) != texts()[1] {
			t.Fatalf("after kill %d there are %d bytes that nobody wrote, %v", n, len(b), err)
		}
		kept, err := o.Kept(t.Context())
		if err != nil || len(kept) > maxKept+1 {
			t.Fatalf("after kill %d there are %d versions, %v", n, len(kept), err)
		}
		for _, k := range kept {
			puts[k.ID] = true
			if !strings.HasSuffix(k.ID, "-"+k.ETag[:etagInID]) || k.Who != "ann" || k.Why != "again" {
				t.Fatalf("after kill %d version %+v is not what was kept", n, k)
			}
		}
	}
	if len(puts) == 0 {
		t.Error("no write was seen")
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
	if err != nil || len(left) != 2 {
		t.Errorf("the config and its versions alone should be there, not %v, %v", left, err)
	}
}
