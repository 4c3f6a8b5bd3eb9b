// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"strings"
)

// Pause is the annotation that pauses an object or a namespace.
type Pause struct {
	Annotation string
	// Permissions are those that the annotation of namespaces needs.
	Permissions []Permission
}

// checkPause checks whether the annotation of namespaces counts. Without it, that of objects still does.
func (c *checker) checkPause(ctx context.Context) {
	const check = "pause"
	if c.Namespace != "" {
		c.report.add(check, SKIP, "with --namespace, the annotation %s pauses an object, and is ignored on the namespace", c.Pause.Annotation)
		return
	}
	var missing []string
	for _, permission := range c.Pause.Permissions {
		if why := review(ctx, c.client, permission); why != "" {
			missing = append(missing, why)
		}
	}
	if len(missing) > 0 {
		c.report.add(check, WARN, "%s, so the annotation %s is ignored on namespaces; it pauses an object",
			strings.Join(missing, "; "), c.Pause.Annotation)
		return
	}
	c.report.add(check, OK, "the annotation %s pauses an object, or all of a namespace", c.Pause.Annotation)
}
