// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"net"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

const daemonName = "sample-controller-manager"

// ours is the daemon with all its controllers. It writes the Deployment of a Foo whose
// image is changed.
func (l *lab) ours() peer {
	name := types.NamespacedName{Namespace: daemonName, Name: daemonName}
	return peer{
		name:           "ours",
		serviceAccount: name,
		lease:          name,
		command: func(kubeconfig string, t timing) (string, []string, error) {
			port, err := freePort()
			return l.daemon, []string{
				"--kubeconfig=" + kubeconfig,
				"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port),
				"--leader-elect-resource-namespace=" + name.Namespace,
				"--leader-elect-lease-duration=" + t.leaseDuration.String(),
				"--leader-elect-renew-deadline=" + t.renewDeadline.String(),
				"--leader-elect-retry-period=" + t.retryPeriod.String(),
				"--write-timeout=" + t.writeTimeout.String(),
			}, err
		},
		standsBy: "Campaigning for the lease",
		change: func(ctx context.Context, foo, to string) error {
			return l.patchFoo(ctx, foo, fmt.Sprintf(`{"spec":{"image":%q}}`, to))
		},
		watch: func(ctx context.Context, foo string) (watch.Interface, error) {
			return l.kube.AppsV1().Deployments(namespace).Watch(ctx, named(foo))
		},
		written: func(object runtime.Object, to string) bool {
			deployment, ok := object.(*appsv1.Deployment)
			return ok && deployment.Spec.Template.Spec.Containers[0].Image == to
		},
		call:         "patch deployments",
		stopsCleanly: true,
	}
}

// named selects the object of a name.
func named(name string) metav1.ListOptions {
	return metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()}
}

func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}
