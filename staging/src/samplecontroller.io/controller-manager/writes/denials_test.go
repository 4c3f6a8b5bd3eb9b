// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package writes

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

var deployments = appsv1.Resource("deployments")

// TestAMissingPermissionCostsOneRequestInFiveSeconds has 50 objects of a namespace want
// what may not be written, all the time.
func TestAMissingPermissionCostsOneRequestInFiveSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		f.api.deny(everything)
		begin := time.Now()
		for time.Since(begin) < time.Minute {
			for i := range 50 {
				if err := f.patch(t.Context(), "x", fmt.Sprint(i)); !IsMissingPermission(err) {
					t.Fatalf("patching: %v, want it denied", err)
				}
			}
			time.Sleep(probeInterval / 2)
		}
		f.wantRequests(12)
		want := []Denial{{"patch", "deployments.apps", "x", begin, `User "system:serviceaccount:\"odd\" cannot &amp; so on" cannot patch resource "deployments" in API group "apps" in the namespace "x"`}}
		if diff := cmp.Diff(want, f.transport.Denied()); diff != "" {
			t.Errorf("unexpected denials (-want +got):\n%s", diff)
		}

		f.api.deny(nothing)
		time.Sleep(probeInterval)
		for i := range 50 {
			if err := f.patch(t.Context(), "x", fmt.Sprint(i)); err != nil {
				t.Fatalf("patching: %v, want it done by the first that is let through", err)
			}
		}
		f.wantRequests(50)
		f.wantDenied()
	})
}

// TestTheErrorIsThatOfTheAPIServer compares what the client makes of an answer of ours
// with what it makes of the API server's, in each encoding.
func TestTheErrorIsThatOfTheAPIServer(t *testing.T) {
	for _, contentType := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf} {
		t.Run(contentType, func(t *testing.T) {
			a := &api{}
			a.deny(everything)
			strange := client(t, nil, a, contentType)
			f := newFixture(t, nil)
			f.client = client(t, f.transport, f.api, contentType)
			f.api.deny(everything)
			for name, do := range map[string]func(*fixture) error{
				"create":       func(f *fixture) error { return f.create(t.Context(), "x") },
				"patch":        func(f *fixture) error { return f.patch(t.Context(), "x", "web") },
				"patch status": func(f *fixture) error { return f.patch(t.Context(), "x", "web", "status") },
				"delete": func(f *fixture) error {
					return f.client.AppsV1().Deployments("x").Delete(t.Context(), "web", metav1.DeleteOptions{})
				},
				"delete all": func(f *fixture) error {
					return f.client.AppsV1().Deployments("x").DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{})
				},
				"of no namespace": func(f *fixture) error {
					return f.client.CoreV1().Nodes().Delete(t.Context(), "n", metav1.DeleteOptions{})
				},
			} {
				t.Run(name, func(t *testing.T) {
					want := do(&fixture{T: t, client: strange})
					first := do(f)
					f.wantRequests(1)
					second := do(f)
					f.wantRequests(0)
					for _, err := range []error{first, second} {
						var got, server *apierrors.StatusError
						if !errors.As(err, &got) || !errors.As(want, &server) || !apierrors.IsForbidden(err) || !IsMissingPermission(err) {
							t.Fatalf("%#v, want %#v", err, want)
						}
						if diff := cmp.Diff(server.ErrStatus, got.ErrStatus); diff != "" {
							t.Errorf("unexpected status (-want +got):\n%s", diff)
						}
					}
				})
			}
		})
	}
}

func TestTheErrorNamesTheObjectThatWasWritten(t *testing.T) {
	f := newFixture(t, nil)
	f.api.deny(everything)
	for _, name := range []string{"a", "b"} {
		want := fmt.Sprintf(`deployments.apps %q is forbidden: User "system`, name)
		if err := f.patch(t.Context(), "x", name, "status"); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("patching %s: %v, want %s...", name, err, want)
		}
		if err := f.transport.Withheld(t.Context(), "patch", schema.GroupResource{Group: "apps", Resource: "deployments/status"}, "x", name); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("Withheld(%s) = %v, want %s...", name, err, want)
		}
	}
	f.wantRequests(1)
}

func TestOneRequestFindsOutWhileTheOthersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		f.api.deny(everything)
		_ = f.create(t.Context(), "x")
		f.api.delay = time.Second
		time.Sleep(probeInterval)
		f.wantRequests(1)
		var creating sync.WaitGroup
		for range 20 {
			creating.Go(func() {
				if err := f.create(t.Context(), "x"); !IsMissingPermission(err) {
					t.Errorf("creating: %v, want it denied", err)
				}
			})
		}
		creating.Wait()
		f.wantRequests(1)
		// The interval begins with its answer.
		time.Sleep(probeInterval - time.Millisecond)
		_ = f.create(t.Context(), "x")
		f.wantRequests(0)
		time.Sleep(time.Millisecond)
		_ = f.create(t.Context(), "x")
		f.wantRequests(1)
	})
}

func TestOnlyWhatIsDeniedIsHeldBack(t *testing.T) {
	f := newFixture(t, nil)
	f.api.deny(func(a authorizer.Attributes) bool {
		return a.GetVerb() == "patch" && a.GetNamespace() == "x" && a.GetSubresource() == ""
	})
	if err := f.patch(t.Context(), "x", "a"); !IsMissingPermission(err) {
		t.Fatalf("patching: %v, want it denied", err)
	}
	for what, err := range map[string]error{
		"another namespace": f.patch(t.Context(), "y", "a"),
		"another verb":      f.create(t.Context(), "x"),
		"a subresource":     f.patch(t.Context(), "x", "a", "status"),
	} {
		if err != nil {
			t.Errorf("%s: %v, want it written", what, err)
		}
	}
	f.wantDenied(`may not patch deployments.apps in namespace "x"`)
}

func TestASuccessEndsADenialAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		f.api.delay = time.Second
		var creating sync.WaitGroup
		creating.Go(func() { _ = f.create(t.Context(), "x") })
		synctest.Wait() // it is on its way
		f.api.deny(everything)
		f.api.delay = 0
		if err := f.create(t.Context(), "x"); !IsMissingPermission(err) {
			t.Fatalf("creating: %v, want it denied", err)
		}
		f.api.deny(nothing)
		creating.Wait()
		if err := f.create(t.Context(), "x"); err != nil {
			t.Errorf("creating: %v, want it done", err)
		}
		f.wantDenied()
	})
}

// TestWhatAdmissionDeniesIsNoMissingPermission also has it show that the permission is
// there: admission comes after the authorizer.
func TestWhatAdmissionDeniesIsNoMissingPermission(t *testing.T) {
	forbidden := func(message string) error { return apierrors.NewForbidden(deployments, "web", errors.New(message)) }
	for name, err := range map[string]error{
		"quota":           forbidden("exceeded quota: none, requested: count/deployments.apps=1, used: count/deployments.apps=0, limited: count/deployments.apps=0"),
		"policy":          forbidden(`ValidatingAdmissionPolicy 'p' with binding 'p' denied request: User "me" cannot create resource "deployments" in API group "apps" in the namespace "x"`),
		"webhook":         forbidden(`admission webhook "w" denied the request: User "me" cannot create resource "deployments" in API group "apps" in the namespace "x"`),
		"owner reference": forbidden("cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>"),
		"terminating":     forbidden("unable to create new content in namespace x because it is being terminated"),
		"invalid":         apierrors.NewInvalid(appsv1.SchemeGroupVersion.WithKind("Deployment").GroupKind(), "web", nil),
		"conflict":        apierrors.NewConflict(deployments, "web", errors.New("changed")),
		"gone":            apierrors.NewNotFound(deployments, "web"),
		"bad":             apierrors.NewBadRequest("no"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, nil)
				f.api.set(func(a *api) { a.error = err })
				for range 3 {
					if got := f.create(t.Context(), "x"); got == nil || got.Error() != err.Error() || IsMissingPermission(got) {
						t.Errorf("creating: %v, want %v", got, err)
					}
				}
				f.wantRequests(3)
				f.wantDenied()
				f.api.deny(everything)
				_ = f.create(t.Context(), "x")
				f.api.deny(nothing)
				time.Sleep(probeInterval)
				_ = f.create(t.Context(), "x")
				f.wantDenied()
			})
		})
	}
}

