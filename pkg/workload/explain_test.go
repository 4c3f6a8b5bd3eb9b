// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"samplecontroller.io/sample-controller-manager/pkg/workload"
)

// The explained next step must be what the next sync does, in every state.
func TestExplanationMatchesNextSync(t *testing.T) {
	tests := map[string]struct {
		// given brings the example, which is Ready, into the state.
		given func(f *fixture)
		next  string
		// differs has the names of the facts that differ.
		differs []string
		calls   []string
	}{
		"as declared": {
			given: func(*fixture) {},
			next:  "nothing: everything is as declared",
		},
		"another replica count": {
			given: func(f *fixture) { f.update(func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](7) }) },
			next:  `patch Deployment "example-web"`, differs: []string{"its replicas"},
			calls: []string{"patch deployments", "patch objects/status"},
		},
		"no Deployment": {
			given: func(f *fixture) {
				if err := f.kube.AppsV1().Deployments(key.Namespace).Delete(f.Context(), deploymentName, metav1.DeleteOptions{}); err != nil {
					f.Fatal(err)
				}
			},
			next: `create Deployment "example-web"`, differs: []string{"Deployment"},
			calls: []string{"list objects", "create deployments", "patch objects/status"},
		},
		"another's Deployment": {
			given: func(f *fixture) {
				f.update(func(d *appsv1.Deployment) { d.OwnerReferences[0].Name, d.OwnerReferences[0].UID = "other", "uid-other" })
			},
			next: "nothing: DeploymentConflict: ", differs: []string{"its owner", "status"},
			calls: []string{"patch objects/status"},
		},
		"an outdated status": {
			given: func(f *fixture) { f.update(func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 0 }) },
			next:  "write the status", differs: []string{"status"},
			calls: []string{"patch objects/status"},
		},
		"Deployment of an earlier object": {
			given: func(f *fixture) {
				f.update(func(d *appsv1.Deployment) { d.OwnerReferences[0].UID = "uid-earlier" })
				f.clock.Step(workload.DeletionGrace)
			},
			next: "nothing: DeletionBlocked: ", differs: []string{"its owner", "status"},
			calls: []string{"patch objects/status"},
		},
		"a Deployment in deletion": {
			given: func(f *fixture) {
				f.update(func(d *appsv1.Deployment) {
					d.DeletionTimestamp, d.Finalizers = &metav1.Time{Time: start}, []string{"example.com/stay"}
				})
				f.clock.Step(workload.DeletionGrace)
			},
			next: `nothing: DeletionBlocked: Deployment "example-web" is being deleted`, differs: []string{"Deployment", "status"},
			calls: []string{"patch objects/status"},
		},
		"a former Deployment": {
			given: func(f *fixture) {
				former := f.deployment()
				former.Name, former.UID, former.Spec.Replicas = "former", "uid-former", ptr.To[int32](7)
				if _, err := f.kube.AppsV1().Deployments(key.Namespace).Create(f.Context(), former, metav1.CreateOptions{}); err != nil {
					f.Fatal(err)
				}
				f.forget()
			},
			next: "write the status", differs: []string{"status"},
			calls: []string{"patch objects/status"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			overKinds(t, func(t *testing.T, kind kind) {
				f := newFixture(t, kind, kind.example())
				f.serve()
				tc.given(f)
				f.observe()

				e, err := f.controller.Explain(key)
				if err != nil {
					t.Fatal(err)
				}
				if !e.Found || !strings.HasPrefix(e.Next, tc.next) {
					t.Errorf("found: %t, next: %q, want %q", e.Found, e.Next, tc.next)
				}
				var differs []string
				for _, fact := range e.Facts {
					if fact.Differs {
						differs = append(differs, fact.Name)
					}
				}
				if !slices.Equal(differs, tc.differs) {
					t.Errorf("%q differ, want %q", differs, tc.differs)
				}
				f.wantCalls() // explaining sends no requests
				f.sync()
				f.wantCalls(tc.calls...)
			})
		})
	}
}

