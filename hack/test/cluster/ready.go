// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

// pollInterval is how often the start checks a condition that it waits for.
const pollInterval = 50 * time.Millisecond

// createNodes creates node-1 to node-count. kwok makes them Ready, and kube-controller-manager
// removes the taint that admission puts on a Node that is not Ready.
func createNodes(ctx context.Context, client kubernetes.Interface, count int) error {
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("32"),
		corev1.ResourceMemory: resource.MustParse("256Gi"),
		corev1.ResourcePods:   resource.MustParse("1000"),
	}
	for i := range count {
		name := fmt.Sprintf("node-%d", i+1)
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{
				Name: name,
				Labels: map[string]string{
					corev1.LabelHostname:   name,
					corev1.LabelOSStable:   "linux",
					corev1.LabelArchStable: runtime.GOARCH,
					"type":                 "kwok",
				},
			},
			Status: corev1.NodeStatus{
				Capacity:    capacity,
				Allocatable: capacity,
				NodeInfo:    corev1.NodeSystemInfo{OperatingSystem: "linux", Architecture: runtime.GOARCH},
			},
		}
		if _, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating Node %s: %w", name, err)
		}
	}
	return nil
}

// await waits for the conditions, one after another.
func (c *Cluster) await(ctx context.Context, client kubernetes.Interface,
	conditions ...func(context.Context, kubernetes.Interface) error) error {
	for _, condition := range conditions {
		var last error
		err := wait.PollUntilContextTimeout(ctx, pollInterval, startTimeout, true, func(ctx context.Context) (bool, error) {
			if last = condition(ctx, client); last == nil {
				return true, nil
			}
			return false, c.componentErr()
		})
		if err != nil {
			return errors.Join(err, last)
		}
	}
	return nil
}

// authenticationPublished checks that the ConfigMap exists from which servers with delegated
// authentication read the CAs to trust.
func authenticationPublished(ctx context.Context, client kubernetes.Interface) error {
	const name = "extension-apiserver-authentication"
	configMap, err := client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, key := range []string{"client-ca-file", "requestheader-client-ca-file"} {
		if configMap.Data[key] == "" {
			return fmt.Errorf("ConfigMap %s/%s has no %s", metav1.NamespaceSystem, name, key)
		}
	}
	return nil
}

func apiServerReady(ctx context.Context, client kubernetes.Interface) error {
	return client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
}

func defaultServiceAccountExists(ctx context.Context, client kubernetes.Interface) error {
	_, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
	return err
}

func nodesReady(ctx context.Context, client kubernetes.Interface) error {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, node := range nodes.Items {
		if !slices.ContainsFunc(node.Status.Conditions, func(condition corev1.NodeCondition) bool {
			return condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue
		}) {
			return fmt.Errorf("Node %s is not Ready", node.Name)
		}
		if len(node.Spec.Taints) > 0 {
			return fmt.Errorf("Node %s has the taint %s", node.Name, node.Spec.Taints[0].ToString())
		}
		// The Lease keeps a Node Ready.
		if _, err := client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, node.Name,
			metav1.GetOptions{}); err != nil {
			return err
		}
	}
	return nil
}
