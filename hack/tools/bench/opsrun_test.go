// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"samplecontroller.io/controller-manager/examples/ops/api"
	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
	"samplecontroller.io/sample-controller-manager/hack/test/cluster/process"
)

// opsPeer is a program of three controllers.
type opsPeer struct {
	name, module, source string
	flags                []string // the last one wants the namespace of the Lease
}

// opsRun is a peer with its objects.
type opsRun struct {
	*testing.T
	peer       opsPeer
	cluster    *cluster.Cluster
	user       client.Client
	namespace  string // of the Backups, the Jobs and the Lease
	binary     string
	kubeconfig string
	vault      *httptest.Server
	group      *process.Group
	process    *process.Process
	starts     int

	counts     map[string]map[string]int // writes by step
	reads      map[string]int            // by step
	notes      map[string]string
	vaultCalls map[string]map[string]int // by step
	mutex      sync.Mutex
	step       map[string]int // calls of the vault by method, in this step
}

func newOpsRun(t *testing.T, c *cluster.Cluster, peer opsPeer, binary, namespace string) *opsRun {
	scheme := clientgoscheme.Scheme
	if err := api.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	user, err := client.New(c.Config(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	r := &opsRun{
		T: t, peer: peer, cluster: c, user: user, namespace: namespace, binary: binary,
		counts: map[string]map[string]int{}, reads: map[string]int{}, notes: map[string]string{},
		vaultCalls: map[string]map[string]int{}, step: map[string]int{},
	}
	r.vault = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		r.mutex.Lock()
		defer r.mutex.Unlock()
		r.step[request.Method]++
	}))
	t.Cleanup(r.vault.Close)
	dir := t.TempDir()
	if r.group, err = process.NewGroup(dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			for i := range r.starts {
				t.Logf("log of %s:\n%s", peer.name, process.Tail(r.group.LogPath(fmt.Sprintf("ops-%d", i))))
			}
		}
		_ = r.group.Close()
	})
	for _, command := range []string{
		"create namespace " + namespace, "-n " + namespace + " create serviceaccount default",
		"create clusterrolebinding " + namespace + " --clusterrole=cluster-admin --serviceaccount=" + namespace + ":default",
	} {
		if _, err := c.Kubectl(t.Context(), strings.Fields(command)...); err != nil {
			t.Fatal(err)
		}
	}
	if r.kubeconfig, err = c.ServiceAccountKubeconfig(t.Context(), namespace, "default"); err != nil {
		t.Fatal(err)
	}
	return r
}

// takeVaultCalls returns the numbers of calls of the vault by method since the last call.
func (r *opsRun) takeVaultCalls() map[string]int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	calls := r.step
	r.step = map[string]int{}
	return calls
}

func (r *opsRun) start() {
	r.Helper()
	flags := append([]string{"--kubeconfig=" + r.kubeconfig, "--vault-url=" + r.vault.URL, "--job-ttl=1s"}, r.peer.flags...)
	flags[len(flags)-1] += r.namespace
	var err error
	r.process, err = r.group.Start(fmt.Sprintf("ops-%d", r.starts), nil, r.binary, flags...)
	if err != nil {
		r.Fatal(err)
	}
	r.starts++
}

func (r *opsRun) stop() {
	r.Helper()
	if err := r.process.Stop(3 * time.Minute); err != nil {
		r.Errorf("%s: %v", r.peer.name, err)
	}
}

// must ends the test if a request of the user failed.
func (r *opsRun) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// label creates a Namespace, or changes its label.
func (r *opsRun) label(name, value string) {
	r.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.namespace + "-" + name}}
	err := r.user.Create(r.Context(), namespace)
	if apierrors.IsAlreadyExists(err) {
		err = r.user.Get(r.Context(), client.ObjectKeyFromObject(namespace), namespace)
	}
	r.must(err)
	namespace.Labels = map[string]string{"ops.example.org/defaults": value}
	r.must(r.user.Update(r.Context(), namespace))
}

func (r *opsRun) backup(name, schedule string) {
	r.Helper()
	r.must(client.IgnoreAlreadyExists(r.user.Create(r.Context(), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			},
		},
	})))
	r.must(r.user.Create(r.Context(), &api.Backup{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: name},
		Spec:       api.BackupSpec{Source: name, Schedule: schedule, Retention: 3},
	}))
}

