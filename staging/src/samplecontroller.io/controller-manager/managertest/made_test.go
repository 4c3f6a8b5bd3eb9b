// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package managertest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/manager"
)

// pruningProgram has a controller that owns one Secret for each ConfigMap, and deletes all others that
// the ConfigMap owns.
func pruningProgram(opts ...controller.Option) manager.Program {
	return syncing(func(c *controller.Context) (controller.Controller, error) {
		configMaps := controller.For[*corev1.ConfigMap](c, controller.Selector("test=ensure"))
		secrets := controller.Owns[*corev1.Secret](configMaps, append(opts, controller.MayDelete())...)
		return configMaps.Reconcile(func(ctx context.Context, r *controller.Request[*corev1.ConfigMap]) error {
			m, ok := r.Object()
			if !ok {
				return nil
			}
			_, err := secrets.Ensure(ctx, r, m.Data["secret"], func(s *corev1.Secret) {
				s.Data = map[string][]byte{"of": []byte(m.Name)}
			})
			for _, s := range secrets.List(r) {
				if s.Name != m.Data["secret"] {
					err = errors.Join(err, secrets.Delete(ctx, r, s.Name))
				}
			}
			return err
		})
	})
}

// byOther returns a Secret that another program has made, with the controller reference of a ConfigMap.
func byOther(e *Env, ns, name string) *corev1.Secret {
	e.t.Helper()
	m, ok := Get[*corev1.ConfigMap](e, ns, "a")
	if !ok {
		e.t.Fatal("there is no owner")
	}
	reference := *metav1.NewControllerRef(m, corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: ns, Name: name, OwnerReferences: []metav1.OwnerReference{reference},
	}}
}

// TestObjectOfOtherProgramIsNotDeleted has an object that another program has made, with the controller
// reference of an object of the controller.
func TestObjectOfOtherProgramIsNotDeleted(t *testing.T) {
	const ns = "ensure-made"
	runAnywhere(t, pruningProgram(), func(t *testing.T, e *Env) {
		e.Create(owner(ns, map[string]string{"secret": "first"}))
		e.Settle()
		e.Create(byOther(e, ns, "exporter"))
		e.Settle()
		expect(t, "writes", e.Writes(), "create secrets ensure-made/first")
		made, ok := Get[*corev1.Secret](e, ns, "exporter")
		if !ok {
			t.Fatal("the object of the other program was deleted")
		}
		by := made.ManagedFields[0].Manager
		expect(t, "Events", e.Events(), "Warning NotMade Secret ensure-made/exporter has the controller reference of "+
			`ConfigMap ensure-made/a, but test-controller has never written it, only ["`+by+`"]: delete it, or correct its controller reference`)

		Update(e, ns, "a", func(m *corev1.ConfigMap) { m.Data["secret"] = "second" })
		e.Settle()
		expect(t, "writes", e.Writes(), "create secrets ensure-made/second", "delete secrets ensure-made/first")
		expect(t, "Events", e.Events())
		if now, _ := Get[*corev1.Secret](e, ns, "exporter"); now.ResourceVersion != made.ResourceVersion {
			t.Errorf("the object of the other program is %+v, want it unchanged", now)
		}

		// An object whose name the controller asks for is adopted by its controller reference.
		e.Create(byOther(e, ns, "third"))
		e.Settle()
		Update(e, ns, "a", func(m *corev1.ConfigMap) { m.Data["secret"] = "third" })
		e.Settle()
		expect(t, "writes", e.Writes(), "patch secrets ensure-made/third", "delete secrets ensure-made/second")
	}, "--namespace="+ns)
}

// TestObjectOfReplacedProgramIsDeleted names the program that has made an object, which is this test.
func TestObjectOfReplacedProgramIsDeleted(t *testing.T) {
	const ns = "ensure-made-by"
	p := pruningProgram(controller.MadeBy("other", filepath.Base(os.Args[0])))
	runAnywhere(t, p, func(t *testing.T, e *Env) {
		e.Create(owner(ns, map[string]string{"secret": "first"}))
		e.Settle()
		e.Create(byOther(e, ns, "exporter"))
		e.Settle()
		expect(t, "writes", e.Writes(), "create secrets "+ns+"/first", "delete secrets "+ns+"/exporter")
		expect(t, "Events", e.Events())
	}, "--namespace="+ns)
}
