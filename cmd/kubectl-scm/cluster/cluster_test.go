// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
)

// fail makes requests for a resource fail with an error of the API server.
func fail(client *fake.Clientset, verb, resource string, failure func(schema.GroupResource, string) error) {
	client.PrependReactor(verb, resource, func(a clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, failure(a.GetResource().GroupResource(), reader)
	})
}

func notFound(resource schema.GroupResource, name string) error {
	return apierrors.NewNotFound(resource, name)
}

func forbidden(resource schema.GroupResource, name string) error {
	return apierrors.NewForbidden(resource, name, errors.New("no permission"))
}

const advice = "no permission; you need the Role " + reader + ": kubectl create rolebinding " + reader + " -n ns --role=" + reader + " --user=<you>"

// check compares an error with what it must contain, "" for no error.
func check(t *testing.T, err error, want string) {
	t.Helper()
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("error %v, want %q", err, want)
	}
}

// inNamespace returns a cluster with the daemon in the namespace ns.
func inNamespace(client kubernetes.Interface) *Cluster {
	return &Cluster{client: client, options: Options{DaemonNamespace: "ns", account: reader, accountFlag: "status-reader",
		defaultAccount: reader}}
}

func TestLeaderPod(t *testing.T) {
	lease := func(holder string) *coordinationv1.Lease {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: Daemon},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To(holder), LeaseDurationSeconds: ptr.To[int32](15),
				RenewTime: &metav1.MicroTime{Time: time.Now()}}}
	}
	expired := lease("pod-a_123")
	expired.Spec.RenewTime.Time = time.Now().Add(-time.Minute)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod-a", Labels: map[string]string{"app.kubernetes.io/name": Daemon}}}
	for name, test := range map[string]struct {
		objects      []runtime.Object
		denied, want string
	}{
		"leader":         {objects: []runtime.Object{lease("pod-a_123"), pod}},
		"no Lease":       {objects: []runtime.Object{pod}, want: "nobody leads: Lease ns/" + Daemon + " not found; check --daemon-namespace"},
		"no holder":      {objects: []runtime.Object{lease(""), pod}, want: "nobody leads: ask a replica with --pod: pod-a (not ready)"},
		"no replica":     {objects: []runtime.Object{lease("")}, want: "nobody leads: no replica runs in namespace ns; check --daemon-namespace"},
		"expired":        {objects: []runtime.Object{expired, pod}, want: "nobody leads: ask a replica with --pod: pod-a (not ready)"},
		"not a Pod":      {objects: []runtime.Object{lease("laptop_456"), pod}, want: "the leader is not a Pod: Lease ns/" + Daemon + " is held by laptop_456; use --server, for example --server=https://127.0.0.1:10261"},
		"forbidden":      {objects: []runtime.Object{lease("pod-a_123"), pod}, denied: "leases", want: "looking up the leader: "},
		"forbidden Pods": {objects: []runtime.Object{lease("pod-a_123"), pod}, denied: "pods", want: "looking up the leader's Pod: "},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset(test.objects...)
			if test.denied != "" {
				fail(client, "get", test.denied, forbidden)
			}
			got, err := inNamespace(client).leaderPod(t.Context())
			check(t, err, test.want)
			if test.denied != "" {
				check(t, err, advice)
			}
			if err == nil && got != "pod-a" {
				t.Errorf("Pod %q, want pod-a", got)
			}
		})
	}
}

// TestRolesForAnotherAccount: a verb with an account of its own needs two Roles.
func TestRolesForAnotherAccount(t *testing.T) {
	for _, prefix := range []string{"", "team-"} {
		client := fake.NewClientset()
		fail(client, "get", "leases", forbidden)
		fail(client, "create", "serviceaccounts", forbidden)
		c := inNamespace(client)
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		c.options.AddDeletionFlags(fs)
		if err := fs.Parse([]string{"--deletion-allower=" + prefix + deletionAllower}); err != nil {
			t.Fatal(err)
		}
		_, err := c.Lead(t.Context())
		check(t, err, "you need the Role "+prefix+reader+": ")
		_, err = c.token(t.Context())
		check(t, err, "you need the Role "+prefix+deletionAllower+": ")
	}
}

func TestReaderToken(t *testing.T) {
	for name, test := range map[string]struct {
		failure func(schema.GroupResource, string) error
		want    string
	}{
		"granted":    {},
		"no account": {notFound, "ServiceAccount ns/" + reader + " not found; check --daemon-namespace and --status-reader, or apply manifests/rbac of this version"},
		"forbidden":  {forbidden, advice},
		"expired": {
			func(schema.GroupResource, string) error { return apierrors.NewUnauthorized("Unauthorized") },
			"Unauthorized: the API server does not accept your credentials; check --kubeconfig and --context",
		},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			if test.failure != nil {
				fail(client, "create", "serviceaccounts", test.failure)
			} else {
				client.PrependReactor("create", "serviceaccounts", func(a clienttesting.Action) (bool, runtime.Object, error) {
					request := a.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenRequest)
					if seconds := ptr.Deref(request.Spec.ExpirationSeconds, 0); seconds != 600 || a.GetSubresource() != "token" ||
						a.GetNamespace() != "ns" {
						t.Errorf("%s/%s in %s for %d s, want a token for 600 s", a.GetResource().Resource, a.GetSubresource(), a.GetNamespace(), seconds)
					}
					request.Status.Token = "reader-token"
					return true, request, nil
				})
			}
			got, err := inNamespace(client).token(t.Context())
			check(t, err, test.want)
			if err == nil && got != "reader-token" {
				t.Errorf("token %q, want the one in the response", got)
			}
		})
	}
}
