// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
)

// kubectlOf runs kubectl with a manifest as the field manager of a controller.
func kubectlOf(t *testing.T, ns, manager, manifest string, args ...string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "object.yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	shared.Kubectl(t, append([]string{"-n", ns, "-f", file, "--field-manager=" + manager}, args...)...)
}

// TestUpgradeWritesNothing starts the example with quotas and statuses that earlier versions have
// written, by an update or by server-side apply. They are written only once they differ.
func TestUpgradeWritesNothing(t *testing.T) {
	install(t)
	for name, args := range map[string][]string{
		"update": {"create", "--save-config=false"},
		"apply":  {"apply", "--server-side"},
	} {
		t.Run(name, func(t *testing.T) {
			ns := clustertest.NewNamespace(t, shared.Kube())
			configMap(t, ns, "a", "3")
			owner, err := shared.Kube().CoreV1().ConfigMaps(ns).Get(t.Context(), "a", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			kubectlOf(t, ns, "quota-controller", fmt.Sprintf(`{apiVersion: v1, kind: ResourceQuota,
				metadata: {name: a, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: a, uid: %s, controller: true, blockOwnerDeletion: true}]},
				spec: {hard: {pods: "3"}}}`, owner.UID), args...)
			greeting := `{apiVersion: example.com/v1, kind: Greeting, metadata: {name: a}, spec: {name: %s}}`
			kubectlOf(t, ns, "somebody", fmt.Sprintf(greeting, "you"), "create")
			status := []string{"-n", ns, "patch", "greeting", "a", "--subresource=status", "--type=merge", "--field-manager=greeting-controller",
				"-p", `{"status":{"message":"Hello, you!"}}`}
			if name == "update" {
				shared.Kubectl(t, status...)
			} else {
				kubectlOf(t, ns, "greeting-controller",
					`{apiVersion: example.com/v1, kind: Greeting, metadata: {name: a}, status: {message: "Hello, you!"}}`,
					"apply", "--server-side", "--subresource=status")
			}
			managers := []string{"-n", ns, "get", "quota,greeting", "--show-managed-fields", "-o",
				`jsonpath={range .items[*].metadata.managedFields[*]}{.manager} {.operation}{"\n"}{end}`}
			before := shared.Kubectl(t, managers...)

			start(t, ns, "--concurrent-quota-syncs=1", "--concurrent-greeting-syncs=1")
			waitLast(t, ns)
			wantWrites(t, ns, "quota-controller", map[string]int{"create resourcequotas last: 201": 1})
			wantWrites(t, ns, "greeting-controller", map[string]int{"patch greetings/status last: 200": 1})

			configMap(t, ns, "a", "4")
			waitQuota(t, ns, "a", "4")
			shared.Kubectl(t, "-n", ns, "patch", "greeting", "a", "--type=merge", "-p", `{"spec":{"name":"all"}}`)
			shared.Kubectl(t, "-n", ns, "wait", "greeting/a", "--for=jsonpath={.status.message}=Hello, all!")
			wantWrites(t, ns, "quota-controller", map[string]int{"create resourcequotas last: 201": 1, "patch resourcequotas a: 200": 1})
			wantWrites(t, ns, "greeting-controller", map[string]int{"patch greetings/status last: 200": 1, "patch greetings/status a: 200": 1})
			t.Logf("field managers before:\n%s\nand after:\n%s", before, shared.Kubectl(t, managers...))
		})
	}
}

// waitLast creates objects that are reconciled after those that exist, and waits until they are.
func waitLast(t *testing.T, ns string) {
	t.Helper()
	configMap(t, ns, "last", "1")
	waitQuota(t, ns, "last", "1")
	kubectlOf(t, ns, "somebody", `{apiVersion: example.com/v1, kind: Greeting, metadata: {name: last}, spec: {name: me}}`, "create")
	shared.Kubectl(t, "-n", ns, "wait", "greeting/last", "--for=jsonpath={.status.message}=Hello, me!")
}
