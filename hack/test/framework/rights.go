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
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/controller-manager/controller"

	"samplecontroller.io/sample-controller-manager/cmd/sample-controller-manager/app"
	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
)

// RevokeFromDaemon revokes rights of the daemon until the returned function restores them.
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

// Granted returns the rights of a ServiceAccount in a namespace, beyond those of every
// ServiceAccount, in the format of [Grants].
func Granted(t *testing.T, account cache.ObjectName, namespace string) sets.Set[string] {
	t.Helper()
	rights, err := granted(account, namespace)
	if err != nil {
		t.Fatal(err)
	}
	return rights
}

func granted(account cache.ObjectName, namespace string) (sets.Set[string], error) {
	all, err := grantedTo(account, namespace)
	if err != nil {
		return nil, err
	}
	account.Name = "default"
	anybody, err := grantedTo(account, namespace)
	return all.Difference(anybody), err
}

// ControllerRights returns the rights that the controllers need in the namespaces that they
// watch. They include those that follow from what a controller declares.
func ControllerRights(t *testing.T) sets.Set[string] {
	t.Helper()
	controllers, err := app.Program().Needs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rules := controller.PauseRules()
	for _, d := range controllers {
		rules = append(rules, d.Rules...)
	}
	rights := sets.New("create events", "patch events")
	for _, rule := range rules {
		rights.Insert(Grants(rule.APIGroups, rule.Resources, rule.ResourceNames, rule.Verbs)...)
	}
	return rights
}

// WantGranted checks that in a namespace the daemon has exactly the rights that its
// controllers and the daemon itself need.
func WantGranted(t *testing.T, namespace string, controllers sets.Set[string]) {
	t.Helper()
	want := controllers.Union(sets.New("create tokenreviews.authentication.k8s.io", "create subjectaccessreviews.authorization.k8s.io"))
	// It exists in kube-system only.
	want.Insert(Grants([]string{""}, []string{"configmaps"}, []string{"extension-apiserver-authentication"}, []string{"get", "list", "watch"})...)
	if namespace == DaemonName {
		want.Insert("create events", "patch events", "create leases.coordination.k8s.io")
		want.Insert(Grants([]string{"coordination.k8s.io"}, []string{"leases"}, []string{DaemonName}, []string{"get", "update", "watch"})...)
	}
	got := Granted(t, DaemonAccount, namespace)
	for grant := range want.Difference(got) {
		t.Errorf("in %s the daemon lacks the right to %s", namespace, grant)
	}
	for grant := range got.Difference(want) {
		t.Errorf("in %s the daemon may %s, but does not need to", namespace, grant)
	}
	for grant := range got {
		if strings.Contains(grant, "*") || strings.Contains(grant, "secrets") {
			t.Errorf("in %s the daemon may %s, which it must never be allowed", namespace, grant)
		}
	}
}

// grantedTo returns the rights of a ServiceAccount in a namespace, in the format of [Grants].
func grantedTo(account cache.ObjectName, namespace string) (sets.Set[string], error) {
	config := Cluster().Config()
	config.Impersonate = rest.ImpersonationConfig{
		UserName: serviceaccount.MakeUsername(account.Parts()),
		Groups:   append(serviceaccount.MakeGroupNames(account.Namespace), user.AllAuthenticated),
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	review := &authorizationv1.SelfSubjectRulesReview{}
	review.Spec.Namespace = namespace
	if review, err = client.AuthorizationV1().SelfSubjectRulesReviews().Create(context.Background(), review,
		metav1.CreateOptions{}); err != nil {
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

// Grants expands a rule into one string for each thing that it allows: "list pods", "get
// leases.coordination.k8s.io/name", "get /healthz".
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
