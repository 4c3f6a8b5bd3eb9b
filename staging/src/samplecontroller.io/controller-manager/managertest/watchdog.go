// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package managertest

import (
	"net/http"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// patience is how long a test may hang, in real time.
const patience = 20 * time.Second

// watchdog notices a test whose bubble hangs, because a goroutine waits for something outside of
// the bubble. It runs outside of the bubble, where time is real.
type watchdog struct {
	requests atomic.Int64 // A program that is not stuck sends some all the time, at least for its Lease.
	stopped  chan struct{}
}

// newWatchdog starts a watchdog, which calls report once if the test hangs for this long.
func newWatchdog(patience time.Duration, report func(why string)) *watchdog {
	w := &watchdog{stopped: make(chan struct{})}
	go w.run(patience, report)
	return w
}

func (w *watchdog) stop() { close(w.stopped) }

// watch returns a transport whose requests are signs of life.
func (w *watchdog) watch(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		w.requests.Add(1)
		return next.RoundTrip(r)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (w *watchdog) run(patience time.Duration, report func(string)) {
	const period = time.Second
	tick := time.NewTicker(period)
	defer tick.Stop()
	var last int64
	var silent time.Duration // counted in ticks, so that a suspended process does not age
	for {
		select {
		case <-tick.C:
		case <-w.stopped:
			return
		}
		if n := w.requests.Load(); n != last {
			last, silent = n, 0
			continue
		}
		if silent += period; silent < patience {
			continue
		}
		all := stacks()
		if waiting := outsideWaits(all); len(waiting) > 0 {
			report(describeHang(waiting, networkUses(all)))
			return
		}
	}
}

// describeHang returns a description with the stacks that wait, and the lines that use the network.
func describeHang(waiting, places []string) string {
	text := "the test hangs, because time stands still in its bubble while a goroutine waits for something " +
		"outside of it, such as a network connection: give the program an http.RoundTripper that needs no network, " +
		"as in the documentation of package managertest."
	if len(places) > 0 {
		text += " The network is used at:\n\n" + strings.Join(places, "\n")
	}
	return text + "\n\nThese goroutines wait:\n\n" + strings.Join(waiting, "\n\n")
}

// stacks returns the stacks of all goroutines.
func stacks() string {
	buffer := make([]byte, 16<<20)
	return string(buffer[:runtime.Stack(buffer, true)])
}

// inBubble matches the first line of the stack of a goroutine in a bubble, with its state.
var inBubble = regexp.MustCompile(`^goroutine \d+ \[([^],]*).*, synctest bubble \d+`)

// outsideWaits returns the stacks of goroutines in a bubble that wait for something outside of it.
// It returns none if a goroutine of the bubble works.
func outsideWaits(stacks string) (waiting []string) {
	for stack := range strings.SplitSeq(stacks, "\n\n") {
		match := inBubble.FindStringSubmatch(stack)
		switch {
		case match == nil || strings.HasSuffix(match[1], "(durable)"):
		case match[1] == "running" || match[1] == "runnable":
			return nil
		case match[1] != "synctest.Wait":
			waiting = append(waiting, stack)
		}
	}
	return waiting
}

var (
	// usesNetwork matches the stack of a goroutine that uses or opens a connection.
	usesNetwork = regexp.MustCompile(`\n(net\.|net/http\.\(\*(Transport|persistConn)\)\.)`)
	// foreignFunction matches functions of Go, whose packages have no domain, and of Kubernetes.
	foreignFunction = regexp.MustCompile(`^(created by )?([a-z0-9]+/|[a-z0-9]+\.[^/]*$|k8s\.io/|golang\.org/)`)
)

// networkUses returns the innermost line of each goroutine in a bubble that uses the network, outside of
// Go and Kubernetes.
func networkUses(stacks string) (places []string) {
	for stack := range strings.SplitSeq(stacks, "\n\n") {
		if !inBubble.MatchString(stack) || !usesNetwork.MatchString(stack) {
			continue
		}
		lines := strings.Split(stack, "\n")
		for i := 1; i+1 < len(lines); i += 2 { // a function, and its line in a file
			if strings.HasPrefix(lines[i], "main.") || !foreignFunction.MatchString(lines[i]) {
				place, _, _ := strings.Cut(strings.TrimSpace(lines[i+1]), " +0x")
				places = append(places, place)
				break
			}
		}
	}
	slices.Sort(places)
	return slices.Compact(places)
}
