// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leaders

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/utils/ptr"
)

// leaseWrite is a committed write of the Lease.
type leaseWrite struct {
	event      auditv1.Event
	credential string // empty if it was not by a replica
	uid        types.UID
	version    uint64 // 0 for a deletion
	deleted    bool
	holder     string
	duration   time.Duration
	renewed    time.Time // by the holder's clock; zero if missing
}

func (w leaseWrite) received() time.Time  { return w.event.RequestReceivedTimestamp.Time }
func (w leaseWrite) committed() time.Time { return w.event.StageTimestamp.Time }

// leaseWrites returns the committed writes of the Lease, in the order of their commits.
func leaseWrites(events []auditv1.Event, o Options) ([]leaseWrite, error) {
	var writes, deletions []leaseWrite
	for _, event := range events {
		if !isWrite(event) || !succeeded(event) || !isOf(event, o.Lease) {
			continue
		}
		w, err := decode(event, o)
		if err != nil {
			return nil, fmt.Errorf("reading %s of Lease %s at %s: %w", event.Verb, o.Lease, clock(event.StageTimestamp.Time), err)
		}
		if w.deleted {
			deletions = append(deletions, w)
		} else {
			writes = append(writes, w)
		}
	}
	// If two writes overlap, the first one answered may not be the first one committed.
	slices.SortStableFunc(writes, func(a, b leaseWrite) int { return cmp.Compare(a.version, b.version) })
	for _, d := range deletions {
		// A deletion has no version, but it is the last write of the deleted object.
		for i, w := range slices.Backward(writes) {
			if w.uid == d.uid {
				writes = slices.Insert(writes, i+1, d)
				break
			}
		}
	}
	return writes, nil
}

func isOf(event auditv1.Event, lease types.NamespacedName) bool {
	ref := event.ObjectRef
	return ref != nil && ref.APIGroup == coordinationv1.GroupName && ref.Resource == "leases" &&
		ref.Namespace == lease.Namespace && ref.Name == lease.Name
}

// decode decodes the API server's response, which is the committed object.
func decode(event auditv1.Event, o Options) (leaseWrite, error) {
	w := leaseWrite{event: event}
	var err error
	if w.credential, err = o.credential(event); err != nil {
		return w, err
	}
	if event.ResponseObject == nil {
		return w, fmt.Errorf("the audit log has no body")
	}
	if event.Verb == "delete" {
		var status metav1.Status
		if err := json.Unmarshal(event.ResponseObject.Raw, &status); err != nil {
			return w, err
		}
		w.deleted, w.uid = true, ptr.Deref(status.Details, metav1.StatusDetails{}).UID
		return w, nil
	}
	var lease coordinationv1.Lease
	if err := json.Unmarshal(event.ResponseObject.Raw, &lease); err != nil {
		return w, err
	}
	w.uid = lease.UID
	w.holder = ptr.Deref(lease.Spec.HolderIdentity, "")
	w.duration = time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)) * time.Second
	w.renewed = ptr.Deref(lease.Spec.RenewTime, metav1.MicroTime{}).Time
	w.version, err = strconv.ParseUint(lease.ResourceVersion, 10, 64)
	return w, err
}
