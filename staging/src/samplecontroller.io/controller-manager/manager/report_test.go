// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/internal/redact"
)

func TestWhatIsToldQuotesNoValueOfAnObject(t *testing.T) {
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "Thing"}, "a", field.ErrorList{field.Invalid(field.NewPath("spec", "image"), "c4n4ry", "is no image")})
	got := redact.Text(fmt.Errorf("writing: %w", invalid))
	if strings.Contains(got, "c4n4ry") || !strings.Contains(got, "spec.image: FieldValueInvalid") {
		t.Errorf("text = %q, want the field and a word", got)
	}
}

func TestWhatIsToldIsBounded(t *testing.T) {
	long := strings.Repeat("é", 10_000)
	e := controller.Explanation{Found: true, Next: long}
	for range 1000 {
		e.Facts = append(e.Facts, controller.Fact{Name: "former Deployment", Wanted: long, Actual: long})
	}
	e = boundedExplanation(e)
	if len(e.Facts) != maxFacts+1 || e.Facts[maxFacts].Name != "and 950 more" {
		t.Errorf("%d facts, the last is %+v, want %d and how many more", len(e.Facts), e.Facts[len(e.Facts)-1], maxFacts)
	}
	for _, got := range []string{redact.Text(errors.New(long)), e.Next, e.Facts[0].Wanted, e.Facts[0].Actual} {
		if len(got) > 500+len("...") || !strings.HasSuffix(got, "é...") {
			t.Errorf("%d bytes that end in %q, want at most %d whole characters and that there are more", len(got), got[len(got)-8:], 500)
		}
	}
}
