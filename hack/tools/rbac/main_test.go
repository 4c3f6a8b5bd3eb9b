// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/manager"

	"samplecontroller.io/sample-controller-manager/cmd/sample-controller-manager/app"
	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
)

func TestRules(t *testing.T) {
	needs := needs{}
	for _, need := range []struct {
		controller string
		rule       rbacv1.PolicyRule
	}{
		{"b-controller", rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"watch", "list"}}},
		{"b-controller", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"watch"}}},
		{"b-controller", rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"list"}}},
		{"a-controller", rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments", "deployments/scale"}, Verbs: []string{"patch", "list", "watch"}}},
	} {
		if err := needs.add(need.controller, need.rule); err != nil {
			t.Fatal(err)
		}
	}
	want := `kind: ClusterRole
metadata:
  name: sample-controller-manager-controllers
rules:
# b-controller
- apiGroups: [""]
  resources: ["pods"]
  verbs: ["watch"]
# a-controller
- apiGroups: ["apps"]
  resources: ["deployments"]
  verbs: ["patch"]
# a-controller, b-controller
- apiGroups: ["apps"]
  resources: ["deployments"]
  verbs: ["list", "watch"]
# a-controller
- apiGroups: ["apps"]
  resources: ["deployments/scale"]
  verbs: ["list", "patch", "watch"]
`
	var got strings.Builder
	err := templates.ExecuteTemplate(&got, "clusterrole.yaml.tmpl", templateData{Rules: needs.rules()})
	if err != nil || !strings.HasSuffix(got.String(), want) {
		t.Errorf("got\n%s, %v\nwant at its end\n%s", got.String(), err, want)
	}
}

// TestDeclaredPermissions generates the role of a controller whose permissions follow from what it
// declares.
func TestDeclaredPermissions(t *testing.T) {
	program := manager.Program{Name: "test-manager", Controllers: []controller.Descriptor{{
		Name: "copy-controller", Workers: 1,
		New: func(_ context.Context, c *controller.Context) (controller.Controller, error) {
			configMaps := controller.For[*corev1.ConfigMap](c, controller.MayPatch())
			controller.Owns[*corev1.Secret](configMaps)
			return configMaps.Reconcile(func(context.Context, *controller.Request[*corev1.ConfigMap]) error { return nil })
		},
	}}}
	needs, err := program.Needs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const want = `
rules:
# copy-controller
- apiGroups: [""]
  resources: ["configmaps"]
  verbs: ["list", "patch", "watch"]
# copy-controller
- apiGroups: [""]
  resources: ["configmaps/finalizers"]
  verbs: ["update"]
# pauses of namespaces
- apiGroups: [""]
  resources: ["namespaces"]
  verbs: ["list", "watch"]
# copy-controller
- apiGroups: [""]
  resources: ["secrets"]
  verbs: ["create", "list", "patch", "watch"]
`
	var got strings.Builder
	if err := run(&got, needs, "clusterrole"); err != nil || !strings.HasSuffix(got.String(), want) {
		t.Errorf("got\n%s, %v\nwant at its end\n%s", got.String(), err, want)
	}
}

