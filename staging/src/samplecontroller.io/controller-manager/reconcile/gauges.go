// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
)

// zeroGauges sets the gauges of the running syncs of a queue to 0 after all have ended. client-go
// does not update them after ShutDown, so that a process that no longer leads would show the
// last sync of its term until it leads again. A second queue of the same name has the same
// gauges, and updates them at a tick of its clock.
func zeroGauges(name string) {
	c := twoTicks{queue: make(chan *workqueue.Typed[string], 1)}
	c.queue <- workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[string]{Name: name, Clock: c})
}

// twoTicks is a clock that ticks until the queue has updated its gauges, and then ends the queue.
// A queue without metrics needs no ticker, and has nothing to end.
type twoTicks struct {
	clock.RealClock
	queue chan *workqueue.Typed[string]
}

// NewTicker implements clock.WithTicker.
func (c twoTicks) NewTicker(time.Duration) clock.Ticker {
	ticks := make(ticker)
	go func() {
		for range 2 { // the second tick is received after the first has been handled
			ticks <- time.Now()
		}
		(<-c.queue).ShutDown()
	}()
	return ticks
}

type ticker chan time.Time

// C implements clock.Ticker.
func (t ticker) C() <-chan time.Time { return t }

// Stop implements clock.Ticker.
func (t ticker) Stop() {}
