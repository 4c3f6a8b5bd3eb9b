// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
	samplescheme "samplecontroller.io/client-go/clientset/versioned/scheme"
	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/manager"
	"samplecontroller.io/controller-manager/managertest"
	"samplecontroller.io/controller-manager/reconcile"

	"samplecontroller.io/sample-controller-manager/pkg/controller/foo"
)

// explained is an env whose controller explains objects.
type explained struct {
	env
	controller controller.Controller
}

// runExplained is like run.
func runExplained(t *testing.T, body func(explained)) {
	t.Helper()
	var e explained
	descriptor := foo.Descriptor()
	build := descriptor.New
	descriptor.New = func(ctx context.Context, c *controller.Context) (built controller.Controller, err error) {
		e.controller, err = build(ctx, c)
		return e.controller, err
	}
	p := manager.Program{Name: "sample-controller-manager", Scheme: samplescheme.AddToScheme, Controllers: []controller.Descriptor{descriptor}}
	managertest.Run(t, p, func(t *testing.T, in *managertest.Env) {
		e.env = env{in, t}
		body(e)
	})
}

// explain returns the explanation of an object in the namespace of the example.
func (e explained) explain(name string) controller.Explanation {
	e.t.Helper()
	explanation, err := e.controller.(controller.Explainer).Explain(cache.NewObjectName(namespace, name))
	if err != nil {
		e.t.Fatal(err)
	}
	return explanation
}

// wantNext explains the example.
func (e explained) wantNext(prefix string, differs ...string) {
	e.t.Helper()
	explanation := e.explain(name)
	if !explanation.Found || !strings.HasPrefix(explanation.Next, prefix) {
		e.t.Errorf("found: %t, next: %q, want %q", explanation.Found, explanation.Next, prefix)
	}
	var got []string
	for _, fact := range explanation.Facts {
		if fact.Differs {
			got = append(got, fact.Name)
		}
	}
	if !slices.Equal(got, differs) {
		e.t.Errorf("%q differ, want %q", got, differs)
	}
}

// The explained next step must be what the next sync does, in every state. The first write of the sync is
// held up while the state is explained.
func TestExplanationMatchesNextSync(t *testing.T) {
	for name, test := range map[string]struct {
		// given brings the example, which is Ready, into the state.
		given   func(explained)
		next    string
		differs []string
		writes  []string
	}{
		"as declared": {
			given: func(explained) {}, next: "nothing: everything is as declared",
		},
		"another replica count": {
			given: func(e explained) { e.rollOut(func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](7) }) },
			next:  `patch Deployment "example-web"`, differs: []string{"its replicas"},
			writes: []string{patchDeployment, patchStatus},
		},
		"no Deployment": {
			given: func(e explained) { e.Delete(e.deployment()) },
			next:  `create Deployment "example-web"`, differs: []string{"Deployment"},
			writes: []string{createDeployment, patchStatus},
		},
		"another's Deployment": {
			given: func(e explained) {
				e.rollOut(func(d *appsv1.Deployment) { d.OwnerReferences[0].Name, d.OwnerReferences[0].UID = "other", "uid-other" })
			},
			next: "nothing: DeploymentConflict: ", differs: []string{"its owner", "status"},
			writes: []string{patchStatus},
		},
		"an outdated status": {
			given: func(e explained) { e.rollOut(available(0)) },
			next:  "write the status", differs: []string{"status"},
			writes: []string{patchStatus},
		},
		"Deployment of an earlier object": {
			given: func(e explained) { e.rollOut(func(d *appsv1.Deployment) { d.OwnerReferences[0].UID = "uid-earlier" }) },
			next:  "nothing: DeletionBlocked: ", differs: []string{"its owner", "status"},
			writes: []string{patchStatus},
		},
		"a Deployment in deletion": {
			given: func(e explained) {
				e.rollOut(func(d *appsv1.Deployment) { d.Finalizers = []string{"example.com/stay"} })
				e.Delete(e.deployment())
			},
			next: `nothing: WaitingForDeletion: Deployment "example-web" is being deleted`, differs: []string{"Deployment", "status"},
			writes: []string{patchStatus},
		},
		"a former Deployment": {
			given: func(e explained) {
				former := e.deployment()
				former.Name, former.ResourceVersion, former.Spec.Replicas = "former", "", ptr.To[int32](7)
				e.Create(former)
			},
			next: "write the status", differs: []string{"status"},
			writes: []string{patchStatus},
		},
	} {
		t.Run(name, func(t *testing.T) {
			runExplained(t, func(e explained) {
				e.serve()
				explain := func(string, *http.Request) error {
					e.BeforeWrite(nil)
					e.wantNext(test.next, test.differs...)
					return nil
				}
				e.BeforeWrite(explain)
				test.given(e)
				e.pass(time.Second)
				if test.writes == nil {
					explain("", nil)
				}
				e.wantWrites(test.writes...)
			})
		})
	}
}

