// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
)

func TestRejectedCredentialsAreNamed(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "Unauthorized", http.StatusUnauthorized)
	}))
	defer server.Close()
	for _, contentType := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
		config := &restclient.Config{Host: server.URL, ContentConfig: restclient.ContentConfig{ContentType: contentType}}
		ExplainUnauthorized(config, "/etc/kubeconfig")
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		_, get := client.CoreV1().Pods("ns").Get(t.Context(), "a", metav1.GetOptions{})
		_, list := client.CoreV1().Pods("ns").List(t.Context(), metav1.ListOptions{})
		_, watch := client.CoreV1().Pods("ns").Watch(t.Context(), metav1.ListOptions{})
		_, account := client.CoreV1().Pods("ns").Get(withOwner(t.Context(), "ServiceAccount ns/a"), "a", metav1.GetOptions{})
		for _, err := range []error{get, list, watch} {
			if !apierrors.IsUnauthorized(err) || err.Error() != Rejected("this process, from /etc/kubeconfig") {
				t.Errorf("%s: error %q", contentType, err)
			}
		}
		if !apierrors.IsUnauthorized(account) || account.Error() != Rejected("ServiceAccount ns/a") {
			t.Errorf("%s: error with another owner %q", contentType, account)
		}
	}
}

func TestUnusableKubeconfig(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	garbage := filepath.Join(t.TempDir(), "garbage")
	if err := os.WriteFile(garbage, []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"":         "outside of a cluster, give the path of a kubeconfig; $KUBECONFIG is not read",
		garbage:    `garbage" is not a kubeconfig: want YAML or JSON with the kind Config`,
		"/nope":    "/nope: no such file",
		os.DevNull: `"/dev/null" has no cluster`,
	} {
		if _, err := Load("", path); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "struct") {
			t.Errorf("kubeconfig %q: error %v, want %q", path, err, want)
		}
	}
}
