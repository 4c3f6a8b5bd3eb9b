// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"testing"

	"samplecontroller.io/sample-controller-manager/hack/cluster"
)

// TestWhatIsBrokenIsFound breaks what is built of the manifests, a little each time.
func TestWhatIsBrokenIsFound(t *testing.T) {
	root, err := cluster.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	paths, err := cluster.Binaries(t.Context(), nil, "kubectl")
	if err != nil {
		t.Fatal(err)
	}
	kubectl := func(k kustomization) string {
		t.Helper()
		b, err := k.build(t.Context(), paths["kubectl"], root)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	whole := kubectl(kustomization{content: []byte("resources: [manifests/base]\ncomponents: [manifests/components/high-availability, manifests/components/network-policy]")})
	base := kubectl(kustomization{name: basePath})

	check := func(t *testing.T, text string) (problems []string, err error) {
		t.Helper()
		objects, err := decode(text)
		if err != nil {
			return nil, err
		}
		of, err := decode(base)
		if err != nil {
			t.Fatal(err)
		}
		return objects.check(of), nil
	}
	if problems, err := check(t, whole); err != nil || len(problems) > 0 {
		t.Fatalf("before anything is broken: %v, %q", err, problems)
	}
	for name, tc := range map[string]struct{ old, new, want string }{
		"an unknown field":        {"  replicas: 3", "  replicas: 3\n  replica: 3", `unknown field "spec.replica"`},
		"a field given twice":     {"  replicas: 3", "  replicas: 3\n  replicas: 3", `"replicas" already set`},
		"no label":                {"kind: Service\nmetadata:\n  labels:\n    app.kubernetes.io/name: ", "kind: Service\nmetadata:\n  labels:\n    name: ", "lacks the label"},
		"no namespace":            {"  namespace: sample-controller-manager\nspec:\n  clusterIP", "spec:\n  clusterIP", `is in namespace ""`},
		"any verb":                {"  - deployments\n  verbs:\n  - create", "  - deployments\n  verbs:\n  - '*'", "grants the verb *"},
		"secrets":                 {"  - foos/status\n  verbs", "  - secrets\n  verbs", "grants the resource secrets"},
		"any account's token":     {"  resourceNames:\n  - sample-controller-manager-status-reader\n", "", "grants the resource serviceaccounts/token"},
		"all groups":              {"  - samplecontroller.k8s.io\n", "  - '*'\n", "grants all API groups"},
		"another's role":          {"  name: system:auth-delegator", "  name: cluster-admin", "binds ClusterRole cluster-admin, which is not"},
		"no standby in an update": {"maxUnavailable: 0", "maxUnavailable: 1", "an update stops replicas"},
		"an unknown kind":         {"kind: PodDisruptionBudget", "kind: PodDisruption", `no kind "PodDisruption"`},
		"no limit":                {"          limits:\n            memory: 512Mi\n", "", "lacks requests, or a limit"},
		"a soft limit beyond":     {"460MiB", "600MiB", "GOMEMLIMIT is 600 MiB"},
		"another port":            {"port: 10261\n      protocol", "port: 443\n      protocol", "may be reached on [TCP 443]"},
		"any port":                {"  - ports:\n    - port: 443\n", "  - {}\n  - ports:\n    - port: 443\n", "may reach [all"},
	} {
		t.Run(name, func(t *testing.T) {
			broken := strings.ReplaceAll(whole, tc.old, tc.new)
			if broken == whole {
				t.Fatalf("there is no %q to break", tc.old)
			}
			problems, err := check(t, broken)
			if said := fmt.Sprint(err, problems); !strings.Contains(said, tc.want) {
				t.Errorf("found is %s\nwant %q", said, tc.want)
			}
		})
	}
}
