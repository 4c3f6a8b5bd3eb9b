// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"os"
	"slices"
	"sync"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"samplecontroller.io/controller-manager/managertest"
)

// fakeVault answers requests to the vault.
type fakeVault struct {
	mutex    sync.Mutex
	requests []string
	broken   bool
}

func (v *fakeVault) RoundTrip(r *http.Request) (*http.Response, error) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	v.requests = append(v.requests, r.Method+" "+r.URL.Path)
	response := &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}
	if v.broken {
		response.StatusCode, response.Status = http.StatusServiceUnavailable, "503 Service Unavailable"
	}
	return response, nil
}

// set breaks or repairs the vault, and returns the requests since the last call.
func (v *fakeVault) set(broken bool) (requests []string) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	requests, v.requests, v.broken = v.requests, nil, broken
	return requests
}

// run runs a test in memory, or on a real API server if TEST_KUBECONFIG is set.
func run(t *testing.T, v *fakeVault, body func(*testing.T, *managertest.Env), args ...string) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("TEST_KUBECONFIG"))
	if os.Getenv("TEST_KUBECONFIG") == "" {
		managertest.Run(t, program(v), body, args...)
	} else if err != nil {
		t.Fatal(err)
	} else {
		managertest.RunOn(t, config, program(v), body, args...)
	}
}

func expect(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}
