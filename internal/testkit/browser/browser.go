// Package browser is a tab of a real headless Chromium for tests of pages: it opens an address, asks the page by JavaScript, presses keys and
// buttons, and keeps what the page complained about. Its tests belong to make test-browser, which installs Chromium and sets RLHOST_BROWSER:
// without that they are skipped.
package browser

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// patience bounds each step of a tab, and how long Until waits. It is no bound on how fast a page is.
const patience = time.Minute

// Step is something that a tab does: one of chromedp's actions that have no result.
type Step = chromedp.Action[chromedp.Void]

// Tab is one tab of a browser of its own. Its methods end the test where the browser does not do as it is told.
type Tab struct {
	t   testing.TB
	ctx context.Context

	mu     sync.Mutex
	faults []string
}

// Open starts a browser whose window has a size in CSS pixels, and closes it with the test. Below 600 it is a phone's. The test is skipped
// where RLHOST_BROWSER is not set.
func Open(t testing.TB, width, height int) *Tab {
	t.Helper()
	if os.Getenv("RLHOST_BROWSER") == "" {
		t.Skip("it needs a browser: make test-browser")
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WindowSize(width, height), chromedp.UserDataDir(t.TempDir()))
	allocated, end := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(end)
	ctx, closed := chromedp.NewContext(allocated)
	t.Cleanup(closed)
	t.Cleanup(func() { _ = chromedp.Cancel(ctx) }) // it has ended before its folder is removed
	tab := &Tab{t: t, ctx: ctx}
	if err := chromedp.Listen(ctx, tab.heard); err != nil {
		t.Fatalf("the browser: %v", err)
	}
	var size []chromedp.EmulateViewportOption
	if width < 600 {
		size = append(size, chromedp.EmulateMobile, chromedp.EmulateTouch)
	}
	tab.Do(chromedp.EmulateViewport(int64(width), int64(height), size...))
	return tab
}

// heard keeps what a page complains about: uncaught exceptions, console.error, and what the browser itself logs as an error.
func (tab *Tab) heard(event any) {
	var fault string
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		fault = e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			fault += " " + e.ExceptionDetails.Exception.Description
		}
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeAssert {
			words := make([]string, len(e.Args))
			for i, arg := range e.Args {
				words[i] = string(arg.Value) + arg.Description
			}
			fault = strings.Join(words, " ")
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError {
			fault = e.Entry.Text + " " + e.Entry.URL
		}
	}
	if fault != "" {
		tab.mu.Lock()
		defer tab.mu.Unlock()
		tab.faults = append(tab.faults, fault)
	}
}

// Faults returns what the pages of this tab have complained about since it was asked last.
func (tab *Tab) Faults() []string {
	tab.mu.Lock()
	defer tab.mu.Unlock()
	faults := tab.faults
	tab.faults = nil
	return faults
}

// Do takes steps, one after the other.
func (tab *Tab) Do(steps ...Step) {
	tab.t.Helper()
	ctx, end := context.WithTimeout(tab.ctx, patience)
	defer end()
	if err := chromedp.Do(ctx, steps...); err != nil {
		tab.t.Fatalf("the browser: %v", err)
	}
}

// Load opens an address and waits for its load event.
func (tab *Tab) Load(url string) {
	tab.t.Helper()
	tab.Do(chromedp.Navigate(url))
}

// Ask evaluates JavaScript in the page of a tab, awaits it where it is a promise, and returns the result.
func Ask[T any](tab *Tab, expression string) T {
	tab.t.Helper()
	ctx, end := context.WithTimeout(tab.ctx, patience)
	defer end()
	result, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		tab.t.Fatalf("the browser: %s: %v", expression, err)
	}
	return result
}

// Text returns what JavaScript evaluates to, as a string.
func (tab *Tab) Text(expression string) string {
	tab.t.Helper()
	return Ask[string](tab, fmt.Sprintf("Promise.resolve(%s).then(String)", expression))
}

// Until waits until JavaScript evaluates to something true; while one page replaces another it may throw. If it never does, the test fails with
// the text of the page.
func (tab *Tab) Until(what, expression string) {
	tab.t.Helper()
	ctx, end := context.WithTimeout(tab.ctx, patience)
	defer end()
	for {
		is, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("Boolean("+expression+")"))
		switch {
		case is:
			return
		case ctx.Err() != nil:
			tab.t.Fatalf("not within %v: %s: %v\n%s", patience, what, err, tab.Text("document.body.innerText"))
		}
		tab.Do(chromedp.Sleep(10 * time.Millisecond))
	}
}

// Click presses the first element that a selector of CSS finds, once it can be seen.
func (tab *Tab) Click(selector string) {
	tab.t.Helper()
	tab.Do(chromedp.Click(chromedp.CSS(selector)))
}

// Press presses keys, one after the other.
func (tab *Tab) Press(keys string) {
	tab.t.Helper()
	tab.Do(chromedp.KeyEvent(keys))
}

// WithoutScripts turns JavaScript off in all pages that are loaded from now on.
func (tab *Tab) WithoutScripts() {
	tab.t.Helper()
	tab.Do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		return err
	}))
}

// Prefers sets a media feature, such as prefers-color-scheme to dark.
func (tab *Tab) Prefers(feature, value string) {
	tab.t.Helper()
	tab.Do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: feature, Value: value}}}
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, media)
		return err
	}))
}

// BeforeEach runs JavaScript in every page that is loaded from now on, before its own.
func (tab *Tab) BeforeEach(script string) {
	tab.t.Helper()
	tab.Do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: script})
		return err
	}))
}

// Picture writes all of the page to a file of the format PNG, for the eye of an author.
func (tab *Tab) Picture(file string) {
	tab.t.Helper()
	ctx, end := context.WithTimeout(tab.ctx, patience)
	defer end()
	png, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.WriteFile(file, png, 0o644)
	}
	if err != nil {
		tab.t.Fatalf("the browser: %v", err)
	}
}
