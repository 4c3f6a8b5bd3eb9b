// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// boundToken returns a token of the daemon's ServiceAccount that is bound to a Pod, like one
// mounted by a kubelet. Without a name, the token is not bound.
func boundToken(t *testing.T, pod string) string {
	t.Helper()
	if pod == "" {
		return framework.NewToken(t, daemon.Namespace, daemon.Name, nil)
	}
	return framework.NewToken(t, daemon.Namespace, daemon.Name,
		&authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod})
}

// writer tests whether it may make the daemon's writes in a namespace. The fence admits dry runs, so the writes are
// real.
type writer struct {
	client rest.Interface
	ns     string
}

// owner is an owner reference to a Foo, without which the cage refuses the daemon's writes.
const owner = `{"apiVersion":"samplecontroller.k8s.io/v1alpha1","kind":"Foo","name":"parent","uid":%q,"controller":true}`

// createTargets creates the objects that a writer writes.
func createTargets(t *testing.T, ns string) {
	t.Helper()
	framework.Kubectl(t, "-n", ns, "create", "deployment", "web", "--image=nginx")
	for _, k := range framework.Kinds {
		k.CreateNaming(t, ns, "parent", "web")
	}
	uid := framework.Foos.MustGet(t, ns, "parent").UID
	framework.Kubectl(t, "-n", ns, "patch", "deployment", "web", "-p", fmt.Sprintf(`{"metadata":{"ownerReferences":[%s]}}`, fmt.Sprintf(owner, uid)))
}

// newWriter returns a writer with a token.
func newWriter(ns, token string) *writer {
	return &writer{kubernetes.NewForConfigOrDie(framework.TokenConfig(token)).Discovery().RESTClient(), ns}
}

// newAdmin returns a writer that is a cluster admin.
func newAdmin(ns string) *writer { return &writer{framework.Kube().Discovery().RESTClient(), ns} }

// create tries to create a Deployment without Pods.
func (w *writer) create(ctx context.Context) error { return w.createBy(ctx, clustertest.Write) }

// createDry is create by a dry run.
func (w *writer) createDry(ctx context.Context) error { return w.createBy(ctx, clustertest.DryRun) }

func (w *writer) createBy(
	ctx context.Context, send func(context.Context, rest.Interface, string, string, string) error,
) error {
	body := fmt.Sprintf(`{"metadata":{"generateName":"new-","ownerReferences":[`+owner+`]},
		"spec":{"replicas":0,"selector":{"matchLabels":{"app":"web"}},
		"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"web","image":"nginx"}]}}}}`, "uid")
	return send(ctx, w.client, "create deployments", "/apis/apps/v1/namespaces/"+w.ns+"/deployments", body)
}

// writes tries all fenced writes, with the Deployment "web" and with an object "parent" of
// each kind, and returns their errors.
func (w *writer) writes(ctx context.Context) map[string]error {
	errs := map[string]error{"create deployments": w.create(ctx)}
	try := func(call, path, body string) { errs[call] = clustertest.Write(ctx, w.client, call, path, body) }
	try("patch deployments", "/apis/apps/v1/namespaces/"+w.ns+"/deployments/web", `{"spec":{"replicas":2}}`)
	for _, k := range framework.Kinds {
		try("patch "+k.Resource+"/status", fmt.Sprintf("/apis/%s/namespaces/%s/%s/parent/status", k.GroupVersion(), w.ns, k.Resource), `{"status":{"replicas":2}}`)
	}
	return errs
}

// wantUnfenced tries the writes of a standby.
func (w *writer) wantUnfenced(t *testing.T) {
	t.Helper()
	body, err := json.Marshal(framework.CurrentLease(t, framework.DaemonName))
	if err != nil {
		t.Fatal(err)
	}
	for call, request := range map[string][2]string{
		"update leases":       {"/apis/coordination.k8s.io/v1/namespaces/" + framework.DaemonName + "/leases/" + framework.DaemonName, string(body)},
		"create events":       {"/api/v1/namespaces/" + w.ns + "/events", `{"metadata":{"name":"event"},"involvedObject":{"namespace":"` + w.ns + `"}}`},
		"create tokenreviews": {"/apis/authentication.k8s.io/v1/tokenreviews", `{"spec":{"token":"x"}}`},
	} {
		if err := clustertest.DryRun(t.Context(), w.client, call, request[0], request[1]); err != nil {
			t.Errorf("%s: %v", call, err)
		}
	}
}

// refused reports whether an error is from the fence.
func refused(err error) bool { return err != nil && strings.Contains(err.Error(), fence) }

// waitUntilMay waits until the writer may, or may not, write.
func (w *writer) waitUntilMay(t *testing.T, may bool) {
	t.Helper()
	clustertest.WaitUntil(t, fmt.Sprintf("may write: %v", may), func(ctx context.Context) error {
		err := w.create(ctx)
		if may || err != nil && !refused(err) {
			return err
		}
		if err == nil {
			return errors.New("the write was admitted")
		}
		return nil
	})
}
