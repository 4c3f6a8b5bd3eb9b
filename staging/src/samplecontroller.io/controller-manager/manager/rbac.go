// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	restclient "k8s.io/client-go/rest"
	cliflag "k8s.io/component-base/cli/flag"
	"sigs.k8s.io/yaml"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/internal/options"
	"samplecontroller.io/controller-manager/internal/preflight"
)

// rolesHeader explains the permissions that show in no request.
const rolesHeader = `# The permissions that %s needs with these flags. Bind them to its ServiceAccount.
# No request needs update of finalizers: the admission plugin OwnerReferencesPermissionEnforcement
# requires it of callers that set owner references. API servers that do not stream lists need list.
`

// newRBACCommand returns the subcommand that prints the roles that the program needs. It has all
// flags of the program, and needs no cluster.
func newRBACCommand(p Program, o *options.Options) *cobra.Command {
	command := &cobra.Command{
		Use:   "rbac",
		Short: "Print the roles that the program needs with these flags.",
		Long: `Print the roles that the program needs with these flags, as YAML. They follow from
what the controllers declare, and from the Rules in their descriptors. With
--use-service-account-credentials, each controller has a role of its own.

No cluster is needed. Outside of a cluster, set --leader-elect-resource-namespace.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if printVersion(cmd, p.Name) {
				return nil
			}
			offline(o)
			b, err := p.build(cmd.Context(), o)
			if err != nil {
				return err
			}
			defer b.shared.Events.Shutdown()
			return writeRoles(cmd.OutOrStdout(), p.Name, slices.Concat(b.needs.groups, ofTokens(p.Name, b),
				[]preflight.Group{{Permissions: ofPauses(b)}}))
		},
	}
	addAllFlags(command, o, cliflag.NamedFlagSets{})
	return command
}

// offline makes it possible to build a program without a cluster: a client is made, but nothing is sent.
func offline(o *options.Options) { o.Client.Config = &restclient.Config{Host: "https://localhost"} }

// Needs returns the descriptors of the controllers that the flags in args enable, such as
// --controllers=foo-controller. The Rules of each are all permissions that it needs: those that it has
// there, and those that it declares. Needs builds the controllers, but needs no cluster. It returns an
// error if a flag is invalid, a constructor fails, or the program misuses the library.
func (p Program) Needs(ctx context.Context, args ...string) (needs []controller.Descriptor, err error) {
	defer returnMisuse(&err)
	o, err := p.parse(args)
	if err != nil {
		return nil, err
	}
	offline(o)
	b, err := p.build(ctx, o)
	if err != nil {
		return nil, err
	}
	defer b.shared.Events.Shutdown()
	return b.needs.controllers, nil
}

// ofPauses returns the permissions to read the pause annotations of namespaces; none with --namespace.
func ofPauses(b *built) (all []preflight.Permission) {
	if b.config.Generic.Namespace != "" {
		return nil
	}
	for _, rule := range controller.PauseRules() {
		all = append(all, preflight.Expand(rule, "")...)
	}
	for i := range all {
		all[i].ClusterScoped = true
	}
	return all
}

// ofTokens returns the permissions to request the tokens of the controllers' own accounts, which are in
// the namespace of the program. That is also the namespace of its Lease, unless a flag says otherwise.
func ofTokens(program string, b *built) []preflight.Group {
	if !b.config.Generic.UseServiceAccountCredentials || b.needs.lease == nil {
		return nil
	}
	rule := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, Verbs: []string{"create"}}
	for _, d := range b.needs.controllers {
		rule.ResourceNames = append(rule.ResourceNames, program+"-"+d.Name)
	}
	return []preflight.Group{{Permissions: preflight.Expand(rule, b.needs.lease.Namespace)}}
}

// role is where permissions are granted: in one namespace, or in all, to one account.
type role struct{ account, namespace string }

// rights are the verbs for each kind of object: its group, resource and name.
type rights map[[3]string]sets.Set[string]

// writeRoles writes a role for each account and namespace.
func writeRoles(w io.Writer, program string, groups []preflight.Group) error {
	roles := map[role]rights{}
	for _, group := range groups {
		account := program
		if group.Controller != "" {
			account += "-" + group.Controller
		}
		for _, p := range group.Permissions {
			in := role{account, p.Namespace}
			if roles[in] == nil {
				roles[in] = rights{}
			}
			object := [3]string{p.Group, p.Resource, p.Name}
			if roles[in][object] == nil {
				roles[in][object] = sets.New[string]()
			}
			roles[in][object].Insert(p.Verb)
		}
	}
	if _, err := fmt.Fprintf(w, rolesHeader, program); err != nil {
		return err
	}
	for _, in := range slices.SortedFunc(maps.Keys(roles), func(a, b role) int {
		return cmp.Or(cmp.Compare(a.account, b.account), cmp.Compare(a.namespace, b.namespace))
	}) {
		document, err := yaml.Marshal(in.object(roles[in].rules()))
		if err == nil {
			_, err = fmt.Fprintf(w, "---\n%s", document)
		}
		if err != nil {
			return fmt.Errorf("writing the roles: %w", err)
		}
	}
	return nil
}

// object returns the role with these rules.
func (r role) object(rules []rbacv1.PolicyRule) any {
	kind := func(kind string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
	}
	if r.namespace == "" {
		return &rbacv1.ClusterRole{TypeMeta: kind("ClusterRole"), ObjectMeta: metav1.ObjectMeta{Name: r.account}, Rules: rules}
	}
	meta := metav1.ObjectMeta{Namespace: r.namespace, Name: r.account}
	return &rbacv1.Role{TypeMeta: kind("Role"), ObjectMeta: meta, Rules: rules}
}

// rules returns a rule for each kind of object.
func (r rights) rules() []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for _, object := range slices.SortedFunc(maps.Keys(r),
		func(a, b [3]string) int { return slices.Compare(a[:], b[:]) }) {
		rule := rbacv1.PolicyRule{APIGroups: object[:1], Resources: object[1:2], Verbs: sets.List(r[object])}
		if object[2] != "" {
			rule.ResourceNames = object[2:]
		}
		rules = append(rules, rule)
	}
	return rules
}
