package demo

import (
	"encoding/json"
	"image"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func job(t *testing.T, payload Thumbnail) *strings.Reader {
	t.Helper()
	b, err := json.Marshal(map[string]any{"job_id": "1", "payload": payload})
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReader(string(b))
}

func size(t *testing.T, path string) image.Point {
	t.Helper()
	img, err := readImage(path)
	if err != nil {
		t.Fatal(err)
	}
	return img.Bounds().Size()
}

func TestAJobMakesItsThumbnailAndARepeatTheSame(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	images, err := makeImages(dir, 1)
	if err != nil {
		t.Fatal(err)
	}
	target := filepath.Join(dir, "small.jpg")
	payload := Thumbnail{Source: images[0], Target: target, Width: 160, Passes: 2}
	if err := RunJob(job(t, payload)); err != nil {
		t.Fatal(err)
	}
	if got := size(t, target); got != image.Pt(160, 120) {
		t.Errorf("thumbnail is %v, want 160 x 120", got)
	}
	first, err := os.ReadFile(target)
	if err != nil {
		t.Fatal(err)
	}
	if err := RunJob(job(t, payload)); err != nil {
		t.Fatal(err)
	}
	again, err := os.ReadFile(target)
	if err != nil {
		t.Fatal(err)
	}
	if string(first) != string(again) {
		t.Error("a repeat made another thumbnail")
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".thumbnail-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestABadJobSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := filepath.Join(dir, "text.jpg")
	if err := os.WriteFile(text, []byte("not an image"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ stdin, want string }{
		"nothing":       {"", "read job from standard input"},
		"no payload":    {`{"job_id":"1"}`, "want a payload with source, target and width"},
		"no width":      {`{"payload":{"source":"a","target":"b"}}`, "want a payload with source, target and width"},
		"no such image": {`{"payload":{"source":"/nowhere/a.jpg","target":"b","width":1}}`, "no such file"},
		"not an image":  {`{"payload":{"source":"` + text + `","target":"b","width":1}}`, "unknown format"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := RunJob(strings.NewReader(c.stdin)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

func TestEveryImageIsWantedAtEveryWidthAndThenAgainUnderAnotherName(t *testing.T) {
	t.Parallel()
	images := []string{"/a/one.jpg", "/b/one.jpg", "/b/two.png"}
	targets := map[string]bool{}
	w := work{images: images, passes: 3}
	all := len(images) * len(widths)
	for _, j := range append(w.more("/out", all), w.more("/out", 5)...) {
		targets[j.Target] = true
		if j.Passes != 3 {
			t.Errorf("%s is made with %d passes, want 3", j.Target, j.Passes)
		}
	}
	if want := all + 5; len(targets) != want || len(w.jobs) != want {
		t.Errorf("%d targets of %d jobs, want %d: %v", len(targets), len(w.jobs), want, targets)
	}
	if first, again := w.jobs[0], w.jobs[all]; first.Source != again.Source || first.Width != again.Width {
		t.Errorf("after the last image comes %+v, want what %+v was made of", again, first)
	}
}

func TestImagesAreFoundBelowAFolderAndTheirAbsenceIsAnError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, _, err := findImages(dir); err == nil || !strings.Contains(err.Error(), "leave out --dir") {
		t.Errorf("an empty folder gives %v", err)
	}
	if _, _, err := findImages(filepath.Join(dir, "nowhere")); err == nil {
		t.Error("a folder that is not there gives no error")
	}
	if _, err := makeImages(dir, 2); err != nil {
		t.Fatal(err)
	}
	deep := filepath.Join(dir, "a folder")
	if err := os.Mkdir(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "image-001.jpg"), filepath.Join(deep, "b.JPEG")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"torn.png", "notes.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("words"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, leftOut, err := findImages(dir)
	if err != nil || len(got) != 2 {
		t.Errorf("found %v, %v, want the two images", got, err)
	}
	if len(leftOut) != 1 || !strings.Contains(leftOut[0].Error(), "torn.png") {
		t.Errorf("left out %v, want torn.png", leftOut)
	}
}

func TestAFewImagesAreABurstAsWell(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		wanted float64
		jobs   int
		want   float64
	}{{0, 200, workLeast}, {0, 30, 2}, {0, 4, workMost}, {0.1, 4, 0.1}} {
		if got := workEach(c.wanted, c.jobs); got != c.want {
			t.Errorf("%d jobs with --work %v take %v s each, want %v", c.jobs, c.wanted, got, c.want)
		}
	}
}
