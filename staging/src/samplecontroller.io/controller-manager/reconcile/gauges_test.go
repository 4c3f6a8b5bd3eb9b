// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics/legacyregistry"
	_ "k8s.io/component-base/metrics/prometheus/workqueue"
)

// gauge returns the value of a gauge of a queue.
func gauge(t *testing.T, name, queue string) float64 {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, series := range family.GetMetric() {
			if family.GetName() == name && series.GetLabel()[0].GetValue() == queue {
				return series.GetGauge().GetValue()
			}
		}
	}
	t.Fatalf("no gauge %s of the queue %s", name, queue)
	return 0
}

func TestGaugesOfQueueEndWithTheTerm(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		b.server.Add(configMap("foo"))
		b.server.Add(configMap("bar"))
		b.start(b.informer)
		const queue = "gauges"
		l := New(loopName, func(context.Context, cache.ObjectName) (time.Duration, error) {
			time.Sleep(time.Minute)
			return 0, nil
		}, WithQueue(queue))
		WatchSelf(l, b.informer)
		for range 2 {
			stop := b.run(l, 1)
			time.Sleep(30 * time.Second)
			synctest.Wait()
			for name, want := range map[string]float64{"longest_running_processor_seconds": 30, "unfinished_work_seconds": 30, "depth": 1} {
				if got := gauge(t, "workqueue_"+name, queue); got < want-0.5 || got > want {
					t.Errorf("%s is %v after 30 s, want %v", name, got, want)
				}
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
			synctest.Wait()
			for _, name := range []string{"longest_running_processor_seconds", "unfinished_work_seconds", "depth"} {
				if got := gauge(t, "workqueue_"+name, queue); got != 0 {
					t.Errorf("%s is %v after the term, want 0", name, got)
				}
			}
		}
	})
}
