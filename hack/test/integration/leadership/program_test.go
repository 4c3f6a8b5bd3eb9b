// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/informers"
	"samplecontroller.io/controller-manager/manager"
	"samplecontroller.io/controller-manager/reconcile"
	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// libraryProgram is the first argument that makes the test binary run a program that is
// built on the library.
const libraryProgram = "library-program"

// runLibraryProgram runs a program with one controller that reads and annotates ConfigMaps
// and sets no timeout of its own.
func runLibraryProgram(args []string) {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	os.Exit(manager.Execute(ctx, manager.Program{Name: libraryProgram, Controllers: []controller.Descriptor{{
		Name: "seen-controller", Workers: 1, New: newSeen,
	}}}, args))
}

func newSeen(_ context.Context, c *controller.Context) (controller.Controller, error) {
	source, client := kubernetes.NewForConfigOrDie(c.ReadConfig()), kubernetes.NewForConfigOrDie(c.ClientConfig())
	configMaps := informers.InformerFor[*corev1.ConfigMap](c.Informers(), corev1.SchemeGroupVersion.WithResource("configmaps"),
		source.CoreV1().ConfigMaps(c.Namespace()))
	loop := c.Loop(func(ctx context.Context, key cache.ObjectName) (time.Duration, error) {
		if key.Name != "a" { // other ConfigMaps of the cluster and of other tests
			return 0, nil
		}
		configMap, err := client.CoreV1().ConfigMaps(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
		if err != nil {
			return 0, err
		}
		patch := fmt.Appendf(nil, `{"metadata":{"resourceVersion":%q,"annotations":{"seen":"true"}}}`, configMap.ResourceVersion)
		_, err = client.CoreV1().ConfigMaps(key.Namespace).Patch(ctx, key.Name, types.MergePatchType, patch,
			metav1.PatchOptions{FieldManager: c.Name()})
		return 0, err
	})
	reconcile.WatchSelf(loop, configMaps)
	return loop, nil
}

// TestLibraryProgramAbandonsRequestsInTime leaves one read of a program built on the library
// unanswered. The program must repeat it after --write-timeout.
func TestLibraryProgramAbandonsRequestsInTime(t *testing.T) {
	ns := framework.NewNamespace(t)
	framework.TokenWith(t, ns, framework.NewClusterRole(t, rbacv1.PolicyRule{APIGroups: []string{"*"},
		Resources: []string{"*"}, Verbs: []string{"*"}}))
	path := "/api/v1/namespaces/" + ns + "/configmaps/a"
	var held atomic.Bool
	proxy := clustertest.StartProxy(t, framework.Cluster(), func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet && r.URL.Path == path && held.CompareAndSwap(false, true) {
				<-r.Context().Done() // the client has given up
				return
			}
			next.ServeHTTP(w, r)
		})
	}, nil)
	program := framework.StartProgram(t, os.Args[0], libraryProgram, "--kubeconfig="+proxy.Kubeconfig(t, ns, "user"),
		"--leader-elect-resource-namespace="+ns, "--write-timeout=1s")
	if _, err := framework.Kube().CoreV1().ConfigMaps(ns).Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	clustertest.WaitUntil(t, "the ConfigMap is annotated", func(ctx context.Context) error {
		configMap, err := framework.Kube().CoreV1().ConfigMaps(ns).Get(ctx, "a", metav1.GetOptions{})
		if err == nil && configMap.Annotations["seen"] == "" {
			err = fmt.Errorf("annotations %v", configMap.Annotations)
		}
		return err
	})
	if !held.Load() {
		t.Error("no request was held, so this test proves nothing")
	}
	program.Stop()
}
