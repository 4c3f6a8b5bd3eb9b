// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// Must not be logged: canary is in the content of objects, and badCount is a value that cannot
// be decoded.
const (
	canary   = "c4n4ry"
	badCount = "4242424242421"
)

// TestLogsHoldNoSecrets makes the daemon log as much as possible, while it works and while
// callers with and without permission request its pages.
func TestLogsHoldNoSecrets(t *testing.T) {
	framework.RestoreCRDs(t)
	for _, format := range []string{"text", "json"} {
		t.Run(format, func(t *testing.T) {
			framework.FreeLease(t)
			kubeconfig, err := framework.Cluster().ServiceAccountKubeconfig(t.Context(), framework.DaemonName,
				framework.DaemonName)
			if err != nil {
				t.Fatal(err)
			}
			r := framework.StartReplicaWith(t, kubeconfig, "-v=10", "--logging-format="+format).Ready()
			ns := framework.NewNamespace(t)
			admin := framework.DebuggerToken(t, ns)
			tokens := map[string]string{
				"the admin's":  admin,
				"an expired":   framework.Resign(t, admin, expired),
				"an invalid":   "c4n4ry-of-nobody",
				"the daemon's": tokenOf(t, kubeconfig),
			}
			pages := see(r, tokens)
			workOnCanaries(t, framework.Foos, framework.NewNamespace(t))
			if code, answer, err := r.DoAs(t.Context(), http.MethodPut, admin, "/debug/flags/v", "10"); err != nil || code != http.StatusOK ||
				!strings.Contains(answer, "to 7 instead of 10") {
				t.Errorf("PUT of the verbosity: status %d %s, %v, want a verbosity of 7", code, answer, err)
			}
			workOnCanaries(t, framework.Icecreams, framework.NewNamespace(t))
			pages += see(r, tokens)
			r.Stop()

			log := r.Log.String()
			for _, want := range []string{"Lowered log verbosity", "Patched object", "tokenreviews", "masked", "Event occurred", "Undecodable", "Write keeps failing", "Created object"} {
				if !strings.Contains(log, want) {
					t.Errorf("the log does not contain %q: it is not verbose enough, or something did not happen", want)
				}
			}
			for what, token := range tokens {
				wantAbsent(t, "the log", log, what+" token", token)
				wantAbsent(t, "a page", pages, what+" token", token)
				wantAbsent(t, "the log", log, "the signature of "+what+" token", token[strings.LastIndex(token, ".")+1:])
			}
			wantAbsent(t, "the log", log, "content of an object", canary)
			wantAbsent(t, "the log", log, "a value that cannot be decoded", badCount)
			wantAbsent(t, "a page", pages, "content of an object", canary)
			if format == "json" {
				wantJSONLines(t, log)
			}
		})
	}
}

// see requests each page with each of the tokens, and returns the pages for the first token.
func see(r *framework.Replica, tokens map[string]string) (pages string) {
	r.T.Helper()
	for _, page := range []string{"/metrics", "/statusz", "/flagz"} {
		for who, token := range tokens {
			want := map[string]int{"the admin's": http.StatusOK, "the daemon's": http.StatusForbidden}[who]
			if want == 0 {
				want = http.StatusUnauthorized
			}
			pages += r.GetPage(page, token, want)
		}
	}
	return pages
}

