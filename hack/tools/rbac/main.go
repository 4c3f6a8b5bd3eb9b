// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Command rbac prints the ClusterRole that the controllers need, their ServiceAccounts, or a
// policy about their writes. All are generated from what the controllers declare, and from the rules in
// their descriptors; see hack/update-rbac.sh.
package main

import (
	"cmp"
	"context"
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
	name := flag.String("template", "clusterrole", "What to print: clusterrole, accounts, reads, flowschema, subjects, served, fence or audit-policy.")
	selection := flag.String("controllers", "*", "The controllers that are enabled, as in the daemon's flag.")
	flag.Parse()
	// They have the rules that they need if these controllers are enabled.
	controllers, err := app.Program().Needs(context.Background(), "--controllers="+*selection)
	if err == nil {
		err = run(os.Stdout, controllers, *name)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run prints what the named template makes of the controllers' rules.
func run(w io.Writer, controllers []controller.Descriptor, name string) error {
	all := needs{}
	for _, d := range controllers {
		for _, rule := range d.Rules {
			if err := all.add(d.Name, rule); err != nil {
				return err
			}
		}
	}
	for _, rule := range controller.PauseRules() {
		if err := all.add("pauses of namespaces", rule); err != nil {
			return err
		}
	}
	reads, writes := all.split()
	data := templateData{Rules: all.rules(), Reads: reads.rules(), Written: all.writes()}
	for _, d := range controllers {
		data.Accounts = append(data.Accounts, account{d.Name, writes.of(d.Name).rules()})
	}
	slices.SortFunc(data.Accounts, func(a, b account) int { return cmp.Compare(a.Controller, b.Controller) })
	return templates.ExecuteTemplate(w, name+".yaml.tmpl", data)
}

// templateData is what the templates show.
type templateData struct {
	// Rules grant the controllers everything, and Reads only what they read.
	Rules, Reads []*rule
	// Accounts are the ServiceAccounts of the controllers.
	Accounts []account
	// Written are the resources that the controllers write.
	Written []*written
}

// account is the ServiceAccount of a controller, which may only write.
type account struct {
	Controller string
	Rules      []*rule
}

// permission is one verb on one resource.
type permission struct {
	group, resource, verb string
}

// needs maps a permission to the controllers that need it.
type needs map[permission][]string

// add adds what a controller's rule grants. It rejects rules that grant nothing, that use
// wildcards or that no controller needs.
func (n needs) add(controller string, rule rbacv1.PolicyRule) error {
	refuse := func(why string) error { return fmt.Errorf("%s: rule {%v}: %s", controller, rule, why) }
	if len(rule.NonResourceURLs)+len(rule.ResourceNames) > 0 {
		return refuse("only resources without names are supported")
	}
	if len(rule.APIGroups) == 0 || len(rule.Resources) == 0 || len(rule.Verbs) == 0 {
		return refuse("the rule grants nothing")
	}
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				if strings.Contains(group+resource+verb, "*") {
					return refuse("list what * stands for")
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

// rule grants verbs on a resource. Exactly these controllers need each of the verbs.
type rule struct {
	Group, Resource, Controllers string
	Verbs                        []string
}

// rules returns rules that grant every permission once, sorted.
func (n needs) rules() []*rule {
	var rules []*rule
	for p, controllers := range n {
		slices.Sort(controllers)
		r := &rule{Group: p.group, Resource: p.resource, Controllers: strings.Join(controllers, ", ")}
		i := slices.IndexFunc(rules, func(other *rule) bool { return r.compare(other) == 0 })
		if i >= 0 {
			r = rules[i]
		} else {
			rules = append(rules, r)
		}
		r.Verbs = append(r.Verbs, p.verb)
		slices.Sort(r.Verbs)
	}
	slices.SortFunc(rules, (*rule).compare)
	return rules
}

// compare orders rules, ignoring their verbs.
func (r *rule) compare(other *rule) int {
	return cmp.Or(
		cmp.Compare(r.Group, other.Group),
		cmp.Compare(r.Resource, other.Resource),
		cmp.Compare(r.Controllers, other.Controllers),
	)
}

// split returns what the controllers need to read, and to write.
func (n needs) split() (reads, writes needs) {
	reads, writes = needs{}, needs{}
	for p, controllers := range n {
		if controller.Reads(p.resource, p.verb) {
			reads[p] = controllers
		} else {
			writes[p] = controllers
		}
	}
	return reads, writes
}

// of returns what one controller needs.
func (n needs) of(controller string) needs {
	own := needs{}
	for p, controllers := range n {
		if slices.Contains(controllers, controller) {
			own[p] = []string{controller}
		}
	}
	return own
}
