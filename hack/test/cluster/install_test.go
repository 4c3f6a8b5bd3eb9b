// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
)

// TestInstallWaitsForCustomResources tells Install twice that no resource is served. A real API
// server serves them so early that Install hardly ever waits.
func TestInstallWaitsForCustomResources(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	notServed := errors.New(`the server doesn't have a resource type "foos"`)
	var gets []string
	kubectl := func(answer func() error) func(context.Context, ...string) (string, error) {
		gets = nil
		return func(_ context.Context, args ...string) (string, error) {
			if args[0] != "get" {
				return "namespace/x\ncustomresourcedefinition.apiextensions.k8s.io/foos.x\ncustomresourcedefinition.apiextensions.k8s.io/bars.x\n", nil
			}
			gets = append(gets, strings.Join(args, " "))
			return "", answer()
		}
	}

	err := Install(ctx, ".", kubectl(func() error {
		if len(gets) < 3 {
			return notServed
		}
		return nil
	}))
	want := slices.Repeat([]string{"get -n default foos.x,bars.x"}, 3)
	if err != nil || !slices.Equal(gets, want) {
		t.Errorf("Install called %q and returned %v, want %q", gets, err, want)
	}

	err = Install(ctx, ".", kubectl(func() error {
		cancel()
		return notServed
	}))
	if !errors.Is(err, context.Canceled) || !errors.Is(err, notServed) {
		t.Errorf("after its context ended, Install returned %v, want that and why it still waited", err)
	}
}