func TestDeniedWriteIsExplained(t *testing.T) {
	overKinds(t, func(t *testing.T, kind kind) {
		f := newFixture(t, kind, kind.example())
		f.refuseDeployments("create", apierrors.NewForbidden(appsv1.Resource("deployments"), deploymentName, nil))
		if _, err := f.controller.Sync(f.Context(), key); err != nil {
			t.Fatal(err)
		}
		f.observe()
		e, err := f.controller.Explain(key)
		if err != nil {
			t.Fatal(err)
		}
		if want := regexp.MustCompile(`^create Deployment "example-web" in [0-9]+ms: it failed: `); !want.MatchString(e.Next) {
			t.Errorf("next: %q, want %s", e.Next, want)
		}
	})
}

// The API server's error for an invalid object quotes it. The condition has the message.
func TestQuotingDenialIsNotRepeated(t *testing.T) {
	overKinds(t, func(t *testing.T, kind kind) {
		f := newFixture(t, kind, kind.example())
		f.refuseDeployments("create", apierrors.NewInvalid(appsv1.SchemeGroupVersion.WithKind("Deployment").GroupKind(), deploymentName,
			field.ErrorList{field.Invalid(field.NewPath("spec", "image"), "c4n4ry", "must be another")}))
		if _, err := f.controller.Sync(f.Context(), key); err != nil {
			t.Fatal(err)
		}
		f.observe()
		e, err := f.controller.Explain(key)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(e.Next, ": it failed: see its condition") {
			t.Errorf("next: %q, want no reason", e.Next)
		}
	})
}

func TestContestedReplicasAreExplained(t *testing.T) {
	overKinds(t, func(t *testing.T, kind kind) {
		f := newFixture(t, kind, kind.example())
		f.serve()
		for range 5 {
			f.update(func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](7) })
			f.observe()
			if _, err := f.controller.Sync(f.Context(), key); err != nil {
				t.Fatal(err)
			}
		}
		f.update(func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](7) })
		f.observe()
		e, err := f.controller.Explain(key)
		if err != nil {
			t.Fatal(err)
		}
		if want := regexp.MustCompile(`^nothing for [0-9.]+m?s: spec.replicas of Deployment "example-web" is also set by `); !want.MatchString(e.Next) {
			t.Errorf("next: %q, want %s", e.Next, want)
		}
	})
}

func TestDecodeErrorIsNotQuoted(t *testing.T) {
	overKinds(t, func(t *testing.T, kind kind) {
		f := newFixture(t, kind, kind.example())
		if err := f.objects.Update(kind.placeholder("2")); err != nil {
			t.Fatal(err)
		}
		e, err := f.controller.Explain(key)
		if err != nil || !e.Found || e.Next != "nothing: the object cannot be decoded; see its Event for the error" {
			t.Errorf("%+v, %v, want a reference to the Event", e, err)
		}
	})
}

func TestDeletedAndUnknownObjectsAreExplained(t *testing.T) {
	overKinds(t, func(t *testing.T, kind kind) {
		deleted := kind.example()
		deleted.SetDeletionTimestamp(&metav1.Time{})
		deleted.SetFinalizers([]string{"example.com/stay"})
		f := newFixture(t, kind, deleted)
		for name, want := range map[string]string{key.Name: "being deleted", "unknown": `the cache has no ` + kind.Kind + ` "unknown" in namespace "default"`} {
			e, err := f.controller.Explain(cache.NewObjectName(key.Namespace, name))
			if err != nil {
				t.Fatal(err)
			}
			if e.Found != (name == key.Name) || !strings.HasPrefix(e.Next, "nothing: ") || !strings.Contains(e.Next, want) {
				t.Errorf("%s: found %t, next: %q, want %q", name, e.Found, e.Next, want)
			}
		}
	})
}
