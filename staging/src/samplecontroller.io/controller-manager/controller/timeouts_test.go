// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	restclient "k8s.io/client-go/rest"

	"samplecontroller.io/controller-manager/internal/leadership"
	"samplecontroller.io/controller-manager/reconcile"
)

const (
	writeTimeout = 3 * time.Second
	syncTimeout  = 30 * time.Second
)

// slowAPI answers each request after a delay, unless it is canceled.
type slowAPI struct {
	mutex      sync.Mutex
	delay      time.Duration
	code       int
	retryAfter string
	requests   int
	timeouts   []string // sent with the requests
}

func (a *slowAPI) RoundTrip(request *http.Request) (*http.Response, error) {
	a.mutex.Lock()
	a.requests++
	a.timeouts = append(a.timeouts, request.URL.Query().Get("timeout"))
	a.mutex.Unlock()
	select {
	case <-request.Context().Done():
		return nil, request.Context().Err()
	case <-time.After(a.delay):
	}
	header := http.Header{"Content-Type": {"application/json"}}
	if a.retryAfter != "" {
		header.Set("Retry-After", a.retryAfter)
	}
	return &http.Response{
		Request: request, StatusCode: a.code, Header: header,
		Body: io.NopCloser(strings.NewReader(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`)),
	}, nil
}

// leading runs a test with the client of a controller that leads without an election.
func leading(t *testing.T, api *slowAPI, test func(t *testing.T, configMaps corev1client.ConfigMapInterface)) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(t, "https://api.test")
		p.Config.Transport, p.Config.QPS, p.Config.Burst = api, 10, 10
		p.Gate = leadership.NewGate(writeTimeout)
		p.SyncTimeout = syncTimeout
		client, err := corev1client.NewForConfig((&Context{shared: p, name: "a-controller"}).ClientConfig())
		if err != nil {
			t.Fatal(err)
		}
		err = leadership.RunWithoutElection(t.Context(), p.Gate, func(*leadership.Term) error {
			test(t, client.ConfigMaps("team"))
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func create(ctx context.Context, configMaps corev1client.ConfigMapInterface) (time.Duration, error) {
	began := time.Now()
	_, err := configMaps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{})
	return time.Since(began), err
}

// TestSecondTryOfSlowWriteSucceeds creates an object behind a webhook that takes 10 s, the
// default timeout of webhooks.
func TestSecondTryOfSlowWriteSucceeds(t *testing.T) {
	api := &slowAPI{delay: 10 * time.Second, code: http.StatusCreated}
	leading(t, api, func(t *testing.T, configMaps corev1client.ConfigMapInterface) {
		ctx, cancel := context.WithTimeout(t.Context(), syncTimeout)
		defer cancel()
		if took, err := create(ctx, configMaps); !reconcile.IsWriteTimeout(err) || took != writeTimeout {
			t.Errorf("the first try failed after %v: %v, want a write timeout after %v", took, err, writeTimeout)
		}
		if took, err := create(reconcile.WithLongWrite(ctx), configMaps); err != nil || took != api.delay {
			t.Errorf("the second try: %v after %v, want success after %v", err, took, api.delay)
		}
		if want := []string{"3s", "30s"}; strings.Join(api.timeouts, " ") != strings.Join(want, " ") {
			t.Errorf("timeouts sent to the API server: %q, want %q", api.timeouts, want)
		}
	})
}

func TestContextOfCallerEndsLongWrite(t *testing.T) {
	leading(t, &slowAPI{delay: time.Hour}, func(t *testing.T, configMaps corev1client.ConfigMapInterface) {
		ctx, cancel := context.WithTimeout(reconcile.WithLongWrite(t.Context()), time.Second)
		defer cancel()
		if took, err := create(ctx, configMaps); took != time.Second || reconcile.IsWriteTimeout(err) {
			t.Errorf("failed after %v: %v, want the deadline of the caller after 1s", took, err)
		}
	})
}

func TestReadOfControllerIsBounded(t *testing.T) {
	leading(t, &slowAPI{delay: time.Hour}, func(t *testing.T, configMaps corev1client.ConfigMapInterface) {
		began := time.Now()
		_, err := configMaps.Get(t.Context(), "a", metav1.GetOptions{})
		if took := time.Since(began); err == nil || took != writeTimeout || reconcile.IsWriteTimeout(err) {
			t.Errorf("failed after %v: %v, want a read timeout after %v", took, err, writeTimeout)
		}
	})
}

// TestCallIsRepeatedUntilWriteTimeout checks that a worker is not held longer by an API server
// that asks the client to repeat its request.
func TestCallIsRepeatedUntilWriteTimeout(t *testing.T) {
	for name, test := range map[string]struct {
		retryAfter string
		code       int
		syncing    time.Duration
		requests   int
		took       time.Duration
	}{
		"every second":           {"1", http.StatusTooManyRequests, 0, 3, 2 * time.Second},
		"server error":           {"1", http.StatusServiceUnavailable, 0, 3, 2 * time.Second},
		"later":                  {"10", http.StatusTooManyRequests, 0, 1, 0},
		"without a time":         {"", http.StatusTooManyRequests, 0, 1, 0},
		"late in a sync":         {"1", http.StatusTooManyRequests, 10 * time.Second, 1, 0},
		"not long after another": {"1", http.StatusTooManyRequests, time.Second, 2, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			api := &slowAPI{code: test.code, retryAfter: test.retryAfter}
			leading(t, api, func(t *testing.T, configMaps corev1client.ConfigMapInterface) {
				ctx, cancel := context.WithTimeout(t.Context(), syncTimeout)
				defer cancel()
				time.Sleep(test.syncing)
				took, err := create(ctx, configMaps)
				if status, ok := errors.AsType[*apierrors.StatusError](err); !ok || int(status.Status().Code) != test.code {
					t.Errorf("error is %v, want the response %d", err, test.code)
				}
				if took != test.took || api.requests != test.requests {
					t.Errorf("%d requests in %v, want %d in %v", api.requests, took, test.requests, test.took)
				}
			})
		})
	}
}

// TestRateLimitIsForEachController sends requests with --kube-api-qps=1 --kube-api-burst=1.
func TestRateLimitIsForEachController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(t, "https://api.test")
		p.Config.Transport = &slowAPI{code: http.StatusOK}
		p.Config.QPS, p.Config.Burst = 1, 1
		get := func(config *restclient.Config) (took time.Duration) {
			t.Helper()
			client, err := corev1client.NewForConfig(config) // as for each kind
			if err != nil {
				t.Fatal(err)
			}
			begin := time.Now()
			if _, err := client.ConfigMaps("team").Get(t.Context(), "a", metav1.GetOptions{}); err != nil {
				t.Error(err)
			}
			return time.Since(begin)
		}
		a, b := &Context{shared: p, name: "a-controller"}, &Context{shared: p, name: "b-controller"}
		for i, request := range []struct {
			config *restclient.Config
			want   time.Duration
		}{
			{a.ClientConfig(), 0},
			{b.ClientConfig(), 0},
			{a.ReadConfig(), 0},
			{a.ClientConfig(), time.Second},
			{b.ReadConfig(), 0}, // a second has passed
			{a.ReadConfig(), time.Second},
		} {
			if took := get(request.config); took != request.want {
				t.Errorf("request %d of %s took %v, want %v", i, request.config.UserAgent, took, request.want)
			}
		}
	})
}

// TestWaitForRateLimitEndsWithTerm checks that a worker that waits for --kube-api-qps does not
// delay the end of a term, and that its sync may still send what needs no wait.
func TestWaitForRateLimitEndsWithTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(t, "https://api.test")
		p.Config.Transport = &slowAPI{code: http.StatusCreated}
		p.Config.QPS, p.Config.Burst = 0.1, 1
		p.Gate = leadership.NewGate(writeTimeout)
		client, err := corev1client.NewForConfig((&Context{shared: p, name: "a-controller"}).ClientConfig())
		if err != nil {
			t.Fatal(err)
		}
		ctx, end := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { end(errors.New("SIGTERM")) })
		err = leadership.RunWithoutElection(ctx, p.Gate, func(*leadership.Term) error {
			for _, want := range []struct {
				took time.Duration
				err  string
			}{{0, ""}, {time.Second, "stops leading: SIGTERM"}, {0, "stops leading: SIGTERM"}} {
				took, err := create(t.Context(), client.ConfigMaps("team"))
				if took != want.took || (err == nil) != (want.err == "") || err != nil && !strings.Contains(err.Error(), want.err) {
					t.Errorf("a write returned after %v: %v, want after %v: %q", took, err, want.took, want.err)
				}
			}
			time.Sleep(10 * time.Second)
			if _, err := create(t.Context(), client.ConfigMaps("team")); err != nil {
				t.Errorf("a write of the drain that needs no wait: %v", err)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func TestHangingWriteDoesNotDelayOthers(t *testing.T) {
	leading(t, &slowAPI{delay: time.Hour}, func(t *testing.T, configMaps corev1client.ConfigMapInterface) {
		var writes sync.WaitGroup
		for range 10 {
			writes.Go(func() {
				if took, err := create(t.Context(), configMaps); err == nil || took != writeTimeout {
					t.Errorf("a write failed after %v: %v, want %v", took, err, writeTimeout)
				}
			})
		}
		writes.Wait()
	})
}
