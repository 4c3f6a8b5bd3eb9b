// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package writes

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	webhookerrors "k8s.io/apiserver/pkg/admission/plugin/webhook/errors"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

var deployments = appsv1.Resource("deployments")

// TestMissingPermissionIsListedUntilGranted uses the responses of the API server's authorizer.
func TestMissingPermissionIsListedUntilGranted(t *testing.T) {
	for name, test := range map[string]struct {
		write func(*fixture) error
		want  string
	}{
		"create":       {func(f *fixture) error { return f.create(f.Context(), "x") }, `may not create deployments.apps in namespace "x"`},
		"patch":        {func(f *fixture) error { return f.patch(f.Context(), "x", "web") }, `may not patch deployments.apps in namespace "x"`},
		"patch status": {func(f *fixture) error { return f.patch(f.Context(), "x", "web", "status") }, `may not patch deployments/status.apps in namespace "x"`},
		"delete": {
			func(f *fixture) error {
				return f.client.AppsV1().Deployments("x").Delete(f.Context(), "web", metav1.DeleteOptions{})
			},
			`may not delete deployments.apps in namespace "x"`,
		},
		"delete all": {
			func(f *fixture) error {
				return f.client.AppsV1().Deployments("x").DeleteCollection(f.Context(), metav1.DeleteOptions{}, metav1.ListOptions{})
			},
			`may not deletecollection deployments.apps in namespace "x"`,
		},
		"cluster-scoped": {
			func(f *fixture) error {
				return f.client.CoreV1().Nodes().Delete(f.Context(), "n", metav1.DeleteOptions{})
			},
			"may not delete nodes",
		},
	} {
		for _, contentType := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf} {
			t.Run(name+", "+contentType, func(t *testing.T) {
				f := newFixture(t, nil)
				f.client = client(t, f.transport, f.api, contentType)
				f.api.deny(everything)
				for range 3 {
					if err := test.write(f); !apierrors.IsForbidden(err) {
						t.Fatalf("writing: %v, want the API server's error", err)
					}
				}
				f.wantRequests(3)
				f.wantDenied(test.want)
				f.api.deny(nothing)
				if err := test.write(f); err != nil {
					t.Fatalf("writing: %v, want success", err)
				}
				f.wantDenied()
			})
		}
	}
}

// TestAdmissionIsNotAMissingPermission uses the responses of the API server's admission,
// whose text can look like that of the authorizer.
func TestAdmissionIsNotAMissingPermission(t *testing.T) {
	const likeAuthorizer = `User "me" cannot create resource "deployments" in API group "apps" in the namespace "x"`
	web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "x"}}
	attributes := func(name string, operation admission.Operation) admission.Attributes {
		return admission.NewAttributesRecord(web, nil, appsv1.SchemeGroupVersion.WithKind("Deployment"), "x", name,
			appsv1.SchemeGroupVersion.WithResource("deployments"), "", operation, nil, false, nil)
	}
	withCause := func(err error, cause metav1.StatusCause) error {
		status := err.(*apierrors.StatusError)
		status.ErrStatus.Details.Causes = append(status.ErrStatus.Details.Causes, cause)
		return status
	}
	create := func(f *fixture) error { return f.create(f.Context(), "x") }
	patch := func(f *fixture) error { return f.patch(f.Context(), "x", "web") }
	plugin := admission.NewForbidden(attributes("", admission.Create), errors.New(likeAuthorizer))
	webhook := webhookerrors.ToStatusErr("w", &metav1.Status{Code: http.StatusForbidden,
		Reason: metav1.StatusReasonForbidden, Message: likeAuthorizer})
	for name, test := range map[string]struct {
		err   error
		write func(*fixture) error
	}{
		"plugin, create":  {plugin, create},
		"webhook, create": {webhook, create},
		"webhook, patch":  {webhook, patch},
		"policy, patch": {
			withCause(admission.NewForbidden(attributes("web", admission.Update), errors.New(likeAuthorizer)),
				metav1.StatusCause{Message: likeAuthorizer}), patch,
		},
		"terminating namespace": {
			withCause(admission.NewForbidden(attributes("", admission.Create), errors.New("no")),
				metav1.StatusCause{Type: corev1.NamespaceTerminatingCause}), create,
		},
		"escalation, patch": {
			apierrors.NewForbidden(rbacv1.Resource("roles"), "web", errors.New(`user "me" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:`)),
			func(f *fixture) error {
				_, err := f.client.RbacV1().Roles("x").Patch(f.Context(), "web", types.MergePatchType, []byte("{}"),
					metav1.PatchOptions{})
				return err
			},
		},
		"quota, patch": {
			apierrors.NewForbidden(corev1.Resource("persistentvolumeclaims"), "web", errors.New("exceeded quota: storage, requested: requests.storage=10Gi")),
			func(f *fixture) error {
				_, err := f.client.CoreV1().PersistentVolumeClaims("x").Patch(f.Context(), "web", types.MergePatchType, []byte("{}"),
					metav1.PatchOptions{})
				return err
			},
		},
		"owner reference, patch": {
			apierrors.NewForbidden(deployments, "web", errors.New("cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>")), patch,
		},
		"invalid":  {apierrors.NewInvalid(appsv1.SchemeGroupVersion.WithKind("Deployment").GroupKind(), "web", nil), create},
		"conflict": {apierrors.NewConflict(deployments, "web", errors.New("changed")), patch},
		"gone":     {apierrors.NewNotFound(deployments, "web"), patch},
		"bad":      {apierrors.NewBadRequest("no"), create},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, nil)
			f.api.set(func(a *api) { a.error = test.err })
			if err := test.write(f); err == nil || err.Error() != test.err.Error() {
				t.Errorf("writing: %v, want %v", err, test.err)
			}
			f.wantDenied()
		})
	}
}

