// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

// retryRequest is how long after a failed request of a token the next one may begin.
const retryRequest = 2 * time.Second

// forgetAfter is how long a failed request of a token counts. It exceeds the longest backoff of
// a write. Until then the former token may be good enough, and nothing may be left to write.
const forgetAfter = 6 * time.Minute

// account is the ServiceAccount of a controller. At most one request of its token runs at a time,
// and no write waits for it while the former token is valid.
type account struct {
	request func() (token, error)
	logger  klog.Logger

	mutex   sync.Mutex
	token   token    // the zero value is not valid
	renewal *renewal // the request that runs; nil: none
	err     error    // of the last request, which ended at last
	last    time.Time
	since   time.Time // when requests began to fail
}

// token is a token with the times when it is to be renewed and when it expires.
type token struct {
	value          string
	renew, expires time.Time
}

// renewal is a request of a token. token and err are set when done is closed.
type renewal struct {
	done  chan struct{}
	token token
	err   error
}

// get returns a token that has not expired. It waits for a request only without one, and until
// ctx ends. After a failed request it returns the error for a while.
func (a *account) get(ctx context.Context) (string, error) {
	a.mutex.Lock()
	now := time.Now()
	valid := now.Before(a.token.expires)
	if due := !now.Before(a.token.renew); due && a.renewal == nil && (a.err == nil || now.Sub(a.last) >= retryRequest) {
		a.renewal = &renewal{done: make(chan struct{})}
		go a.renew(a.renewal, valid)
	}
	current, renewal, err := a.token.value, a.renewal, a.err
	a.mutex.Unlock()
	switch {
	case valid:
		return current, nil
	case renewal == nil:
		return "", err
	}
	select {
	case <-renewal.done:
		return renewal.token.value, renewal.err
	case <-ctx.Done():
		return "", fmt.Errorf("waiting for a token: %w", context.Cause(ctx))
	}
}

// renew requests a token. If the former one is valid, nobody waits for the result.
func (a *account) renew(r *renewal, valid bool) {
	r.token, r.err = a.request()
	if r.err != nil && valid {
		a.logger.Error(r.err, "Failed to renew a token, using the former one")
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	defer close(r.done)
	if a.err == nil {
		a.since = time.Now()
	}
	a.err, a.last, a.renewal = r.err, time.Now(), nil
	if r.err == nil {
		a.token = r.token
	}
}

// reject forgets a token that the API server has rejected.
func (a *account) reject(value string) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.token.value == value {
		a.token = token{}
	}
}

// failure returns why the last request failed, and since when requests fail.
func (a *account) failure() (err error, since time.Time) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if time.Since(a.last) < forgetAfter {
		return a.err, a.since
	}
	return nil, time.Time{}
}
