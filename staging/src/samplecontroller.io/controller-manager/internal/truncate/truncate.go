// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package truncate limits the length of texts that are kept, logged, or shown on status pages and in
// probes.
package truncate

import "strings"

// maxText is the maximum length of a text in bytes.
const maxText = 500

// Text truncates a long text.
func Text(text string) string { return To(maxText, text) }

// To truncates a text to this many bytes.
func To(limit int, text string) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "..."
}

// Error returns the truncated text of an error, "" for nil.
func Error(err error) string {
	if err == nil {
		return ""
	}
	return Text(err.Error())
}