// TestDenialEndsOnlyBySuccess makes the write fail for another reason after a denial.
func TestDenialEndsOnlyBySuccess(t *testing.T) {
	for name, fail := range map[string]func(*api){
		"throttled": func(a *api) {
			a.error = apierrors.NewGenericServerResponse(http.StatusTooManyRequests, "create", deployments, "web", "", 0, true)
		},
		"unauthorized": func(a *api) { a.error = apierrors.NewUnauthorized("who are you?") },
		"broken":       func(a *api) { a.error = apierrors.NewInternalError(errors.New("etcd")) },
		"no answer":    func(a *api) { a.broken = errors.New("connection refused") },
		"not leading":  func(a *api) { a.broken = errRefused },
		"by admission": func(a *api) { a.error = apierrors.NewForbidden(deployments, "web", errors.New("exceeded quota")) },
		"not a Status": func(a *api) { a.plain = "denied by a proxy" },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, nil)
			f.api.deny(everything)
			_ = f.create(t.Context(), "x")
			f.api.deny(nothing)
			f.api.set(fail)
			if err := f.create(t.Context(), "x"); err == nil {
				t.Fatal("created, want an error")
			}
			f.wantDenied(`may not create deployments.apps in namespace "x"`)
		})
	}
}

// TestDenialNamesOneNamespace revokes a permission in two of three namespaces.
func TestDenialNamesOneNamespace(t *testing.T) {
	f := newFixture(t, nil)
	f.api.deny(func(a authorizer.Attributes) bool { return a.GetVerb() == "create" && a.GetNamespace() != "z" })
	_, _, _ = f.create(t.Context(), "x"), f.create(t.Context(), "y"), f.create(t.Context(), "z")
	_, _ = f.patch(t.Context(), "y", "web"), f.patch(t.Context(), "y", "web", "status") // succeed
	f.wantDenied(`may not create deployments.apps in namespace "y"`)
	f.api.deny(func(a authorizer.Attributes) bool { return a.GetNamespace() == "x" })
	_ = f.create(t.Context(), "y")
	f.wantDenied()
	_ = f.create(t.Context(), "x")
	f.wantDenied(`may not create deployments.apps in namespace "x"`)
}

func TestDenialExpiresAfterOneMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		f.api.deny(everything)
		began := time.Now()
		_, _ = f.create(t.Context(), "x"), f.patch(t.Context(), "x", "web")
		time.Sleep(time.Minute - time.Second)
		f.wantDenied(`may not create deployments.apps in namespace "x"`, `may not patch deployments.apps in namespace "x"`)
		_ = f.create(t.Context(), "x")
		time.Sleep(time.Second)
		f.wantDenied(`may not create deployments.apps in namespace "x"`)
		if since := f.transport.Denied()[0].Since; !since.Equal(began) {
			t.Errorf("denied since %v, want %v, the first denial", since, began)
		}
		time.Sleep(time.Minute)
		f.wantDenied()
		_ = f.create(t.Context(), "x")
		if since := f.transport.Denied()[0].Since; !since.Equal(time.Now()) {
			t.Errorf("denied since %v, want now", since)
		}
	})
}

func TestSummary(t *testing.T) {
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
