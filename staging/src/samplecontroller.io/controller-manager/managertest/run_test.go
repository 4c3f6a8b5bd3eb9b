// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package managertest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics/legacyregistry"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/informers"
	"samplecontroller.io/controller-manager/internal/fakeapi"
	"samplecontroller.io/controller-manager/manager"
	"samplecontroller.io/controller-manager/reconcile"
)

// rules are the permissions that copier-controller needs.
var rules = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list", "watch", "patch"}}}

// program returns a program with one controller, which copies the value "in" of each ConfigMap
// to "out".
func program(rules []rbacv1.PolicyRule) manager.Program {
	return manager.Program{Name: "copy-manager", Controllers: []controller.Descriptor{
		{Name: "copier-controller", Workers: 2, New: newCopier, Rules: rules},
	}}
}

// hold, if set, is called before each write.
var hold func()

func configMapInformer(c *controller.Context) (cache.TypedSharedIndexInformer[*corev1.ConfigMap], error) {
	source, err := corev1client.NewForConfig(c.ReadConfig())
	if err != nil {
		return nil, err
	}
	return informers.InformerFor[*corev1.ConfigMap](c.Informers(), corev1.SchemeGroupVersion.WithResource("configmaps"),
		source.ConfigMaps(c.Namespace())), nil
}

func newCopier(_ context.Context, c *controller.Context) (controller.Controller, error) {
	client, err := corev1client.NewForConfig(c.ClientConfig())
	if err != nil {
		return nil, err
	}
	informer, err := configMapInformer(c)
	if err != nil {
		return nil, err
	}
	lister, recorder := corelisters.NewConfigMapLister(informer.GetIndexer()), c.Recorder()
	loop := c.Loop(func(ctx context.Context, key cache.ObjectName) (time.Duration, error) {
		configMap, err := lister.ConfigMaps(key.Namespace).Get(key.Name)
		if err != nil || configMap.Data["out"] == configMap.Data["in"] {
			return 0, nil
		}
		if configMap.Data["in"] == "never" {
			recorder.Eventf(configMap, corev1.EventTypeWarning, "BadData", "%q is not copied", "never")
			return 0, nil
		}
		if h := hold; h != nil {
			h()
		}
		patch := fmt.Appendf(nil, `{"metadata":{"resourceVersion":%q},"data":{"out":%q}}`, configMap.ResourceVersion, configMap.Data["in"])
		_, err = client.ConfigMaps(key.Namespace).Patch(ctx, key.Name, types.MergePatchType, patch,
			metav1.PatchOptions{FieldManager: c.Name()})
		return 0, err
	})
	reconcile.WatchSelf(loop, informer)
	return loop, nil
}

func configMap(in string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}, Data: map[string]string{"in": in}}
}

func expect(t *testing.T, when string, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", when, diff)
	}
}

const patched = "patch configmaps ns/a"

func TestChangeIsDelivered(t *testing.T) { Run(t, program(rules), changeIsDelivered) }

// TestRunOn runs in real time, with another transport.
func TestRunOn(t *testing.T) {
	api := fakeapi.New(schemeOf(t, program(rules)))
	RunOn(t, &rest.Config{Host: "http://api.test", Transport: api}, program(rules), func(t *testing.T, e *Env) {
		e.Create(configMap("never"))
		e.Settle()
		expect(t, "Events", e.Events(), `Warning BadData "never" is not copied`)
		e.LoseLead()
		e.Lead()
		e.Settle()
		expect(t, "Events of the next term", e.Events(), `Warning BadData "never" is not copied`)
		e.Delete(configMap(""))
		e.Settle()
		changeIsDelivered(t, e)
	})
}

func changeIsDelivered(t *testing.T, e *Env) {
	e.Create(configMap("1"))
	e.Settle()
	expect(t, "writes after create", e.Writes(), patched)
	expect(t, "writes listed again", e.Writes())
	Update(e, "ns", "a", func(c *corev1.ConfigMap) { c.Data["in"] = "2" })
	e.Settle()
	expect(t, "writes after update", e.Writes(), patched)
	if c, _ := Get[*corev1.ConfigMap](e, "ns", "a"); c.Data["out"] != "2" {
		t.Errorf("out is %q, want 2", c.Data["out"])
	}
	e.Delete(configMap(""))
	e.Settle()
	expect(t, "writes after delete", e.Writes())
	if _, ok := Get[*corev1.ConfigMap](e, "ns", "a"); ok {
		t.Error("the ConfigMap is still there")
	}
	expect(t, "Events", e.Events())
}

