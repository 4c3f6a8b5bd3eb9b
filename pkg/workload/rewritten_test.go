// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"
)

// TestRewrittenFieldsAreRetriedSlowly makes admission rewrite images to a mirror and limit
// Deployments to five replicas.
func TestRewrittenFieldsAreRetriedSlowly(t *testing.T) {
	pinned, bounded := withImage("mirror.local/nginx:1.29"), withReplicas(ptr.To[int32](5))
	const image = `spec.image of Foo "a" is "nginx:1.29", and admission changed it to "mirror.local/nginx:1.29" in Deployment "web": `
	for name, test := range map[string]struct {
		owner   Owner
		live    *appsv1.Deployment
		admit   func(*appsv1.Deployment)
		message string
	}{
		"image":               {owner(wantImage("nginx:1.29")), deployment(), pinned, image},
		"replicas":            {owner(), deployment(withReplicas(ptr.To[int32](9))), bounded, `spec.replicas of Foo "a" is "3", and admission changed it to "5" in Deployment "web": `},
		"of a new Deployment": {owner(wantImage("nginx:1.29")), nil, pinned, image},
	} {
		t.Run(name, func(t *testing.T) {
			w, rewritten := newWriter(), deployment(test.admit)
			w.admit = test.admit
			sync := func(o Owner, live *appsv1.Deployment, write bool) {
				t.Helper()
				state, wrote := w.sync(o, live)
				if o := state.Blocker; wrote.any() != write || o == nil || o.Reason != "RewrittenByAdmission" ||
					!strings.HasPrefix(o.Message, test.message) || state.Again <= 0 {
					t.Fatalf("wrote %v, want %v; blocker %+v, again after %v, want RewrittenByAdmission with %q", wrote, write, o, state.Again, test.message)
				}
			}
			sync(test.owner, test.live, true)
			for range 28 {
				w.Step(10 * time.Second)
				sync(test.owner, rewritten, false)
			}
			// Another value of the field is corrected, and the same one after a while.
			sync(test.owner, deployment(withImage("httpd"), withReplicas(ptr.To[int32](9))), true)
			sync(test.owner, rewritten, false)
			w.Step(rewriteRetry)
			sync(test.owner, rewritten, true)
			// So is a new generation of the owner.
			ofGeneration(5)(&test.owner)
			sync(test.owner, rewritten, true)
			sync(test.owner, rewritten, false)
			// Nothing is reported once the field is as declared.
			if state, wrote := w.sync(test.owner, deployment(withImage("nginx:1.29"))); wrote.any() || state.Blocker != nil ||
				state.Again != 0 {
				t.Errorf("%+v, wrote %v, want no blocker", state, wrote)
			}
		})
	}
}
