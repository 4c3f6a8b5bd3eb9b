// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	samplescheme "samplecontroller.io/client-go/clientset/versioned/scheme"
	"samplecontroller.io/controller-manager/tolerant"

	"samplecontroller.io/sample-controller-manager/pkg/workload"
)

// FuzzSync syncs an object of each kind among Deployments until nothing changes. The API server
// could have stored any of these objects. It checks every write.
func FuzzSync(f *testing.F) {
	for _, seed := range fuzzSeeds {
		f.Add([]byte(seed.object), []byte(seed.deployments))
	}
	f.Fuzz(func(t *testing.T, object, deployments []byte) {
		for _, kind := range []kind{fooKind(), icecreamKind()} {
			o, ok := decodeObject(kind, object)
			if !ok {
				continue
			}
			f := newFixture(t, kind, o)
			f.kube.ClearActions()
			for _, d := range decodeDeployments(deployments) {
				// the second one of the same name is refused
				_ = f.kube.Tracker().Create(appsv1.SchemeGroupVersion.WithResource("deployments"), d, d.Namespace)
			}
			f.observe()
			if tolerant.DecodeError(o) != nil {
				f.sync()
				f.wantCalls()
				continue
			}
			f.untilQuiet("as found")
			f.servePods()
			f.untilQuiet("with all Pods available")
		}
	})
}

