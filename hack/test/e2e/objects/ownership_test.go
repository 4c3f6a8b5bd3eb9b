// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// editsByOthers returns edits of our Deployments by other clients, as commands for
// EditDeployment, by the name of the object that they are tried on.
func editsByOthers(t *testing.T, ns string) map[string][]string {
	t.Helper()
	owner := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","name":"kube-root-ca.crt","uid":%q}`,
		framework.Kubectl(t, "-n", ns, "get", "configmap", "kube-root-ca.crt", "-o", "jsonpath={.metadata.uid}"))
	applied := filepath.Join(t.TempDir(), "applied.yaml")
	manifest := `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"applied"},"spec":{"template":{"spec":{"terminationGracePeriodSeconds":5}}}}`
	if err := os.WriteFile(applied, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	template := func(spec string) string { return `patch DEPLOYMENT -p={"spec":{"template":` + spec + `}}` }
	return map[string][]string{
		"metadata": {
			"label DEPLOYMENT team=blue",
			"annotate DEPLOYMENT team=blue",
			`patch DEPLOYMENT -p={"metadata":{"ownerReferences":[` + owner + `]}}`,
			`patch DEPLOYMENT -p={"spec":{"revisionHistoryLimit":3,"progressDeadlineSeconds":90,"strategy":{"rollingUpdate":{"maxSurge":2}}}}`,
		},
		"template": {
			"set env DEPLOYMENT -c=nginx LEVEL=debug",
			"set resources DEPLOYMENT -c=nginx --limits=cpu=200m,memory=1Gi --requests=cpu=100m",
			"rollout restart DEPLOYMENT",
			template(`{"metadata":{"labels":{"team":"blue"},"annotations":{"scrape":"true"}}}`),
			template(`{"spec":{"containers":[{"name":"sidecar","image":"busybox"}]}}`),
			template(`{"spec":{"initContainers":[{"name":"init","image":"busybox"}]}}`),
			template(`{"spec":{"tolerations":[{"key":"dedicated","operator":"Exists"}],"nodeSelector":{"kubernetes.io/os":"linux"}}}`),
			template(`{"spec":{"serviceAccountName":"default","securityContext":{"runAsNonRoot":true,"runAsUser":1}}}`),
			template(`{"spec":{"volumes":[{"name":"tmp","emptyDir":{}}],` +
				`"containers":[{"name":"nginx","volumeMounts":[{"name":"tmp","mountPath":"/tmp"}],"ports":[{"containerPort":80}]}]}}`),
			template(`{"spec":{"containers":[{"name":"nginx","imagePullPolicy":"Never","readinessProbe":{"httpGet":{"path":"/","port":80}}}]}}`),
		},
		"first": {`patch DEPLOYMENT --type=json ` +
			`-p=[{"op":"add","path":"/spec/template/spec/containers/0","value":{"name":"first","image":"busybox"}}]`},
		// Forced, as by GitOps tools: the creator of an object owns its defaults.
		"applied": {"apply --server-side --force-conflicts --field-manager=gitops -f " + applied},
	}
}

// ourWrites are all our ways to write a Deployment, in the order in which they are tried on an
// object that starts with one replica of nginx:1.28.
var ourWrites = []struct {
	name     string
	cause    func(t *testing.T, k framework.Kind, ns, name string)
	replicas int32
	image    string
}{
	{"scaling", func(t *testing.T, k framework.Kind, ns, name string) {
		k.Patch(t, ns, name, `{"spec":{"replicas":2}}`)
	}, 2, "nginx:1.28"},
	{"another image", func(t *testing.T, k framework.Kind, ns, name string) {
		k.Patch(t, ns, name, `{"spec":{"image":"nginx:1.29"}}`)
	}, 2, "nginx:1.29"},
	{"both", func(t *testing.T, k framework.Kind, ns, name string) {
		k.Patch(t, ns, name, `{"spec":{"replicas":1,"image":"nginx:1.30"}}`)
	}, 1, "nginx:1.30"},
	{"undoing another's scaling", func(t *testing.T, _ framework.Kind, ns, name string) {
		framework.EditDeployment(t, ns, name, "scale DEPLOYMENT --replicas=3")
	}, 1, "nginx:1.30"},
	{"undoing another's image", func(t *testing.T, _ framework.Kind, ns, name string) {
		framework.EditDeployment(t, ns, name, "set image DEPLOYMENT nginx=other:1")
	}, 1, "nginx:1.30"},
}

