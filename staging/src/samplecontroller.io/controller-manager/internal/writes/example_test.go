// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package writes_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"samplecontroller.io/controller-manager/internal/writes"
	"samplecontroller.io/controller-manager/reconcile"
)

// A sync can report what it wrote.
func Example() {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	config := &rest.Config{Host: server.URL}

	config.Wrap(writes.New("foo-controller", nil).Wrap)
	client, err := corev1client.NewForConfig(config)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, written := reconcile.WithRecorder(context.Background()) // as a loop does for each sync
	_ = client.ConfigMaps("default").Delete(ctx, "settings", metav1.DeleteOptions{})
	for _, write := range written() {
		fmt.Println(write)
	}
	// Output: delete configmaps: failed
}
