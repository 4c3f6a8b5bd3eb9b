// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
)

// TestContestedImageIsReported overwrites the image of a Deployment after each correction by the
// daemon.
func TestContestedImageIsReported(t *testing.T) {
	const declared, rivals, most = "nginx:1.29", "nginx:1.28", 6 // most: five without delay and one later
	all := sideBySide(t)
	startDaemon(t)
	for _, k := range all {
		object := k.New("a", 1)
		object.Spec.Image = declared
		k.Store(t, k.ns, object)
		k.waitCondition(t, k.ns, "a", "Reconciling", "Progressing")
	}
	image := func(ns string) string { return getDeployment(t, ns, "a").Spec.Template.Spec.Containers[0].Image }
	for _, k := range all {
		clustertest.WaitUntil(t, "the "+k.Kind+" reports a contested image", func(ctx context.Context) error {
			if image(k.ns) == declared {
				patch := fmt.Appendf(nil, `{"spec":{"template":{"spec":{"containers":[{"name":"nginx","image":%q}]}}}}`, rivals)
				if _, err := shared.Kube().AppsV1().Deployments(k.ns).Patch(ctx, "a", types.StrategicMergePatchType, patch, metav1.PatchOptions{FieldManager: "rival"}); err != nil {
					return err
				}
			}
			object, err := k.Get(ctx, k.ns, "a")
			if err != nil {
				return err
			}
			c := meta.FindStatusCondition(object.Status.Conditions, "Stalled")
			if c == nil || c.Reason != "ImageContested" || !strings.Contains(c.Message, `"rival"`) {
				return fmt.Errorf("conditions %+v", object.Status.Conditions)
			}
			return nil
		})
		if got := k.calls(t, k.ns)["patch deployments"]; got > most {
			t.Errorf("the image of the Deployment of a %s was corrected %d times, want at most %d times", k.Kind, got, most)
		}
	}
	for _, k := range all { // the rival has stopped
		clustertest.WaitUntil(t, "the image is as declared", func(context.Context) error {
			if got := image(k.ns); got != declared {
				return fmt.Errorf("got %q", got)
			}
			return nil
		})
		k.waitCondition(t, k.ns, "a", "Reconciling", "Progressing")
	}
}
