// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/klog/v2/ktesting"
)

// hanging is how long a request of a token takes that the API server does not answer.
const hanging = 3 * time.Second

// issuer issues tokens with a lifetime of an hour.
type issuer struct {
	requests int
	err      error
	hangs    bool
}

func (i *issuer) request() (token, error) {
	i.requests++
	if i.hangs {
		time.Sleep(hanging)
		return token{}, context.DeadlineExceeded
	}
	now := time.Now()
	return token{value: "token", renew: now.Add(48 * time.Minute), expires: now.Add(time.Hour)}, i.err
}

// write sends a write with the account that ends after timeout, and returns how long it took.
func (a *account) write(t *testing.T, timeout time.Duration) (time.Duration, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPatch, "https://api.test", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	_, err = (&accountTransport{a, sent{}, "an account"}).RoundTrip(request)
	return time.Since(begin), err
}

// sent answers each request.
type sent struct{}

func (sent) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

func inBubble(t *testing.T, test func(t *testing.T, of *account, from *issuer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		from := &issuer{}
		test(t, &account{request: from.request, logger: ktesting.NewLogger(t, ktesting.NewConfig())}, from)
		time.Sleep(hanging) // a request may be on its way
	})
}

func TestWritesShareARequestThatHangs(t *testing.T) {
	inBubble(t, func(t *testing.T, of *account, from *issuer) {
		from.hangs = true
		begin := time.Now()
		var workers sync.WaitGroup
		for range 10 {
			workers.Go(func() {
				if _, err := of.write(t, time.Minute); err == nil {
					t.Error("a write was sent without a token")
				}
			})
		}
		workers.Wait()
		if took := time.Since(begin); took != hanging || from.requests != 1 {
			t.Errorf("10 writes took %v and %d requests of a token, want %v and 1", took, from.requests, hanging)
		}
	})
}

func TestWaitForATokenEndsWithTheWrite(t *testing.T) {
	inBubble(t, func(t *testing.T, of *account, from *issuer) {
		from.hangs = true
		const timeout = hanging / 10
		for range 10 {
			if took, err := of.write(t, timeout); took > timeout || !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("a write with a timeout of %v took %v: %v", timeout, took, err)
			}
		}
	})
}

func TestHangingRenewalDelaysNoWrite(t *testing.T) {
	inBubble(t, func(t *testing.T, of *account, from *issuer) {
		write := func(want time.Duration) {
			t.Helper()
			if took, err := of.write(t, time.Minute); took != want || (err != nil) != (want > 0) {
				t.Errorf("a write took %v, want %v: %v", took, want, err)
			}
		}
		write(0)
		from.hangs = true
		for range 59 {
			time.Sleep(time.Minute)
			write(0)
			synctest.Wait()
		}
		if failure, since := of.failure(); failure == nil || time.Since(since) < 10*time.Minute {
			t.Errorf("renewals have failed since the 48th minute, but failure is %v since %v", failure, since)
		}
		if from.requests != 13 {
			t.Errorf("%d requests of a token, want the first, and one a minute since the 48th", from.requests)
		}
		time.Sleep(time.Minute)
		write(hanging) // the token has expired
		from.hangs = false
		time.Sleep(retryRequest)
		write(0)
	})
}

func TestFailedRequestIsNotRepeatedAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, of *account, from *issuer) {
		from.err = errors.New("no such account")
		begin := time.Now()
		for time.Since(begin) < time.Minute {
			if _, err := of.write(t, time.Minute); err == nil || !strings.Contains(err.Error(), "no such account") {
				t.Fatalf("a write without a token: %v", err)
			}
			time.Sleep(10 * time.Millisecond)
		}
		if from.requests != 30 {
			t.Errorf("%d requests of a token within a minute, want one in %v", from.requests, retryRequest)
		}
	})
}