// TestForeignFieldsSurvive lets other clients edit our Deployments, and then makes the daemon
// write them in every way that it does.
func TestForeignFieldsSurvive(t *testing.T) {
	framework.FreeLease(t)
	r := framework.StartReplica(t).Ready()
	framework.OverKinds(t, foreignFieldsSurvive)
	r.Stop()
}

func foreignFieldsSurvive(t *testing.T, k framework.Kind) {
	ns := framework.NewNamespace(t)
	clustertest.WaitUntil(t, "the namespace has its ConfigMap kube-root-ca.crt", func(ctx context.Context) error {
		_, err := framework.Kube().CoreV1().ConfigMaps(ns).Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
		return err
	})
	edits := editsByOthers(t, ns)
	theirs := map[string]appsv1.Deployment{}
	ours := map[string]sets.Set[string]{} // the fields that the daemon manages
	for name := range edits {
		framework.ApplyManifest(t, ns, k.Manifest(name, name, 1)+"  image: nginx:1.28\n")
	}
	for name, commands := range edits {
		k.WaitReady(t, ns, name, 1)
		before := framework.Deployment(t, ns, name)
		ours[name] = fieldsOf(t, before.ManagedFields, k.Controller)
		for _, command := range commands {
			framework.EditDeployment(t, ns, name, command)
			edited := framework.Deployment(t, ns, name)
			if cmp.Equal(ofOthers(before), ofOthers(edited)) {
				t.Errorf("%q changes nothing", command)
			}
			before = edited
		}
		theirs[name] = ofOthers(before)
	}
	for _, write := range ourWrites {
		t.Run(write.name, func(t *testing.T) {
			for name := range edits {
				write.cause(t, k, ns, name)
			}
			for name := range edits {
				waitWritten(t, k, ns, name, write.replicas, write.image)
				got := framework.Deployment(t, ns, name)
				if diff := cmp.Diff(theirs[name], ofOthers(got)); diff != "" {
					t.Errorf("the daemon changed edits of %s (-before +after):\n%s", name, diff)
				}
				if more := fieldsOf(t, got.ManagedFields, k.Controller).Difference(ours[name]); more.Len() > 0 {
					t.Errorf("the daemon manages fields of %s that it did not set: %v", name, sets.List(more))
				}
			}
		})
	}
}

// ofOthers returns the parts of a Deployment that we do not declare and that do not change by
// themselves.
func ofOthers(d *appsv1.Deployment) appsv1.Deployment {
	d = d.DeepCopy()
	d.ResourceVersion, d.Generation, d.ManagedFields, d.Status = "", 0, nil, appsv1.DeploymentStatus{}
	delete(d.Annotations, "deployment.kubernetes.io/revision")
	d.Spec.Replicas = nil
	for i, container := range d.Spec.Template.Spec.Containers {
		if container.Name == "nginx" {
			d.Spec.Template.Spec.Containers[i].Image = ""
		}
	}
	return *d
}

// waitWritten waits until the Deployment is as declared and the object's status says so.
func waitWritten(t *testing.T, k framework.Kind, ns, name string, replicas int32, image string) {
	t.Helper()
	clustertest.WaitUntil(t, fmt.Sprintf("Deployment %s has %d replicas of %s", name, replicas, image), func(ctx context.Context) error {
		d, err := framework.Kube().AppsV1().Deployments(ns).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, container := range d.Spec.Template.Spec.Containers {
			if container.Name == "nginx" && container.Image == image && *d.Spec.Replicas == replicas {
				return nil
			}
		}
		return fmt.Errorf("the Deployment has %d replicas of %v", *d.Spec.Replicas, d.Spec.Template.Spec.Containers)
	})
	k.WaitReady(t, ns, name, int(replicas))
}

// fieldsOf returns the paths of a field manager's fields, in the form "f:spec/f:replicas".
func fieldsOf(t *testing.T, entries []metav1.ManagedFieldsEntry, manager string) sets.Set[string] {
	t.Helper()
	paths := sets.New[string]()
	var walk func(prefix string, fields map[string]any)
	walk = func(prefix string, fields map[string]any) {
		for name, below := range fields {
			if below := below.(map[string]any); len(below) > 0 {
				walk(prefix+name+"/", below)
				continue
			}
			paths.Insert(prefix + name)
		}
	}
	if raw := framework.ManagedBy(entries, manager, ""); raw != "" {
		fields := map[string]any{}
		if err := json.Unmarshal([]byte(raw), &fields); err != nil {
			t.Fatal(err)
		}
		walk("", fields)
	}
	return paths
}
