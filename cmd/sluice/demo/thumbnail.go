package demo

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	_ "image/gif" // read as well
	"image/jpeg"
	_ "image/png" // read as well
	"io"
	"os"
	"path/filepath"

	"golang.org/x/image/draw"
	_ "golang.org/x/image/webp" // read as well
)

// Thumbnail is the payload of one job: one image at one width.
type Thumbnail struct {
	Source string `json:"source"`
	Target string `json:"target"`
	Width  int    `json:"width"`
	// Passes is how often the image is resampled: the effort of the job.
	Passes int `json:"passes"`
}

// maxPixels bounds what a picture may unpack to, so that a small file cannot fill the memory.
const maxPixels = 100_000_000

// RunJob reads a job as its worker hands it over, and makes its thumbnail.
func RunJob(stdin io.Reader) error {
	var job struct {
		Payload *Thumbnail `json:"payload"`
	}
	if err := json.NewDecoder(stdin).Decode(&job); err != nil {
		return fmt.Errorf("read job from standard input: %w", err)
	}
	if job.Payload == nil || job.Payload.Source == "" || job.Payload.Target == "" || job.Payload.Width < 1 {
		return errors.New("read job from standard input: want a payload with source, target and width")
	}
	return job.Payload.Make()
}

// Make writes the thumbnail. A repeat, after a worker died with it in hand, writes the same file again.
func (t Thumbnail) Make() error {
	src, err := readImage(t.Source)
	if err != nil {
		return err
	}
	small := t.scale(src)
	var b bytes.Buffer
	if err := jpeg.Encode(&b, small, &jpeg.Options{Quality: 85}); err != nil {
		return fmt.Errorf("encode thumbnail of %s: %w", t.Source, err)
	}
	return writeWhole(t.Target, b.Bytes())
}

func readImage(path string) (image.Image, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read image: %w", err)
	}
	if err := checkSize(path, bytes.NewReader(raw)); err != nil {
		return nil, err
	}
	src, _, err := image.Decode(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("read image %s: %w", path, err)
	}
	return src, nil
}

// checkImage reads no more than the head of a file, to tell whether it can be an image.
func checkImage(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("read image: %w", err)
	}
	defer func() { _ = f.Close() }() // was only read
	return checkSize(path, f)
}

func checkSize(path string, r io.Reader) error {
	size, _, err := image.DecodeConfig(r)
	if err != nil {
		return fmt.Errorf("read image %s: %w", path, err)
	}
	if size.Width < 1 || size.Height < 1 || size.Width > maxPixels/size.Height {
		return fmt.Errorf("read image %s: %d x %d pixels is more than a thumbnail is made of", path, size.Width, size.Height)
	}
	return nil
}

func (t Thumbnail) scale(src image.Image) image.Image {
	from := src.Bounds()
	height := max(1, from.Dy()*t.Width/from.Dx())
	small := image.NewRGBA(image.Rect(0, 0, t.Width, height))
	for range max(1, t.Passes) {
		draw.CatmullRom.Scale(small, small.Bounds(), src, from, draw.Src, nil)
	}
	return small
}

// writeWhole replaces a file at once: whoever sees it sees all of it.
func writeWhole(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".thumbnail-")
	if err != nil {
		return fmt.Errorf("write thumbnail: %w", err)
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write thumbnail %s: %w", path, errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}
