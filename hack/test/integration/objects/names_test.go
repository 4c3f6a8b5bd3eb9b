// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// TestNamesOfAnyLength creates objects with names that do and do not fit into the label value that their
// Deployment selects its Pods by.
func TestNamesOfAnyLength(t *testing.T) {
	ns := framework.NewNamespace(t)
	framework.StartDaemon(t)
	names := []string{strings.Repeat("b", 63), strings.Repeat("b", 64), strings.Repeat("b", 253)}
	for _, name := range names {
		framework.Foos.Create(t, ns, name, 1)
	}
	for _, name := range names {
		framework.Foos.WaitCondition(t, ns, name, "Reconciling", "Progressing")
		framework.BeReady(t, ns, name)
		framework.Foos.WaitCondition(t, ns, name, "Ready", "Available")
	}
	wantEvents(t, framework.Foos, ns, "Normal Synced", "Normal Synced", "Normal Synced")
}

// TestInvalidObjectIsRejectedWithHelp makes each invalid change to a valid object, and creates one without a spec.
func TestInvalidObjectIsRejectedWithHelp(t *testing.T) {
	framework.EachKind(t, func(t *testing.T, k framework.Kind) {
		ns := framework.NewNamespace(t)
		k.Create(t, ns, "a", 1)
		const imageHelp = `must be an image reference without white space or characters outside ASCII, for example "nginx:1.29"`
		nameHelp := `must be a valid Deployment name, for example "example-` + k.Singular + `": lower case letters, digits, '-' and '.', with a letter or digit first and last, at most 253 characters`
		for name, test := range map[string]struct {
			change, field, want string
		}{
			"empty deploymentName":          {`{"deploymentName":""}`, "spec.deploymentName", "should be at least 1 chars long"},
			"no deploymentName":             {`{"deploymentName":null}`, "spec.deploymentName", "Required value"},
			"capitals":                      {`{"deploymentName":"Web"}`, "spec.deploymentName", nameHelp},
			"a dash at the end":             {`{"deploymentName":"web-"}`, "spec.deploymentName", nameHelp},
			"254 characters":                {`{"deploymentName":"` + strings.Repeat("x", 254) + `"}`, "spec.deploymentName", "may not be more than 253"},
			"negative replicas":             {`{"replicas":-1}`, "spec.replicas", "should be greater than or equal to 0"},
			"too many replicas":             {`{"replicas":1000000001}`, "spec.replicas", "should be less than or equal to 1000000000"},
			"replicas beyond numbers":       {`{"replicas":2147483648}`, "spec.replicas", ""},
			"empty image":                   {`{"image":""}`, "spec.image", "should be at least 1 chars long"},
			"image with white space":        {`{"image":"nginx latest"}`, "spec.image", imageHelp},
			"image with a no-break space":   {`{"image":"nginx:1.29\u00a0"}`, "spec.image", imageHelp},
			"image with a zero-width space": {`{"image":"nginx\u200b:1.29"}`, "spec.image", imageHelp},
			"image with a full-width colon": {`{"image":"nginx\uff1a1.29"}`, "spec.image", imageHelp},
			"image with a vertical tab":     {`{"image":"nginx\u000b"}`, "spec.image", imageHelp},
			"image with a line feed":        {`{"image":"nginx\n"}`, "spec.image", imageHelp},
		} {
			for _, subresource := range [][]string{nil, {"scale"}} {
				if subresource != nil && test.field != "spec.replicas" {
					continue
				}
				_, err := k.In(ns).Patch(t.Context(), "a", types.MergePatchType, []byte(`{"spec":`+test.change+`}`),
					metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}, subresource...)
				if err == nil || !strings.Contains(err.Error(), test.field) || !strings.Contains(err.Error(), test.want) {
					t.Errorf("%s, subresource %q: %v, want %s: %s", name, subresource, err, test.field, test.want)
				}
			}
		}
		object := k.New("b", 1)
		object.Spec = samplev1alpha1.FooSpec{}
		if _, err := k.TryStore(t.Context(), ns, object); err == nil || !strings.Contains(err.Error(), "spec: Required value") {
			t.Errorf("no spec: %v, want it required", err)
		}
	})
}

// TestScaleNeedsReplicas shows what a HorizontalPodAutoscaler that targets a Foo needs.
func TestScaleNeedsReplicas(t *testing.T) {
	framework.EachKind(t, func(t *testing.T, k framework.Kind) {
		ns := framework.NewNamespace(t)
		object := k.New("a", 1)
		object.Spec.Replicas = nil
		k.Store(t, ns, object)
		scale := func() error {
			_, err := k.In(ns).Get(t.Context(), "a", metav1.GetOptions{}, "scale")
			return err
		}
		if err := scale(); err == nil || !strings.Contains(err.Error(), "the spec replicas field \".spec.replicas\" does not exist") {
			t.Errorf("error = %v, want one about spec.replicas", err)
		}
		framework.Kubectl(t, "-n", ns, "scale", k.Singular, "a", "--replicas=2") // sets it
		if err := scale(); err != nil {
			t.Error(err)
		}
	})
}