// job creates a Job that has ended.
func (r *opsRun) job(name string) {
	r.Helper()
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: name}}
	job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	job.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Image: "i"}}
	r.must(r.user.Create(r.Context(), job))
	now := metav1.Now()
	job.Status = batchv1.JobStatus{
		StartTime: &now, CompletionTime: &now, Succeeded: 1, UncountedTerminatedPods: &batchv1.UncountedTerminatedPods{},
		Conditions: []batchv1.JobCondition{
			{Type: batchv1.JobSuccessCriteriaMet, Status: "True", LastTransitionTime: now},
			{Type: batchv1.JobComplete, Status: "True", LastTransitionTime: now},
		},
	}
	r.must(r.user.Status().Update(r.Context(), job))
}

func (r *opsRun) create(n int) {
	for i := range n {
		r.label(fmt.Sprint(i), "true")
		r.backup(fmt.Sprint("b", i), "@daily")
		r.job(fmt.Sprint("j", i))
	}
	r.settled(n, "@daily", 50)
}

// change changes what the program has made, and what it is made for.
func (r *opsRun) change(n int) {
	for i := range n {
		quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprintf("%s-%d", r.namespace, i), Name: "ops-defaults"}}
		r.must(r.user.Patch(r.Context(), quota, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"hard":{"pods":"9"}}}`))))
		backup := &api.Backup{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: fmt.Sprint("b", i)}}
		r.must(r.user.Patch(r.Context(), backup, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"schedule":"@hourly"}}`))))
	}
	r.settled(n, "@hourly", 50)
}

// restart restarts the program, and gives it time to reconcile everything.
func (r *opsRun) restart(int) {
	r.stop()
	r.start()
	r.wait("the program leads again", func(ctx context.Context) error {
		var lease coordinationv1.Lease
		if err := r.user.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: "ops-manager"}, &lease); err != nil {
			return err
		}
		if holder := lease.Spec.HolderIdentity; holder == nil || *holder == "" {
			return fmt.Errorf("nobody holds the Lease")
		}
		return nil
	})
	r.idle(0)
}

// remove removes everything.
func (r *opsRun) remove(n int) {
	for i := range n {
		r.label(fmt.Sprint(i), "false")
		r.must(r.user.Delete(r.Context(), &api.Backup{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace,
			Name: fmt.Sprint("b", i)}}))
	}
	r.settled(0, "", 0)
	// as the garbage collector would
	r.must(r.user.DeleteAllOf(r.Context(), &batchv1.CronJob{}, client.InNamespace(r.namespace)))
}

// settled waits until n Namespaces have their defaults, n Backups are ready with this schedule, and all
// finished Jobs are gone.
func (r *opsRun) settled(n int, schedule string, pods int64) {
	r.Helper()
	r.wait(fmt.Sprintf("%d objects are as they should be", n), func(ctx context.Context) error {
		var quotas corev1.ResourceQuotaList
		var policies networkingv1.NetworkPolicyList
		var backups api.BackupList
		var jobs batchv1.JobList
		var cronJobs batchv1.CronJobList
		for _, list := range []client.ObjectList{&quotas, &policies, &backups, &jobs, &cronJobs} {
			var in []client.ListOption
			if list != client.ObjectList(&quotas) && list != client.ObjectList(&policies) {
				in = append(in, client.InNamespace(r.namespace))
			}
			if err := r.user.List(ctx, list, in...); err != nil {
				return err
			}
		}
		done, scheduled, ready := 0, 0, 0
		for _, q := range quotas.Items {
			if strings.HasPrefix(q.Namespace, r.namespace+"-") && q.Spec.Hard.Pods().Value() == pods {
				done++
			}
		}
		for _, p := range policies.Items {
			if strings.HasPrefix(p.Namespace, r.namespace+"-") {
				done++
			}
		}
		for _, c := range cronJobs.Items {
			if c.Spec.Schedule == schedule {
				scheduled++
			}
		}
		for _, b := range backups.Items {
			if b.Status.ObservedGeneration == b.Generation && meta.IsStatusConditionTrue(b.Status.Conditions, "Ready") {
				ready++
			}
		}
		if done != 2*n || n > 0 && scheduled != n || ready != n || len(backups.Items) != n || len(jobs.Items) > 0 {
			return fmt.Errorf("%d defaults, %d schedules, %d of %d Backups ready, %d Jobs", done, scheduled, ready, len(backups.Items), len(jobs.Items))
		}
		return nil
	})
}
