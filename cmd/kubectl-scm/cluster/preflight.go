// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/streaming/pkg/httpstream"

	"samplecontroller.io/controller-manager/debug"
)

// Checks are the results of a preflight.
type Checks struct {
	Checks []Check `json:"checks"`
}

// Check is the result of one check: OK, WARN, FAIL or SKIP.
type Check struct {
	Check   string `json:"check"`
	Result  string `json:"result"`
	Details string `json:"details"`
}

// Preflight runs the daemon's preflight in a replica's Pod, with the flags of its container and then those given.
// progress gets the Pod and what the daemon says beside its checks.
func (c *Cluster) Preflight(ctx context.Context, flags []string, progress io.Writer) (checks Checks, err error) {
	pod, err := c.preflightPod(ctx)
	if err != nil {
		return checks, err
	}
	command := preflightCommand(pod)
	fmt.Fprintf(progress, "In Pod %s/%s\n", pod.Namespace, pod.Name)
	options := &corev1.PodExecOptions{Container: Daemon, Command: append(command, flags...), Stdout: true, Stderr: true}
	request := c.client.CoreV1().RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).
		SubResource("exec").VersionedParams(options, scheme.ParameterCodec)
	executor, err := c.executor(request.URL())
	if err != nil {
		return checks, err
	}
	var out bytes.Buffer
	err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &out, Stderr: progress})
	if err != nil && out.Len() == 0 { // its exit code is 1 also if a check fails
		return checks, fmt.Errorf("running preflight in Pod %s/%s: %s", pod.Namespace, pod.Name, debug.Short(err.Error()))
	}
	if err := json.Unmarshal(out.Bytes(), &checks); err != nil {
		return checks, fmt.Errorf("decoding the preflight of Pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return checks, nil
}

// preflightCommand returns the command of the daemon's container, which is the entrypoint of its image by default, with
// the subcommand and the flags of the container. Like the kubelet it expands variables such as $(SERVED_NAMESPACE).
func preflightCommand(pod *corev1.Pod) []string {
	entrypoint, flags, values := []string{"/" + Daemon}, []string(nil), []string(nil)
	for _, container := range pod.Spec.Containers {
		if container.Name != Daemon {
			continue
		}
		if flags = container.Args; len(container.Command) > 0 {
			entrypoint = container.Command
		}
		for _, variable := range container.Env {
			values = append(values, "$("+variable.Name+")", variable.Value)
		}
	}
	command := slices.Concat(entrypoint, []string{"preflight", "--output=json"}, flags)
	expand := strings.NewReplacer(values...)
	for i, argument := range command {
		command[i] = expand.Replace(argument)
	}
	return command
}

// executor has the same fallback as kubectl.
func (c *Cluster) executor(request *url.URL) (remotecommand.Executor, error) {
	websocket, err := remotecommand.NewWebSocketExecutor(c.config, "GET", request.String())
	if err != nil {
		return nil, err
	}
	spdy, err := remotecommand.NewSPDYExecutor(c.config, "POST", request)
	if err != nil {
		return nil, err
	}
	return remotecommand.NewFallbackExecutor(websocket, spdy, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
}

// preflightPod returns the Pod that --pod names, the leader's, or one that is ready.
func (c *Cluster) preflightPod(ctx context.Context) (*corev1.Pod, error) {
	name := c.options.Pod
	if name == "" {
		name, _ = c.leaderPod(ctx) // without a leader, another Pod serves as well
	}
	if name == "" {
		pods, err := c.Pods(ctx)
		if err != nil {
			return nil, err
		}
		for _, pod := range pods {
			if pod.Ready || name == "" && pod.Problem == "" {
				name = pod.Name
			}
		}
	}
	if name == "" {
		return nil, fmt.Errorf("no replica runs in namespace %s: run the Job of manifests/docs/preflight.md, or check --daemon-namespace", c.options.DaemonNamespace)
	}
	pod, err := c.client.CoreV1().Pods(c.options.DaemonNamespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading Pod %s/%s: %w", c.options.DaemonNamespace, name, c.withAdvice(err))
	}
	return pod, nil
}
