// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/cache"
)

// undecodedPatch returns the answer to a patch whose result the API server cannot decode. The object quotes
// an earlier answer.
func undecodedPatch(why string) error {
	const object = `{"status":{"message":"Invalid value: \"{}\": strict decoding error: unknown field \"spec.a\""}}` + "\n"
	return apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{field.Invalid(field.NewPath("patch"), object, why)})
}

func TestDenialOfUnknownField(t *testing.T) {
	const unknown = `strict decoding error: unknown field "status.b", unknown field "status.c"`
	gadget := write{verb: "patch", kind: "Gadget", object: cache.NewObjectName("ns", "a"), custom: true}
	own, status, builtIn := gadget, gadget, gadget
	own.own, status.own, status.status, builtIn.custom = true, true, true, false
	for name, test := range map[string]struct {
		write   write
		why     string
		message string
		longest time.Duration
		quotes  bool
	}{
		"status":     {status, unknown, "writing the status of Gadget ns/a was denied: " + unknown + "; apply the CRDs of this version", soonRetry, false},
		"own":        {own, unknown, "patching Gadget ns/a was denied: " + unknown + "; apply the CRDs of this version", soonRetry, false},
		"owned":      {gadget, unknown, "patching Gadget ns/a was denied: " + unknown + "; apply a newer CRD of Gadget", soonRetry, false},
		"built-in":   {builtIn, unknown, "patching Gadget ns/a was denied: " + unknown, lastRetry, false},
		"wrong type": {gadget, "json: no number", "patching Gadget ns/a was denied: json: no number", lastRetry, true},
	} {
		t.Run(name, func(t *testing.T) {
			err := withoutObject(undecodedPatch(test.why))
			answer, denied := denialOf(err)
			if !denied || doesNotApply(err) {
				t.Fatalf("%v is no denial", err)
			}
			f, wait := denialFor(test.write, answer, 100)
			if f.Reason != ReasonWriteDenied || f.Message != test.message || f.Quotes != test.quotes || wait != test.longest {
				t.Errorf("%s: %q after %v, quotes %v, want %q after %v, quotes %v",
					f.Reason, f.Message, wait, f.Quotes, test.message, test.longest, test.quotes)
			}
		})
	}
}

func TestOtherAnswersAreKept(t *testing.T) {
	webhook := apierrors.NewBadRequest(`admission webhook "w" denied the request: ` + undecodedPatch("no").Error())
	webhook.ErrStatus.Reason = metav1.StatusReasonInvalid
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "Gadget"}, "a",
		field.ErrorList{field.Invalid(field.NewPath("spec"), "{}", "strict decoding error: no")})
	for _, err := range []error{nil, webhook, invalid} {
		if got := withoutObject(err); got != err {
			t.Errorf("%v instead of %v", got, err)
		}
		if answer, _ := statusOfError(err); hasUnknownField(answer) {
			t.Errorf("%v counts as an unknown field", err)
		}
	}
}
