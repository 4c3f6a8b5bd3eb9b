// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package writes

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// forgetAfter is how long after the last denial a permission counts as missing. It exceeds
// the maximum backoff of a forbidden write, 30 s.
const forgetAfter = time.Minute

// Denial is why writes of a resource cannot succeed: a missing permission, or a subresource that
// the API server does not serve.
type Denial struct {
	// Verb is an RBAC verb. Resource is such as deployments.apps or
	// foos/status.samplecontroller.k8s.io.
	Verb, Resource string
	// Namespace is where the last denial was, empty for a cluster-scoped resource.
	Namespace string
	// Since is when the first denial without a success since was.
	Since time.Time
	// NotServed is set if the API server does not serve the subresource: see
	// [Transport.NotServed].
	NotServed bool
}

// String returns verb, resource and namespace.
func (d Denial) String() string {
	if d.NotServed {
		return d.Resource + " is not served: apply the CRDs of this version"
	}
	may := fmt.Sprintf("may not %s %s", d.Verb, d.Resource)
	if d.Namespace != "" {
		may += fmt.Sprintf(" in namespace %q", d.Namespace)
	}
	return may
}

// Summary describes the denials in one line. It is empty if there are none.
func Summary(denials []Denial) string {
	switch len(denials) {
	case 0:
		return ""
	case 1:
		return denials[0].String()
	default:
		return fmt.Sprintf("%s (and %d more)", denials[0], len(denials)-1)
	}
}

// isMissingPermission reports whether the authorizer denied a request. Admission and the registry
// return 403 with the same reason, for example for a quota, a webhook, or a Role with permissions
// that the writer lacks. Only the authorizer's message says that the user cannot do what the request
// does. Others may quote such a message, but the authorizer knows only the name in the path, and a
// create has none there. Policies add a cause, and most webhooks no details at all.
func isMissingPermission(t target, status metav1.Status) bool {
	resource := schema.ParseGroupResource(t.Resource)
	denied := fmt.Sprintf("cannot %s resource %q in API group %q", t.Verb, resource.Resource, resource.Group)
	return status.Reason == metav1.StatusReasonForbidden && strings.Contains(status.Message, denied) &&
		status.Details != nil &&
		status.Details.Name == t.name && len(status.Details.Causes) == 0
}

// IsMissingPermission reports whether a write of the named object failed because the authorizer
// denied it, so that [Transport.Denied] lists it. Callers need not report it for each object.
func IsMissingPermission(err error, write Write, name string) bool {
	if write.Verb == "create" {
		name = "" // it is not in the path
	}
	status := apierrors.APIStatus(nil)
	return errors.As(err, &status) && isMissingPermission(target{Write: write, name: name}, status.Status())
}

// denials are the missing permissions of one controller by verb and resource.
type denials struct {
	mutex   sync.Mutex
	byWrite map[Write]denial
}

type denial struct {
	namespace   string
	since, last time.Time
}

func (d denial) forgotten(now time.Time) bool { return now.Sub(d.last) >= forgetAfter }

// deny records a denied write and returns whether the denial is new.
func (d *denials) deny(t target, now time.Time) bool {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	known, ok := d.byWrite[t.Write]
	isNew := !ok || known.forgotten(now)
	if isNew {
		known.since = now
	}
	if d.byWrite == nil {
		d.byWrite = map[Write]denial{}
	}
	d.byWrite[t.Write] = denial{t.namespace, known.since, now}
	return isNew
}

// allow records a permitted write and returns whether it was denied before in its namespace.
func (d *denials) allow(t target, now time.Time) bool {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	known, ok := d.byWrite[t.Write]
	if !ok || known.namespace != t.namespace {
		return false // a Role may be missing in some namespaces only
	}
	delete(d.byWrite, t.Write)
	return !known.forgotten(now)
}

// list returns the missing permissions.
func (d *denials) list(now time.Time) []Denial {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	var list []Denial
	for write, denial := range d.byWrite {
		if !denial.forgotten(now) {
			list = append(list, Denial{Verb: write.Verb, Resource: write.Resource, Namespace: denial.namespace,
				Since: denial.since})
		}
	}
	return list
}
