// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
	samplescheme "samplecontroller.io/client-go/clientset/versioned/scheme"
	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/manager"
	"samplecontroller.io/controller-manager/managertest"

	"samplecontroller.io/sample-controller-manager/pkg/controller/foo"
)

// fuzzed is an API server with arbitrary objects, on which the program runs.
type fuzzed struct {
	env
	names []string // of the Deployments
}

// FuzzSync runs the program on an object among Deployments until nothing changes. The API server
// could have stored any of these objects, before the CRD had its rules. It checks every write.
func FuzzSync(f *testing.F) {
	for _, seed := range fuzzSeeds {
		f.Add([]byte(seed.object), []byte(seed.deployments))
	}
	f.Fuzz(func(t *testing.T, object, deployments []byte) {
		obj, ok := decodeFoo(object)
		if !ok {
			return
		}
		p := manager.Program{Name: "sample-controller-manager", Scheme: samplescheme.AddToScheme,
			Controllers: []controller.Descriptor{foo.Descriptor()}}
		managertest.Run(t, p, func(t *testing.T, in *managertest.Env) {
			e := fuzzed{env{in, t}, []string{obj.Spec.DeploymentName}}
			e.LoseLead()
			e.given(obj, decodeDeployments(deployments))
			e.check("as found", e.Lead)
			e.check("with all Pods available", func() {
				for name := range e.deployments() {
					managertest.Update(e.Env, namespace, name, ready)
				}
			})
		})
	})
}

// decodeFoo decodes an object. It returns false for one that the API server would not have stored.
func decodeFoo(data []byte) (*samplev1alpha1.Foo, bool) {
	obj := &samplev1alpha1.Foo{}
	if err := json.Unmarshal(data, obj); err != nil {
		return nil, false
	}
	obj.Namespace, obj.Name, obj.ResourceVersion, obj.ManagedFields = namespace, name, "", nil
	types := sets.New[string]()
	for _, condition := range obj.Status.Conditions {
		if types.Has(condition.Type) {
			return nil, false // the object has a duplicate key in a list of type map
		}
		types.Insert(condition.Type)
	}
	return obj, storable(obj)
}

// decodeDeployments decodes a list of Deployments as a client does, without those that the
// API server would not have stored.
func decodeDeployments(data []byte) (deployments []*appsv1.Deployment) {
	decoded, _, err := scheme.Codecs.UniversalDeserializer().Decode(data, nil, nil)
	list, ok := decoded.(*appsv1.DeploymentList)
	if err != nil || !ok {
		return nil
	}
	for i := range list.Items {
		d := &list.Items[i]
		d.Namespace, d.ResourceVersion, d.ManagedFields = namespace, "", nil
		if d.UID == "" || d.Spec.Selector == nil || !storable(d) ||
			len(metav1validation.ValidateLabelSelector(d.Spec.Selector, metav1validation.LabelSelectorValidationOptions{},
				nil)) > 0 ||
			slices.ContainsFunc(deployments, func(other *appsv1.Deployment) bool { return other.Name == d.Name }) ||
			len(metav1validation.ValidateLabels(d.Spec.Template.Labels, nil)) > 0 || ptr.Deref(d.Spec.Replicas, 1) < 0 {
			continue
		}
		deployments = append(deployments, d)
	}
	return deployments
}

// storable reports whether the API server accepts the metadata.
func storable(o metav1.Object) bool {
	return len(apivalidation.ValidateObjectMetaAccessor(o, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))) == 0
}

// given creates the objects. A reference to the UID of the Foo gets the one that the API server gives it.
func (f *fuzzed) given(obj *samplev1alpha1.Foo, deployments []*appsv1.Deployment) {
	f.t.Helper()
	f.Create(obj)
	stored := f.foo().UID
	for _, d := range deployments {
		for i := range d.OwnerReferences {
			if d.OwnerReferences[i].UID == obj.UID {
				d.OwnerReferences[i].UID = stored
			}
		}
		f.Create(d)
		f.names = append(f.names, d.Name)
		if d.DeletionTimestamp != nil {
			f.Delete(d)
		}
	}
	if obj.DeletionTimestamp != nil && len(obj.Finalizers) > 0 {
		f.Delete(obj)
	}
	f.Settle() // the caches have all of them
}

// deployments returns the Deployments by name.
func (f *fuzzed) deployments() map[string]*appsv1.Deployment {
	f.t.Helper()
	all := map[string]*appsv1.Deployment{}
	for _, name := range f.names {
		if name == "" {
			continue
		}
		if d, ok := managertest.Get[*appsv1.Deployment](f.Env, namespace, name); ok {
			all[name] = d
		}
	}
	return all
}

// check changes something, and checks what the program does until it writes nothing more.
func (f *fuzzed) check(when string, change func()) {
	f.t.Helper()
	f.forget()
	before := f.deployments()
	change() // at most statuses of Deployments
	f.pass(time.Second)
	f.checkWrites(f.Writes(), before)
	f.checkStatus()
	f.pass(10 * time.Second)
	if more := f.Writes(); len(more) > 0 {
		f.t.Errorf("%s: still writing: %q", when, more)
	}
}

