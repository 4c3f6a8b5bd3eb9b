// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"samplecontroller.io/sample-controller-manager/cmd/sample-controller-manager/app"
	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
)

// RevokeFromDaemon takes rights from the daemon until it is told to give them back.
func RevokeFromDaemon(t *testing.T, rights ...clustertest.Right) (grant func() time.Time) {
	t.Helper()
	ExpectDenials(t, func(event auditv1.Event) bool {
		return event.ObjectRef != nil && slices.ContainsFunc(rights, func(r clustertest.Right) bool {
			resource := strings.TrimSuffix(event.ObjectRef.Resource+"/"+event.ObjectRef.Subresource, "/")
			return r == clustertest.Right{Verb: event.Verb, Group: event.ObjectRef.APIGroup, Resource: resource}
		})
	})
	return clustertest.Revoke(t, Kube(), DaemonName+"-controllers", DaemonUser, rights...)
}

// Granted returns the rights that a ServiceAccount of the daemon's namespace has in a namespace
// beyond those of every ServiceAccount, spelled as [Grants] does.
func Granted(t *testing.T, serviceAccount, namespace string) sets.Set[string] {
	t.Helper()
	rights, err := granted(serviceAccount, namespace)
	if err != nil {
		t.Fatal(err)
	}
	return rights
}

func granted(serviceAccount, namespace string) (sets.Set[string], error) {
	all, err := grantedTo(serviceAccount, namespace)
	if err != nil {
		return nil, err
	}
	anybody, err := grantedTo("default", namespace)
	return all.Difference(anybody), err
}

// ControllerRights returns the rights that the controllers need in the namespaces they serve.
func ControllerRights() sets.Set[string] {
	rights := sets.New("create events", "patch events")
	for _, d := range app.Program().Controllers {
		for _, rule := range d.Rules {
			rights.Insert(Grants(rule.APIGroups, rule.Resources, rule.ResourceNames, rule.Verbs)...)
		}
	}
	return rights
}

// WantGranted checks that in a namespace the daemon has the rights of its controllers and
// those that it needs for itself, and no others.
func WantGranted(t *testing.T, namespace string, controllers sets.Set[string]) {
	t.Helper()
	want := controllers.Union(sets.New("create tokenreviews.authentication.k8s.io", "create subjectaccessreviews.authorization.k8s.io"))
	switch namespace {
	case DaemonName:
		want.Insert("create events", "patch events", "create leases.coordination.k8s.io")
		want.Insert(Grants([]string{"coordination.k8s.io"}, []string{"leases"}, []string{DaemonName}, []string{"get", "update", "watch"})...)
	case metav1.NamespaceSystem:
		want.Insert(Grants([]string{""}, []string{"configmaps"}, []string{"extension-apiserver-authentication"}, []string{"get", "list", "watch"})...)
	}
	got := Granted(t, DaemonName, namespace)
	for grant := range want.Difference(got) {
		t.Errorf("in %s the daemon may not %s", namespace, grant)
	}
	for grant := range got.Difference(want) {
		t.Errorf("in %s the daemon may %s, and has no use for it", namespace, grant)
	}
	for grant := range got {
		if strings.Contains(grant, "*") || strings.Contains(grant, "secrets") {
			t.Errorf("in %s the daemon may %s: too much, whatever the use", namespace, grant)
		}
	}
}

// grantedTo returns what a ServiceAccount in the daemon's namespace may do in a
// namespace, spelt as [Grants] does.
func grantedTo(serviceAccount, namespace string) (sets.Set[string], error) {
	config := Cluster().Config()
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + DaemonName + ":" + serviceAccount,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + DaemonName, "system:authenticated"},
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
		all.Insert(Grants(rule.APIGroups, rule.Resources, rule.ResourceNames, rule.Verbs)...)
	}
	for _, rule := range review.Status.NonResourceRules {
		all.Insert(Grants([]string{""}, rule.NonResourceURLs, nil, rule.Verbs)...)
	}
	return all, nil
}

// Grants spells a rule out, with a string for each thing that it allows: "list
// pods", "get leases.coordination.k8s.io/name", "get /healthz".
func Grants(groups, resources, names, verbs []string) []string {
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
