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
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// What is explained to be next is what a sync then does, in every state.
func TestWhatIsExplainedIsWhatIsDone(t *testing.T) {
	tests := map[string]struct {
		// given brings the example, which is served, into the state.
		given func(f *fixture)
		next  string
		// differs are the facts that do.
		differs []string
		calls   []string
	}{
		"all is well": {
			given: func(*fixture) {},
			next:  "nothing: all is as it is wanted",
		},
		"another replica count": {
			given: func(f *fixture) { f.update(func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](7) }) },
			next:  `patch Deployment "example-web"`, differs: []string{"its replicas"},
			calls: []string{"patch deployments", "list objects"},
		},
		"no Deployment": {
			given: func(f *fixture) {
				if err := f.kube.AppsV1().Deployments(key.Namespace).Delete(f.Context(), deploymentName, metav1.DeleteOptions{}); err != nil {
					f.Fatal(err)
				}
			},
			next: `create Deployment "example-web"`, differs: []string{"Deployment"},
			calls: []string{"create deployments", "list objects", "patch objects/status"},
		},
		"another's Deployment": {
			given: func(f *fixture) {
				f.update(func(d *appsv1.Deployment) { d.OwnerReferences[0].Name, d.OwnerReferences[0].UID = "other", "uid-other" })
			},
			next: "nothing: DeploymentConflict: ", differs: []string{"its owner", "status"},
			calls: []string{"patch objects/status"},
		},
		"a status that is late": {
			given: func(f *fixture) { f.update(func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 0 }) },
			next:  "write the status", differs: []string{"status"},
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
				f.wantCalls() // to explain asks nobody
				f.sync()
				f.wantCalls(tc.calls...)
			})
		})
	}
}

func TestADeniedWriteIsExplained(t *testing.T) {
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
		if want := regexp.MustCompile(`^create Deployment "example-web" in [0-9]+ms: it was denied: `); !want.MatchString(e.Next) {
			t.Errorf("next: %q, want %s", e.Next, want)
		}
	})
}

func TestWhatHasNoDeploymentToComeIsExplained(t *testing.T) {
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
				t.Errorf("%s: found %t, next: %q, want it to say %q", name, e.Found, e.Next, want)
			}
		}
	})
}
