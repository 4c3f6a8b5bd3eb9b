// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"testing"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
)

// builder returns functions that build a kustomization, and that check what a kustomization
// with a renaming has built.
func builder(t *testing.T) (kubectl func(kustomization) string,
	check func(text string, r renaming) (problems []string, err error)) {
	t.Helper()
	root, err := cluster.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	paths, err := cluster.Binaries(t.Context(), nil, "kubectl")
	if err != nil {
		t.Fatal(err)
	}
	kubectl = func(k kustomization) string {
		t.Helper()
		b, err := k.build(t.Context(), paths["kubectl"], root)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	base := kubectl(kustomization{name: basePath})
	return kubectl, func(text string, r renaming) (problems []string, err error) {
		objects, err := decode(text)
		if err != nil {
			return nil, err
		}
		of, err := decode(base)
		return objects.check(kustomization{renaming: r}, of), err
	}
}

// breakage replaces all of one text by another. The problem found must contain want.
type breakage struct{ old, new, want string }

func wantFound(t *testing.T, whole string, check func(text string) (problems []string, err error),
	breakages map[string]breakage) {
	t.Helper()
	if problems, err := check(whole); err != nil || len(problems) > 0 {
		t.Fatalf("unbroken manifests: %v, %q", err, problems)
	}
	for name, tc := range breakages {
		t.Run(name, func(t *testing.T) {
			broken := strings.ReplaceAll(whole, tc.old, tc.new)
			if broken == whole {
				t.Fatalf("no %q to break", tc.old)
			}
			problems, err := check(broken)
			if said := fmt.Sprint(err, problems); !strings.Contains(said, tc.want) {
				t.Errorf("got %s\nwant %q", said, tc.want)
			}
		})
	}
}

// TestBrokenManifestsAreFound breaks the built manifests in one place at a time.
func TestBrokenManifestsAreFound(t *testing.T) {
	kubectl, check := builder(t)
	whole := kubectl(kustomization{content: []byte("resources: [manifests/base]\ncomponents: [manifests/components/high-availability, manifests/components/network-policy]")})
	unrenamed := func(text string) ([]string, error) { return check(text, renaming{}) }
	wantFound(t, whole, unrenamed, map[string]breakage{
		"an unknown field":        {"  replicas: 3", "  replicas: 3\n  replica: 3", `unknown field "spec.replica"`},
		"a field given twice":     {"  replicas: 3", "  replicas: 3\n  replicas: 3", `"replicas" already set`},
		"no label":                {"kind: Service\nmetadata:\n  labels:\n    app.kubernetes.io/name: ", "kind: Service\nmetadata:\n  labels:\n    name: ", "lacks the label"},
		"no namespace":            {"  namespace: sample-controller-manager\nspec:\n  clusterIP", "spec:\n  clusterIP", `is in namespace ""`},
		"any verb":                {"  - deployments\n  verbs:\n  - create", "  - deployments\n  verbs:\n  - '*'", "grants the verb *"},
		"secrets":                 {"  - foos/status\n  verbs", "  - secrets\n  verbs", "grants the resource secrets"},
		"any account's token":     {"  resourceNames:\n  - sample-controller-manager-status-reader\n", "", "grants the resource serviceaccounts/token"},
		"all groups":              {"  - samplecontroller.k8s.io\n", "  - '*'\n", "grants all API groups"},
		"another's role":          {"  name: system:auth-delegator", "  name: cluster-admin", "names ClusterRole cluster-admin, which is not"},
		"no standby in an update": {"maxUnavailable: 0", "maxUnavailable: 1", "an update stops replicas"},
		"an unknown kind":         {"kind: PodDisruptionBudget", "kind: PodDisruption", `no kind "PodDisruption"`},
		"no limit":                {"          limits:\n            memory: 512Mi\n", "", "lacks requests, or a memory limit"},
		"a soft limit beyond":     {"460MiB", "600MiB", "a GOMEMLIMIT of 600 MiB"},
		"another port":            {"port: 10261\n      protocol", "port: 443\n      protocol", "may be reached on [TCP 443]"},
		"any port":                {"  - ports:\n    - port: 443\n", "  - {}\n  - ports:\n    - port: 443\n", "may reach [all"},
	})
}

// TestBrokenReferencesAreFound breaks, in one place at a time, what all components under other
// names say of each other.
func TestBrokenReferencesAreFound(t *testing.T) {
	kubectl, check := builder(t)
	root, err := cluster.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	found, err := find(root)
	if err != nil {
		t.Fatal(err)
	}
	// The most components, in another namespace and with a prefix. The fence excludes the accounts.
	var fenced, accounts kustomization
	for _, k := range found {
		most := &fenced
		if strings.Contains(k.name, "service-account-credentials") {
			most = &accounts
		}
		if k.namespace != "" && k.prefix != "" && len(k.name) > len(most.name) {
			*most = k
		}
	}
	renamed := func(text string) ([]string, error) { return check(text, fenced.renaming) }
	wantFound(t, kubectl(fenced), renamed, map[string]breakage{
		"no prefix":                {"  name: a-sample-controller-manager-discovery", "  name: sample-controller-manager-discovery", "has no prefix"},
		"left behind":              {"-discovery\n  namespace: ns", "-discovery\n  namespace: sample-controller-manager", "want ns"},
		"a subject":                {"- kind: ServiceAccount\n  name: a-sample-controller-manager\n", "- kind: ServiceAccount\n  name: sample-controller-manager\n", "names ServiceAccount ns/sample-controller-manager, which"},
		"a subject's namespace":    {"- kind: ServiceAccount\n  name: a-sample-controller-manager\n  namespace: ns\n", "- kind: ServiceAccount\n  name: a-sample-controller-manager\n  namespace: sample-controller-manager\n", "names ServiceAccount sample-controller-manager/a-sample-controller-manager, which"},
		"a role":                   {"  kind: ClusterRole\n  name: a-sample-controller-manager-events", "  kind: ClusterRole\n  name: sample-controller-manager-events", "names ClusterRole sample-controller-manager-events, which"},
		"served by another":        {"value: default", "value: team-a", "but the daemon serves team-a"},
		"the ServiceAccount":       {"serviceAccountName: a-", "serviceAccountName: ", "names ServiceAccount ns/sample-controller-manager, which"},
		"the PriorityClass":        {"priorityClassName: a-", "priorityClassName: ", "names PriorityClass"},
		"a policy":                 {"policyName: a-", "policyName: ", "names ValidatingAdmissionPolicy"},
		"the fence's namespace":    {"namespace: ns\n    parameterNotFoundAction", "namespace: sample-controller-manager\n    parameterNotFoundAction", "names Namespace sample-controller-manager, which"},
		"the fence's Lease":        {"    name: sample-controller-manager\n    namespace: ns\n    parameter", "    name: a-sample-controller-manager\n    namespace: ns\n    parameter", "names Lease a-"},
		"a namespace in a policy":  {`"^system:serviceaccount:" + params.metadata.namespace`, `"^system:serviceaccount:ns"`, "in an expression"},
		"the status reader":        {"  resourceNames:\n  - a-sample", "  resourceNames:\n  - sample", "names ServiceAccount ns/sample-controller-manager-status-reader, which"},
		"the Lease":                {"  resourceNames:\n  - sample-controller-manager\n", "  resourceNames:\n  - a-sample-controller-manager\n", "names Lease a-"},
		"the PodDisruptionBudget":  {"name: sample-controller-manager\n  unhealthy", "name: another\n  unhealthy", "does not select the replicas"},
		"the job":                  {"jobLabel: app.kubernetes.io/name", "jobLabel: none", "calls the job"},
		"the serving certificate":  {"serverName: a-sample-controller-manager.ns.svc", "serverName: sample-controller-manager.sample-controller-manager.svc", "verifies the name"},
		"the scraper's Secret":     {"        name: a-sample-controller-manager-scraper", "        name: sample-controller-manager-scraper", "names Secret"},
		"the scraper's account":    {"service-account.name: a-", "service-account.name: ", "names ServiceAccount ns/sample-controller-manager-scraper, which"},
		"a CRD that may be pruned": {"helm.sh/resource-policy: keep", "helm.sh/resource-policy: none", "lacks the annotation"},
	})
	wantFound(t, kubectl(accounts), renamed, map[string]breakage{
		"a requested token":     {"  - a-sample-controller-manager-foo-controller\n", "  - sample-controller-manager-foo-controller\n", "names ServiceAccount ns/sample-controller-manager-foo-controller, which"},
		"any token":             {"  - a-sample-controller-manager-foo-controller\n", "  - a-sample-controller-manager\n", "grants the resource serviceaccounts/token"},
		"an account's binding":  {"- kind: ServiceAccount\n  name: a-sample-controller-manager-foo-controller", "- kind: ServiceAccount\n  name: sample-controller-manager-foo-controller", "names ServiceAccount ns/sample-controller-manager-foo-controller, which"},
		"an account's priority": {"        name: a-sample-controller-manager-foo-controller\n", "        name: a-sample-controller-manager\n", "does not match requests of a-sample-controller-manager-foo-controller"},
		"the fence":             {"  name: a-sample-controller-manager-cage\n", "  name: a-sample-controller-manager-fence\n", "which the fence refuses"},
	})
}
