// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package statusaggregator

import (
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/controller-manager/controller"
)

func TestNextWriteIsExplained(t *testing.T) {
	inBubble(t, func(b *bubble) {
		expect := func(next, wanted, actual string) {
			b.Helper()
			synctest.Wait()
			e, err := b.controller.Explain(cache.NewObjectName("default", "example"))
			if err != nil {
				b.Fatal(err)
			}
			kind := b.owner.Kind
			want := controller.Explanation{
				Found: true,
				Facts: []controller.Fact{controller.NewFact("Pod summary of the "+kind, wanted, actual)},
				Next:  kind + ": " + next,
			}
			if diff := cmp.Diff(want, e); diff != "" {
				b.Errorf("explanation (-want +got):\n%s", diff)
			}
		}
		b.set(b.pod("a", true))
		b.start()
		b.wantWrites(write{0, "1/1 ready on node-1", ""})
		expect("nothing: its status has the summary of its Pods", "1/1 ready on node-1", "1/1 ready on node-1")
		after(200 * ms)
		b.set(b.pod("a", false))
		expect("write its status in 800ms; it was written just now", "0/1 ready on node-1", "1/1 ready on node-1")
		after(800 * ms)
		b.wantWrites(write{1000 * ms, "0/1 ready on node-1", ""})
		expect("nothing: its status has the summary of its Pods", "0/1 ready on node-1", "0/1 ready on node-1")

		after(interval)
		b.objects.setLate(true)
		b.set(b.pod("a", true))
		b.wantWrites(write{2000 * ms, "1/1 ready on node-1", ""})
		expect("nothing until the cache contains the last write, or 30s have passed; then write its status", "1/1 ready on node-1", "0/1 ready on node-1")

		e, err := b.controller.Explain(cache.NewObjectName("default", "unknown"))
		if err != nil || e.Found || e.Next != `nothing: the cache has no object "unknown" in namespace "default"` {
			b.Errorf("unknown object: %+v, %v", e, err)
		}
	})
}