// decodeObject decodes an object as the informer's client does. It returns false for an
// object that the API server would not have stored.
func decodeObject(kind kind, data []byte) (object, bool) {
	serializer := tolerant.NegotiatedSerializer(samplescheme.Scheme)
	info, _ := runtime.SerializerInfoForMediaType(serializer.SupportedMediaTypes(), runtime.ContentTypeJSON)
	gvk := kind.GroupVersionKind
	decoded, _, err := serializer.DecoderToVersion(info.Serializer, gvk.GroupVersion()).Decode(data, &gvk, nil)
	if err != nil {
		return nil, false
	}
	o, ok := decoded.(object)
	if !ok || reflect.TypeOf(o) != reflect.TypeOf(kind.example()) {
		return nil, false
	}
	o.SetNamespace(key.Namespace)
	o.SetName(key.Name)
	o.SetManagedFields(nil) // the fake API server manages them
	if o.GetUID() == "" {
		o.SetUID("uid-example")
	}
	if o.GetResourceVersion() == "" {
		o.SetResourceVersion("1")
	}
	types := sets.New[string]()
	for _, condition := range *statusOf(o).conditions {
		if types.Has(condition.Type) {
			return nil, false // the object has a duplicate key in a list of type map
		}
		types.Insert(condition.Type)
	}
	stored := o.DeepCopyObject().(object)
	delete(stored.GetAnnotations(), tolerant.AnnotationDecodeError) // exists in memory only
	return o, storable(stored)
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
		d.Namespace = key.Namespace
		d.ManagedFields = nil
		if d.UID == "" || d.Spec.Selector == nil || !storable(d) || len(metav1validation.ValidateLabelSelector(d.Spec.Selector, metav1validation.LabelSelectorValidationOptions{}, nil)) > 0 ||
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

// servePods makes the Pods of all Deployments available, as kube-controller-manager does.
func (f *fixture) servePods() {
	f.Helper()
	for _, d := range f.allDeployments() {
		ready(d)
		if _, err := f.kube.AppsV1().Deployments(d.Namespace).Update(f.Context(), d, metav1.UpdateOptions{}); err != nil {
			f.Fatal(err)
		}
	}
	f.observe()
}

func (f *fixture) allDeployments() map[string]*appsv1.Deployment {
	f.Helper()
	list, err := f.kube.AppsV1().Deployments(key.Namespace).List(f.Context(), metav1.ListOptions{})
	if err != nil {
		f.Fatal(err)
	}
	all := map[string]*appsv1.Deployment{}
	for i := range list.Items {
		all[list.Items[i].Name] = &list.Items[i]
	}
	return all
}

// untilQuiet syncs with up-to-date caches until a sync writes nothing.
func (f *fixture) untilQuiet(when string) {
	f.Helper()
	// The limit: the Deployment, its status, another Deployment that is reported first, with a
	// status, and one sync without a write.
	const most = 5
	for range most {
		before := f.allDeployments()
		requeueAfter, err := f.controller.Sync(f.Context(), key)
		if err != nil {
			f.Fatalf("%s: sync() = %v", when, err)
		}
		wrote := f.checkWrites(before)
		f.observe()
		if requeueAfter == workload.StatusDelay {
			f.clock.Step(requeueAfter)
			continue
		}
		f.checkStatus()
		if !wrote {
			return
		}
	}
	f.Fatalf("%s: still writing after %d syncs", when, most)
}

// checkWrites checks the writes of a sync, and reports whether there were any.
func (f *fixture) checkWrites(before map[string]*appsv1.Deployment) (wrote bool) {
	f.Helper()
	now, owner := f.allDeployments(), f.object()
	wanted, reported := deploymentNameOf(owner), f.reported(before, owner)
	for _, action := range f.made {
		if owner.GetDeletionTimestamp() != nil && action.GetVerb() != "list" && action.GetResource() != f.kind.resources() {
			f.Errorf("%s %s for an object in deletion", action.GetVerb(), action.GetResource().Resource)
		}
		switch a := action.(type) {
		case clienttesting.CreateActionImpl:
			wrote = true
			created := a.GetObject().(*appsv1.Deployment)
			if created.Name != wanted || before[wanted] != nil {
				f.Errorf("created Deployment %q, want only %q, and only if there is none", created.Name, wanted)
			}
			f.checkDeployment(now[wanted], owner)
		case clienttesting.PatchActionImpl:
			wrote = true
			if a.GetResource() == f.kind.resources() {
				if a.GetName() != key.Name || a.GetSubresource() != "status" {
					f.Errorf("patched %s %s of %q", a.GetResource().Resource, a.GetSubresource(), a.GetName())
				}
				continue
			}
			if live := before[a.GetName()]; live == nil || a.GetName() != reported || !metav1.IsControlledBy(live, owner) || live.DeletionTimestamp != nil {
				f.Errorf("patched Deployment %q, which must not be written", a.GetName())
			}
		default:
			if !slices.Contains([]string{"list", "get"}, action.GetVerb()) {
				f.Errorf("unexpected request: %s %s", action.GetVerb(), action.GetResource().Resource)
			}
		}
	}
	for name, d := range before {
		if name != reported && !equality.Semantic.DeepEqual(d, now[name]) {
			f.Errorf("Deployment %q was changed (-before +now):\n%s", name, cmp.Diff(d, now[name]))
		}
	}
	return wrote
}

// reported returns the name of the Deployment that may be written: the one in the spec or, while
// the object has none of that name, the newest one with the selector of the object.
func (f *fixture) reported(all map[string]*appsv1.Deployment, owner object) string {
	wanted := deploymentNameOf(owner)
	if d := all[wanted]; d != nil && metav1.IsControlledBy(d, owner) {
		return wanted
	}
	labels := map[string]string{"app": f.kind.app, "controller": key.Name}
	var newest *appsv1.Deployment
	for _, d := range all {
		if !metav1.IsControlledBy(d, owner) || d.DeletionTimestamp != nil || !equality.Semantic.DeepEqual(d.Spec.Selector, &metav1.LabelSelector{MatchLabels: labels}) {
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
func (f *fixture) checkDeployment(d *appsv1.Deployment, owner object) {
	f.Helper()
	if d == nil || !storable(d) {
		f.Fatalf("created a Deployment that cannot be stored: %v", d)
	}
	if !metav1.IsControlledBy(d, owner) || len(d.OwnerReferences) != 1 {
		f.Errorf("created a Deployment with owners %v, want only %q", d.OwnerReferences, owner.GetUID())
	}
	if errs := metav1validation.ValidateLabels(d.Spec.Template.Labels, nil); len(errs) > 0 {
		f.Errorf("created a Deployment with bad labels: %v", errs)
	}
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil || selector.Empty() || !selector.Matches(labels.Set(d.Spec.Template.Labels)) {
		f.Errorf("created a Deployment whose selector %v does not match its Pods' labels %v: %v", d.Spec.Selector, d.Spec.Template.Labels, err)
	}
	if d.Spec.Replicas != nil && *d.Spec.Replicas < 0 {
		f.Errorf("created a Deployment with %d replicas", *d.Spec.Replicas)
	}
	containers := d.Spec.Template.Spec.Containers
	if len(containers) != 1 || containers[0].Image == "" {
		f.Errorf("created a Deployment with containers %v", containers)
	}
	if pod := d.Spec.Template.Spec; pod.ServiceAccountName != "" || pod.HostNetwork || pod.HostPID || len(pod.Volumes) > 0 {
		f.Errorf("created a Deployment with more than an image: %v", pod)
	}
}

// reasons matches the reasons of conditions that the API server accepts.
var reasons = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)

// checkStatus checks that the status is consistent and matches the Deployment.
func (f *fixture) checkStatus() {
	f.Helper()
	o := f.object()
	status := statusOf(o)
	if *status.observedGeneration != o.GetGeneration() {
		f.Errorf("status observes generation %d, want %d", *status.observedGeneration, o.GetGeneration())
	}
	own := workload.OwnConditions(*status.conditions)
	var isTrue []string
	for _, c := range own {
		if c.Status == metav1.ConditionTrue {
			isTrue = append(isTrue, c.Type)
		} else if c.Type != "Ready" {
			f.Errorf("condition %s is present and %s, want it absent", c.Type, c.Status)
		}
		if !reasons.MatchString(c.Reason) || len(c.Message) > 2100 || c.LastTransitionTime.IsZero() || strings.ToValidUTF8(c.Message, "") != c.Message {
			f.Errorf("the API server would refuse or cut condition %v", c)
		}
	}
	if len(isTrue) != 1 || own[0].Type != "Ready" {
		f.Fatalf("conditions are %v, want Ready and one that is True", own)
	}
	if own[0].Status != metav1.ConditionTrue {
		return
	}
	d := f.allDeployments()[deploymentNameOf(o)]
	if o.GetDeletionTimestamp() != nil || d == nil || !metav1.IsControlledBy(d, o) || d.Status.ObservedGeneration < d.Generation || d.Status.Replicas != d.Status.AvailableReplicas || d.Status.UpdatedReplicas != d.Status.Replicas {
		f.Errorf("Ready, with Deployment %v", d)
	}
}
