// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"os"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"samplecontroller.io/sample-controller-manager/hack/cluster"
)

// TestHoldingProxy holds one write in the proxy, whose client gives up, and one in a link
// behind it. The API server gets both when they are released, and the proxy knows when they
// were sent.
func TestHoldingProxy(t *testing.T) {
	c, err := cluster.Start(t.Context(), cluster.Options{AuditLog: true, Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	link := StartLink(t, c)
	proxy := StartHoldingProxy(t, c, link)
	client := clientOf(t, c, proxy)
	patch := func(ctx context.Context, value string) error {
		_, err := client.CoreV1().ConfigMaps("default").Patch(ctx, "x", types.MergePatchType, []byte(`{"data":{"value":"`+value+`"}}`), metav1.PatchOptions{})
		return err
	}
	// late checks that this write arrived long after it was sent.
	late := func(what string, hold *Hold) {
		t.Helper()
		<-hold.Arrived()
		events, err := c.AuditEvents(func(event auditv1.Event) bool {
			return cluster.Call(event) == "patch configmaps" && event.ResponseStatus.Code == http.StatusOK && event.AuditID == hold.AuditID()
		})
		if err != nil || len(events) == 0 {
			t.Fatalf("%s: the audit log does not have the write: %v", what, err)
		}
		last := events[len(events)-1]
		if sent, ok := proxy.Sent(last); !ok || last.RequestReceivedTimestamp.Sub(sent) < silence {
			t.Errorf("%s: sent at %s (%v), received at %s, want later", what, sent, ok, last.RequestReceivedTimestamp)
		}
	}

	if err := patch(t.Context(), "passed on"); err != nil {
		t.Fatal(err)
	}
	hold := proxy.Hold(patches("held by the proxy"))
	impatient, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	go func() {
		<-hold.Arrived()
		time.Sleep(silence)
		giveUp()
	}()
	if err := patch(impatient, "held by the proxy"); !errors.Is(err, context.Canceled) {
		t.Fatalf("held write: %v, want %v", err, context.Canceled)
	}
	if code, err := hold.Release(t.Context()); code != http.StatusOK || err != nil {
		t.Errorf("released: %d, %v", code, err)
	}
	late("held by the proxy", hold)

	link.Hold(Both)
	hold = proxy.Hold(patches("held by the link"))
	go func() {
		<-hold.Arrived()
		time.AfterFunc(silence, link.Release)
		_, _ = hold.Release(t.Context()) // patch returns the same answer
	}()
	if err := patch(t.Context(), "held by the link"); err != nil {
		t.Fatal(err)
	}
	late("held by the link", hold)
}

// patches matches patches with this content.
func patches(content string) func(*http.Request, []byte) bool {
	return func(r *http.Request, body []byte) bool {
		return r.Method == http.MethodPatch && bytes.Contains(body, []byte(content))
	}
}

// clientOf creates a ConfigMap, and returns a client that may write it through the proxy.
func clientOf(t *testing.T, c *cluster.Cluster, proxy *HoldingProxy) kubernetes.Interface {
	t.Helper()
	for _, args := range [][]string{
		{"create", "configmap", "x"},
		{"create", "serviceaccount", "writer"},
		{"create", "role", "writer", "--verb=patch", "--resource=configmaps"},
		{"create", "rolebinding", "writer", "--role=writer", "--serviceaccount=default:writer"},
	} {
		if _, err := c.Kubectl(t.Context(), args...); err != nil {
			t.Fatal(err)
		}
	}
	config, err := clientcmd.BuildConfigFromFlags("", proxy.Kubeconfig(t, "default", "writer"))
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}
