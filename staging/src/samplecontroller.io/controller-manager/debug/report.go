// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package debug

import (
	"time"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/reconcile"
)

// Report is what a process tells of its controllers.
type Report struct {
	// Process is who tells: the identity by which it campaigns. Time is when.
	Process string    `json:"process"`
	Time    time.Time `json:"time"`
	// Namespace is the only one that it serves, empty if it serves all.
	Namespace string `json:"namespace,omitempty"`
	// Leader says who leads, for people; Leading whether the process does.
	Leader  string `json:"leader"`
	Leading bool   `json:"leading"`
	// Controllers are those that are known, sorted by name.
	Controllers []Controller `json:"controllers"`
	// Resources are what they read, sorted by name.
	Resources []Resource `json:"resources"`
}

// Controller is what one controller is doing, as package supervisor tells. That package needs
// k8s.io/apiserver, which programs that only read reports do without.
type Controller struct {
	Name string `json:"name"`
	// State is what it is doing, Since when that began, Reason why.
	State  string    `json:"state"`
	Since  time.Time `json:"since"`
	Reason string    `json:"reason,omitempty"`
	// Unhealthy says why its health check fails.
	Unhealthy string `json:"unhealthy,omitempty"`
	// Queues are its queues.
	Queues []reconcile.Progress `json:"queues,omitempty"`
}

// Resource is what the process reads of one resource.
type Resource struct {
	Name string `json:"name"`
	// Served says whether the cache holds what the API server has, Since when that
	// began or ended, Reason why not.
	Served bool      `json:"served"`
	Since  time.Time `json:"since"`
	Reason string    `json:"reason,omitempty"`
	// Objects is how many are cached.
	Objects int `json:"objects"`
	// LastSign is when the watch last told something, be it that nothing has changed.
	LastSign time.Time `json:"lastSign,omitzero"`
}

// Explanation is what a controller does about one object, and why.
type Explanation struct {
	Controller string `json:"controller"`
	Object     string `json:"object"`
	// State is that of the controller, Reason why: if it does not run, nothing is done.
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"`
	// Time is when this was so.
	Time time.Time `json:"time"`
	// Explanation is what the controller says.
	controller.Explanation `json:",inline"`
	// Running, Waiting and Delayed are where the object is in the controller's queues;
	// empty if nothing is to be done. Syncs are the last that are remembered, the newest
	// first.
	Running []reconcile.Entry   `json:"running,omitempty"`
	Waiting []reconcile.Entry   `json:"waiting,omitempty"`
	Delayed []reconcile.Entry   `json:"delayed,omitempty"`
	Syncs   []reconcile.Outcome `json:"syncs,omitempty"`
}
