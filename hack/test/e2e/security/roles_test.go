// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// TestDaemonRights compares the rights of the daemon's ServiceAccount, in each namespace that
// matters, with what it needs.
func TestDaemonRights(t *testing.T) {
	for _, namespace := range []string{metav1.NamespaceDefault, framework.DaemonName, metav1.NamespaceSystem} {
		framework.WantGranted(t, namespace, framework.ControllerRights(t))
	}
}

// TestPluginTokensRights checks the rights of the tokens that operators may request and replicas see.
func TestPluginTokensRights(t *testing.T) {
	pages := []string{"/debug/controllers", "/debug/controllers/*", "/statusz", "/healthz/*", "/livez/*", "/readyz/*"}
	for account, want := range map[string][]string{
		framework.StatusReader:                    framework.Grants([]string{""}, pages, nil, []string{"get"}),
		framework.DaemonName + "-log-level":       framework.Grants([]string{""}, []string{"/debug/flags/v"}, nil, []string{"put"}),
		framework.DaemonName + "-allow-deletions": framework.Grants([]string{""}, []string{"/debug/deletions/*"}, nil, []string{"put"}),
	} {
		for _, namespace := range []string{metav1.NamespaceDefault, framework.DaemonName, metav1.NamespaceSystem} {
			got := framework.Granted(t, cache.NewObjectName(framework.DaemonName, account), namespace)
			if diff := cmp.Diff(sets.List(sets.New(want...)), sets.List(got)); diff != "" {
				t.Errorf("rights of %s in %s (-want +got):\n%s", account, namespace, diff)
			}
		}
	}
}

// TestAggregatedRoles checks the rights of users, through Kubernetes' own roles, and of
// metrics scrapers.
func TestAggregatedRoles(t *testing.T) {
	ns := framework.NewNamespace(t)
	framework.Kubectl(t, "create", "rolebinding", "viewer", "-n", ns, "--clusterrole=view", "--user=viewer")
	framework.Kubectl(t, "create", "rolebinding", "editor", "-n", ns, "--clusterrole=edit", "--user=editor")
	framework.Kubectl(t, "create", "clusterrolebinding", "scraper", "--clusterrole="+framework.DaemonName+"-metrics-reader", "--user=scraper")

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
		{"scraper", "get", "/flagz", false},
		{"scraper", "get", "/debug/pprof/heap", false},
		{"scraper", "list", foos, false},
	} {
		t.Run(fmt.Sprintf("%s %s %s", test.user, test.verb, test.what), func(t *testing.T) {
			// kube-controller-manager aggregates roles asynchronously, so rights may be
			// granted late. In the table, rights that must not be granted come after those.
			clustertest.WaitUntil(t, "the API server agrees", func(ctx context.Context) error {
				may, err := allowed(ctx, ns, test.user, test.verb, test.what)
				if err == nil && may != test.may {
					err = fmt.Errorf("allowed: %v, want %v", may, test.may)
				}
				return err
			})
		})
	}
}

// allowed asks the API server whether a user may act on "group/resource/subresource" in a
// namespace, or on a path.
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
	review, err := framework.Kube().AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return review.Status.Allowed, nil
}
