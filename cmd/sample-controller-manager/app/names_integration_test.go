// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
)

// TestNamesOfAnyLength creates objects with names that do and do not fit into the label
// value that their Deployment selects its Pods by.
func TestNamesOfAnyLength(t *testing.T) {
	overKinds(t, func(t *testing.T, k kind) {
		ns := newNamespace(t)
		startDaemon(t)
		b := func(n int) string { return strings.Repeat("b", n) }
		names := map[string]string{ // with the label values
			"a":          "a",
			b(63):        b(63),
			b(64):        b(52) + "_a0fab1377f",
			b(63) + "c":  b(52) + "_4ac281b4c9",
			b(253):       b(52) + "_af5a4872cb",
			b(252) + "c": b(52) + "_6b329cb096",
		}
		for name := range names {
			k.Create(t, ns, name, 1)
		}
		for name, value := range names {
			k.waitCondition(t, ns, name, "Reconciling", "Progressing")
			d := getDeployment(t, ns, name)
			want := map[string]string{"app": k.App, "controller": value}
			if diff := cmp.Diff(want, d.Spec.Selector.MatchLabels); diff != "" {
				t.Errorf("selector of %s (-want +got):\n%s", name, diff)
			}
			if diff := cmp.Diff(want, d.Spec.Template.Labels); diff != "" {
				t.Errorf("labels of the Pods of %s (-want +got):\n%s", name, diff)
			}
			beReady(t, ns, name)
			foo := k.waitCondition(t, ns, name, "Ready", "Available")
			if want := "app=" + k.App + ",controller=" + value; foo.Status.Selector != want {
				t.Errorf("status.selector of %s is %q, want %q", name, foo.Status.Selector, want)
			}
			clustertest.WaitUntil(t, "the Event exists", func(ctx context.Context) error {
				events, err := shared.Kube().CoreV1().Events(ns).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.kind=" + k.Kind + ",involvedObject.name=" + name})
				if err == nil && (len(events.Items) != 1 || events.Items[0].Reason != "Synced") {
					err = fmt.Errorf("Events of %s: %v, want one Synced", name, events.Items)
				}
				return err
			})
		}
	})
}

// TestInvalidChangeIsRejectedWithHelp makes each invalid change to a valid object.
func TestInvalidChangeIsRejectedWithHelp(t *testing.T) {
	overKinds(t, func(t *testing.T, k kind) {
		ns := newNamespace(t)
		k.Create(t, ns, "a", 1)
		imageHelp := `must be an image reference without white space or characters outside ASCII, for example "nginx:1.29"`
		nameHelp := `must be a valid Deployment name, for example "example-` + k.Singular + `": lower case letters, digits, '-' and '.', with a letter or digit first and last, at most 253 characters`
		for name, test := range map[string]struct {
			patch string
			want  []string
			flags []string
		}{
			"empty deploymentName":          {`{"spec":{"deploymentName":""}}`, []string{"spec.deploymentName", "should be at least 1 chars long"}, nil},
			"no deploymentName":             {`{"spec":{"deploymentName":null}}`, []string{"spec.deploymentName: Required value"}, nil},
			"capitals":                      {`{"spec":{"deploymentName":"Web"}}`, []string{"spec.deploymentName", nameHelp}, nil},
			"a dash at the end":             {`{"spec":{"deploymentName":"web-"}}`, []string{"spec.deploymentName", nameHelp}, nil},
			"254 characters":                {`{"spec":{"deploymentName":"` + strings.Repeat("x", 254) + `"}}`, []string{"spec.deploymentName", "may not be more than 253"}, nil},
			"negative replicas":             {`{"spec":{"replicas":-1}}`, []string{"spec.replicas", "should be greater than or equal to 0"}, nil},
			"negative replicas, scale":      {`{"spec":{"replicas":-1}}`, []string{"spec.replicas", "should be greater than or equal to 0"}, []string{"--subresource=scale"}},
			"too many replicas":             {`{"spec":{"replicas":1000000001}}`, []string{"spec.replicas", "should be less than or equal to 1000000000"}, nil},
			"too many replicas, scale":      {`{"spec":{"replicas":1000000001}}`, []string{"spec.replicas", "should be less than or equal to 1000000000"}, []string{"--subresource=scale"}},
			"replicas beyond numbers":       {`{"spec":{"replicas":2147483648}}`, []string{"spec.replicas"}, nil},
			"empty image":                   {`{"spec":{"image":""}}`, []string{"spec.image", "should be at least 1 chars long"}, nil},
			"image with white space":        {`{"spec":{"image":"nginx latest"}}`, []string{"spec.image", imageHelp}, nil},
			"image with a no-break space":   {`{"spec":{"image":"nginx:1.29\u00a0"}}`, []string{"spec.image", imageHelp}, nil},
			"image with a zero-width space": {`{"spec":{"image":"nginx\u200b:1.29"}}`, []string{"spec.image", imageHelp}, nil},
			"image with a full-width colon": {`{"spec":{"image":"nginx\uff1a1.29"}}`, []string{"spec.image", imageHelp}, nil},
			"image with a vertical tab":     {`{"spec":{"image":"nginx\u000b"}}`, []string{"spec.image", imageHelp}, nil},
			"image with a line feed":        {`{"spec":{"image":"nginx\n"}}`, []string{"spec.image", imageHelp}, nil},
		} {
			t.Run(name, func(t *testing.T) {
				_, err := shared.Cluster().Kubectl(t.Context(), append(append([]string{"-n", ns, "patch", k.Singular, "a", "--type=merge", "-p", test.patch}, test.flags...), "--dry-run=server")...)
				if err == nil {
					t.Fatal("it was accepted")
				}
				for _, want := range test.want {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("the error does not say %q:\n%v", want, err)
					}
				}
			})
		}
	})
}
