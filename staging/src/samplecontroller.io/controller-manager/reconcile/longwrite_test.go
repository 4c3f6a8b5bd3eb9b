// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/controller-manager/internal/longwrite"
)

func TestIsWriteTimeout(t *testing.T) {
	foos := schema.GroupResource{Resource: "foos"}
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"none":                        {nil, false},
		"given up by the gate":        {fmt.Errorf("creating: %w", fmt.Errorf("%w: %w", longwrite.ErrTimeout, context.DeadlineExceeded)), true},
		"given up by the API server":  {fmt.Errorf("creating: %w", apierrors.NewTimeoutError("request did not complete within requested timeout", 0)), true},
		"webhook's own timeout":       {apierrors.NewInternalError(errors.New("failed calling webhook: context deadline exceeded")), false},
		"try again later":             {apierrors.NewServerTimeout(foos, "create", 1), false},
		"end of the sync":             {fmt.Errorf("%w: %w", errTimeout, context.DeadlineExceeded), false},
		"conflict":                    {errConflict, false},
		"deadline of somebody else's": {context.DeadlineExceeded, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := IsWriteTimeout(test.err); got != test.want {
				t.Errorf("IsWriteTimeout(%v) = %t, want %t", test.err, got, test.want)
			}
		})
	}
}

// TestLongWriteFollowsTimeout checks which syncs of a key may write longer.
func TestLongWriteFollowsTimeout(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		timedOut := fmt.Errorf("creating: %w", longwrite.ErrTimeout)
		results := []error{timedOut, timedOut, ErrStale, ErrStale, errBroken, errConflict, timedOut, nil}
		b.server.Add(configMap("foo"))
		b.server.Add(configMap("bar"))
		b.start(b.informer)
		var got []bool
		l := New(loopName, func(ctx context.Context, key cache.ObjectName) (time.Duration, error) {
			long := longwrite.Allowed(ctx)
			if key.Name == "bar" {
				if long {
					t.Error("another key may write longer")
				}
				return 5 * time.Millisecond, nil
			}
			got = append(got, long)
			if n := len(got); n <= len(results) {
				err := results[n-1]
				return time.Second, err
			}
			return 0, nil
		})
		WatchSelf(l, b.informer)
		stop := b.run(l, 1)
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Error(err)
		}
		want := []bool{
			false,      // the first sync
			true, true, // after timeouts
			true, true, // a postponed sync has not written
			false, false, // after another error and a conflict
			true,  // after a timeout
			false, // after success
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("syncs that may write longer (-want +got):\n%s", diff)
		}
	})
}
