// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// slow is a transport that takes an hour to answer.
type slow struct{}

func (slow) RoundTrip(request *http.Request) (*http.Response, error) {
	select {
	case <-request.Context().Done():
		return nil, request.Context().Err()
	case <-time.After(time.Hour):
		return &http.Response{StatusCode: http.StatusOK}, nil
	}
}

func TestLookupsEndWithTheContextAndLaterRequestsDoNot(t *testing.T) {
	for name, over := range map[string]bool{"a lookup": false, "a later request": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				l := &lookups{}
				client := l.boundTo(ctx)(slow{})
				l.over.Store(over)
				began := time.Now()
				request, err := http.NewRequest(http.MethodGet, "https://api.test", nil)
				if err != nil {
					t.Fatal(err)
				}
				_, err = client.RoundTrip(request)
				if over && (err != nil || time.Since(began) != time.Hour) {
					t.Errorf("answered after %v with %v, want an answer after an hour", time.Since(began), err)
				}
				if !over && (!errors.Is(err, context.Canceled) || time.Since(began) != time.Minute) {
					t.Errorf("given up after %v with %v, want it cancelled after a minute", time.Since(began), err)
				}
			})
		})
	}
}
