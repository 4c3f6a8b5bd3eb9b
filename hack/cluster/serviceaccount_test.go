// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func TestKeepFresh(t *testing.T) {
	tokenFile := filepath.Join(t.TempDir(), "token")
	synctest.Test(t, func(t *testing.T) {
		var requests, failures atomic.Int32
		client := fake.NewClientset()
		client.PrependReactor("create", "serviceaccounts", func(clienttesting.Action) (bool, runtime.Object, error) {
			n := requests.Add(1)
			if n == 2 {
				return true, nil, errors.New("no token today")
			}
			return true, &authenticationv1.TokenRequest{Status: authenticationv1.TokenRequestStatus{
				Token:               fmt.Sprintf("token-%d", n),
				ExpirationTimestamp: metav1.NewTime(time.Now().Add(10 * time.Minute)),
			}}, nil
		})
		c := &Credentials{client: client, namespace: "default", name: "daemon", tokenFile: tokenFile}
		if err := c.Renew(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			c.KeepFresh(ctx, func(error) { failures.Add(1) })
		}()

		expect := func(after time.Duration, want string, wantFailures int32) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			if got, err := os.ReadFile(tokenFile); err != nil || string(got) != want {
				t.Errorf("the file holds %q, %v; want %q", got, err, want)
			}
			if got := failures.Load(); got != wantFailures {
				t.Errorf("%d failures reported, want %d", got, wantFailures)
			}
		}
		expect(4*time.Minute, "token-1", 0)
		expect(time.Minute, "token-1", 1)
		expect(time.Minute, "token-3", 1)
		expect(5*time.Minute, "token-4", 1)
		cancel()
		<-done
	})
}
