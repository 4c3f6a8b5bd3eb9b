// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package truncate bounds the length of texts that pages and probes show.
package truncate

import "strings"

// maxText is how many bytes of a text are shown.
const maxText = 500

// Text returns the beginning of a text that is too long to be shown.
func Text(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "") + "..."
}

// Error returns the text of an error, truncated; "" for nil.
func Error(err error) string {
	if err == nil {
		return ""
	}
	return Text(err.Error())
}
