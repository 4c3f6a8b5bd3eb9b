// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/watch"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
	sampleclientset "samplecontroller.io/client-go/clientset/versioned"
	sampleinformers "samplecontroller.io/client-go/informers/externalversions"

	"samplecontroller.io/sample-controller-manager/hack/faulty"
)

const (
	// stockLeader is the argument that makes the binary of the benchmark a program that
	// elects a leader as client-go has it, at its best: its cache is filled before it
	// campaigns, it releases the Lease at once when it is told to end, and when it leads
	// it has nothing to look through, since it has noted as a standby what was changed.
	stockLeader = "stock-leader"
	standsBy    = "standing by"
	changedTo   = "bench/changed-to" // the annotation that it minds, and the key that it writes
)

func TestMain(m *testing.M) {
	faulty.Main()
	if len(os.Args) > 1 && os.Args[1] == stockLeader {
		runStockLeader(os.Args[2:]) // as a replica, for which there is no other program
	}
	if len(os.Args) > 2 {
		switch os.Args[1] {
		case decoder:
			runDecoder(os.Args[2])
		case teller:
			runTeller(os.Args[2])
		}
	}
	os.Exit(m.Run())
}

// stock is a peer on client-go's elector. It writes a ConfigMap for a Foo whose
// annotation is changed.
func (l *lab) stock() peer {
	name := types.NamespacedName{Namespace: namespace, Name: "stock"}
	return peer{
		name:           "stock",
		serviceAccount: name,
		lease:          name,
		command: func(kubeconfig string, t timing) (string, []string, error) {
			self, err := os.Executable()
			return self, []string{stockLeader, "--kubeconfig=" + kubeconfig, "--lease=" + name.Name,
				"--lease-duration=" + t.leaseDuration.String(), "--renew-deadline=" + t.renewDeadline.String(), "--retry-period=" + t.retryPeriod.String()}, err
		},
		standsBy: standsBy,
		change: func(ctx context.Context, foo, to string) error {
			return l.patchFoo(ctx, foo, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, changedTo, to))
		},
		watch: func(ctx context.Context, foo string) (watch.Interface, error) {
			return l.kube.CoreV1().ConfigMaps(namespace).Watch(ctx, named(foo))
		},
		written: func(object runtime.Object, to string) bool {
			configMap, ok := object.(*corev1.ConfigMap)
			return ok && configMap.Annotations[changedTo] == to
		},
		call: "patch configmaps",
	}
}

// allowStock grants the stock peer what it needs.
func (l *lab) allowStock(ctx context.Context) error {
	return l.allow(ctx, "stock",
		rbacv1.PolicyRule{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get", "create", "update"}},
		rbacv1.PolicyRule{APIGroups: []string{samplev1alpha1.SchemeGroupVersion.Group}, Resources: []string{"foos"}, Verbs: []string{"list", "watch"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create", "patch"}})
}

// runStockLeader does not return.
func runStockLeader(args []string) {
	flags := flag.NewFlagSet(stockLeader, flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "", "")
	lease := flags.String("lease", "", "")
	leaseDuration := flags.Duration("lease-duration", 0, "")
	renewDeadline := flags.Duration("renew-deadline", 0, "")
	retryPeriod := flags.Duration("retry-period", 0, "")
	_ = flags.Parse(args) // exits on errors

	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		panic(err)
	}
	config.QPS = -1
	client := kubernetes.NewForConfigOrDie(config)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	changes := watchChanges(ctx, sampleclientset.NewForConfigOrDie(config))
	fmt.Println(standsBy)
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: *lease},
			Client:     client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: "stock_" + string(uuid.NewUUID())},
		},
		LeaseDuration:   *leaseDuration,
		RenewDeadline:   *renewDeadline,
		RetryPeriod:     *retryPeriod,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) { writeChanges(ctx, client, changes) },
			OnStoppedLeading: func() { os.Exit(0) },
		},
	})
	os.Exit(0)
}

// watchChanges returns when all Foos are cached. The channel has the last change that
// was not taken from it, be it new or not.
func watchChanges(ctx context.Context, client sampleclientset.Interface) <-chan *samplev1alpha1.Foo {
	changes := make(chan *samplev1alpha1.Foo, 1)
	factory := sampleinformers.NewSharedInformerFactoryWithOptions(client, 0, sampleinformers.WithNamespace(namespace))
	registration, err := factory.Samplecontroller().V1alpha1().Foos().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(before, now any) {
			foo := now.(*samplev1alpha1.Foo)
			if foo.Annotations[changedTo] == before.(*samplev1alpha1.Foo).Annotations[changedTo] {
				return
			}
			select {
			case <-changes:
			default:
			}
			changes <- foo
		},
	})
	if err != nil {
		panic(err)
	}
	factory.StartWithContext(ctx)
	cache.WaitForCacheSync(ctx.Done(), registration.HasSynced)
	return changes
}

func writeChanges(ctx context.Context, client kubernetes.Interface, changes <-chan *samplev1alpha1.Foo) {
	for {
		select {
		case <-ctx.Done():
			return
		case foo := <-changes:
			write, cancel := context.WithTimeout(ctx, 3*time.Second)
			configMap := corev1apply.ConfigMap(foo.Name, foo.Namespace).WithAnnotations(map[string]string{changedTo: foo.Annotations[changedTo]})
			if _, err := client.CoreV1().ConfigMaps(foo.Namespace).Apply(write, configMap, metav1.ApplyOptions{FieldManager: "stock"}); err != nil {
				fmt.Println("writing:", err)
			}
			cancel()
		}
	}
}
