// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/controller-manager/controller"
)

func TestReasonsHaveNoValuesOfObjects(t *testing.T) {
	invalid := apierrors.NewInvalid(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "web", field.ErrorList{
		field.Invalid(field.NewPath("spec", "image"), "registry/x:token=hunter2", "no such image"),
	})
	inBubble(t, func(t *testing.T) {
		broken := newFake("broken", func(context.Context, int) error { return invalid })
		c := newLooper(t, "failing", func(context.Context, cache.ObjectName) (time.Duration, error) { return 0, invalid }, "failing")
		s := New([]controller.Controller{broken, c}, Options{})
		end := begin(t, s)
		c.wake("a", "b", "c", "d", "e")
		time.Sleep(10 * time.Minute)
		texts := slices.Collect(maps.Values(unhealthy(s)))
		if len(texts) != 2 {
			t.Errorf("unhealthy: %q, want both", texts)
		}
		for _, text := range append(texts, s.Status(0)[0].String()) {
			if strings.Contains(text, "hunter2") || !strings.Contains(text, "spec.image: ") {
				t.Errorf("%q, want the field without its value", text)
			}
		}
		expectEnd(t, end)
	})
}
