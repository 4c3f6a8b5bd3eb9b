// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"samplecontroller.io/controller-manager/debug"
)

// Cluster is the cluster that the daemon runs in, as the operator sees it. It is safe for concurrent use.
type Cluster struct {
	// Namespace is the namespace of objects that are named without one, as in kubectl.
	Namespace string

	options Options
	config  *rest.Config
	client  kubernetes.Interface
	objects dynamic.Interface
}

// Lead is what the Lease says about the leader.
type Lead struct {
	// Holder is the identity of the leader, empty if nobody leads. Pod is its Pod, or the name of its host
	// if it is not a Pod.
	Holder string `json:"holder"`
	Pod    string `json:"pod"`
	// Since is when it began to lead, and Renewed when it last said so, by its own clock. Duration is for how
	// long a renewal counts.
	Since    time.Time     `json:"since,omitzero"`
	Renewed  time.Time     `json:"renewed,omitzero"`
	Duration time.Duration `json:"-"`
	// Transitions is how often the holder has changed.
	Transitions int32 `json:"transitions"`
}

// Expired returns whether the last renewal does not count any more.
func (l Lead) Expired(now time.Time) bool { return now.Sub(l.Renewed) > l.Duration }

// Lead returns what the Lease says. An error has a next step.
func (c *Cluster) Lead(ctx context.Context) (Lead, error) {
	lease, err := c.client.CoordinationV1().Leases(c.options.DaemonNamespace).Get(ctx, Daemon, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return Lead{}, fmt.Errorf("nobody leads: Lease %s/%s not found; check --daemon-namespace", c.options.DaemonNamespace, Daemon)
	}
	if err != nil {
		return Lead{}, fmt.Errorf("looking up the leader: %w", c.withAdvice(err))
	}
	lead := Lead{Holder: ptr.Deref(lease.Spec.HolderIdentity, ""), Transitions: ptr.Deref(lease.Spec.LeaseTransitions, 0),
		Duration: time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)) * time.Second}
	if lease.Spec.RenewTime != nil {
		lead.Renewed = lease.Spec.RenewTime.Time
	}
	if lease.Spec.AcquireTime != nil {
		lead.Since = lease.Spec.AcquireTime.Time
	}
	// The holder is <host name>_<UUID>, and the host name of a Pod is its name.
	lead.Pod, _, _ = strings.Cut(lead.Holder, "_")
	return lead, nil
}

// leaderPod returns the name of the Pod that leads.
func (c *Cluster) leaderPod(ctx context.Context) (string, error) {
	lead, err := c.Lead(ctx)
	if err != nil {
		return "", err
	}
	if lead.Holder == "" || lead.Expired(time.Now()) {
		return "", fmt.Errorf("nobody leads: %s", c.replicas(ctx))
	}
	_, err = c.client.CoreV1().Pods(c.options.DaemonNamespace).Get(ctx, lead.Pod, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", fmt.Errorf("the leader is not a Pod: Lease %s/%s is held by %s; use --server, for example --server=https://127.0.0.1:%d", c.options.DaemonNamespace, Daemon, lead.Holder, port)
	}
	if err != nil {
		return "", fmt.Errorf("looking up the leader's Pod: %w", c.withAdvice(err))
	}
	return lead.Pod, nil
}

// replicas says which replicas there are, when none leads.
func (c *Cluster) replicas(ctx context.Context) string {
	pods, err := c.Pods(ctx)
	if err != nil {
		return err.Error()
	}
	if len(pods) == 0 {
		return fmt.Sprintf("no replica runs in namespace %s; check --daemon-namespace", c.options.DaemonNamespace)
	}
	var said []string
	for _, pod := range pods {
		said = append(said, pod.String())
	}
	return "ask a replica with --pod: " + strings.Join(said, ", ")
}

// Pod is a Pod of the daemon.
type Pod struct {
	Name     string    `json:"name"`
	Node     string    `json:"node"`
	Ready    bool      `json:"ready"`
	Restarts int32     `json:"restarts"`
	Created  time.Time `json:"created"`
	Image    string    `json:"image"`
	// Problem is why it does not run, as the kubelet or the scheduler says, empty if it does.
	Problem string `json:"problem,omitempty"`
}

// String returns the name, and what is wrong.
func (p Pod) String() string {
	switch {
	case p.Ready:
		return p.Name
	case p.Problem == "":
		return p.Name + " (not ready)"
	default:
		return p.Name + " (" + p.Problem + ")"
	}
}

// Pods returns the Pods of the daemon, sorted by name.
func (c *Cluster) Pods(ctx context.Context) ([]Pod, error) {
	list, err := c.client.CoreV1().Pods(c.options.DaemonNamespace).List(ctx,
		metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=" + Daemon})
	if err != nil {
		return nil, fmt.Errorf("listing the replicas: %w", c.withAdvice(err))
	}
	var pods []Pod
	for i := range list.Items {
		pods = append(pods, newPod(&list.Items[i]))
	}
	slices.SortFunc(pods, func(a, b Pod) int { return cmp.Compare(a.Name, b.Name) })
	return pods, nil
}

func newPod(p *corev1.Pod) Pod {
	pod := Pod{Name: p.Name, Node: p.Spec.NodeName, Created: p.CreationTimestamp.Time, Problem: p.Status.Message}
	for _, container := range p.Spec.Containers {
		if container.Name == Daemon {
			pod.Image = container.Image
		}
	}
	for _, condition := range p.Status.Conditions {
		switch condition.Type {
		case corev1.PodReady:
			pod.Ready = condition.Status == corev1.ConditionTrue
		case corev1.PodScheduled:
			if condition.Status == corev1.ConditionFalse {
				pod.Problem = condition.Message
			}
		}
	}
	for _, status := range p.Status.ContainerStatuses {
		pod.Restarts += status.RestartCount
		if waiting := status.State.Waiting; waiting != nil {
			pod.Problem = cmp.Or(waiting.Reason, waiting.Message)
		}
	}
	return pod
}

// withAdvice is withAdviceOn for the Role of the status reader.
func (c *Cluster) withAdvice(err error) error { return c.withAdviceOn(err, c.options.readerRole()) }

// withAdviceOn shortens a Forbidden error and adds which Role has the permission. To an Unauthorized error it adds
// whose credentials it is about.
func (c *Cluster) withAdviceOn(err error, role string) error {
	if apierrors.IsUnauthorized(err) {
		return fmt.Errorf("%w: the API server does not accept your credentials; check --kubeconfig and --context", err)
	}
	// Refused upgrades of a connection have no type.
	short := debug.Short(err.Error())
	if !apierrors.IsForbidden(err) && short == err.Error() {
		return err
	}
	return fmt.Errorf("%s; you need the Role %[2]s: kubectl create rolebinding %[2]s -n %[3]s --role=%[2]s --user=<you>", short, role, c.options.DaemonNamespace)
}
