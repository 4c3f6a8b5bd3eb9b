// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
)

// expectation describes requests that a test expects to be denied.
type expectation struct {
	from, to time.Time // to is zero until the test ends
	matches  []func(auditv1.Event) bool
}

var expectations struct {
	sync.Mutex
	all []*expectation
}

// ExpectDenials declares that requests of the daemon that match all conditions may be denied
// until the end of the test. Call it before the test starts a replica or revokes rights.
func ExpectDenials(t *testing.T, matches ...func(auditv1.Event) bool) {
	t.Helper()
	p := expect(matches...)
	t.Cleanup(func() {
		expectations.Lock()
		defer expectations.Unlock()
		p.to = time.Now()
	})
}

// ExpectDenialsIn declares that requests of the daemon in a namespace of the test may be
// denied, also after the test, because retries continue.
func ExpectDenialsIn(ns string) { expect(cluster.InNamespace(ns)) }

func expect(matches ...func(auditv1.Event) bool) *expectation {
	p := &expectation{from: time.Now(), matches: matches}
	expectations.Lock()
	defer expectations.Unlock()
	expectations.all = append(expectations.all, p)
	return p
}

// expected reports whether a test expects the request to be denied.
func expected(event auditv1.Event) bool {
	expectations.Lock()
	defer expectations.Unlock()
	return slices.ContainsFunc(expectations.all, func(p *expectation) bool {
		at := event.RequestReceivedTimestamp.Time
		return !at.Before(p.from) && (p.to.IsZero() || at.Before(p.to)) &&
			!slices.ContainsFunc(p.matches, func(matches func(auditv1.Event) bool) bool { return !matches(event) })
	})
}

// ByDaemon matches requests of the daemon.
func ByDaemon(event auditv1.Event) bool { return event.User.Username == DaemonUser }

// Denied matches requests that RBAC or admission denied.
func Denied(event auditv1.Event) bool {
	return event.ResponseStatus != nil && event.ResponseStatus.Code == http.StatusForbidden
}

// unexpected returns the requests that were denied although no test expected it, with their
// counts.
func unexpected(events []auditv1.Event) (denials []error) {
	counts, first := map[string]int{}, map[string]string{}
	for _, event := range events {
		if Denied(event) && !expected(event) {
			what := cluster.Call(event) + ": " + event.ResponseStatus.Message
			if counts[what]++; counts[what] == 1 {
				first[what] = event.RequestReceivedTimestamp.Format(time.TimeOnly)
			}
		}
	}
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		denials = append(denials, fmt.Errorf("the daemon was denied %d times, first at %s: %s", counts[what], first[what], what))
	}
	return denials
}

// checkPrivileges reports denied requests of the daemon that no test of the package expected.
// It writes what the daemon was granted and what it used to the directory that E2E_PRIVILEGES
// names. hack/unused-grants.sh compares these files over all packages.
func checkPrivileges() error {
	events, err := Cluster().AuditEvents(ByDaemon)
	if err != nil {
		return err
	}
	used, refused := sets.New[string](), 0
	for _, event := range events {
		if Denied(event) {
			refused++
		} else {
			used.Insert(Uses(event)...)
		}
	}
	problems := unexpected(events)
	fmt.Printf("privileges: %d requests of the daemon, %d denied, all denials expected: %t\n", len(events), refused, len(problems) == 0)
	if dir := os.Getenv("E2E_PRIVILEGES"); dir != "" {
		problems = append(problems, writePrivileges(dir, used))
	}
	return errors.Join(problems...)
}

// writePrivileges writes what the daemon used, and what it was granted beyond the rights of
// every ServiceAccount.
func writePrivileges(dir string, used sets.Set[string]) error {
	all := sets.New[string]()
	for _, namespace := range []string{metav1.NamespaceDefault, DaemonName, metav1.NamespaceSystem} {
		there, err := granted(DaemonAccount, namespace)
		if err != nil {
			return err
		}
		all = all.Union(there)
	}
	folder, err := os.Getwd()
	if err != nil {
		return err
	}
	for extension, lines := range map[string]sets.Set[string]{"granted": all, "used": used} {
		path := filepath.Join(dir, filepath.Base(folder)+"."+extension)
		var content strings.Builder // empty without grants, as after an uninstallation
		for _, line := range sets.List(lines) {
			content.WriteString(line + "\n")
		}
		if err := os.WriteFile(path, []byte(content.String()), 0o644); err != nil {
			return fmt.Errorf("writing the daemon's rights: %w", err)
		}
	}
	return nil
}

// Uses returns the grants that may have allowed a request, in the format of [Grants].
func Uses(event auditv1.Event) []string {
	ref := event.ObjectRef
	if ref == nil {
		return nil
	}
	resource := ref.Resource
	if ref.Subresource != "" {
		resource += "/" + ref.Subresource
	}
	return append(Grants([]string{ref.APIGroup}, []string{resource}, nil, []string{event.Verb}),
		Grants([]string{ref.APIGroup}, []string{resource}, []string{ref.Name}, []string{event.Verb})...)
}
