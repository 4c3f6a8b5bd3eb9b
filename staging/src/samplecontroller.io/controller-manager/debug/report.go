// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package debug

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"samplecontroller.io/controller-manager/controller"
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

// Controller is what one controller is doing.
type Controller struct {
	Name string `json:"name"`
	// State is what it is doing, Since when that began, Reason why.
	State  string    `json:"state"`
	Since  time.Time `json:"since"`
	Reason string    `json:"reason,omitempty"`
	// Unhealthy says why its health check fails.
	Unhealthy string `json:"unhealthy,omitempty"`
	// Queues are its queues.
	Queues []Queue `json:"queues,omitempty"`
}

// Queue is what one queue of a controller holds, and what was done for it.
type Queue struct {
	Name string `json:"name"`
	// Running are the keys that are being synced, Waiting those that wait for a worker,
	// Delayed those that wait for their time.
	Running Keys `json:"running"`
	Waiting Keys `json:"waiting"`
	Delayed Keys `json:"delayed"`
	// Failing is how many keys have failed last, LostEvents how many events were lost
	// because their handler panicked.
	Failing    int `json:"failing"`
	LostEvents int `json:"lostEvents,omitempty"`
	// LastSuccess is when a sync last succeeded.
	LastSuccess *time.Time `json:"lastSuccess,omitempty"`
	// Failures are the last syncs that failed, Recent the last of all, the newest first.
	Failures []Sync `json:"failures"`
	Recent   []Sync `json:"recent"`
}

// Keys are keys of a queue.
type Keys struct {
	// Total is how many there are; First are as many of them as were asked for.
	Total int   `json:"total"`
	First []Key `json:"first"`
}

// Key is one object in a queue.
type Key struct {
	Key string `json:"key"`
	// Trigger is what woke it.
	Trigger string `json:"trigger,omitempty"`
	// Time is since when it waits or is synced, or when its time comes.
	Time time.Time `json:"time"`
	// Retries is how often it has failed in a row, Error why the last time.
	Retries int    `json:"retries,omitempty"`
	Error   string `json:"error,omitempty"`
}

// Sync is what became of one sync.
type Sync struct {
	Key      string          `json:"key"`
	Trigger  string          `json:"trigger,omitempty"`
	Began    time.Time       `json:"began"`
	Duration metav1.Duration `json:"duration"`
	Result   string          `json:"result"`
	Error    string          `json:"error,omitempty"`
	// Writes are what it wrote: "patch foos/status: written".
	Writes []string `json:"writes,omitempty"`
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
	LastSign *time.Time `json:"lastSign,omitempty"`
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
	Running []Key  `json:"running,omitempty"`
	Waiting []Key  `json:"waiting,omitempty"`
	Delayed []Key  `json:"delayed,omitempty"`
	Syncs   []Sync `json:"syncs,omitempty"`
}
