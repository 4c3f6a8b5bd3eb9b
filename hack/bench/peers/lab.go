// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
	sampleclientset "samplecontroller.io/client-go/clientset/versioned"

	"samplecontroller.io/sample-controller-manager/hack/cluster"
	"samplecontroller.io/sample-controller-manager/hack/cluster/process"
)

// peersNamespace has the ServiceAccounts of all but the daemon.
const peersNamespace = "peers"

// heads has the audit log tell who asks for what, and when, at the same cost of each.
var heads = []byte(`{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Metadata"}]}`)

const poll = 200 * time.Millisecond

// lab is an API server, with or without the rest of a cluster, that contestants use one
// after the other.
type lab struct {
	cluster  *cluster.Cluster
	kube     kubernetes.Interface
	sample   sampleclientset.Interface
	metadata metadata.Interface
	group    *process.Group
	dir      string            // of the group
	binaries map[string]string // from the name of a contestant
	patience time.Duration
	profiler profiler
	runs     int
	// secureAddress is where the daemon that was started last serves; "" if it was
	// another contestant.
	secureAddress string
}

// startLab starts a lab for these contestants.
func (o options) startLab(ctx context.Context, nodes int, binaries map[string]string) (*lab, error) {
	c, err := cluster.Start(ctx, cluster.Options{
		Nodes: nodes, AuditLog: true, AuditPolicy: heads, Progress: os.Stderr,
		// Nobody is to win because of how the API server shares itself out.
		APIServerFlags: map[string]string{"enable-priority-and-fairness": "false"},
	})
	if err != nil {
		return nil, err
	}
	l := &lab{cluster: c, binaries: binaries, patience: o.patience, profiler: profiler{o.output, o.profile}}
	if err := l.furnish(ctx); err != nil {
		return nil, errors.Join(err, l.stop())
	}
	return l, nil
}

func (l *lab) furnish(ctx context.Context) (err error) {
	if l.dir, err = os.MkdirTemp("", "bench-"); err != nil {
		return err
	}
	if l.group, err = process.NewGroup(l.dir); err != nil {
		return err
	}
	if l.kube, err = kubernetes.NewForConfig(l.cluster.Config()); err != nil {
		return err
	}
	if l.sample, err = sampleclientset.NewForConfig(l.cluster.Config()); err != nil {
		return err
	}
	if l.metadata, err = metadata.NewForConfig(l.cluster.Config()); err != nil {
		return err
	}
	if err := l.cluster.Install(ctx); err != nil {
		return err
	}
	return l.allowPeers(ctx)
}

// allowPeers gives each peer a ServiceAccount and what it asks for, as the manifests do
// for the daemon: an admin's requests would cost the API server less.
func (l *lab) allowPeers(ctx context.Context) error {
	if _, err := l.kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: peersNamespace}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	group := samplev1alpha1.GroupName
	_, err := l.kube.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: peersNamespace}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{group}, Resources: []string{"foos"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{group}, Resources: []string{"foos/status"}, Verbs: []string{"update", "patch"}},
		{APIGroups: []string{group}, Resources: []string{"foos/finalizers"}, Verbs: []string{"update"}},
		{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get", "list", "watch", "create", "update", "patch"}},
		{APIGroups: []string{"apps"}, Resources: []string{"deployments/scale"}, Verbs: []string{"update"}},
		{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
	}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: peersNamespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: peersNamespace},
	}
	for _, c := range contestants {
		account := c.serviceAccount()
		if account.Namespace != peersNamespace {
			continue
		}
		_, err := l.kube.CoreV1().ServiceAccounts(account.Namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account.Name}}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		binding.Subjects = append(binding.Subjects, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name})
	}
	_, err = l.kube.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{})
	return err
}

// start starts a contestant.
func (l *lab) start(ctx context.Context, c contestant) (*process.Process, error) {
	account := c.serviceAccount()
	kubeconfig, err := l.cluster.ServiceAccountKubeconfig(ctx, account.Namespace, account.Name)
	if err != nil {
		return nil, err
	}
	flags, err := c.flags(kubeconfig)
	if err != nil {
		return nil, err
	}
	l.secureAddress = secureAddress(flags)
	l.runs++
	return l.group.Start(fmt.Sprintf("%s-%d", c.name, l.runs), nil, l.binaries[c.name], flags...)
}

// clear deletes the Foos and Deployments of a namespace and what came of them, and
// returns when they are gone.
func (l *lab) clear(ctx context.Context, namespace string) error {
	if err := l.sample.SamplecontrollerV1alpha1().Foos(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		return err
	}
	if err := l.kube.AppsV1().Deployments(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		return err
	}
	return l.await(ctx, "all is deleted", func(ctx context.Context) error {
		for _, resource := range []schema.GroupVersionResource{
			appsv1.SchemeGroupVersion.WithResource("deployments"),
			appsv1.SchemeGroupVersion.WithResource("replicasets"),
			corev1.SchemeGroupVersion.WithResource("pods"),
		} {
			list, err := l.metadata.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{Limit: 1})
			if err == nil && len(list.Items) > 0 {
				err = fmt.Errorf("there are %s", resource.Resource)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// await waits until check returns nil.
func (l *lab) await(ctx context.Context, what string, check func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, poll, l.patience, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting until %s: %w", what, errors.Join(last, err))
	}
	return nil
}

// stop ends all. What was not begun is not to be ended.
func (l *lab) stop() error {
	var errs []error
	if l.group != nil {
		errs = append(errs, l.group.Close())
	}
	return errors.Join(append(errs, l.cluster.Stop(), os.RemoveAll(l.dir))...)
}
