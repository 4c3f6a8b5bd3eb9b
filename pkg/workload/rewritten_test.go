// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
)

// TestRewrittenFieldsAreRetriedSlowly makes admission rewrite images to a mirror and limit
// Deployments to five replicas.
func TestRewrittenFieldsAreRetriedSlowly(t *testing.T) {
	pinned := func(d *appsv1.Deployment) { withImage("mirror.local/nginx:1.29")(d) }
	bounded := withReplicas(ptr.To[int32](5))
	for name, test := range map[string]struct {
		owner   Owner
		cached  *appsv1.Deployment
		rewrite func(*appsv1.Deployment)
		message string
	}{
		"image":               {owner(wantImage("nginx:1.29")), deployment(), pinned, `spec.image of Foo "a" is "nginx:1.29", and admission changed it to "mirror.local/nginx:1.29" in Deployment "web": `},
		"replicas":            {owner(), deployment(withReplicas(ptr.To[int32](9))), bounded, `spec.replicas of Foo "a" is "3", and admission changed it to "5" in Deployment "web": `},
		"of a new Deployment": {owner(wantImage("nginx:1.29")), nil, pinned, `spec.image of Foo "a" is "nginx:1.29", and admission changed it to "mirror.local/nginx:1.29" in Deployment "web": `},
	} {
		t.Run(name, func(t *testing.T) {
			clock := testingclock.NewFakeClock(time.Now())
			reconciler, client := newTestReconciler(t, list(test.cached), list(test.cached))
			reconciler.clock = clock
			writes := 0
			client.PrependReactor("*", "deployments", func(action clienttesting.Action) (bool, runtime.Object, error) {
				after := deployment(test.rewrite)
				switch {
				case action.GetVerb() == "list":
					return false, nil, nil
				default:
					writes++
					return true, after, reconciler.deployments.Update(after)
				}
			})
			keep := func(p Owner, wantWrites int) {
				t.Helper()
				writes = 0
				state, err := reconciler.Reconcile(t.Context(), p)
				if err != nil || writes != wantWrites {
					t.Fatalf("%d writes, %v, want %d", writes, err, wantWrites)
				}
				if o := state.Blocker; o == nil || o.Reason != "RewrittenByAdmission" || !strings.HasPrefix(o.Message, test.message) || state.Again <= 0 {
					t.Fatalf("blocker = %+v, again after %v, want RewrittenByAdmission with %q", o, state.Again, test.message)
				}
			}
			keep(test.owner, 1)
			for range 28 {
				clock.Step(10 * time.Second)
				keep(test.owner, 0)
			}

			// Another value of the field is corrected, and the same one after a while.
			if err := reconciler.deployments.Update(deployment(withImage("httpd"), withReplicas(ptr.To[int32](9)))); err != nil {
				t.Fatal(err)
			}
			keep(test.owner, 1)
			keep(test.owner, 0)
			clock.Step(rewriteRetry)
			keep(test.owner, 1)

			// So is a new value in the spec.
			test.owner.Object = &metav1.ObjectMeta{Name: "a", Namespace: "default", UID: "uid-a", Generation: 5}
			keep(test.owner, 1)
			keep(test.owner, 0)

			// Nothing is reported once the field is as declared.
			if err := reconciler.deployments.Update(deployment(withImage("nginx:1.29"))); err != nil {
				t.Fatal(err)
			}
			if state, err := reconciler.Reconcile(t.Context(), test.owner); err != nil || state.Blocker != nil || state.Again != 0 {
				t.Errorf("Reconcile() = %+v, %v, want no blocker", state, err)
			}
		})
	}
}
