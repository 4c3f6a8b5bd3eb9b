// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package redact makes texts of errors that may be shown: to those who may not read the
// object that an error is about, and of bounded length.
package redact

import (
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// maxText is how many bytes of a text are shown.
const maxText = 500

// Text returns what an error says without values of objects, bounded; "" for nil.
func Text(err error) string {
	if err == nil {
		return ""
	}
	return Bound(Error(err).Error())
}

// Bound returns the beginning of a text that is too long to be shown.
func Bound(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "") + "..."
}

// Error returns the error with what is wrong with a field in a word, where the
// API server, which found it, quotes the value.
func Error(err error) error {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) || status.Status().Details == nil {
		return err
	}
	before := err.Error()
	text := before
	for _, cause := range status.Status().Details.Causes {
		if cause.Field != "" && cause.Message != "" {
			text = strings.ReplaceAll(text, cause.Message, string(cause.Type))
		}
	}
	if text == before {
		return err
	}
	return errors.New(text)
}

// MaxVerbosity is the highest verbosity of the log. Above it client-go logs the bodies
// of requests and answers: objects, and, in TokenReviews, the bearer tokens of those who
// ask for metrics.
const MaxVerbosity = 7
