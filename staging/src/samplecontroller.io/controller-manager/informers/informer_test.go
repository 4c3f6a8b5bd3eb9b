// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// syncedAt is a synced informer whose cache has reached the version.
type syncedAt struct {
	cache.SharedIndexInformer // its other methods are never called
	version                   string
}

func (i syncedAt) HasSynced() bool       { return true }
func (i syncedAt) GetStore() cache.Store { return store{version: i.version} }

type store struct {
	cache.Store // its other methods are never called
	version     string
}

func (s store) LastStoreSyncResourceVersion() string { return s.version }

func TestServedOnceListIsCached(t *testing.T) {
	for name, tc := range map[string]struct {
		listed, cached string
		served         bool
	}{
		"older version":     {"100", "99", false},
		"same version":      {"100", "100", true},
		"newer version":     {"100", "101", true},
		"no cached version": {"100", "", true},
		"no listed version": {"", "99", true},
		"one digit less":    {"1000", "999", false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				i := &informer{SharedIndexInformer: syncedAt{version: tc.cached}, resource: configMaps, factory: NewFactory()}
				i.state.list(tc.listed)
				if i.caughtUp(t.Context()) != tc.served || i.state.served != tc.served {
					t.Errorf("served: %t, want %t", i.state.served, tc.served)
				}
			})
		})
	}
}

func TestOnlyFailedReadsAreLogged(t *testing.T) {
	for name, tc := range map[string]struct {
		err     error
		stopped bool
		want    []string
	}{
		"watch ended":          {nil, false, nil},
		"connection ended":     {fmt.Errorf("reading: %w", io.EOF), false, nil},
		"version expired":      {apierrors.NewResourceExpired("too old resource version"), false, nil},
		"version gone":         {&apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonGone}}, false, nil},
		"stopped":              {context.Canceled, true, nil},
		"connection refused":   {errors.New("connection refused"), false, []string{"!Reading failed"}},
		"internal error":       {apierrors.NewInternalError(errors.New("oh")), false, []string{"!Reading failed"}},
		"refused when stopped": {errors.New("connection refused"), true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bubble) {
				ctx, cancel := context.WithCancel(b.ctx)
				defer cancel()
				if tc.stopped {
					cancel()
				}
				next := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{ListWithContextFunc: func(context.Context,
					metav1.ListOptions) (runtime.Object, error) {
					cancel()
					return nil, context.Canceled
				}}, &apiServer{lists: true})
				r := cache.NewReflectorWithOptions(next, nil, cache.NewStore(cache.MetaNamespaceKeyFunc), cache.ReflectorOptions{})
				newIdleInformer().relist(ctx, r, tc.err)
				if diff := cmp.Diff(tc.want, b.logged()); diff != "" {
					b.Errorf("log (-want +got):\n%s", diff)
				}
			})
		})
	}
}