func TestWhatSaysNothingEndsNoDenial(t *testing.T) {
	for name, fail := range map[string]func(*api){
		"throttled": func(a *api) {
			a.error = apierrors.NewGenericServerResponse(http.StatusTooManyRequests, "create", deployments, "web", "", 0, true)
		},
		"unauthorized": func(a *api) { a.error = apierrors.NewUnauthorized("who are you?") },
		"broken":       func(a *api) { a.error = apierrors.NewInternalError(errors.New("etcd")) },
		"no answer":    func(a *api) { a.broken = errors.New("connection refused") },
		"refused":      func(a *api) { a.broken = errRefused },
		"another permission": func(a *api) {
			a.error = apierrors.NewForbidden(deployments, "web", errors.New(`User "me" cannot bind resource "roles" in API group "" in the namespace "x"`))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, nil)
				f.api.deny(everything)
				_ = f.create(t.Context(), "x")
				f.api.deny(nothing)
				f.api.set(fail)
				time.Sleep(probeInterval)
				f.wantRequests(1)
				for range 10 {
					if err := f.create(t.Context(), "x"); err == nil {
						t.Fatal("created, want an error")
					}
				}
				f.wantRequests(1)
				f.wantDenied(`may not create deployments.apps in namespace "x"`)
			})
		})
	}
}

func TestWhatNobodyWantsAnyMoreIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		f.api.deny(everything)
		_, _ = f.create(t.Context(), "x"), f.create(t.Context(), "y")
		time.Sleep(oblivion - time.Second)
		f.wantDenied(`may not create deployments.apps in namespace "x"`, `may not create deployments.apps in namespace "y"`)
		_ = f.create(t.Context(), "y")
		time.Sleep(time.Second)
		f.wantDenied(`may not create deployments.apps in namespace "y"`)
		_ = f.create(t.Context(), "z")
		if got := len(f.transport.denials.byPermission); got != 2 {
			t.Errorf("%d denials are remembered, want 2", got)
		}
	})
}

func TestTheLongestDeniedGoesWhenTooManyAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d denials
		for i := range maxDenials + 10 {
			d.found(permission{"create", deployments, fmt.Sprintf("%04d", i)}, "no", time.Now())
			time.Sleep(time.Millisecond)
		}
		list := d.list(time.Now())
		if len(list) != maxDenials || len(d.byPermission) != maxDenials || list[0].Namespace != "0010" {
			t.Errorf("%d denials from %s on are remembered, want the last %d", len(list), list[0].Namespace, maxDenials)
		}
	})
}

func TestTheSummaryNamesOneAndCountsTheOthers(t *testing.T) {
	x := Denial{Verb: "create", Resource: "deployments.apps", Namespace: "x"}
	for want, denials := range map[string][]Denial{
		"": nil,
		`may not create deployments.apps in namespace "x"`:              {x},
		`may not create deployments.apps in namespace "x" (and 3 more)`: {x, x, x, x},
		"may not delete nodes": {{Verb: "delete", Resource: "nodes"}},
	} {
		if got := Summary(denials); got != want {
			t.Errorf("Summary() = %q, want %q", got, want)
		}
	}
}

func TestWithoutATransportNothingIsWithheld(t *testing.T) {
	var none *Transport
	if err := none.Withheld(t.Context(), "create", deployments, "x", "web"); err != nil {
		t.Errorf("Withheld() = %v, want nil", err)
	}
	none.Skip(deployments.String())
}

func TestRetriesAreSpreadAndSoon(t *testing.T) {
	seen := map[time.Duration]bool{}
	for range 100 {
		after := RetryAfter()
		if after < 5*time.Second || after > 10*time.Second {
			t.Errorf("RetryAfter() = %v, want 5 to 10 s", after)
		}
		seen[after] = true
	}
	if len(seen) < 50 {
		t.Errorf("100 tries are after %d different times, want them spread", len(seen))
	}
}
