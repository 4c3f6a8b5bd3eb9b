// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
)

// blinder is a proxy that can end the watches of informers, and refuse what they ask for.
type blinder struct {
	*clustertest.Proxy

	mutex sync.Mutex
	see   context.Context // ends when the informers are to see nothing any more
	blind context.CancelFunc
}

func startBlinder(t *testing.T) *blinder {
	t.Helper()
	b := &blinder{}
	b.open()
	b.Proxy = clustertest.StartProxy(t, shared.Cluster(), func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.UserAgent(), "/informers") {
				see := b.sight()
				if see.Err() != nil {
					panic(http.ErrAbortHandler) // the client sees that the connection ends
				}
				ctx, cancel := context.WithCancel(r.Context())
				defer cancel()
				defer context.AfterFunc(see, cancel)()
				r = r.WithContext(ctx)
			}
			next.ServeHTTP(w, r)
		})
	}, nil)
	return b
}

func (b *blinder) sight() context.Context {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.see
}

// open lets the informers see again.
func (b *blinder) open() {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.see, b.blind = context.WithCancel(context.Background())
}

// A leader that sees nothing leads on while no standby sees more, and hands over once one
// does.
func TestBlindLeaderHandsOverToStandbyThatSees(t *testing.T) {
	clustertest.Long(t)
	a, b := startBlinder(t), startBlinder(t)
	ns := newNamespace(t)
	startDaemon(t, "--kubeconfig="+a.Kubeconfig(t, namespace, namespace))
	holder := func() string { return ptr.Deref(lease(t).Spec.HolderIdentity, "") }
	clustertest.WaitUntil(t, "the first daemon leads", func(context.Context) error {
		if holder() == "" {
			return fmt.Errorf("nobody leads")
		}
		return nil
	})
	first := holder()
	stop := startAnotherDaemon(t, "--kubeconfig="+b.Kubeconfig(t, namespace, namespace))
	foos.Create(t, ns, "before", 1)
	foos.waitCondition(t, ns, "before", "Reconciling", "Progressing")

	a.blind()
	b.blind()
	var offered time.Time
	for began := time.Now(); offered.IsZero() || time.Since(offered) < time.Minute; time.Sleep(time.Second) {
		switch got := lease(t); {
		case ptr.Deref(got.Spec.HolderIdentity, "") != first || got.Annotations["leadership.samplecontroller.io/preferred-holder"] != "":
			t.Fatalf("the Lease of a leader that is as blind as the standby is %v, %v", got.Spec, got.Annotations)
		case offered.IsZero() && strings.Contains(got.Annotations["leadership.samplecontroller.io/offered"], "foos"):
			offered = time.Now()
		case offered.IsZero() && time.Since(began) > 10*time.Minute:
			t.Fatalf("the Lease of a blind leader is not offered: %v", got.Annotations)
		}
	}
	foos.Create(t, ns, "unseen", 1)
	b.open()
	foos.waitCondition(t, ns, "unseen", "Reconciling", "Progressing")
	if got := holder(); got == first || got == "" {
		t.Errorf("the Lease is held by %q, want the standby", got)
	}
	if got := lease(t).Annotations; len(got) > 0 {
		t.Errorf("annotations of the Lease of a leader that sees are %v, want none", got)
	}
	stop()
}
