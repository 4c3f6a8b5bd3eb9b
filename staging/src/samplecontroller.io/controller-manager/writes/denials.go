// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package writes

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"
)

const (
	// probeInterval is how far apart requests are that find out whether a missing
	// permission was granted.
	probeInterval = 5 * time.Second
	// oblivion is how long after the last denial a permission is forgotten: nobody
	// wants to use it any more.
	oblivion = 30 * time.Second
	// maxDenials bounds what is remembered of one controller. The longest denied go.
	maxDenials = 1000
)

// Denial is a permission that is missing.
type Denial struct {
	// Verb is that of RBAC, and Resource one such as deployments.apps or
	// foos/status.samplecontroller.k8s.io.
	Verb, Resource string
	// Namespace is where it is missing, empty for what has none.
	Namespace string
	// Since is when it was first denied, without a success since.
	Since time.Time
	// Message is how the API server put it last.
	Message string
}

// String says what may not be done.
func (d Denial) String() string {
	may := fmt.Sprintf("may not %s %s", d.Verb, d.Resource)
	if d.Namespace != "" {
		may += fmt.Sprintf(" in namespace %q", d.Namespace)
	}
	return may
}

// Summary says in one line what may not be done, empty if nothing is denied.
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

// denials are the missing permissions of one controller.
type denials struct {
	mutex        sync.Mutex
	byPermission map[permission]*denial
}

type denial struct {
	since, last time.Time
	probe       time.Time // when the next request is let through
	message     string
}

func (d *denial) forgotten(now time.Time) bool { return now.Sub(d.last) >= oblivion }

// withheld returns the message of a denial that holds, empty if there is none.
func (d *denials) withheld(p permission, now time.Time) string {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	denial := d.byPermission[p]
	if denial == nil || denial.forgotten(now) || !now.Before(denial.probe) {
		return ""
	}
	return denial.message
}

// admit is like withheld, but where it lets one through it does so no more until that
// has shown something, or some time has passed.
func (d *denials) admit(p permission, now time.Time) string {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	denial := d.byPermission[p]
	if denial == nil || denial.forgotten(now) {
		return ""
	}
	if now.Before(denial.probe) {
		return denial.message
	}
	denial.probe = now.Add(probeInterval)
	return ""
}

// found notes that a permission was found to be missing just now, and tells whether
// that is new.
func (d *denials) found(p permission, message string, now time.Time) bool {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	found := d.byPermission[p]
	isNew := found == nil || found.forgotten(now)
	if isNew {
		d.makeRoom(now)
		found = &denial{since: now}
		d.byPermission[p] = found
	}
	found.last, found.probe, found.message = now, now.Add(probeInterval), message
	return isNew
}

// granted notes that a permission is there, and tells whether it was missing.
func (d *denials) granted(p permission, now time.Time) bool {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	denial := d.byPermission[p]
	delete(d.byPermission, p)
	return denial != nil && !denial.forgotten(now)
}

// makeRoom makes room for another one.
func (d *denials) makeRoom(now time.Time) {
	if d.byPermission == nil {
		d.byPermission = map[permission]*denial{}
	}
	var oldest permission
	for p, denial := range d.byPermission {
		if denial.forgotten(now) {
			delete(d.byPermission, p)
		} else if first := d.byPermission[oldest]; first == nil || denial.since.Before(first.since) {
			oldest = p
		}
	}
	if len(d.byPermission) >= maxDenials {
		delete(d.byPermission, oldest)
	}
}

// list returns all that is missing, sorted by resource, verb and namespace.
func (d *denials) list(now time.Time) []Denial {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	var list []Denial
	for p, denial := range d.byPermission {
		if !denial.forgotten(now) {
			list = append(list, Denial{p.verb, p.resource.String(), p.namespace, denial.since, denial.message})
		}
	}
	slices.SortFunc(list, func(a, b Denial) int {
		return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Verb, b.Verb), cmp.Compare(a.Namespace, b.Namespace))
	})
	return list
}
