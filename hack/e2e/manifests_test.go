// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"samplecontroller.io/sample-controller-manager/cmd/sample-controller-manager/app"
	"samplecontroller.io/sample-controller-manager/hack/cluster"
)

// daemonName is the name of the daemon's namespace, ServiceAccount, Lease,
// Deployment, Service and PodDisruptionBudget.
const daemonName = "sample-controller-manager"

// TestBaseIsAdmitted installs manifests/base as an operator does. Its namespace is
// restricted: what violates that shows in a warning when the Deployment is applied,
// and in Pods that are never created.
func TestBaseIsAdmitted(t *testing.T) {
	kubectl(t, "apply", "--warnings-as-errors", "-k", manifests(t, "base"))
	kubectl(t, "rollout", "status", "-n", daemonName, "deployment/"+daemonName, "--timeout=60s")
	t.Cleanup(func() {
		// Of the base, the other tests only need what was there before.
		if _, err := testCluster.Kubectl(context.WithoutCancel(t.Context()), "delete", "-n", daemonName, "deployment,service,pdb", daemonName); err != nil {
			t.Error(err)
		}
	})

	// That selectors and names fit shows in what others make of them.
	waitUntil(t, "the PodDisruptionBudget covers the Pods", func(ctx context.Context) error {
		budget, err := kube.PolicyV1().PodDisruptionBudgets(daemonName).Get(ctx, daemonName, metav1.GetOptions{})
		if err == nil && budget.Status.ExpectedPods != 2 {
			err = fmt.Errorf("it covers %d, want 2", budget.Status.ExpectedPods)
		}
		return err
	})
	waitUntil(t, "the Service leads to the Pods", func(ctx context.Context) error {
		slices, err := kube.DiscoveryV1().EndpointSlices(daemonName).List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + daemonName})
		if err != nil {
			return err
		}
		if len(slices.Items) != 1 || len(slices.Items[0].Ports) != 1 || len(slices.Items[0].Endpoints) != 2 {
			return fmt.Errorf("its endpoints are %v, want one port of 2 Pods", slices.Items)
		}
		return nil
	})

	_, err := testCluster.Kubectl(t.Context(), "run", "intruder", "-n", daemonName, "--image=none", "--dry-run=server")
	if err == nil || !strings.Contains(err.Error(), `violates PodSecurity "restricted:latest"`) {
		t.Errorf("a Pod without a security context: %v, want it to be refused", err)
	}
}

func TestExamplesAreValid(t *testing.T) {
	kubectl(t, "apply", "--warnings-as-errors", "--dry-run=server", "-n", newNamespace(t), "-f", manifests(t, "examples"))
}

// TestDaemonMayDoJustWhatItNeeds compares what the daemon's ServiceAccount may do,
// in each namespace that matters, with what it has a use for.
func TestDaemonMayDoJustWhatItNeeds(t *testing.T) {
	everywhere := sets.New(
		"create events", "patch events",
		"create tokenreviews.authentication.k8s.io",
		"create subjectaccessreviews.authorization.k8s.io",
	)
	for _, d := range app.NewRegistry().Descriptors() {
		for _, rule := range d.Rules {
			everywhere.Insert(grants(rule.APIGroups, rule.Resources, rule.ResourceNames, rule.Verbs)...)
		}
	}
	for namespace, more := range map[string]sets.Set[string]{
		metav1.NamespaceDefault: nil,
		daemonName: sets.New(
			"create leases.coordination.k8s.io",
			"get leases.coordination.k8s.io/"+daemonName,
			"update leases.coordination.k8s.io/"+daemonName,
			"watch leases.coordination.k8s.io/"+daemonName,
		),
		metav1.NamespaceSystem: sets.New(
			"get configmaps/extension-apiserver-authentication",
			"list configmaps/extension-apiserver-authentication",
			"watch configmaps/extension-apiserver-authentication",
		),
	} {
		t.Run(namespace, func(t *testing.T) {
			// What any ServiceAccount may do is not of our making.
			got := granted(t, daemonName, namespace).Difference(granted(t, "default", namespace))
			want := everywhere.Union(more)
			for _, grant := range sets.List(want.Difference(got)) {
				t.Errorf("may not %s", grant)
			}
			for _, grant := range sets.List(got.Difference(want)) {
				t.Errorf("may %s, and has no use for it", grant)
			}
			for _, grant := range sets.List(got) {
				if strings.Contains(grant, "*") || strings.Contains(grant, "secrets") {
					t.Errorf("may %s: too much, whatever the use", grant)
				}
			}
		})
	}
}

