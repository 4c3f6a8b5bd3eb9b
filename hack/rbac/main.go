// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Command rbac prints the ClusterRole that the controllers need, or the Role that they
// need in the one namespace that is served, or a policy about what they write. It makes
// all of them from the rules in the controllers' descriptors; see hack/update-rbac.sh.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"samplecontroller.io/controller-manager/controller"

	"samplecontroller.io/sample-controller-manager/cmd/sample-controller-manager/app"
)

func main() {
	namespace := flag.String("namespace", "", "The namespace of the Role. Empty: a ClusterRole.")
	policy := flag.String("policy", "", "The policy to print instead, by the name of its template: fence or audit-policy.")
	flag.Parse()
	if err := run(os.Stdout, app.Program().Controllers, *namespace, *policy); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run prints the policy, or the role of the namespace if there is none.
func run(w io.Writer, controllers []controller.Descriptor, namespace, policy string) error {
	needs := needs{}
	for _, d := range controllers {
		for _, rule := range d.Rules {
			if err := needs.add(d.Name, rule); err != nil {
				return err
			}
		}
	}
	if policy != "" {
		return writePolicy(w, policy, needs.writes())
	}
	write(w, namespace, needs.rules())
	return nil
}

// permission is to do one thing to the objects of one resource.
type permission struct {
	group, resource, verb string
}

// needs says which controllers need a permission.
type needs map[permission][]string

// add notes what a controller's rule grants. It refuses rules that grant more
// than they name, or nothing, and what no controller has a use for.
func (n needs) add(controller string, rule rbacv1.PolicyRule) error {
	refuse := func(why string) error { return fmt.Errorf("%s: rule {%v}: %s", controller, rule, why) }
	if len(rule.NonResourceURLs)+len(rule.ResourceNames) > 0 {
		return refuse("only resources without names are supported")
	}
	if len(rule.APIGroups) == 0 || len(rule.Resources) == 0 || len(rule.Verbs) == 0 {
		return refuse("it grants nothing")
	}
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				if strings.Contains(group+resource+verb, "*") {
					return refuse("write out what * stands for")
				}
				p := permission{group, resource, verb}
				if !slices.Contains(n[p], controller) {
					n[p] = append(n[p], controller)
				}
			}
		}
	}
	return nil
}

// rule grants verbs on a resource to just those controllers that need each of them.
type rule struct {
	group, resource, controllers string
	verbs                        []string
}

// rules returns rules that grant every permission once, sorted.
func (n needs) rules() []*rule {
	var rules []*rule
	for p, controllers := range n {
		slices.Sort(controllers)
		r := &rule{group: p.group, resource: p.resource, controllers: strings.Join(controllers, ", ")}
		i := slices.IndexFunc(rules, func(other *rule) bool { return r.compare(other) == 0 })
		if i >= 0 {
			r = rules[i]
		} else {
			rules = append(rules, r)
		}
		r.verbs = append(r.verbs, p.verb)
		slices.Sort(r.verbs)
	}
	slices.SortFunc(rules, (*rule).compare)
	return rules
}

// compare orders rules whatever their verbs.
func (r *rule) compare(other *rule) int {
	return cmp.Or(
		cmp.Compare(r.group, other.group),
		cmp.Compare(r.resource, other.resource),
		cmp.Compare(r.controllers, other.controllers),
	)
}

// write writes the rules as a Role of the namespace, or a ClusterRole if that is empty.
func write(w io.Writer, namespace string, rules []*rule) {
	kind, in := "ClusterRole", ""
	if namespace != "" {
		kind, in = "Role", "  namespace: "+namespace+"\n"
	}
	fmt.Fprintf(w, `# What the controllers need, each rule with those that need it. Generated from the
# descriptors in pkg/controller: run hack/update-rbac.sh.
apiVersion: rbac.authorization.k8s.io/v1
kind: %s
metadata:
  name: sample-controller-manager-controllers
%srules:
`, kind, in)
	for _, r := range rules {
		fmt.Fprintf(w, "# %s\n- apiGroups: [%q]\n  resources: [%q]\n  verbs: [\"%s\"]\n",
			r.controllers, r.group, r.resource, strings.Join(r.verbs, `", "`))
	}
}
