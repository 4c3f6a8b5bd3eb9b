// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"samplecontroller.io/controller-manager/internal/longwrite"
)

// inTerm runs a test in a bubble with a term that a gate admits. end ends its work.
func inTerm(t *testing.T, validity time.Duration, test func(t *testing.T, gate *Gate, term *Term,
	end context.CancelFunc)) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		gate, term := NewGate(writeTimeout), newTerm(ctx, validity)
		defer term.over()
		if validity > 0 {
			term.renewed(time.Now())
		}
		gate.admit(term)
		test(t, gate, term, end)
	})
}

// long sends a long write and returns after how long it failed, and why.
func long(t *testing.T, gate *Gate, server http.RoundTripper) (time.Duration, error) {
	t.Helper()
	began := time.Now()
	err := doWith(t, longwrite.Allow(t.Context()), gate.Wrap(server), http.MethodPost, foos)
	return time.Since(began), err
}

// TestLongWriteEndsBeforeLeaseIsTaken sends a write at several times after the last renewal.
// The term is renewed during the write, because it would be lost otherwise.
func TestLongWriteEndsBeforeLeaseIsTaken(t *testing.T) {
	for _, sent := range []time.Duration{0, time.Second, validity - time.Millisecond} {
		t.Run(sent.String(), func(t *testing.T) {
			inTerm(t, validity, func(t *testing.T, gate *Gate, term *Term, _ context.CancelFunc) {
				renewed := time.Now()
				time.Sleep(sent)
				for _, later := range []time.Duration{time.Microsecond, validity / 2} {
					time.AfterFunc(later, func() { term.renewed(time.Now()) })
				}
				server := &api{delay: time.Hour}
				took, err := long(t, gate, server)
				if !errors.Is(err, longwrite.ErrTimeout) {
					t.Errorf("error is %v, want %v", err, longwrite.ErrTimeout)
				}
				end, want := time.Since(renewed), leaseDuration-durations{lease: leaseDuration}.margin()
				if end != want {
					t.Errorf("given up %v after the last renewal, want %v, the margin before another may take the Lease", end, want)
				}
				if got, want := server.requests[0].URL.RawQuery, "timeout="+took.String(); got != want {
					t.Errorf("the query is %q, want %q", got, want)
				}
			})
		})
	}
}

func TestLongWriteWithoutElectionIsBounded(t *testing.T) {
	inTerm(t, 0, func(t *testing.T, gate *Gate, _ *Term, _ context.CancelFunc) {
		if took, err := long(t, gate, &api{delay: time.Hour}); took != longestUnbounded ||
			!errors.Is(err, longwrite.ErrTimeout) {
			t.Errorf("failed after %v: %v, want %v after %v", took, err, longwrite.ErrTimeout, longestUnbounded)
		}
		if took, err := long(t, gate, &api{delay: 5 * time.Second}); err != nil {
			t.Errorf("failed after %v: %v, want an answer", took, err)
		}
	})
}

// A write timeout longer than the bound without election still applies.
func TestLongWriteIsNeverShorterThanOthers(t *testing.T) {
	inTerm(t, 0, func(t *testing.T, gate *Gate, _ *Term, _ context.CancelFunc) {
		gate.timeout = time.Minute
		if took, _ := long(t, gate, &api{delay: time.Hour}); took != time.Minute {
			t.Errorf("failed after %v, want %v", took, time.Minute)
		}
	})
}

func TestLostTermCutsLongWrite(t *testing.T) {
	inTerm(t, validity, func(t *testing.T, gate *Gate, term *Term, _ context.CancelFunc) {
		time.AfterFunc(5*time.Second, func() { term.lose(errGone) })
		took, err := long(t, gate, &api{delay: time.Hour})
		if took != 5*time.Second || !errors.Is(err, ErrLost) || errors.Is(err, longwrite.ErrTimeout) {
			t.Errorf("failed after %v: %v, want %v after 5s", took, err, ErrLost)
		}
	})
}

// TestShutdownCutsLongWriteOnly ends the work of a term during a long and another write.
func TestShutdownCutsLongWriteOnly(t *testing.T) {
	inTerm(t, validity, func(t *testing.T, gate *Gate, _ *Term, end context.CancelFunc) {
		time.AfterFunc(2*time.Second, end)
		other := make(chan error)
		go func() { other <- do(t, gate.Wrap(&api{delay: 2500 * time.Millisecond}), http.MethodPost, foos) }()
		took, err := long(t, gate, &api{delay: time.Hour})
		if took != 2*time.Second || !errors.Is(err, longwrite.ErrTimeout) || errors.Is(err, ErrNotLeading) {
			t.Errorf("failed after %v: %v, want %v after 2s", took, err, longwrite.ErrTimeout)
		}
		if err := <-other; err != nil {
			t.Errorf("another write: %v, want an answer", err)
		}
		if took, err := long(t, gate, &api{delay: 2500 * time.Millisecond}); err != nil {
			t.Errorf("a write that began during the drain failed after %v: %v, want an answer", took, err)
		}
		if took, _ := long(t, gate, &api{delay: time.Hour}); took != writeTimeout {
			t.Errorf("a write that began during the drain failed after %v, want %v", took, writeTimeout)
		}
	})
}

// TestTimeoutDuringResponse has a server that sends the header of its response but no body.
func TestTimeoutDuringResponse(t *testing.T) {
	inTerm(t, 0, func(t *testing.T, gate *Gate, _ *Term, _ context.CancelFunc) {
		endless := roundTripper(func(request *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: &endlessBody{ctx: request.Context()}}, nil
		})
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, foos, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := gate.Wrap(endless).RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if _, err := response.Body.Read(make([]byte, 1)); !errors.Is(err, longwrite.ErrTimeout) {
			t.Errorf("reading the response: %v, want %v", err, longwrite.ErrTimeout)
		}
	})
}

// endlessBody returns nothing until its request is canceled.
type endlessBody struct {
	sent
	ctx context.Context
}

func (b *endlessBody) Read([]byte) (int, error) {
	<-b.ctx.Done()
	return 0, b.ctx.Err()
}

func TestReadsAreBoundedIfWanted(t *testing.T) {
	inTerm(t, validity, func(t *testing.T, gate *Gate, _ *Term, _ context.CancelFunc) {
		for _, method := range reads {
			began := time.Now()
			err := do(t, gate.WrapAll(&api{delay: time.Hour}), method, foos)
			if took := time.Since(began); !errors.Is(err, errReadTimeout) || errors.Is(err, longwrite.ErrTimeout) ||
				took != writeTimeout {
				t.Errorf("%s: %v after %v, want %v after %v", method, err, took, errReadTimeout, writeTimeout)
			}
		}
	})
}
