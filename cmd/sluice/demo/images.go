package demo

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// widths of the thumbnails of one image, as a shop or a gallery wants them.
var widths = [...]int{160, 320, 480, 640}

// findImages lists the images below a folder, sorted by their paths, which are absolute because a
// job's worker has a folder of its own. A file that only has an image's name is left out, with its error.
func findImages(dir string) (found []string, leftOut []error, err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("find images: %w", err)
	}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || !isImage(path) {
			return err
		}
		if err := checkImage(path); err != nil {
			leftOut = append(leftOut, err)
			return nil
		}
		found = append(found, path)
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("find images: %w", err)
	}
	if len(found) == 0 {
		return nil, leftOut, fmt.Errorf("find images: %s has no .jpg, .png, .gif or .webp that can be read; name another folder, or leave out --dir to have images made", dir)
	}
	slices.Sort(found)
	return found, leftOut, nil
}

func isImage(path string) bool {
	return slices.Contains([]string{".jpg", ".jpeg", ".png", ".gif", ".webp"}, strings.ToLower(filepath.Ext(path)))
}

// makeImages writes n pictures of the same size, each its own.
func makeImages(dir string, n int) ([]string, error) {
	paths := make([]string, n)
	for i := range n {
		paths[i] = filepath.Join(dir, fmt.Sprintf("image-%03d.jpg", i))
		var b bytes.Buffer
		if err := jpeg.Encode(&b, waves(i, 1280, 960), &jpeg.Options{Quality: 80}); err != nil {
			return nil, fmt.Errorf("make image: %w", err)
		}
		if err := os.WriteFile(paths[i], b.Bytes(), 0o600); err != nil {
			return nil, fmt.Errorf("make image: %w", err)
		}
	}
	return paths, nil
}

// waves draws a pattern of crossing waves; the seed turns and colours it.
func waves(seed, width, height int) image.Image {
	img := image.NewYCbCr(image.Rect(0, 0, width, height), image.YCbCrSubsampleRatio420)
	for y := range height {
		row := img.Y[y*img.YStride:]
		for x := range width {
			row[x] = wave(x*(1+seed%5)+y*(1+seed%3)) ^ wave(y*(2+seed%7)-x)
		}
	}
	tint := color.RGBAModel.Convert(color.RGBA{R: byte(seed * 37 & 255), G: byte(seed * 91 & 255), B: byte(seed * 53 & 255), A: 255}).(color.RGBA)
	_, cb, cr := color.RGBToYCbCr(tint.R, tint.G, tint.B)
	fillBytes(img.Cb, cb)
	fillBytes(img.Cr, cr)
	return img
}

// wave goes up and down between 0 and 127.
func wave(x int) byte {
	x &= 255
	return byte(min(x, 255-x))
}

func fillBytes(b []byte, v byte) {
	for i := range b {
		b[i] = v
	}
}

// nthThumbnail is a job of some images: each at every width before the next, with a target of its own.
func nthThumbnail(images []string, target string, n int) Thumbnail {
	i, width := n/len(widths), widths[n%len(widths)]
	path := images[i%len(images)]
	name := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	return Thumbnail{Source: path, Width: width, Target: filepath.Join(target, fmt.Sprintf("%04d-%s-%d.jpg", i, name, width))}
}
