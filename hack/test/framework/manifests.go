// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
)

// Manifests returns the path of a directory in manifests.
func Manifests(t *testing.T, dir string) string {
	t.Helper()
	root, err := cluster.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(root, "manifests", dir)
}

// ApplyManifest applies the content of a manifest in a namespace.
func ApplyManifest(t *testing.T, ns, manifest string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "manifest.yaml")
	if err := os.WriteFile(path, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	Kubectl(t, "-n", ns, "apply", "-f", path)
}

// DeleteCRD deletes the CRD of a kind with its objects.
func DeleteCRD(t *testing.T, k Kind) {
	t.Helper()
	if err := clustertest.DeleteCRD(t.Context(), Cluster(), k.CRD()); err != nil {
		t.Fatal(err)
	}
}

// RestoreCRDs reinstalls our CRDs at the end of a test that changes them.
func RestoreCRDs(t *testing.T) {
	ExpectUnknownKinds()
	t.Cleanup(func() {
		if err := Cluster().Install(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
}

// ExpectUnknownKinds expects denials because admission does not know our kinds. They occur for
// some seconds after a CRD or the API server is restored, possibly after the test.
func ExpectUnknownKinds() {
	expect(func(event auditv1.Event) bool {
		return strings.Contains(event.ResponseStatus.Message, "cannot find RESTMapping")
	})
}
