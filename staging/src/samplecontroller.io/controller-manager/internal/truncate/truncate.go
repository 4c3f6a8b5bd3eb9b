// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package truncate limits the length of texts that are kept, logged, or shown on status pages and in
// probes.
package truncate

import (
	"strconv"
	"strings"
)

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

// Object returns the message of the API server for a patch without the object that it quotes if it cannot decode the
// result. ok is false for other messages.
func Object(message string) (rest string, ok bool) {
	rest, ok = strings.CutPrefix(strings.TrimSpace(message), `"" is invalid: patch: Invalid value: `)
	object, err := strconv.QuotedPrefix(rest)
	if !ok || err != nil {
		return message, false
	}
	return strings.Clone(strings.TrimPrefix(rest[len(object):], ": ")), true
}
