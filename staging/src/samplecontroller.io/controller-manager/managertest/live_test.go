// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package managertest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/internal/fakeapi"
	"samplecontroller.io/controller-manager/manager"
	"samplecontroller.io/controller-manager/reconcile"
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
	t.Helper()
	runConfigured(t, switchable(), flags, body)
}

func runConfigured(t *testing.T, p manager.Program, flags string,
	body func(t *testing.T, e *Env, write func(flags string))) {
	t.Helper()
	path, write := configFile(t, flags)
	Run(t, p, func(t *testing.T, e *Env) { body(t, e, write) }, "--config="+path)
}

// configFile returns the path of a configuration file, and a function that writes it.
func configFile(t *testing.T, flags string) (path string, write func(flags string)) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "config.yaml")
	write = func(flags string) {
		t.Helper()
		content := "apiVersion: config.samplecontroller.io/v1alpha1\nkind: ControllerManagerConfiguration\nflags: " + flags + "\n"
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(flags)
	return path, write
}

// withSpare adds a controller to the program, so that the other one can be switched off.
func withSpare(p manager.Program) manager.Program {
	p.Controllers = append([]controller.Descriptor{{Name: "spare-controller", Workers: 1,
		New: func(_ context.Context, c *controller.Context) (controller.Controller, error) {
			return labelling[*corev1.ServiceAccount](c)
		}}}, p.Controllers...)
	return p
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

// TestControllerThatCannotBePaused pauses a controller that is made with Loop, by the file and at the start.
func TestControllerThatCannotBePaused(t *testing.T) {
	const want = "test-controller cannot be paused, because it is not made with controller.For: leave it out, and disable it by --controllers=*,-test-controller"
	p := manager.Program{Name: "test", Controllers: []controller.Descriptor{{Name: "test-controller", Workers: 1, New: newCopier}}}
	t.Run("by the file", func(t *testing.T) {
		runConfigured(t, p, "{}", func(t *testing.T, e *Env, write func(string)) {
			write("{paused-controllers: [test-controller]}")
			time.Sleep(2 * time.Second)
			if log := e.logged(); !strings.Contains(log, want) {
				t.Errorf("the log does not say that the file is refused:\n%s", log)
			}
			e.Create(configMap("x"))
			e.Settle()
			expect(t, "writes", e.Writes(), "patch configmaps ns/a")
		})
	})
	t.Run("at the start", func(t *testing.T) {
		running.Lock()
		defer running.Unlock()
		synctest.Test(t, func(t *testing.T) {
			e := newEnv(t, schemeOf(t, p), &rest.Config{Host: "http://api.test"}, fakeapi.New(schemeOf(t, p)))
			e.wait = synctest.Wait
			e.start(p, []string{"--paused-controllers=test-controller"})
			time.Sleep(time.Minute)
			e.stopProgram()
			<-e.ended
			if e.err == nil || e.err.Error() != "--paused-controllers: "+want {
				t.Errorf("the program ends with %v, want %s", e.err, want)
			}
		})
	})
}

// TestControllerThatIsPausedAndNotBuilt pauses a controller whose constructor fails, which affects no other controller.
func TestControllerThatIsPausedAndNotBuilt(t *testing.T) {
	p := failureProgram()
	p.Controllers = append(p.Controllers, controller.Descriptor{
		Name: "broken-controller", Workers: 1,
		New: func(context.Context, *controller.Context) (controller.Controller, error) {
			return nil, errors.New("no queue")
		},
	})
	runConfigured(t, p, "{paused-controllers: [broken-controller]}", func(t *testing.T, e *Env, write func(string)) {
		e.Create(widget("ns", "v1"))
		e.Settle()
		expect(t, "writes", e.Writes(), "create secrets ns/a", statusPatch)
		write("{paused-controllers: [broken-controller, test-controller]}")
		time.Sleep(2 * time.Second)
		change(e, "v2")
		e.Settle()
		expect(t, "writes of a paused controller", e.Writes(), statusPatch)
		e.unbuilt.Store(nil) // the test expects that
	})
}

// TestFinalizerOfControllerThatIsSwitchedOff switches the controller off while it confirms an object in deletion.
func TestFinalizerOfControllerThatIsSwitchedOff(t *testing.T) {
	v := &vault{}
	p := withSpare(vaultProgram(v))
	path, write := configFile(t, "{}")
	running.Lock()
	defer running.Unlock()
	synctest.Test(t, func(t *testing.T) {
		api := fakeapi.New(schemeOf(t, p))
		confirming := func() {}
		e := newEnv(t, schemeOf(t, p), &rest.Config{Host: "http://api.test"}, roundTripper(func(r *http.Request) (*http.Response, error) {
			if strings.Contains(r.URL.Query().Get("fieldSelector"), "metadata.name=") {
				confirming()
			}
			return api.RoundTrip(r)
		}))
		e.wait = synctest.Wait
		e.run(t, p, func(t *testing.T, e *Env) {
			e.Create(configMapOf("ns", "a"))
			e.Settle()
			expect(t, "calls", v.next(false, nil), "put a")
			e.LoseLead()
			e.Delete(configMapOf("ns", "a"))
			synctest.Wait() // the cache has the deletion
			confirming = func() {
				confirming = func() {}
				write(`{controllers: ["*", -test-controller]}`)
				time.Sleep(2 * time.Second)
			}
			e.Lead()
			time.Sleep(time.Minute)
			expect(t, "calls of the controller that is off", v.next(false, nil))
			write("{}")
			time.Sleep(time.Minute)
			expect(t, "calls of the controller that is on again", v.next(false, nil), "delete a")
		}, []string{"--config=" + path})
	})
}

// TestWorkersChangeWhileProgramRuns has a controller with two loops: one follows the flag, one always has one
// worker.
func TestWorkersChangeWhileProgramRuns(t *testing.T) {
	var flagged, serial *reconcile.Loop
	p := syncing(func(c *controller.Context) (controller.Controller, error) {
		idle := func(context.Context, cache.ObjectName) (time.Duration, error) { return 0, nil }
		flagged, serial = c.Loop(idle), c.Loop(idle, reconcile.WithWorkers(1), reconcile.WithQueue("serial"))
		informer, err := configMapInformer(c)
		if err != nil {
			return nil, err
		}
		reconcile.WatchSelf(flagged, informer)
		reconcile.WatchSelf(serial, informer)
		return controller.Join(flagged, serial)
	})
	runConfigured(t, p, "{concurrent-test-syncs: 1}", func(t *testing.T, e *Env, write func(string)) {
		for _, workers := range []int{4, 2} {
			write(fmt.Sprintf("{concurrent-test-syncs: %d}", workers))
			time.Sleep(time.Second)
			e.wait()
			if flagged.Workers() != workers || serial.Workers() != 1 {
				t.Errorf("%d and %d workers, want %d and 1", flagged.Workers(), serial.Workers(), workers)
			}
		}
	})
}

// TestShorterIntervalHoldsAtOnce shortens the interval while a change waits for the end of a long one.
func TestShorterIntervalHoldsAtOnce(t *testing.T) {
	interval := controller.NewLiveDuration(time.Hour, time.Second)
	p := failureProgram(func(b *controller.Builder[*Widget]) {
		b.PacedLive(interval, func(_, _ *Widget) controller.Change { return controller.OnlyProgress })
	})
	p.Controllers[0].Flags = func(fs *pflag.FlagSet) { fs.Var(interval, "test-interval", "An interval.") }
	runConfigured(t, p, "{test-interval: 1h}", func(t *testing.T, e *Env, write func(string)) {
		e.Create(widget("ns", "v1"))
		time.Sleep(2 * time.Hour)
		e.Writes()
		Update(e, "ns", "a", func(w *Widget) { w.Spec.Containers[0].Image = "v2" })
		time.Sleep(time.Minute)
		expect(t, "writes", e.Writes(), "patch secrets ns/a")
		write("{test-interval: 5s}")
		time.Sleep(10 * time.Second)
		expect(t, "writes with a shorter interval", e.Writes(), "patch widgets/status.test.example.com ns/a")
	})
}
