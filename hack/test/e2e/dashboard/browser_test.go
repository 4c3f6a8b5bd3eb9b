// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// reader looks at a page as a person does.
type reader interface {
	// open opens an address.
	open(url string) error
	// text returns the text that the page shows now.
	text() (string, error)
	// follow follows the link with an ID.
	follow(id string) error
}

// newReader returns a browser, or a reader of HTML on a machine without one.
func newReader(t *testing.T) reader {
	t.Helper()
	if path := browserPath(t); path != "" {
		return newBrowser(t, path)
	}
	t.Log("No browser was found: CHROME is not set, and chromium is not in PATH. The assertions run on the HTML alone.")
	return &htmlReader{t: t}
}

// browserPath returns the browser that CHROME or the PATH names, empty if there is none.
func browserPath(t *testing.T) string {
	t.Helper()
	if given := os.Getenv("CHROME"); given != "" {
		path, err := exec.LookPath(given)
		if err != nil {
			t.Fatalf("CHROME: %v", err)
		}
		return path
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// browser is a tab of a headless Chromium.
type browser struct {
	t   *testing.T
	ctx context.Context

	mutex    sync.Mutex
	problems []string // errors in the console, violations of the Content-Security-Policy
	requests []string
	bytes    int64
}

func newBrowser(t *testing.T, path string) *browser {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.WindowSize(1280, 800))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium refuses to run as root otherwise
	}
	b := &browser{t: t}
	ctx, end := chromedp.NewContext(context.WithoutCancel(t.Context()), chromedp.WithAllocatorOptions(options...),
		chromedp.WithListener(b.listen))
	t.Cleanup(end)
	b.ctx = ctx
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(1280, 800)); err != nil {
		t.Fatalf("starting %s: %v", path, err)
	}
	return b
}

// listen collects what the browser reports.
func (b *browser) listen(event any) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		b.problems = append(b.problems, fmt.Sprintf("%s: %+v", e.ExceptionDetails.Text, e.ExceptionDetails.Exception))
	case *runtime.EventConsoleAPICalled:
		b.problems = append(b.problems, fmt.Sprintf("console.%s", e.Type))
	case *log.EventEntryAdded:
		b.problems = append(b.problems, fmt.Sprintf("%s %s: %s", e.Entry.Level, e.Entry.Source, e.Entry.Text))
	case *network.EventRequestWillBeSent:
		if strings.HasPrefix(e.Request.URL, "http") {
			b.requests = append(b.requests, e.Request.URL)
		}
	case *network.EventDataReceived:
		b.bytes += e.DataLength
	}
}

// seen returns what the browser reported since it was last called.
func (b *browser) seen() (problems, requests []string, bytes int64) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	problems, requests, bytes = b.problems, b.requests, b.bytes
	b.problems, b.requests, b.bytes = nil, nil, 0
	return problems, requests, bytes
}

func (b *browser) open(url string) error { return chromedp.Do(b.ctx, chromedp.Navigate(url)) }

func (b *browser) text() (string, error) {
	return chromedp.Run(b.ctx, chromedp.Evaluate[string]("document.body.innerText"))
}

// follow follows a link by keyboard.
func (b *browser) follow(id string) error {
	for range 50 {
		if err := chromedp.Do(b.ctx, chromedp.KeyEvent(kb.Tab)); err != nil {
			return err
		}
		focused, err := chromedp.Run(b.ctx, chromedp.Evaluate[string]("document.activeElement.id"))
		if err != nil {
			return err
		}
		if focused == id {
			_, err := chromedp.RunResponse(b.ctx, chromedp.KeyEvent(kb.Enter))
			return err
		}
	}
	return errors.New("the focus does not reach the link " + id)
}

// click follows a link by mouse.
func (b *browser) click(id string) error {
	_, err := chromedp.RunResponse(b.ctx, chromedp.Click(chromedp.CSS(fmt.Sprintf("[id=%q]", id))))
	return err
}

// dark switches to dark mode, and returns the color of the background.
func (b *browser) dark() (background string, err error) {
	_, err = chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}})
	if err != nil {
		return "", err
	}
	return chromedp.Run(b.ctx, chromedp.Evaluate[string]("getComputedStyle(document.body).backgroundColor"))
}

// screenshot writes a picture, if SCREENSHOTS names a folder.
func (b *browser) screenshot(name string) {
	b.t.Helper()
	folder := os.Getenv("SCREENSHOTS")
	if folder == "" {
		return
	}
	picture, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err == nil {
		picture, err = smaller(picture)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, name), picture, 0o644)
	}
	if err != nil {
		b.t.Error(err)
	}
}

// smaller returns a picture with its 256 most frequent colors, which is half as large.
func smaller(picture []byte) ([]byte, error) {
	original, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		return nil, err
	}
	counts, bounds := map[color.Color]int{}, original.Bounds()
	for y := range bounds.Dy() {
		for x := range bounds.Dx() {
			counts[original.At(x, y)]++
		}
	}
	palette := slices.SortedFunc(maps.Keys(counts), func(a, b color.Color) int { return counts[b] - counts[a] })
	paletted := image.NewPaletted(bounds, palette[:min(256, len(palette))])
	draw.Draw(paletted, bounds, original, bounds.Min, draw.Src)
	var out bytes.Buffer
	err = (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, paletted)
	return out.Bytes(), err
}