// workOnCanaries makes the daemon create, change, report, fail to write and delete, with
// canaries in everything except names.
func workOnCanaries(t *testing.T, k framework.Kind, ns string) {
	t.Helper()
	_, err := framework.Kube().CoreV1().Secrets(ns).Create(t.Context(),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "secret"}, StringData: map[string]string{"password": canary}},
		metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	k.Declare(t, ns, "a", samplev1alpha1.FooSpec{DeploymentName: "a", Replicas: ptr.To[int32](1), Image: canary + "/nginx:1"})
	k.Patch(t, ns, "a", `{"metadata":{"annotations":{"note":"c4n4ry"},"labels":{"note":"c4n4ry"}}}`)
	k.WaitReady(t, ns, "a", 1)
	framework.Kubectl(t, "-n", ns, "patch", "deployment", "a", "-p", `{"metadata":{"annotations":{"note":"c4n4ry"},"labels":{"note":"c4n4ry"}},
		"spec":{"template":{"metadata":{"annotations":{"note":"c4n4ry"}},"spec":{"containers":[
		{"name":"nginx","env":[{"name":"PASSWORD","value":"c4n4ry"}]},
		{"name":"sidecar","image":"c4n4ry/sidecar","args":["--token=c4n4ry"]}]}}}}`)
	k.Patch(t, ns, "a", `{"spec":{"replicas":2,"image":"c4n4ry/nginx:2"}}`)
	k.WaitReady(t, ns, "a", 2)

	// Stalled, because of another owner's Deployment.
	framework.Kubectl(t, "-n", ns, "create", "deployment", "foreign", "--image=c4n4ry/foreign")
	k.CreateNaming(t, ns, "b", "foreign")
	k.WaitStalled(t, ns, "b")

	// Undecodable.
	k.Create(t, ns, "bad", 1)
	k.WaitReady(t, ns, "bad", 1)
	const count = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/readyReplicas"
	framework.Kubectl(t, "patch", "crd", k.Resource+"."+k.Group, "--type=json", `--patch=[{"op":"replace","path":"`+count+`","value":{"x-kubernetes-preserve-unknown-fields":true}}]`)
	clustertest.WaitUntil(t, "an invalid count is stored", func(ctx context.Context) error {
		_, err := k.In(ns).Patch(ctx, "bad", types.MergePatchType, []byte(`{"status":{"readyReplicas":`+badCount+`}}`), metav1.PatchOptions{}, "status")
		return err
	})
	clustertest.WaitUntil(t, "an Event quotes the value", func(ctx context.Context) error {
		events, err := framework.Kube().CoreV1().Events(ns).List(ctx, metav1.ListOptions{FieldSelector: "reason=Undecodable"})
		if err == nil && (len(events.Items) == 0 || !strings.Contains(events.Items[0].Message, badCount)) {
			err = fmt.Errorf("Events: %v", events.Items)
		}
		return err
	})

	// Denied.
	framework.ExpectDenialsIn(ns)
	framework.Kubectl(t, "-n", ns, "create", "quota", "none", "--hard=count/deployments.apps=0")
	clustertest.WaitUntil(t, "the quota is enforced", func(ctx context.Context) error {
		quota, err := framework.Kube().CoreV1().ResourceQuotas(ns).Get(ctx, "none", metav1.GetOptions{})
		if err == nil && len(quota.Status.Used) == 0 {
			err = errors.New("not counted yet")
		}
		return err
	})
	k.Declare(t, ns, "c", samplev1alpha1.FooSpec{DeploymentName: "c", Image: canary + "/nginx:3"})
	k.WaitStalled(t, ns, "c")

	framework.Kubectl(t, "-n", ns, "delete", k.Resource+"."+k.Group, "--all")
}

// expired are the claims of an expired token.
var expired = map[string]any{"exp": 1700000000, "iat": 1600000000, "nbf": 1600000000}

// tokenOf returns the token in the token file of a kubeconfig.
func tokenOf(t *testing.T, kubeconfig string) string {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	token, err := os.ReadFile(config.BearerTokenFile)
	if err != nil {
		t.Fatal(err)
	}
	return string(token)
}

// wantAbsent reports the first lines that contain what they must not.
func wantAbsent(t *testing.T, where, text, what, forbidden string) {
	t.Helper()
	found := 0
	for line := range strings.Lines(text) {
		if at := strings.Index(line, forbidden); at >= 0 {
			if found++; found <= 5 {
				t.Errorf("%s has %s: ...%s", where, what, line[max(0, at-300):min(len(line), at+100)])
			}
		}
	}
	if found > 5 {
		t.Errorf("%s has %s in %d more lines", where, what, found-5)
	}
}

// wantJSONLines checks that each line is a JSON object with time, message and severity.
func wantJSONLines(t *testing.T, log string) {
	t.Helper()
	for line := range strings.Lines(log) {
		if strings.Contains(line, "Data race detection enabled") {
			continue // only in this test's build, before the format is set
		}
		var entry struct {
			TS  *float64
			Msg *string
			V   *int
			Err *string
		}
		if err := json.Unmarshal([]byte(line), &entry); err != nil || entry.TS == nil || entry.Msg == nil {
			t.Errorf("a line is not JSON with ts and msg: %v: %.300s", err, line)
		} else if entry.V == nil && entry.Err == nil {
			t.Errorf("a line has neither v nor err: %.300s", line)
		}
	}
}
