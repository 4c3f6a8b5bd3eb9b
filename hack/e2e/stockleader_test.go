// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// stockLeader is the argument that makes the binary of the tests a program that elects
// a leader as client-go has it, with nothing of ours. While it leads it writes two
// ConfigMaps, as a controller might that honours its context and one that does not.
const stockLeader = "stock-leader"

const (
	// writeInterval is how often a stock leader writes each of its ConfigMaps.
	writeInterval = 50 * time.Millisecond
	// drain is how long a stock leader that is asked to end takes to finish its work.
	drain = 500 * time.Millisecond
)

// startStockLeader starts a replica that elects a leader by the Lease "leader" of a
// namespace and writes there.
func startStockLeader(t *testing.T, kubeconfig, ns string, releaseOnCancel bool) *program {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return startProgram(t, self, stockLeader, "--kubeconfig="+kubeconfig, "--namespace="+ns, fmt.Sprintf("--release-on-cancel=%t", releaseOnCancel))
}

// runStockLeader does not return.
func runStockLeader(args []string) {
	flags := flag.NewFlagSet(stockLeader, flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "", "")
	ns := flags.String("namespace", "", "")
	releaseOnCancel := flags.Bool("release-on-cancel", false, "")
	_ = flags.Parse(args) // exits on errors

	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		panic(err)
	}
	config.QPS = -1
	client := kubernetes.NewForConfigOrDie(config)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: *ns, Name: "leader"},
			Client:     client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: "stock_" + string(uuid.NewUUID())},
		},
		LeaseDuration:   6 * time.Second,
		RenewDeadline:   4 * time.Second,
		RetryPeriod:     time.Second,
		ReleaseOnCancel: *releaseOnCancel,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(work context.Context) {
				go writeOften(context.WithoutCancel(work), client, *ns, "heedless")
				writeOften(work, client, *ns, "heedful")
			},
			OnStoppedLeading: func() {
				if ctx.Err() == nil {
					fmt.Println("lost the Lease")
					os.Exit(1)
				}
				time.Sleep(drain)
				os.Exit(0)
			},
		},
	})
	panic("a leader that stopped leading runs on")
}

// writeOften writes a ConfigMap until the context ends.
func writeOften(ctx context.Context, client kubernetes.Interface, ns, name string) {
	for i := 0; ctx.Err() == nil; i++ {
		patch := fmt.Appendf(nil, `{"data":{"pid":"%d","i":"%d"}}`, os.Getpid(), i)
		if _, err := client.CoreV1().ConfigMaps(ns).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			fmt.Println("writing:", err)
		}
		time.Sleep(writeInterval)
	}
}