func TestDeniedWriteIsExplained(t *testing.T) {
	runExplained(t, func(e explained) {
		e.BeforeWrite(func(write string, _ *http.Request) error {
			if strings.HasPrefix(write, createDeployment) {
				return apierrors.NewForbidden(appsv1.Resource("deployments"), deploymentName, errors.New("exceeded quota: small"))
			}
			return nil
		})
		e.Settle() // the workers run
		again := time.Now().Add(time.Second).UTC().Format(time.RFC3339)
		e.Create(example())
		synctest.Wait()
		e.wantNext("create deployments.apps default/example-web again at "+again+": creating Deployment default/example-web was denied: ", "Deployment")
		// An object whose status says what is wrong does not fail: it raises no alert, and health passes.
		progress := e.controller.(interface{ Loops() []*reconcile.Loop }).Loops()[0].Progress(1)
		if progress.Failing != 0 || progress.Recent[0].Result != reconcile.ResultRequeued {
			t.Errorf("%d objects fail, the last sync is %+v; want none, and requeued", progress.Failing, progress.Recent[0])
		}
	})
}

func TestContestedReplicasAreExplained(t *testing.T) {
	runExplained(t, func(e explained) {
		e.serve()
		for range 5 {
			e.rollOut(func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](7) })
			e.pass(time.Second)
			if got := *e.deployment().Spec.Replicas; got != 1 {
				t.Fatalf("%d replicas, want them corrected at once", got)
			}
		}
		e.forget()
		e.rollOut(func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](7) })
		e.pass(0)
		again := time.Now().Add(9 * time.Second).UTC().Format(time.RFC3339)
		e.wantNext("patch deployments.apps default/example-web again at "+again+`: spec.replicas of Deployment "example-web" is also set by `, "its replicas")
		if got := e.condition("Stalled").Reason; got != "ReplicasContested" {
			t.Errorf("Stalled has the reason %q, want ReplicasContested", got)
		}
		time.Sleep(9*time.Second - time.Nanosecond)
		synctest.Wait()
		e.wantWrites()
		e.pass(time.Second)
		e.wantWrites(patchDeployment)
		e.wantNext("nothing: ReplicasContested: spec.replicas of Deployment ")
	})
}

func TestObjectsThatAreNotSyncedAreExplained(t *testing.T) {
	runExplained(t, func(e explained) {
		e.Create(example(func(f *samplev1alpha1.Foo) { f.Finalizers = []string{"example.com/stay"} }), undecodable("broken"))
		e.Delete(example())
		e.pass(time.Second)
		for name, want := range map[string]string{
			name: "being deleted", "broken": "the object cannot be decoded", "unknown": "the cache has no Foo default/unknown",
		} {
			explanation := e.explain(name)
			if explanation.Found != (name != "unknown") || !strings.HasPrefix(explanation.Next, "nothing: ") ||
				!strings.Contains(explanation.Next, want) {
				t.Errorf("%s: found %t, next: %q, want %q", name, explanation.Found, explanation.Next, want)
			}
		}
		e.change(func(f *samplev1alpha1.Foo) { f.Finalizers = nil })
	})
}

// TestExplanationRevealsNoSecrets puts canaries into everything except names and what a Foo declares.
func TestExplanationRevealsNoSecrets(t *testing.T) {
	const canary = "c4n4ry"
	note := map[string]string{"note": canary}
	runExplained(t, func(e explained) {
		e.serve(func(f *samplev1alpha1.Foo) { f.Labels, f.Annotations = note, note })
		e.rollOut(func(d *appsv1.Deployment) {
			d.Annotations, d.Spec.Template.Annotations = note, note
			pod := &d.Spec.Template.Spec
			pod.Containers[0].Env = []corev1.EnvVar{{Name: "PASSWORD", Value: canary}}
			pod.Containers = append(pod.Containers, corev1.Container{Name: "sidecar", Image: canary, Args: []string{canary}})
		})
		e.pass(time.Second)
		progress := e.controller.(interface{ Loops() []*reconcile.Loop }).Loops()[0].Progress(10)
		if page := fmt.Sprintf("%+v %+v", e.explain(name), progress); strings.Contains(page, canary) || !strings.Contains(page, "deployments changed") {
			t.Errorf("want a sync for the Deployment, and no content of an object in\n%s", page)
		}
	})
}
