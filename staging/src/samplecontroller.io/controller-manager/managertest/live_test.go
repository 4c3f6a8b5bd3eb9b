// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package managertest

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/manager"
)

// switchable returns a program with two controllers of ConfigMaps, and one of Secrets. Each sets a label with
// its name.
func switchable() manager.Program {
	interval := controller.NewLiveDuration(time.Minute, time.Second)
	descriptor := func(name string, build func(*controller.Context) (controller.Controller, error)) controller.Descriptor {
		return controller.Descriptor{Name: name, Workers: 1,
			New: func(_ context.Context, c *controller.Context) (controller.Controller, error) { return build(c) }}
	}
	a := descriptor("a-controller", labelling[*corev1.ConfigMap])
	a.Flags = func(fs *pflag.FlagSet) { fs.Var(interval, "a-interval", "An interval.") }
	a.Validate = func() []error { return interval.Validate("a-interval") }
	return manager.Program{Name: "test", Controllers: []controller.Descriptor{
		a, descriptor("b-controller", labelling[*corev1.ConfigMap]), descriptor("c-controller", labelling[*corev1.Secret]),
	}}
}

func labelling[T controller.Object](c *controller.Context) (controller.Controller, error) {
	b := controller.For[T](c, controller.MayPatch())
	return b.Reconcile(func(ctx context.Context, r *controller.Request[T]) error {
		object, ok := r.Object()
		if !ok {
			return nil
		}
		labels := map[string]string{c.Name(): "seen"}
		maps.Copy(labels, object.GetLabels())
		object.SetLabels(labels)
		if b, ok := any(object).(*corev1.ConfigMap); ok && b.Data["wait"] != "" {
			time.Sleep(2 * time.Second) // as a sync that takes long
		}
		return r.Patch(ctx, object)
	})
}

// configured runs the program with a configuration file that write writes.
func configured(t *testing.T, flags string, body func(t *testing.T, e *Env, write func(flags string))) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	write := func(flags string) {
		t.Helper()
		content := "apiVersion: config.samplecontroller.io/v1alpha1\nkind: ControllerManagerConfiguration\nflags: " + flags + "\n"
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(flags)
	Run(t, switchable(), func(t *testing.T, e *Env) { body(t, e, write) }, "--config="+path)
}

func TestControllerIsSwitchedOffAndOn(t *testing.T) {
	configured(t, "{controllers: a-controller}", func(t *testing.T, e *Env, write func(string)) {
		expectLabels := func(name string, want ...string) {
			t.Helper()
			time.Sleep(time.Second) // the file is read
			e.Settle()
			expect(t, "writes", e.Writes(), "patch configmaps live/"+name)
			m, _ := Get[*corev1.ConfigMap](e, "live", name)
			expect(t, "labels of "+name, slices.Sorted(maps.Keys(m.Labels)), want...)
		}
		e.Create(configMapOf("live", "one"))
		expectLabels("one", "a-controller")

		// b-controller reads nothing else, so it can be switched on. It sees all objects.
		write("{controllers: b-controller}")
		expectLabels("one", "a-controller", "b-controller")
		e.Create(configMapOf("live", "two"))
		expectLabels("two", "b-controller")

		// c-controller reads Secrets, which were not read at the start. Nothing of the file is applied.
		write("{controllers: [a-controller, c-controller]}")
		time.Sleep(time.Second)
		e.Create(configMapOf("live", "three"))
		expectLabels("three", "b-controller")
	})
}

// A sync that has begun does not write after its controller was switched off.
func TestSyncOfControllerThatIsSwitchedOffWritesNothing(t *testing.T) {
	configured(t, "{controllers: [a-controller, b-controller]}", func(t *testing.T, e *Env, write func(string)) {
		e.Settle()
		slow := configMapOf("live", "slow")
		slow.Data = map[string]string{"wait": "yes"}
		e.Create(slow)
		time.Sleep(10 * time.Millisecond) // the sync of one has begun, which the other waits for
		write("{controllers: b-controller}")
		time.Sleep(10 * time.Second)
		e.Settle()
		expect(t, "writes", e.Writes(), "patch configmaps live/slow")
		m, _ := Get[*corev1.ConfigMap](e, "live", "slow")
		expect(t, "labels", slices.Sorted(maps.Keys(m.Labels)), "b-controller")
	})
}

func TestControllerIsPausedByTheFile(t *testing.T) {
	configured(t, "{controllers: a-controller}", func(t *testing.T, e *Env, write func(string)) {
		e.Settle()
		write("{controllers: a-controller, paused-controllers: [a-controller]}")
		time.Sleep(time.Second)
		e.Create(configMapOf("live", "one"))
		e.Settle()
		expect(t, "writes while paused", e.Writes())
		write("{controllers: a-controller}")
		time.Sleep(time.Second + 10*time.Millisecond)
		expect(t, "writes after the pause", e.Writes(), "patch configmaps live/one")
	})
}
