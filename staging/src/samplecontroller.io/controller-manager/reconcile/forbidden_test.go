// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestForbiddenBacksOffTo30Seconds(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "foos"}, "a", errors.New("not for you"))
		s := syncs{result: func(string, int) (time.Duration, error) { return 0, fmt.Errorf("writing: %w", forbidden) }}
		syncOne(b, &s, 10*time.Minute)
		times := s.times("default/foo")
		want := []time.Duration{0, 1, 3, 7, 15, 31, 61, 91, 121, 151}
		for i := range want {
			want[i] *= time.Second
		}
		if diff := cmp.Diff(want, times[:len(want)]); diff != "" {
			t.Errorf("syncs (-want +got):\n%s", diff)
		}
		if got := times[len(times)-1] - times[len(times)-2]; got != 30*time.Second {
			t.Errorf("the last retry came after %v, want 30s", got)
		}
	})
}

func TestForbiddenIsNotLoggedAsError(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		s := syncs{result: func(key string, _ int) (time.Duration, error) {
			return 0, apierrors.NewForbidden(schema.GroupResource{Resource: "foos"}, key, errors.New("not for you"))
		}}
		for _, name := range []string{"bar", "baz", "qux"} {
			b.server.Add(configMap(name))
		}
		syncOne(b, &s, 6*time.Second)
		if got := b.logged(-1); len(got) > 0 {
			t.Errorf("logged errors %q, want none", got)
		}
		if got := b.logged(2); !slices.Contains(got, "Sync was forbidden, retrying with backoff") {
			t.Errorf("logged %q, want a forbidden sync", got)
		}
	})
}

func TestLoggedErrorIsRetriedQuietly(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		refused := errors.New("refused")
		s := syncs{result: func(string, int) (time.Duration, error) { return 0, Logged(refused) }}
		syncOne(b, &s, 10*time.Second)
		if n := len(s.times("default/foo")); n < 10 {
			t.Errorf("%d syncs in 10 s, want the usual backoff", n)
		}
		if got := b.logged(-1); len(got) > 0 {
			t.Errorf("logged errors %q, want none", got)
		}
		if !errors.Is(Logged(refused), refused) || Logged(nil) != nil {
			t.Error("Logged() does not wrap its error")
		}
	})
}
