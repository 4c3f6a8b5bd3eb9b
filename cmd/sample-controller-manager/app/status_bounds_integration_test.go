// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"samplecontroller.io/controller-manager/debug"
	"samplecontroller.io/controller-manager/reconcile"

	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
)

// TestStatusIsBounded creates many failing objects, and even more in conflict.
func TestStatusIsBounded(t *testing.T) {
	const failing, conflicting = 1000, 1000
	ownCluster(t) // another daemon would have to sync the objects
	ns, full := newNamespace(t), newNamespace(t)
	exhaustQuota(t, full)
	createDeployment(t, ns, strings.Repeat("d", 200), map[string]string{"app": "foreign"}, nil)
	const creators = 10
	var wg sync.WaitGroup
	for creator := range creators {
		wg.Go(func() {
			for i := creator; i < failing+conflicting; i += creators {
				object, in := foos.New(fmt.Sprintf("%s-%d", strings.Repeat("f", 200), i), 1), full
				if i < conflicting {
					object.Spec.DeploymentName, in = strings.Repeat("d", 200), ns
				}
				if _, err := foos.TryStore(t.Context(), in, object); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	v := newViewer(t, startDaemon(t))
	clustertest.WaitUntil(t, "all objects are known", func(context.Context) error {
		var r debug.Report
		text := v.page("/foo-controller", &r)
		if q := r.Controllers[0].Queues[0]; q.Delayed.Total+q.Waiting.Total+q.Running.Total < failing || len(q.Recent) < 10 {
			return errors.New(text)
		}
		return nil
	})
	for query, most := range map[string]int{"": 64_000, "?limit=200": 1_000_000} {
		for _, path := range []string{"", "/foo-controller", "/foo-controller/" + full + "/" + strings.Repeat("f", 200) + "-1500"} {
			for _, format := range []string{"format=text", "format=json"} {
				separator := "?"
				if query != "" {
					separator = "&"
				}
				began := time.Now()
				body := get(t, v.server, debug.Path+path+query+separator+format, v.token, http.StatusOK)
				t.Logf("%.20s%s%s%s: %d bytes in %v", path, query, separator, format, len(body), time.Since(began))
				if len(body) > most {
					t.Errorf("%.20s%s has %d bytes, want at most %d", path, query, len(body), most)
				}
			}
		}
	}
}

// TestStatusRevealsNoSecrets puts canaries into everything except names.
func TestStatusRevealsNoSecrets(t *testing.T) {
	const canary = "c4n4ry"
	ns := newNamespace(t)
	v := newViewer(t, startDaemon(t))
	foo := foos.New("a", 1)
	foo.Annotations, foo.Labels = map[string]string{"note": canary}, map[string]string{"note": canary}
	foos.Store(t, ns, foo)
	foos.waitCondition(t, ns, "a", "Reconciling", "Progressing")
	kubectl(t, "-n", ns, "patch", "deployment", "a", "-p", `{"metadata":{"annotations":{"note":"c4n4ry"}},"spec":{"template":{"metadata":{"annotations":{"note":"c4n4ry"}},"spec":{"containers":[
		{"name":"nginx","env":[{"name":"PASSWORD","value":"c4n4ry"}]},{"name":"sidecar","image":"c4n4ry/sidecar","args":["--token=c4n4ry"]}]}}}}`)
	// Each time a new one: only the last syncs are listed.
	times := 0
	clustertest.WaitUntil(t, "a change of its Deployment was synced", func(ctx context.Context) error {
		times++
		annotation := fmt.Sprintf(`{"metadata":{"annotations":{"note":"%s%d"}}}`, canary, times)
		if _, err := shared.Kube().AppsV1().Deployments(ns).Patch(ctx, "a", types.MergePatchType, []byte(annotation), metav1.PatchOptions{}); err != nil {
			return err
		}
		var e debug.Explanation
		if text := v.page("/foo-controller/"+ns+"/a", &e); !slices.ContainsFunc(e.Syncs, func(s reconcile.Outcome) bool { return s.Trigger == "deployments changed" }) {
			return errors.New(text)
		}
		return nil
	})
	for _, path := range []string{"", "/foo-controller", "/foo-controller/" + ns + "/a", "/" + aggregator + "/" + ns + "/a"} {
		for _, format := range []string{"&format=text", "&format=json"} {
			body := get(t, v.server, debug.Path+path+"?limit=200"+format, v.token, http.StatusOK)
			for what, secret := range map[string]string{"content of an object": canary, "the reader's token": v.token} {
				if strings.Contains(body, secret) {
					t.Errorf("%s has %s:\n%s", path, what, body)
				}
			}
		}
	}
}
