// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
)

// renaming is what a kustomization does to all names.
type renaming struct{ namespace, prefix string }

// fields returns the fields of the kustomization.
func (r renaming) fields() string {
	return fmt.Sprintf("namespace: %q\nnamePrefix: %q\n", r.namespace, r.prefix)
}

func (r renaming) String() string {
	s := ""
	if r.namespace != "" {
		s += ", namespace: " + r.namespace
	}
	if r.prefix != "" {
		s += ", namePrefix: " + r.prefix
	}
	return s
}

// check checks that every object of the build has moved and has the prefix. What it says of
// others is checked for every build.
func (r renaming) check(b build) (problems []string) {
	for _, o := range b {
		kind, ns, name := o.GetObjectKind().GroupVersionKind().Kind, o.GetNamespace(), o.GetName()
		if kind != "Namespace" && kind != "CustomResourceDefinition" && !strings.HasPrefix(name, r.prefix) {
			problems = append(problems, fmt.Sprintf("%s %s has no prefix %s", kind, name, r.prefix))
		}
		if kind == "Namespace" {
			ns = name
		}
		if r.namespace != "" && ns != "" && ns != r.namespace && !(kind == "RoleBinding" && ns == servedNamespace) {
			problems = append(problems, fmt.Sprintf("%s %s is in namespace %s, want %s", kind, name, ns, r.namespace))
		}
	}
	return problems
}