// checkWrites checks the writes since there were the Deployments in before.
func (f *fuzzed) checkWrites(writes []string, before map[string]*appsv1.Deployment) {
	f.t.Helper()
	// The limit: two Deployments, the second with the fields that differ, and a status each.
	if len(writes) > 4 {
		f.t.Errorf("%d writes: %q", len(writes), writes)
	}
	now, owner := f.deployments(), f.foo()
	wanted := owner.Spec.DeploymentName
	allowed, written := []string{patchStatus}, wanted
	switch {
	case owner.DeletionTimestamp != nil:
		written = ""
	case slices.Contains(writes, "create deployments.apps default/"+wanted) && before[wanted] == nil:
		allowed = append(allowed, "create deployments.apps default/"+wanted)
		f.checkDeployment(now[wanted], owner)
	default:
		written = f.reported(before, owner)
	}
	if live := before[written]; live != nil && metav1.IsControlledBy(live, owner) && live.DeletionTimestamp == nil {
		allowed = append(allowed, "patch deployments.apps default/"+written)
	}
	for _, write := range writes {
		if !slices.Contains(allowed, write) {
			f.t.Errorf("write %q, want only %q", write, allowed)
		}
	}
	for name, d := range before {
		if diff := cmp.Diff(kept(d), kept(now[name])); name != written && diff != "" {
			f.t.Errorf("Deployment %q was changed (-before +now):\n%s", name, diff)
		}
	}
}

// kept returns what the program must not change in a Deployment.
func kept(d *appsv1.Deployment) *appsv1.Deployment {
	if d = d.DeepCopy(); d != nil {
		d.ResourceVersion, d.ManagedFields, d.Status = "", nil, appsv1.DeploymentStatus{}
	}
	return d
}

// reported returns the name of the Deployment that may be written: the one in the spec or, while
// the object has none of that name, the newest one with the selector of the object.
func (f *fuzzed) reported(all map[string]*appsv1.Deployment, owner *samplev1alpha1.Foo) string {
	wanted := owner.Spec.DeploymentName
	if d := all[wanted]; d != nil && metav1.IsControlledBy(d, owner) {
		return wanted
	}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "nginx", "controller": name}}
	var newest *appsv1.Deployment
	for _, d := range all {
		if !metav1.IsControlledBy(d, owner) || d.DeletionTimestamp != nil ||
			!equality.Semantic.DeepEqual(d.Spec.Selector, selector) {
			continue
		}
		if newest == nil || newest.CreationTimestamp.Before(&d.CreationTimestamp) ||
			newest.CreationTimestamp.Equal(&d.CreationTimestamp) && d.UID < newest.UID {
			newest = d
		}
	}
	if newest == nil {
		return ""
	}
	return newest.Name
}

// checkDeployment checks that the API server would accept a created Deployment.
func (f *fuzzed) checkDeployment(d *appsv1.Deployment, owner *samplev1alpha1.Foo) {
	f.t.Helper()
	if d == nil || !storable(d) {
		f.t.Fatalf("created a Deployment that cannot be stored: %v", d)
	}
	if !metav1.IsControlledBy(d, owner) || len(d.OwnerReferences) != 1 {
		f.t.Errorf("created a Deployment with owners %v, want only %q", d.OwnerReferences, owner.GetUID())
	}
	if errs := metav1validation.ValidateLabels(d.Spec.Template.Labels, nil); len(errs) > 0 {
		f.t.Errorf("created a Deployment with bad labels: %v", errs)
	}
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil || selector.Empty() || !selector.Matches(labels.Set(d.Spec.Template.Labels)) {
		f.t.Errorf("created a Deployment whose selector %v does not match its Pods' labels %v: %v", d.Spec.Selector, d.Spec.Template.Labels, err)
	}
	if d.Spec.Replicas != nil && *d.Spec.Replicas < 0 {
		f.t.Errorf("created a Deployment with %d replicas", *d.Spec.Replicas)
	}
	containers := d.Spec.Template.Spec.Containers
	if len(containers) != 1 || containers[0].Image == "" {
		f.t.Errorf("created a Deployment with containers %v", containers)
	}
	if pod := d.Spec.Template.Spec; pod.ServiceAccountName != "" || pod.HostNetwork || pod.HostPID ||
		len(pod.Volumes) > 0 {
		f.t.Errorf("created a Deployment with more than an image: %v", pod)
	}
}

// reasons matches the reasons of conditions that the API server accepts.
var reasons = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)

// checkStatus checks that the status is consistent and matches the Deployment.
func (f *fuzzed) checkStatus() {
	f.t.Helper()
	o := f.foo()
	if o.Status.ObservedGeneration != o.Generation {
		f.t.Errorf("status observes generation %d, want %d", o.Status.ObservedGeneration, o.Generation)
	}
	var isTrue []string
	for _, c := range o.Status.Conditions {
		if !slices.Contains([]string{"Ready", "Reconciling", "Stalled"}, c.Type) {
			continue // another controller's
		}
		if c.Status == metav1.ConditionTrue {
			isTrue = append(isTrue, c.Type)
		} else if c.Type != "Ready" {
			f.t.Errorf("condition %s is present and %s, want it absent", c.Type, c.Status)
		}
		if !reasons.MatchString(c.Reason) || len(c.Message) > 2100 || c.LastTransitionTime.IsZero() ||
			strings.ToValidUTF8(c.Message, "") != c.Message {
			f.t.Errorf("the API server would refuse or cut condition %v", c)
		}
	}
	if len(isTrue) != 1 || f.condition("Ready").Type == "" {
		f.t.Fatalf("conditions are %v, want Ready and one that is True", o.Status.Conditions)
	}
	if isTrue[0] != "Ready" {
		return
	}
	d := f.deployments()[o.Spec.DeploymentName]
	if o.DeletionTimestamp != nil || d == nil || !metav1.IsControlledBy(d, o) ||
		d.Status.ObservedGeneration < d.Generation ||
		d.Status.Replicas != d.Status.AvailableReplicas || d.Status.UpdatedReplicas != d.Status.Replicas {
		f.t.Errorf("Ready, with Deployment %v", d)
	}
}
