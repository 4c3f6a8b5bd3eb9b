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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/ptr"

	"samplecontroller.io/controller-manager/internal/connection"
	"samplecontroller.io/controller-manager/internal/leadership"
)

// TestControllerIsSwitchedOffDuringWaitForToken: a write that waits for the token of its account is not sent.
func TestControllerIsSwitchedOffDuringWaitForToken(t *testing.T) {
	var p *Shared
	sent := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.HasSuffix(r.URL.Path, "/selfsubjectreviews"):
			review := authenticationv1.SelfSubjectReview{}
			review.Status.UserInfo.Username = "system:serviceaccount:ns:manager"
			_ = json.NewEncoder(w).Encode(review)
		case strings.HasSuffix(r.URL.Path, "/token"):
			p.SwitchOff(sets.New("a-controller"))
			request := authenticationv1.TokenRequest{}
			request.Spec.ExpirationSeconds = ptr.To[int64](3600)
			request.Status.Token = "token"
			_ = json.NewEncoder(w).Encode(request)
		default:
			sent++
		}
	}))
	defer server.Close()
	p = newProcess(t, server.URL)
	p.Config.ContentType = "application/json"
	p.Gate = leadership.NewGate(time.Minute)
	var err error
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
		_, err := client.ConfigMaps("team").Create(t.Context(), &corev1.ConfigMap{}, metav1.CreateOptions{})
		if !errors.Is(err, errSwitchedOff) || sent > 0 {
			t.Errorf("error %v after %d requests, want none sent and %v", err, sent, errSwitchedOff)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}
