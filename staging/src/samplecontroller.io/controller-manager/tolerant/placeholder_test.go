// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package tolerant

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestMessageNamesField(t *testing.T) {
	for spec, want := range map[string]string{
		`{"name":["a"]}`:                        "spec.name: array where string is expected",
		`{"name":1}`:                            "spec.name: number where string is expected",
		`{"replicas":4294967296}`:               "spec.replicas: number 4294967296 where int32 is expected",
		`{"replicas":1.5}`:                      "spec.replicas: number 1.5 where int32 is expected",
		`{"labels":"none"}`:                     "spec.labels: string where map[string]string is expected",
		`{"labels":{"a":1}}`:                    "spec.labels: number where string is expected",
		`{"parts":[{"size":1},{"size":"two"}]}`: "spec.parts.size: string where int32 is expected",
		`"none"`:                                "spec: string where tolerant.ThingSpec is expected",
		`{"since":"yesterday"}`:                 `parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006"`,
	} {
		object := thing("a", "1", spec)
		obj, err := runtime.Decode(tolerantDecoder(), []byte(object))
		if err != nil {
			t.Errorf("%s: %v", spec, err)
			continue
		}
		if got := DecodeError(obj.(*Thing)); got == nil || got.Error() != want {
			t.Errorf("%s: error = %v, want %s", spec, got, want)
		}
		if obj, err = runtime.Decode(tolerantDecoder(), []byte(list(object))); err != nil {
			t.Errorf("%s in a list: %v", spec, err)
			continue
		}
		if got := DecodeError(&obj.(*ThingList).Items[0]); got == nil || got.Error() != want {
			t.Errorf("%s in a list: error = %v, want %s", spec, got, want)
		}
	}
}

func TestMessageIsBounded(t *testing.T) {
	for _, quoted := range []string{strings.Repeat("x", maxMessage+1), strings.Repeat("é", maxMessage),
		"x" + strings.Repeat("é", maxMessage)} {
		got := describe(errors.New(quoted), "")
		if len(got) > maxMessage || len(got) < maxMessage-utf8.UTFMax || !utf8.ValidString(got) ||
			!strings.HasSuffix(got, "...") {
			t.Errorf("message = %q (%d bytes), want at most %d that end in ...", got, len(got), maxMessage)
		}
	}
	if got := describe(errors.New(strings.Repeat("x", maxMessage)), ""); len(got) != maxMessage {
		t.Errorf("a message that just fits has %d bytes of %d", len(got), maxMessage)
	}
}

// The annotation cannot be forged because no API server stores it.
func TestAnnotationCannotBeStored(t *testing.T) {
	if problems := validation.ValidateAnnotations(map[string]string{AnnotationDecodeError: "forged"}, nil); len(problems) == 0 {
		t.Errorf("an API server would store the annotation %q", AnnotationDecodeError)
	}
}

func TestDecodedObjectIsNoPlaceholder(t *testing.T) {
	if err := DecodeError(decoded("a", "1")); err != nil {
		t.Errorf("error of a decoded object = %v", err)
	}
	if err := DecodeError(&Thing{}); err != nil {
		t.Errorf("error of an empty object = %v", err)
	}
}
