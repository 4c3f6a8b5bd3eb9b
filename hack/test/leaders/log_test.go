// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leaders

import (
	"encoding/json"
	"strconv"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/utils/ptr"
)

// took is how long the API server takes for each request of a fakeLog.
const took = 2 * time.Millisecond

var (
	start = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	lease = types.NamespacedName{Namespace: "system", Name: "leader"}
)

// fakeLog is a hand-made audit log. Its replicas are a, b and c, with the identities id-a,
// id-b and id-c in the Lease. admin is not a replica. Times are when requests are received, in
// milliseconds since start.
type fakeLog struct {
	t       *testing.T
	events  []auditv1.Event
	version int
	uid     int
}

func (l *fakeLog) add(ms int, who, verb, group, resource, name string, body any) *auditv1.Event {
	l.t.Helper()
	received := start.Add(time.Duration(ms) * time.Millisecond)
	event := auditv1.Event{
		AuditID: types.UID(strconv.Itoa(len(l.events))),
		Stage:   auditv1.StageResponseComplete, Verb: verb,
		User: authenticationv1.UserInfo{Username: "admin"},
		ObjectRef: &auditv1.ObjectReference{APIGroup: group, Resource: resource, Namespace: lease.Namespace,
			Name: name},
		ResponseStatus:           &metav1.Status{Code: 200},
		RequestReceivedTimestamp: metav1.NewMicroTime(received),
		StageTimestamp:           metav1.NewMicroTime(received.Add(took)),
	}
	if who != "admin" {
		event.User.Username = "system:serviceaccount:system:leader"
		event.User.Extra = map[string]authenticationv1.ExtraValue{credentialID: {"JTI=" + who}}
	}
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			l.t.Fatal(err)
		}
		event.ResponseObject = &runtime.Unknown{Raw: raw}
	}
	l.events = append(l.events, event)
	return &l.events[len(l.events)-1]
}

// lease adds a write of the Lease.
func (l *fakeLog) lease(ms int, who, holder string, duration int32) *auditv1.Event {
	l.t.Helper()
	l.version++
	return l.add(ms, who, "update", coordinationv1.GroupName, "leases", lease.Name, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{UID: types.UID(strconv.Itoa(l.uid)), ResourceVersion: strconv.Itoa(l.version)},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &duration},
	})
}

// takes adds a write with which a replica takes or renews the Lease, for six seconds.
func (l *fakeLog) takes(ms int, who string) *auditv1.Event {
	l.t.Helper()
	return l.lease(ms, who, "id-"+who, 6)
}

func (l *fakeLog) releases(ms int, who string) *auditv1.Event {
	l.t.Helper()
	return l.lease(ms, who, "", 1)
}

func (l *fakeLog) deletes(ms int, who string) *auditv1.Event {
	l.t.Helper()
	status := metav1.Status{Details: &metav1.StatusDetails{UID: types.UID(strconv.Itoa(l.uid))}}
	l.uid++
	return l.add(ms, who, "delete", coordinationv1.GroupName, "leases", lease.Name, status)
}

func (l *fakeLog) writes(ms int, who string) *auditv1.Event {
	l.t.Helper()
	return l.add(ms, who, "patch", "", "configmaps", "x", nil)
}

// heldWrites adds a write that a proxy saw when it was sent.
func (l *fakeLog) heldWrites(sent, ms int, who string) *auditv1.Event {
	l.t.Helper()
	event := l.writes(ms, who)
	event.Annotations = map[string]string{"sent": strconv.Itoa(sent)}
	return event
}

func (l *fakeLog) check() *Report {
	l.t.Helper()
	r, err := Check(l.events, Options{
		Lease: lease, Replica: ServiceAccount("system", "leader"),
		Sent: func(event auditv1.Event) (time.Time, bool) {
			sent, err := strconv.Atoi(event.Annotations["sent"])
			return start.Add(time.Duration(sent) * time.Millisecond), err == nil
		},
	})
	if err != nil {
		l.t.Fatal(err)
	}
	return r
}

// refuse makes the API server reject a request.
func refuse(event *auditv1.Event) { event.ResponseStatus = &metav1.Status{Code: 409} }

// changeLease changes the body of a write of the Lease.
func changeLease(t *testing.T, event *auditv1.Event, change func(*coordinationv1.Lease)) {
	t.Helper()
	var l coordinationv1.Lease
	if err := json.Unmarshal(event.ResponseObject.Raw, &l); err != nil {
		t.Fatal(err)
	}
	change(&l)
	raw, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	event.ResponseObject.Raw = raw
}

// renewed sets the time of the last renewal of a Lease.
func renewed(l *coordinationv1.Lease) { l.Spec.RenewTime = ptr.To(metav1.NewMicroTime(start)) }

// identity sets the holder of a Lease to another identity.
func identity(holder string) func(*coordinationv1.Lease) {
	return func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = ptr.To(holder) }
}