func TestEventsAreListedOnce(t *testing.T) {
	Run(t, program(rules), func(t *testing.T, e *Env) {
		e.Create(configMap("never"))
		e.Settle()
		expect(t, "Events", e.Events(), `Warning BadData "never" is not copied`)
		expect(t, "Events listed again", e.Events())
		expect(t, "writes", e.Writes())
		Update(e, "ns", "a", func(c *corev1.ConfigMap) { c.Labels = map[string]string{"touched": "true"} })
		e.Settle()
		expect(t, "Events repeated", e.Events(), `Warning BadData "never" is not copied`)
	})
}

func TestConflictIsRetried(t *testing.T) {
	Run(t, program(rules), func(t *testing.T, e *Env) {
		e.BeforeWrite(func(string, *http.Request) error {
			e.BeforeWrite(nil)
			Update(e, "ns", "a", func(c *corev1.ConfigMap) { c.Data["in"] = "2" })
			return nil
		})
		e.Create(configMap("1"))
		e.Settle()
		expect(t, "writes", e.Writes(), patched+": Conflict", patched)
		if c, _ := Get[*corev1.ConfigMap](e, "ns", "a"); c.Data["out"] != "2" {
			t.Errorf("out is %q, want 2", c.Data["out"])
		}
	})
}

func TestBeforeWriteErrors(t *testing.T) {
	Run(t, program(rules), func(t *testing.T, e *Env) {
		answers := []error{apierrors.NewConflict(corev1.Resource("configmaps"), "a", errors.New("test")),
			apierrors.NewInternalError(errors.New("test")), errors.New("broken network")}
		e.BeforeWrite(func(write string, r *http.Request) (err error) {
			if got := r.URL.Query().Get("fieldManager"); write != patched || got != "copier-controller" {
				t.Errorf("write is %q of field manager %q", write, got)
			}
			if len(answers) > 0 {
				err, answers = answers[0], answers[1:]
			}
			return err
		})
		e.Create(configMap("1"))
		e.Settle()
		expect(t, "writes", e.Writes(), patched+": Conflict", patched+": InternalError", patched+": broken network", patched)
	})
}

func TestNoWritesWithoutLead(t *testing.T) {
	p := program(rules)
	p.Name = "refused-manager"
	Run(t, p, func(t *testing.T, e *Env) {
		before := refused(t) // from earlier runs of the test
		e.LoseLead()
		e.Create(configMap("1"))
		e.Settle()
		expect(t, "writes on a standby", e.Writes())
		e.Lead()
		e.Settle()
		expect(t, "writes of the next leader", e.Writes(), patched)

		// The lead is lost during a sync, which does not notice it.
		syncing, lost := make(chan struct{}), make(chan struct{})
		hold = func() { close(syncing); <-lost }
		defer func() { hold = nil }()
		Update(e, "ns", "a", func(c *corev1.ConfigMap) { c.Data["in"] = "2" })
		<-syncing
		e.LoseLead()
		hold = nil
		close(lost)
		e.Settle()
		expect(t, "writes after the lead was lost", e.Writes())
		if got := refused(t) - before; got != 1 {
			t.Errorf("%v writes are counted as refused, want 1", got)
		}
	}, "--controllers=copier-controller")
}

// refused returns the number of writes that refused-manager counts as refused.
func refused(t *testing.T) (total float64) {
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Error(err)
	}
	for _, family := range families {
		if family.GetName() != "refused_manager_writes_total" {
			continue
		}
		for _, metric := range family.Metric {
			for _, label := range metric.Label {
				if label.GetName() == "result" && label.GetValue() == "refused" {
					total += metric.Counter.GetValue()
				}
			}
		}
	}
	return total
}

// failures records the failures of a test that is expected to fail.
type failures struct {
	testing.TB
	mutex sync.Mutex
	lines []string
}

func (f *failures) Errorf(format string, args ...any) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.lines = append(f.lines, fmt.Sprintf(format, args...))
}

// errFatal is the panic value of Fatalf.
var errFatal = errors.New("the test ends")

func (f *failures) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	panic(errFatal)
}

