// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/ptr"

	"samplecontroller.io/controller-manager/internal/connection"
	"samplecontroller.io/controller-manager/internal/leadership"
)

// withAccount calls write with a client of a-controller, which writes with an account of its own. token answers the
// request for its token. It returns the error of write, and how many other requests were sent.
func withAccount(t *testing.T, token func(*Shared, http.ResponseWriter),
	write func(corev1client.CoreV1Interface) error) (err error, sent int) {
	t.Helper()
	var p *Shared
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.HasSuffix(r.URL.Path, "/selfsubjectreviews"):
			review := authenticationv1.SelfSubjectReview{}
			review.Status.UserInfo.Username = "system:serviceaccount:ns:manager"
			_ = json.NewEncoder(w).Encode(review)
		case strings.HasSuffix(r.URL.Path, "/token"):
			token(p, w)
		default:
			sent++
		}
	}))
	defer server.Close()
	p = newProcess(t, server.URL)
	p.Config.ContentType = "application/json"
	p.Gate = leadership.NewGate(time.Minute)
	if p.Accounts, err = connection.NewAccounts(t.Context(), p.Config, time.Minute); err != nil {
		t.Fatal(err)
	}
	client, err := corev1client.NewForConfig(p.context(Descriptor{Name: "a-controller"}, nil).ClientConfig())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := leadership.RunWithoutElection(ctx, p.Gate, func(*leadership.Term) error {
		defer cancel()
		err = write(client)
		return nil
	}); err != nil {
		t.Error(err)
	}
	return err, sent
}

// TestControllerIsSwitchedOffDuringWaitForToken: a write that waits for the token of its account is not sent.
func TestControllerIsSwitchedOffDuringWaitForToken(t *testing.T) {
	err, sent := withAccount(t, func(p *Shared, w http.ResponseWriter) {
		p.SwitchOff(sets.New("a-controller"))
		request := authenticationv1.TokenRequest{}
		request.Spec.ExpirationSeconds = ptr.To[int64](3600)
		request.Status.Token = "token"
		_ = json.NewEncoder(w).Encode(request)
	}, func(client corev1client.CoreV1Interface) error {
		_, err := client.ConfigMaps("team").Create(t.Context(), &corev1.ConfigMap{}, metav1.CreateOptions{})
		return err
	})
	if !errors.Is(err, errSwitchedOff) || sent > 0 {
		t.Errorf("error %v after %d requests, want none sent and %v", err, sent, errSwitchedOff)
	}
}

// TestMissingAccountIsNoMissingObject deletes an object while the ServiceAccount of the controller does not exist.
func TestMissingAccountIsNoMissingObject(t *testing.T) {
	err, sent := withAccount(t, func(_ *Shared, w http.ResponseWriter) {
		status := apierrors.NewNotFound(schema.GroupResource{Resource: "serviceaccounts"}, "manager-a-controller").Status()
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(status)
	}, func(client corev1client.CoreV1Interface) error {
		return client.ConfigMaps("team").Delete(t.Context(), "a", metav1.DeleteOptions{})
	})
	if !apierrors.IsNotFound(err) || isGone(err) || sent > 0 {
		t.Errorf("error %v after %d requests means that the object is gone: %t", err, sent, isGone(err))
	}
	b := &budget{limit: func() int { return 1 }, term: t.Context}
	b.end(deletion{uid: "a"}, time.Now(), err)
	if len(b.sent) > 0 {
		t.Error("a deletion that was not sent counts")
	}
}
