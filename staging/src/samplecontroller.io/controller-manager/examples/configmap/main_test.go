// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/controller-manager/informers"
)

var key = cache.NewObjectName("default", "settings")

// settings returns a ConfigMap of that label and data.
func settings(label, data string, annotations map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: key.Namespace, Name: key.Name, ResourceVersion: "7",
			Labels: map[string]string{"checksum": label}, Annotations: annotations,
		},
		Data: map[string]string{"data": data},
	}
}

// inBubble runs a test in a synctest bubble, with a controller whose cache holds
// the given objects. The test calls its sync function.
func inBubble(t *testing.T, objects []runtime.Object, test func(*testing.T, *checksums, *fake.Clientset)) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(objects...)
		handle := informers.NewHandle(informers.WithoutWatchList())
		configMaps := informers.Ask[*corev1.ConfigMap](handle, corev1.SchemeGroupVersion.WithResource("configmaps"), client.CoreV1().ConfigMaps(""))
		handle.Start(t.Context())
		defer handle.Shutdown()
		if !handle.WaitForSync(t.Context()) {
			t.Fatal("the informers have not synced")
		}
		synctest.Wait() // the watch follows the list
		client.ClearActions()
		test(t, &checksums{"checksum-controller", client.CoreV1(), corelisters.NewConfigMapLister(configMaps.GetIndexer())}, client)
	})
}

// writes returns the patches that were sent since the last call.
func writes(t *testing.T, client *fake.Clientset) []string {
	t.Helper()
	var patches []string
	for _, action := range client.Actions() {
		patch, ok := action.(clienttesting.PatchActionImpl)
		if !ok {
			t.Errorf("unexpected %s of %s", action.GetVerb(), action.GetResource().Resource)
			continue
		}
		if got := patch.PatchOptions.FieldManager; got != "checksum-controller" {
			t.Errorf("the field manager is %q, want checksum-controller", got)
		}
		patches = append(patches, string(patch.Patch))
	}
	client.ClearActions()
	return patches
}

func TestTheChecksumIsKeptAndWrittenOnce(t *testing.T) {
	inBubble(t, []runtime.Object{settings("wanted", "one", nil)}, func(t *testing.T, c *checksums, client *fake.Clientset) {
		expect := func(when string, want ...string) {
			t.Helper()
			if _, err := c.sync(t.Context(), key); err != nil {
				t.Errorf("sync %s: %v", when, err)
			}
			if diff := cmp.Diff(want, writes(t, client)); diff != "" {
				t.Errorf("writes %s (-want +got):\n%s", when, diff)
			}
			synctest.Wait() // until the cache has seen it
		}
		patch := func(data string) string {
			return `{"metadata":{"resourceVersion":"7","annotations":{"example.com/checksum":"` + checksum(map[string]string{"data": data}, map[string][]byte(nil)) + `"}}}`
		}
		expect("at first", patch("one"))
		expect("again")

		if _, err := client.CoreV1().ConfigMaps(key.Namespace).Update(t.Context(), settings("wanted", "two", map[string]string{annotation: "stale"}), metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		client.ClearActions()
		synctest.Wait()
		expect("after a change of the data", patch("two"))
		expect("again")
	})
}

func TestNothingIsWrittenThatIsNotWanted(t *testing.T) {
	tests := map[string][]runtime.Object{
		"deleted since":      nil,
		"without the label":  {settings("", "one", nil)},
		"another label":      {settings("unwanted", "one", nil)},
		"no longer labelled": {settings("", "one", map[string]string{annotation: "stale"})},
	}
	for name, objects := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, objects, func(t *testing.T, c *checksums, client *fake.Clientset) {
				if _, err := c.sync(t.Context(), key); err != nil {
					t.Errorf("sync: %v", err)
				}
				if got := writes(t, client); len(got) > 0 {
					t.Errorf("writes %q, want none", got)
				}
			})
		})
	}
}

func TestTheErrorOfAWriteIsReturned(t *testing.T) {
	inBubble(t, []runtime.Object{settings("wanted", "one", nil)}, func(t *testing.T, c *checksums, client *fake.Clientset) {
		conflict := apierrors.NewConflict(corev1.Resource("configmaps"), key.Name, errors.New("stale"))
		client.PrependReactor("patch", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, conflict })
		if _, err := c.sync(t.Context(), key); !apierrors.IsConflict(err) {
			t.Errorf("sync: %v, want the conflict, which the loop retries", err)
		}
	})
}

func TestChecksumsAreOfTheDataAlone(t *testing.T) {
	sum := checksum(map[string]string{"a": "1", "b": "2"}, map[string][]byte{"c": {3}})
	for range 100 {
		if got := checksum(map[string]string{"b": "2", "a": "1"}, map[string][]byte{"c": {3}}); got != sum {
			t.Fatal("the same data has another checksum")
		}
	}
	for name, other := range map[string]string{
		"another value":     checksum(map[string]string{"a": "1", "b": "3"}, map[string][]byte{"c": {3}}),
		"another key":       checksum(map[string]string{"a": "1", "c": "2"}, map[string][]byte{"c": {3}}),
		"other binary data": checksum(map[string]string{"a": "1", "b": "2"}, map[string][]byte{"c": {4}}),
		"no binary data":    checksum(map[string]string{"a": "1", "b": "2"}, nil),
	} {
		if other == sum {
			t.Errorf("%s has the same checksum", name)
		}
	}
}

// The README shows main.go in full, and promises that it is short.
func TestTheReadmeShowsThisProgram(t *testing.T) {
	program, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, shown, _ := strings.Cut(string(readme), "```go\n")
	shown, _, _ = strings.Cut(shown, "```\n")
	if diff := cmp.Diff(string(program), shown); diff != "" {
		t.Errorf("README.md does not show examples/configmap/main.go as it is: copy it (-main.go +README.md):\n%s", diff)
	}
	if lines := strings.Count(string(program), "\n"); lines >= 100 {
		t.Errorf("main.go has %d lines, README.md promises fewer than 100", lines)
	}
}
