// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package statusaggregator

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/controller-manager/controller"
)

func TestNextWriteIsExplained(t *testing.T) {
	inBubble(t, func(b *bubble) {
		expect := func(next string, differs bool, wanted, actual string) {
			b.Helper()
			synctest.Wait()
			e, err := b.controller.Explain(cache.NewObjectName("default", "example"))
			if err != nil {
				b.Fatal(err)
			}
			want := controller.Explanation{
				Found: true,
				Facts: []controller.Fact{{Name: "Pod summary of the " + b.kind.Kind, Wanted: wanted, Actual: actual, Differs: differs}},
				Next:  b.kind.Kind + ": " + next,
			}
			if diff := cmp.Diff(want, e); diff != "" {
				b.Errorf("explanation (-want +got):\n%s", diff)
			}
		}
		expect("write its status if it still has no Pods after the grace period", true, "none", "")
		b.pod("a", true)
		expect("nothing: its status has the summary of its Pods", false, "1/1 ready on node-1", "1/1 ready on node-1")
		after(200 * ms)
		b.ready("a", false)
		expect("write its status in 800ms; it was written just now", true, "0/1 ready on node-1", "1/1 ready on node-1")
		after(800 * ms)
		expect("nothing: its status has the summary of its Pods", false, "0/1 ready on node-1", "0/1 ready on node-1")
		after(time.Minute)
		b.change(setImage("nginx:2"))
		expect("write generation 2 into its status", true, "0/1 ready on node-1", "0/1 ready on node-1")
		b.LoseLead()
		b.ready("a", true)
		expect("write its status", true, "1/1 ready on node-1", "0/1 ready on node-1")

		e, err := b.controller.Explain(cache.NewObjectName("default", "unknown"))
		if err != nil || e.Found || e.Next != "nothing: no cache has the object default/unknown" {
			b.Errorf("unknown object: %+v, %v", e, err)
		}
	})
}