// TestRolesForOthers checks what is granted to users, by way of Kubernetes' own
// roles, and to a scraper of metrics.
func TestRolesForOthers(t *testing.T) {
	ns := newNamespace(t)
	kubectl(t, "create", "rolebinding", "viewer", "-n", ns, "--clusterrole=view", "--user=viewer")
	kubectl(t, "create", "rolebinding", "editor", "-n", ns, "--clusterrole=edit", "--user=editor")
	kubectl(t, "create", "clusterrolebinding", "scraper", "--clusterrole="+daemonName+"-metrics-reader", "--user=scraper")

	const foos, icecreams = "samplecontroller.k8s.io/foos", "controller.nicoleh.io/icecreams"
	for _, test := range []struct {
		user, verb, what string
		may              bool
	}{
		{"viewer", "list", foos, true},
		{"viewer", "watch", icecreams, true},
		{"viewer", "get", foos + "/status", true},
		{"viewer", "get", icecreams + "/scale", true},
		{"viewer", "patch", foos, false},
		{"viewer", "patch", icecreams + "/scale", false},
		{"editor", "get", foos, true},
		{"editor", "create", icecreams, true},
		{"editor", "delete", foos, true},
		{"editor", "patch", foos + "/scale", true},
		{"editor", "patch", foos + "/status", false},
		{"editor", "update", icecreams + "/status", false},
		{"scraper", "get", "/metrics", true},
		{"scraper", "get", "/metrics/slis", true},
		{"scraper", "get", "/configz", false},
		{"scraper", "get", "/debug/pprof/heap", false},
		{"scraper", "list", foos, false},
	} {
		t.Run(fmt.Sprintf("%s %s %s", test.user, test.verb, test.what), func(t *testing.T) {
			// kube-controller-manager aggregates roles in its own time: what is
			// allowed may come late. What is not stands after it in the table.
			waitUntil(t, "the API server says so", func(ctx context.Context) error {
				may, err := allowed(ctx, ns, test.user, test.verb, test.what)
				if err == nil && may != test.may {
					err = fmt.Errorf("allowed: %v, want %v", may, test.may)
				}
				return err
			})
		})
	}
}

// manifests returns the path of a directory of the manifests.
func manifests(t *testing.T, dir string) string {
	t.Helper()
	root, err := cluster.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(root, "manifests", dir)
}

// granted is grantedTo for a test.
func granted(t *testing.T, serviceAccount, namespace string) sets.Set[string] {
	t.Helper()
	all, err := grantedTo(serviceAccount, namespace)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// grantedTo returns what a ServiceAccount in the daemon's namespace may do in a
// namespace, spelt as [grants] does.
func grantedTo(serviceAccount, namespace string) (sets.Set[string], error) {
	config := testCluster.Config()
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + daemonName + ":" + serviceAccount,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + daemonName, "system:authenticated"},
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}
	if review, err = client.AuthorizationV1().SelfSubjectRulesReviews().Create(context.Background(), review, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	all := sets.New[string]()
	for _, rule := range review.Status.ResourceRules {
		all.Insert(grants(rule.APIGroups, rule.Resources, rule.ResourceNames, rule.Verbs)...)
	}
	for _, rule := range review.Status.NonResourceRules {
		all.Insert(grants([]string{""}, rule.NonResourceURLs, nil, rule.Verbs)...)
	}
	return all, nil
}

// grants spells a rule out, with a string for each thing that it allows: "list
// pods", "get leases.coordination.k8s.io/name", "get /healthz".
func grants(groups, resources, names, verbs []string) []string {
	if len(names) == 0 {
		names = []string{""}
	}
	var all []string
	for _, group := range groups {
		for _, resource := range resources {
			for _, name := range names {
				for _, verb := range verbs {
					what := strings.TrimSuffix(resource+"."+group, ".")
					all = append(all, verb+" "+strings.TrimSuffix(what+"/"+name, "/"))
				}
			}
		}
	}
	return all
}

// allowed asks the API server whether a user may do something to
// "group/resource/subresource" in a namespace, or to a path.
func allowed(ctx context.Context, namespace, user, verb, what string) (bool, error) {
	spec := authorizationv1.SubjectAccessReviewSpec{User: user}
	if strings.HasPrefix(what, "/") {
		spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Verb: verb, Path: what}
	} else {
		parts := append(strings.Split(what, "/"), "")
		spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: verb, Group: parts[0], Resource: parts[1], Subresource: parts[2],
		}
	}
	review := &authorizationv1.SubjectAccessReview{Spec: spec}
	review, err := kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return review.Status.Allowed, nil
}
