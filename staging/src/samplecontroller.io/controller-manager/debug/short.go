// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package debug

import (
	"fmt"
	"regexp"
)

// forbidden matches the message of the API server for a request that it does not permit: see NewForbidden in
// k8s.io/apimachinery/pkg/api/errors and forbiddenMessage in k8s.io/apiserver.
var forbidden = regexp.MustCompile(`(?:[a-z0-9.-]+(?: "[^"]*")? is forbidden: )?User "[^"]*" cannot ([a-z]+) (?:resource "([^"]+)" in API group "[^"]*"( in the namespace "([^"]+)"| at the cluster scope)|path "([^"]+)")`)

// Short returns a text in which each error of the API server about a missing permission is shortened to
// "403: may not list foos in default". The original names the caller, the API group and the resource twice.
func Short(text string) string {
	return forbidden.ReplaceAllStringFunc(text, func(match string) string {
		part := forbidden.FindStringSubmatch(match)
		switch {
		case part[5] != "":
			return fmt.Sprintf("403: may not %s %s", part[1], part[5])
		case part[4] != "":
			return fmt.Sprintf("403: may not %s %s in %s", part[1], part[2], part[4])
		default:
			return fmt.Sprintf("403: may not %s %s in all namespaces", part[1], part[2])
		}
	})
}
