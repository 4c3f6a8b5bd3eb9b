// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"

	"samplecontroller.io/controller-manager/debug"
)

// shadowNote says for people why a shadow does not lead.
const shadowNote = "this process is a shadow: its writes are dry runs, and it never leads"

// maxShadowNotes is how many differences the notes of /healthz have.
const maxShadowNotes = 10

// shadowNotes returns what the shadow would do differently.
func shadowNotes(p parts) []string {
	total, first := p.shared.DryRun.Differences(maxShadowNotes)
	lines := []string{fmt.Sprintf("shadow: %d writes are wanted here and not made by the leader", total)}
	for _, d := range first {
		lines = append(lines, fmt.Sprintf("shadow: %s by %s since %s", d.Change, d.Controller, d.Since.UTC().Format("15:04:05Z")))
	}
	return lines
}

// shadowOf returns what the status page shows of a shadow.
func shadowOf(p parts, limit int) *debug.Shadow {
	total, first := p.shared.DryRun.Differences(limit)
	shadow := &debug.Shadow{Total: total, First: []debug.Difference{}}
	for _, d := range first {
		shadow.First = append(shadow.First, debug.Difference{
			Controller: d.Controller, Object: d.For, Verb: d.Verb, Resource: d.Resource, Name: d.ObjectName(),
			Since: d.Since, Fields: d.Fields,
		})
	}
	return shadow
}