// generate executes a template for our controllers and for one of a kind that the program does
// not know. It returns the path of the file.
func generate(t *testing.T, name string) string {
	t.Helper()
	controllers, err := app.Program().Needs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	controllers = append(controllers, controller.Descriptor{
		Name: "sundae-controller",
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"sundaes.example.com"}, Resources: []string{"sundaes"}, Verbs: []string{"list", "watch"}},
			{APIGroups: []string{"sundaes.example.com"}, Resources: []string{"sundaes/status"}, Verbs: []string{"update", "patch"}},
			{APIGroups: []string{"sundaes.example.com"}, Resources: []string{"sundaes/finalizers"}, Verbs: []string{"update"}},
			{APIGroups: []string{"batch"}, Resources: []string{"jobs"}, Verbs: []string{"create", "patch", "delete"}},
		},
	})
	var out bytes.Buffer
	err = run(&out, controllers, name)
	path := filepath.Join(t.TempDir(), "generated.yaml")
	if err := errors.Join(err, os.WriteFile(path, out.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestFenceMatchesAllOperations checks that the fence denies operations that no role grants.
func TestFenceMatchesAllOperations(t *testing.T) {
	content, err := os.ReadFile(generate(t, "fence"))
	if err != nil {
		t.Fatal(err)
	}
	var policy admissionregistrationv1.ValidatingAdmissionPolicy
	if err := yaml.Unmarshal(content, &policy); err != nil {
		t.Fatal(err)
	}
	want := []admissionregistrationv1.OperationType{"CREATE", "DELETE", "UPDATE"}
	matched := sets.New[string]()
	for _, rule := range policy.Spec.MatchConstraints.ResourceRules {
		if slices.Sort(rule.Operations); !slices.Equal(rule.Operations, want) {
			t.Errorf("%v: operations %v, want %v", rule.Resources, rule.Operations, want)
		}
		matched.Insert(rule.Resources...)
	}
	if want := []string{"deployments", "foos/status", "icecreams/status", "jobs", "sundaes/status"}; !slices.Equal(sets.List(matched), want) {
		t.Errorf("the fence matches %v, want %v", sets.List(matched), want)
	}
}

// TestForeignKindPolicies starts an API server with the policies generated for Sundaes. They
// must fence and audit the writes of the Sundaes' controller like those of ours.
func TestForeignKindPolicies(t *testing.T) {
	policy := map[string]string{"audit-policy-file": generate(t, "audit-policy")}
	shared := clustertest.NewShared(cluster.Options{AuditLog: true, APIServerFlags: policy, Progress: os.Stderr})
	t.Cleanup(func() {
		if err := shared.Cluster().Stop(); err != nil {
			t.Error(err)
		}
	})
	shared.Kubectl(t, "apply", "-f", generate(t, "clusterrole"), "-f", "testdata/crd.yaml")
	clustertest.WaitUntil(t, "the API server serves Sundaes", func(ctx context.Context) error {
		_, err := shared.Cluster().Kubectl(ctx, "apply", "-f", "testdata/objects.yaml")
		return err
	})
	sundae, status := shared.Kubectl(t, "get", "sundae", "a", "-o", "json"), `{"status":{"replicas":2}}`
	job := `{"metadata":{"name":"b"},"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"b","image":"b"}]}}}}`
	writes := []request{
		{"patch foos/status", "/apis/samplecontroller.k8s.io/v1alpha1/namespaces/default/foos/a/status", status, false, auditv1.LevelRequestResponse},
		{"patch deployments", "/apis/apps/v1/namespaces/default/deployments/a", `{"spec":{"replicas":2}}`, false, auditv1.LevelRequest},
		{"patch sundaes/status", "/apis/sundaes.example.com/v1/namespaces/default/sundaes/a/status", status, true, auditv1.LevelRequestResponse},
		{"update sundaes/status", "/apis/sundaes.example.com/v1/namespaces/default/sundaes/a/status", sundae, true, auditv1.LevelRequestResponse},
		{"patch jobs", "/apis/batch/v1/namespaces/default/jobs/a", `{"spec":{"suspend":true}}`, true, auditv1.LevelRequest},
		{"create jobs", "/apis/batch/v1/namespaces/default/jobs", job, true, auditv1.LevelMetadata},
		{"delete jobs", "/apis/batch/v1/namespaces/default/jobs/a", `{"dryRun":["All"],"propagationPolicy":"Background"}`, true, auditv1.LevelMetadata},
	}

	// The released fence does not match Sundaes, so that only the next one denies their
	// writes.
	shared.Kubectl(t, "apply", "-k", "../../../manifests/fence")
	waitFenced(t, shared, writes, func(r request) bool { return !r.foreign })
	shared.Kubectl(t, "apply", "-f", generate(t, "fence"))
	waitFenced(t, shared, writes, func(request) bool { return true })
	events, err := shared.Cluster().AuditEvents(func(event auditv1.Event) bool {
		return event.User.Username == "system:serviceaccount:"+daemon+":"+daemon && event.ResponseStatus.Code < 300
	})
	for _, w := range writes {
		logged, want := sets.New[string](), fmt.Sprintf("level %s, request body: %t", w.level, w.level != auditv1.LevelMetadata)
		for _, event := range events {
			if cluster.Call(event) == w.call {
				logged.Insert(fmt.Sprintf("level %s, request body: %t", event.Level, event.RequestObject != nil))
			}
		}
		if !logged.Equal(sets.New(want)) {
			t.Errorf("audit log: %s: %q, %v, want %q", w.call, sets.List(logged), err, want)
		}
	}
}

const daemon = "sample-controller-manager"

// request is a write of a controller, to a foreign kind or to one of ours, and its level in
// the audit log.
type request struct {
	call, path, body string
	foreign          bool
	level            auditv1.Level
}

// waitFenced waits until the leader may make all writes, and the standby all except the fenced
// ones.
func waitFenced(t *testing.T, shared *clustertest.Shared, writes []request, fenced func(request) bool) {
	t.Helper()
	// The fence admits dry runs, as which these writes are sent.
	shared.Kubectl(t, "patch", "validatingadmissionpolicy", daemon+"-fence", "--type=json",
		`-p=[{"op":"remove","path":"/spec/matchConditions/1"}]`)
	replica := func(pod string) rest.Interface {
		config := rest.AnonymousClientConfig(shared.Cluster().Config())
		config.BearerToken = shared.Kubectl(t, "create", "token", daemon, "-n", daemon, "--bound-object-kind=Pod", "--bound-object-name="+pod)
		return kubernetes.NewForConfigOrDie(config).Discovery().RESTClient()
	}
	leader, standby := replica("leader"), replica("standby")
	clustertest.WaitUntil(t, "the leader may write and the fence works", func(ctx context.Context) error {
		for _, w := range writes {
			if err := clustertest.DryRun(ctx, leader, w.call, w.path, w.body); err != nil {
				return fmt.Errorf("%s by the leader: %w", w.call, err)
			}
			err := clustertest.DryRun(ctx, standby, w.call, w.path, w.body)
			if refused := err != nil && strings.Contains(err.Error(), "Pod standby does not hold the Lease"); refused != fenced(w) || !refused && err != nil {
				return fmt.Errorf("%s by the standby: %v, want it to be fenced: %t", w.call, err, fenced(w))
			}
		}
		return nil
	})
}

func TestAddRefuses(t *testing.T) {
	for name, rule := range map[string]rbacv1.PolicyRule{
		"any group":       {APIGroups: []string{"*"}, Resources: []string{"pods"}, Verbs: []string{"get"}},
		"any resource":    {APIGroups: []string{""}, Resources: []string{"*"}, Verbs: []string{"get"}},
		"any verb":        {APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"*"}},
		"any scale":       {APIGroups: []string{"apps"}, Resources: []string{"*/scale"}, Verbs: []string{"get"}},
		"no group":        {Resources: []string{"pods"}, Verbs: []string{"get"}},
		"no verb":         {APIGroups: []string{""}, Resources: []string{"pods"}},
		"a path":          {NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}},
		"a single object": {APIGroups: []string{""}, Resources: []string{"pods"}, ResourceNames: []string{"one"}, Verbs: []string{"get"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := needs{}.add("a-controller", rule)
			if err == nil || !strings.Contains(err.Error(), "a-controller") {
				t.Errorf("got %v, want an error that names the controller", err)
			}
		})
	}
}
