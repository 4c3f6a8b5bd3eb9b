// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package caches

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// TestBrokenResourceDelaysNoOther starts the daemon while the API server fails every list
// of Icecreams.
func TestBrokenResourceDelaysNoOther(t *testing.T) {
	framework.OwnAPIServer(t)
	ns := framework.NewNamespace(t)
	admin := framework.TokenWith(t, framework.NewNamespace(t), framework.NewClusterRole(t, framework.Everything))
	repair := breakConversion(t, framework.Icecreams, ns)

	const reason = "conversion webhook for controller.nicoleh.io/v1beta1, Kind=Icecream failed"
	failing := fmt.Sprintf("sample_controller_manager_informer_failing{resource=%q}", framework.Icecreams.CRD())
	server := framework.StartUnready(t)
	framework.Foos.Create(t, ns, "served", 1)
	framework.Foos.WaitCondition(t, ns, "served", "Reconciling", "Progressing")
	server.WaitReadyz(http.StatusOK)
	for _, path := range []string{"/debug/controllers", "/readyz?verbose"} {
		clustertest.WaitUntil(t, path+" shows why Icecreams cannot be read", func(ctx context.Context) error {
			code, body, err := server.GetAs(ctx, admin, path)
			// once for the resource and once for its controller
			if err == nil && (code != http.StatusOK || strings.Count(body, reason) < 2) {
				err = fmt.Errorf("%d %s", code, body)
			}
			return err
		})
	}
	if got := server.Value(admin, failing); got != 1 {
		t.Errorf("%s = %v, want 1", failing, got)
	}
	reader := framework.TokenWith(t, framework.NewNamespace(t), "sample-controller-manager-status-reader")
	for _, path := range []string{"/healthz?verbose", "/healthz/" + framework.Icecreams.Controller} {
		if body := server.GetPage(path, reader, http.StatusInternalServerError); !strings.Contains(body, reason) {
			t.Errorf("%s has no reason for authorized callers: %s", path, body)
		}
		if body := server.GetPage(path, "", http.StatusInternalServerError); !strings.Contains(body, "reason withheld") ||
			strings.Contains(body, reason) || strings.Contains(body, "leader: ") || strings.Contains(body, "Degraded") {
			t.Errorf("%s for anonymous callers: %s", path, body)
		}
	}
	if failed := server.LogAbout("Reading failed", framework.Icecreams.CRD()); len(failed) == 0 {
		t.Error("the log does not report the failed reads of Icecreams")
	}

	repair()
	framework.Icecreams.WaitCondition(t, ns, "stored-before", "Reconciling", "Progressing")
	if got := server.Value(admin, failing); got != 0 {
		t.Errorf("%s = %v after the repair, want 0", failing, got)
	}
	server.GetPage("/healthz/"+framework.Icecreams.Controller, admin, http.StatusOK)
}

// breakConversion stores an object in another version of the kind, which only a missing
// webhook can convert, until repair is called.
func breakConversion(t *testing.T, k framework.Kind, ns string) (repair func()) {
	t.Helper()
	framework.Kubectl(t, "patch", "crd", k.CRD(), "--type=json", `--patch=[
		{"op":"copy","from":"/spec/versions/0","path":"/spec/versions/1"},
		{"op":"replace","path":"/spec/versions/1/name","value":"v1beta1"},
		{"op":"replace","path":"/spec/versions/0/storage","value":false},
		{"op":"replace","path":"/spec/conversion","value":{"strategy":"Webhook","webhook":{
			"conversionReviewVersions":["v1"],"clientConfig":{"url":"https://127.0.0.1:1/convert"}}}}]`)
	resource := k.GroupVersion().WithResource(k.Resource)
	resource.Version = "v1beta1"
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": resource.GroupVersion().String(), "kind": k.Kind, "metadata": map[string]any{"name": "stored-before"},
		"spec": map[string]any{"deploymentName": "stored-before", "replicas": int64(1)},
	}}
	clustertest.WaitUntil(t, "an object is stored in another version", func(ctx context.Context) error {
		_, err := framework.Dynamic().Resource(resource).Namespace(ns).Create(ctx, object, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			err = nil
		}
		return err
	})
	clustertest.WaitUntil(t, "the kind cannot be listed", func(ctx context.Context) error {
		for _, version := range []string{"", "0"} { // from etcd, and from the cache of the API server
			list, err := k.In(metav1.NamespaceAll).List(ctx, metav1.ListOptions{ResourceVersion: version})
			if err == nil || !strings.Contains(err.Error(), "conversion webhook") {
				return fmt.Errorf("listing it at version %q: %v, %w", version, list, err)
			}
		}
		return nil
	})
	return func() {
		t.Helper()
		framework.Kubectl(t, "patch", "crd", k.CRD(), "--type=merge", `--patch={"spec":{"conversion":{"strategy":"None","webhook":null}}}`)
	}
}
