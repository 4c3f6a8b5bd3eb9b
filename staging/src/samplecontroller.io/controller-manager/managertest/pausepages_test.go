// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package managertest

import (
	"strings"
	"testing"

	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/controller-manager/controller"
)

// TestExplanationOfPause explains a paused object, with what differs.
func TestExplanationOfPause(t *testing.T) {
	p := failureProgram(func(b *controller.Builder[*Widget]) {
		b.Explain(func(r *controller.Request[*Widget]) controller.Explanation {
			return controller.Explanation{Facts: []controller.Fact{{Name: "image", Differs: true}}, Next: "write it"}
		})
	})
	runPaused(t, p, func(t *testing.T, e *Env) {
		explain := func() controller.Explanation {
			explanation, err := e.controllers[0].(controller.Explainer).Explain(cache.NewObjectName("ns", "a"))
			if err != nil || len(explanation.Facts) != 1 {
				t.Errorf("%v, %v", explanation, err)
			}
			return explanation
		}
		annotate(e, "2030-01-01T00:00:00Z")
		e.Settle()
		const want = "nothing: paused by the annotation " + paused + " of this Widget until 2030-01-01T00:00:00Z; to resume: kubectl "
		if got := explain().Next; !strings.HasPrefix(got, want) {
			t.Errorf("next: %q, want %q", got, want)
		}
		annotate(e, "-")
		e.Settle()
		if got := explain().Next; got != "write it" {
			t.Errorf("next: %q", got)
		}
	})
}