func (f *failures) Fatal(args ...any) { f.Fatalf("%s", fmt.Sprint(args...)) }

// failing runs a test that is expected to fail, and returns its failures.
func failing(t *testing.T, p manager.Program, body func(*testing.T, *Env), args ...string) []string {
	t.Helper()
	running.Lock()
	defer running.Unlock()
	f := &failures{TB: t}
	synctest.Test(t, func(t *testing.T) {
		f.TB = t
		scheme := schemeOf(f, p)
		e := newEnv(f, scheme, &rest.Config{Host: "http://api.test"}, fakeapi.New(scheme))
		e.wait = synctest.Wait
		defer func() {
			if value := recover(); value != nil && value != errFatal {
				panic(value)
			}
		}()
		e.run(t, p, body, args)
	})
	return f.lines
}

func expectFailure(t *testing.T, got []string, want ...string) {
	t.Helper()
	if len(got) != len(want) || !slices.EqualFunc(got, want, strings.Contains) {
		t.Errorf("the test fails for %q, want %q", got, want)
	}
}

// TestFailedConstructorFailsTest runs a program in which another controller works.
func TestFailedConstructorFailsTest(t *testing.T) {
	for want, fail := range map[string]func() error{
		"the constructor of bad-controller failed: no license":   func() error { return errors.New("no license") },
		"the constructor of bad-controller panicked: no license": func() error { panic("no license") },
	} {
		p := program(nil)
		p.Controllers = append(p.Controllers, controller.Descriptor{
			Name: "bad-controller", Workers: 1,
			New: func(context.Context, *controller.Context) (controller.Controller, error) { return nil, fail() },
		})
		expectFailure(t, failing(t, p, func(t *testing.T, e *Env) {
			e.Create(configMap("1"))
			e.Settle()
			if got := e.Writes(); len(got) != 1 {
				t.Errorf("writes %q, want one of the other controller", got)
			}
		}), want)
	}
}

func TestForbiddenRequestFailsTest(t *testing.T) {
	reads := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list", "watch"}}}
	body := func(t *testing.T, e *Env) {
		e.Create(configMap("1"))
		e.Settle()
		Update(e, "ns", "a", func(c *corev1.ConfigMap) { c.Data["in"] = "2" })
		e.Settle()
	}
	expectFailure(t, failing(t, program(reads), body), `copier-controller sends "patch configmaps ns/a", which Descriptor.Rules do not allow: `+
		`add {APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"patch"}}`)
	expectFailure(t, failing(t, program(rules[:0:0]), func(*testing.T, *Env) {}), `informers sends "watch configmaps`)
	expectFailure(t, failing(t, program(rules), body))
	expectFailure(t, failing(t, program(nil), body))
}

func TestFailedProgramFailsTest(t *testing.T) {
	p := program(rules)
	p.Controllers[0].New = func(context.Context, *controller.Context) (controller.Controller, error) {
		return nil, errors.New("no such thing")
	}
	expectFailure(t, failing(t, p, func(*testing.T, *Env) {}), "no such thing", "no such thing")
}

func TestSettleEnds(t *testing.T) {
	for name, test := range map[string]struct {
		after time.Duration
		err   error
		want  []string
	}{
		"idle":           {},
		"due much later": {after: time.Hour},
		"always due":     {after: 500 * time.Millisecond, want: []string{"the program did not become idle within 2m0s: copier-controller will soon sync ns/a"}},
		"always fails":   {err: errors.New("broken")},
	} {
		t.Run(name, func(t *testing.T) {
			p := program(nil)
			p.Controllers[0].New = func(ctx context.Context, c *controller.Context) (controller.Controller, error) {
				source, err := corev1client.NewForConfig(c.ReadConfig())
				if err != nil {
					return nil, err
				}
				loop := c.Loop(func(context.Context, cache.ObjectName) (time.Duration, error) { return test.after, test.err })
				reconcile.WatchSelf(loop, informers.InformerFor[*corev1.ConfigMap](c.Informers(),
					corev1.SchemeGroupVersion.WithResource("configmaps"), source.ConfigMaps(c.Namespace())))
				return loop, nil
			}
			expectFailure(t, failing(t, p, func(t *testing.T, e *Env) {
				e.Create(configMap("1"))
				e.Settle()
			}), test.want...)
		})
	}
}
