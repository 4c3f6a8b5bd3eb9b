// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
)

// auditID is the header with which a client or a proxy sets the audit ID of a request.
const auditID = "Audit-ID"

// HoldingProxy is a proxy that records when each write was sent, and can hold writes: the API
// server gets them later, even if the client has given up.
type HoldingProxy struct {
	*Proxy
	ended chan struct{}

	mutex sync.Mutex
	holds []*Hold
	sent  map[types.UID]time.Time
}

// StartHoldingProxy starts a proxy that holds nothing yet. If link is not nil, the proxy
// reaches the API server over it, so that it also knows when writes were sent that the link
// holds. It stops at the end of the test.
func StartHoldingProxy(t *testing.T, c *cluster.Cluster, link *Link) *HoldingProxy {
	t.Helper()
	p := &HoldingProxy{ended: make(chan struct{}), sent: map[types.UID]time.Time{}}
	target := c.Config().Host
	if link != nil {
		target = link.URL()
	}
	p.Proxy = startProxy(t, c, target, nil, p.wrap, nil)
	t.Cleanup(func() { close(p.ended) }) // before the proxy closes, which waits for its handlers
	return p
}

// Sent returns when a write was sent; ok is false if it did not come through the proxy.
func (p *HoldingProxy) Sent(event auditv1.Event) (at time.Time, ok bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	at, ok = p.sent[event.AuditID]
	return at, ok
}

// Hold holds the next write for which matches, called with its body, returns true.
func (p *HoldingProxy) Hold(match func(r *http.Request, body []byte) bool) *Hold {
	h := &Hold{match: match, arrived: make(chan struct{}), released: make(chan struct{}), answered: make(chan struct{})}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.holds = append(p.holds, h)
	return h
}

// Hold is a write that a [HoldingProxy] holds, or waits for.
type Hold struct {
	match                       func(*http.Request, []byte) bool
	id                          types.UID
	arrived, released, answered chan struct{}
	code                        int
}

// Arrived is closed when the proxy holds the write.
func (h *Hold) Arrived() <-chan struct{} { return h.arrived }

// AuditID returns the ID of the write in the audit log, once the write has arrived.
func (h *Hold) AuditID() types.UID { return h.id }

// Release sends the write, which must have arrived, to the API server. It returns the status
// code of the response, or 0 without a response. Call it once.
func (h *Hold) Release(ctx context.Context) (code int, err error) {
	close(h.released)
	select {
	case <-h.answered:
		return h.code, nil
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

func (p *HoldingProxy) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions {
			next.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client is gone
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		id := uuid.NewUUID()
		r.Header.Set(auditID, string(id))
		if h := p.take(id, r, body); h != nil {
			p.hold(h, next, w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// take records a write, and returns the hold that it matches, if any.
func (p *HoldingProxy) take(id types.UID, r *http.Request, body []byte) *Hold {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.sent[id] = time.Now()
	i := slices.IndexFunc(p.holds, func(h *Hold) bool { return h.match(r, body) })
	if i < 0 {
		return nil
	}
	h := p.holds[i]
	p.holds = slices.Delete(p.holds, i, i+1)
	h.id = id
	close(h.arrived)
	return h
}

func (p *HoldingProxy) hold(h *Hold, next http.Handler, w http.ResponseWriter, r *http.Request) {
	select {
	case <-h.released:
	case <-p.ended:
		return
	}
	// The context must be cancelable: otherwise ReverseProxy watches the client itself.
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	defer cancel()
	defer close(h.answered) // even without an answer
	answer := httptest.NewRecorder()
	next.ServeHTTP(answer, r.WithContext(ctx))
	h.code = answer.Code
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes()) // the client may be gone
}
