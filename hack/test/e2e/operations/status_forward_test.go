// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/utils/ptr"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// TestStatusOfLeaderPod uses a Pod in place of a replica that runs on this machine:
// connections forwarded to port 10261 of the Pod end at the replica.
func TestStatusOfLeaderPod(t *testing.T) {
	r, host, node := startLeader(t)
	operator := operator(t)
	waitRights(t, operator)
	known := time.Now()
	kubeconfig := "--kubeconfig=" + operator
	wantRefusal(t, "the leader is not a Pod: Lease sample-controller-manager/sample-controller-manager is held by "+host+`_\S+; use --server, .*`, kubeconfig)
	for _, name := range []string{host, "standby"} {
		standForReplica(t, node, name)
	}
	for name, args := range map[string][]string{host: nil, "standby": {"--pod=standby"}} {
		stdout, stderr := waitStatus(t, append(args, kubeconfig)...)
		if want := fmt.Sprintf("Asking Pod sample-controller-manager/%s\n", name); stderr != want {
			t.Errorf("status %q: standard error %q, want %q", args, stderr, want)
		}
		if !strings.Contains(stdout, "\nLeader: "+host+" for ") || !strings.Contains(stdout, "\nReplicas: 2 of 2 ready\nProblems: none\n") || !strings.Contains(stdout, "\nfoo-controller ") {
			t.Errorf("status %q prints\n%s", args, stdout)
		}
	}
	// With -o json, standard output is only JSON.
	if stdout, _ := waitStatus(t, kubeconfig, "-o=json", "foo"); !strings.HasPrefix(stdout, "{") || !strings.HasSuffix(stdout, "}\n") {
		t.Errorf("-o json prints\n%s", stdout)
	}

	_, stderr, code := runStatus(t, kubeconfig, "--pod=nobody")
	if want := "Error: forwarding a port to Pod sample-controller-manager/nobody: "; code != 1 || !strings.Contains(stderr, want) || !strings.Contains(stderr, "not found") {
		t.Errorf("missing Pod: exit code %d, output %q", code, stderr)
	}
	r.Stop()
	_, stderr, code = runStatus(t, kubeconfig, "--pod=standby")
	if lines := strings.Split(stderr, "\n"); code != 1 || len(lines) != 3 || !strings.Contains(lines[1], "connection refused") {
		t.Errorf("Pod without a server: exit code %d, output %q, want one line with the reason", code, stderr)
	}

	// The Role grants everything that the plugin requested.
	denied := framework.Audit(t, cluster.Unauthorized, func(event auditv1.Event) bool {
		return event.RequestReceivedTimestamp.After(known) && strings.HasPrefix(event.UserAgent, framework.PluginName+"/")
	})
	for _, event := range denied {
		t.Errorf("%s was denied: %s", cluster.Call(event), event.ResponseStatus.Message)
	}
}

// startLeader starts a replica that leads on this machine, and a Node whose Pods forward their connections to it. The
// Lease names the host, so a Pod with that name stands for the leader.
func startLeader(t *testing.T) (r *framework.Replica, host, node string) {
	t.Helper()
	framework.FreeLease(t)
	r = framework.StartReplica(t).Ready()
	host, _, _ = strings.Cut(framework.WaitLeader(t, ""), "_")
	address, err := url.Parse(r.URL)
	if err != nil {
		t.Fatal(err)
	}
	return r, host, startKubelet(t, forwardsTo(address.Port()))
}

// standForReplica creates a Pod on a Node until the end of the test, with a command for those that run it there.
func standForReplica(t *testing.T, node, name string, command ...string) {
	t.Helper()
	var args []string
	if len(command) > 0 {
		command, args = command[:1], command[1:]
	}
	_, err := framework.Kube().CoreV1().Pods(framework.DaemonName).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app.kubernetes.io/name": framework.DaemonName}},
		Spec: corev1.PodSpec{
			NodeName: node,
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			Containers: []corev1.Container{{
				Name: framework.DaemonName, Image: framework.DaemonName, Command: command, Args: args,
				SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: ptr.To(false),
					Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
			}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := framework.Kube().CoreV1().Pods(framework.DaemonName).Delete(context.WithoutCancel(t.Context()), name,
			metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}); err != nil {
			t.Error(err)
		}
	})
}

// forwardsTo configures kwok to forward port 10261 of any Pod to a port of this machine.
func forwardsTo(port string) string {
	return fmt.Sprintf(`
kind: ClusterPortForward
apiVersion: kwok.x-k8s.io/v1alpha1
metadata:
  name: replicas
spec:
  forwards:
  - ports: [10261]
    target: {address: 127.0.0.1, port: %s}
`, port)
}

// startKubelet adds a Node for no scheduled Pods, with a kubelet that forwards ports, runs commands or has logs, as the
// configuration of kwok says. The kubelet is a second kwok that manages no Node: the cluster's own kwok manages this
// Node, too.
func startKubelet(t *testing.T, configuration string) (node string) {
	t.Helper()
	paths, err := cluster.Binaries(t.Context(), os.Stderr, "kwok", "kwok-stages")
	if err != nil {
		t.Fatal(err)
	}
	stages, err := exec.CommandContext(t.Context(), paths["kwok-stages"]).Output()
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "kwok.yaml")
	if err := os.WriteFile(config, append(stages, "\n---"+configuration...), 0o600); err != nil {
		t.Fatal(err)
	}
	kubeletPort := framework.FreePort(t)
	server := net.JoinHostPort("127.0.0.1", strconv.Itoa(kubeletPort))
	framework.StartProgram(t, paths["kwok"], "--kubeconfig="+framework.Cluster().Kubeconfig, "--config="+config, "--manage-single-node=none", "--server-address="+server)
	clustertest.WaitUntil(t, "the kubelet serves", func(ctx context.Context) error {
		connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", server)
		if err != nil {
			return err
		}
		return connection.Close()
	})

	node = "forwarding"
	_, err = framework.Kube().CoreV1().Nodes().Create(t.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: node},
		Spec:       corev1.NodeSpec{Unschedulable: true},
		Status: corev1.NodeStatus{
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"},
				{Type: corev1.NodeHostName, Address: "127.0.0.1"}},
			DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: int32(kubeletPort)}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := framework.Kube().CoreV1().Nodes().Delete(context.WithoutCancel(t.Context()), node,
			metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	return node
}
