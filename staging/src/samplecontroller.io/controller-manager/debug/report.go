// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package debug

import (
	"time"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/reconcile"
)

// Report is what a process reports about its controllers.
type Report struct {
	// Program is the name of the program, and Version its version.
	Program string `json:"program"`
	Version string `json:"version"`
	// Process is the identity with which the process campaigns for the Lease, empty without leader
	// election. Time is when the report was made, by the clock of the process.
	Process string    `json:"process"`
	Time    time.Time `json:"time"`
	// Namespace is the only namespace that the process serves, empty if it serves all.
	Namespace string `json:"namespace,omitempty"`
	// Leader describes the leader, for people. Leading is whether the process leads.
	Leader  string `json:"leader"`
	Leading bool   `json:"leading"`
	// ConfigRefused is why the content of the configuration file is not in effect, empty if it is.
	ConfigRefused string `json:"configRefused,omitempty"`
	// Shadow is what a shadow would do differently, nil in another process.
	Shadow *Shadow `json:"shadow,omitempty"`
	// Controllers are the known controllers, sorted by name.
	Controllers []Controller `json:"controllers"`
	// Resources are what the controllers read, sorted by name.
	Resources []Resource `json:"resources"`
}

// Shadow is what a process with --shadow would do differently from the leader.
type Shadow struct {
	// Total is the number of differences, and First are the oldest.
	Total int          `json:"total"`
	First []Difference `json:"first"`
}

// Difference is a write that the leader does not make, and that the shadow has wanted for at least 10 s.
type Difference struct {
	// Controller is the name of the controller, and Object the object that it reconciles.
	Controller string `json:"controller"`
	Object     string `json:"object"`
	// Verb is an RBAC verb, or finalize for the function of a finalizer. Resource and Name are what would be written.
	Verb     string `json:"verb"`
	Resource string `json:"resource"`
	Name     string `json:"name"`
	// Since is when the shadow first wanted the write.
	Since time.Time `json:"since"`
	// Fields are the first changed fields, such as spec.replicas.
	Fields []string `json:"fields,omitempty"`
}

// Controller is the status of one controller.
type Controller struct {
	// Name is the name of the controller.
	Name string `json:"name"`
	// State is Disabled, Standby, Starting, WaitingForAPI, Running or Degraded. Since is when
	// that began. Reason is why, empty if the state says all.
	State  string    `json:"state"`
	Since  time.Time `json:"since"`
	Reason string    `json:"reason,omitempty"`
	// Unhealthy is why the health check of the controller fails, empty if it passes.
	Unhealthy string `json:"unhealthy,omitempty"`
	// Paused is whether all objects of the controller are paused by a setting, and PausedUntil when that ends; zero
	// means without end. PausedObjects is how many objects were left alone at their last sync, for whatever reason.
	Paused        bool      `json:"paused,omitempty"`
	PausedUntil   time.Time `json:"pausedUntil,omitzero"`
	PausedObjects int       `json:"pausedObjects,omitempty"`
	// Queues are the queues of the controller: one, or one for each that Join joins.
	Queues []reconcile.Progress `json:"queues,omitempty"`
}

// Resource is the state of the cache of one resource.
type Resource struct {
	// Name is the resource and its API group, such as deployments.apps.
	Name string `json:"name"`
	// Served is whether the cache holds what the API server serves. Since is when that
	// changed. Reason is why it does not, or why the last list or watch failed, else empty.
	Served bool      `json:"served"`
	Since  time.Time `json:"since"`
	Reason string    `json:"reason,omitempty"`
	// Objects is the number of cached objects.
	Objects int `json:"objects"`
	// LastSign is when the watch was opened, or last sent an event or a bookmark. It is zero if
	// there was none.
	LastSign time.Time `json:"lastSign,omitzero"`
}

// Explanation is what a controller does about one object, and why.
type Explanation struct {
	// Controller is the name of the controller, and Object "namespace/name".
	Controller string `json:"controller"`
	Object     string `json:"object"`
	// State and Reason are those of [Controller]. Objects are synced only while it runs.
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"`
	// Time is when the explanation was made.
	Time time.Time `json:"time"`
	// Explanation is the explanation by the controller.
	controller.Explanation `json:",inline"`
	// Running, Waiting and Delayed show where the object is in the queues of the controller.
	// All are empty if there is nothing to do. Syncs are the remembered syncs, the newest
	// first.
	Running []reconcile.Entry   `json:"running,omitempty"`
	Waiting []reconcile.Entry   `json:"waiting,omitempty"`
	Delayed []reconcile.Entry   `json:"delayed,omitempty"`
	Syncs   []reconcile.Outcome `json:"syncs,omitempty"`
}
