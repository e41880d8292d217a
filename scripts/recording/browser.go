package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"sluice/scripts/services"
)

// The picture is this large; a reader of a document sees it at about two thirds.
const (
	pictureWidth  = 1280
	pictureHeight = 1600
	browserTime   = time.Minute
)

// photograph takes the picture of the page whose address comes; none comes where the burst was too small.
func photograph(ctx context.Context, busy <-chan string, path string) error {
	url := <-busy
	if url == "" {
		return fmt.Errorf("take a picture: there were never %d machines at work with %d jobs over, or the run did not say where its page is", busyWith, busyAfter)
	}
	png, err := screenshot(ctx, url)
	if err != nil {
		return fmt.Errorf("take a picture of %s: %w", url, err)
	}
	return os.WriteFile(path, png, 0o644) //nolint:gosec // a document
}

func screenshot(ctx context.Context, url string) (png []byte, err error) {
	path, env, err := services.Bring(ctx, os.Stderr, "chromium", "/usr/lib/chromium", "chromium")
	if err != nil {
		return nil, err
	}
	profile, err := os.MkdirTemp("", "sluice-browser-")
	if err != nil {
		return nil, fmt.Errorf("make folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(profile)) }()
	options := []chromedp.ExecAllocatorOption{chromedp.ExecPath(path), chromedp.Env(env...), chromedp.UserDataDir(profile), chromedp.WSURLReadTimeout(browserTime)}
	for _, flag := range []string{"headless", "no-sandbox", "disable-gpu", "no-first-run", "disable-background-networking", "hide-scrollbars", "disable-dev-shm-usage"} {
		options = append(options, chromedp.Flag(flag, true))
	}
	ctx, cancel := context.WithTimeout(ctx, browserTime)
	defer cancel()
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	defer cancel()
	ctx, cancel = chromedp.NewContext(ctx)
	defer cancel()
	light := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "light"}}}
	err = chromedp.Do(ctx,
		chromedp.EmulateViewport(pictureWidth, pictureHeight),
		chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
			_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, light)
			return err
		}),
		chromedp.Navigate(url),
		chromedp.Sleep(drawn),
	)
	if err != nil {
		return nil, err
	}
	return chromedp.Run(ctx, chromedp.CaptureScreenshot())
}

// drawn is how long the page has for its first reading and its charts.
const drawn = 3 * time.Second
