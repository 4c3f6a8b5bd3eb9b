// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/controller-manager/internal/truncate"
	"samplecontroller.io/controller-manager/reconcile"
)

// ConditionPaused is the type of the condition of objects that are paused. By the kstatus convention it is
// absent unless it is True.
const ConditionPaused = "Paused"

// Reasons of the condition Paused.
const (
	// ReasonPausedByController: the setting --paused-controllers names the controller.
	ReasonPausedByController = "PausedByController"
	// ReasonPausedByAnnotation: the object has the annotation.
	ReasonPausedByAnnotation = "PausedByAnnotation"
	// ReasonPausedByNamespace: the namespace of the object has the annotation.
	ReasonPausedByNamespace = "PausedByNamespace"
)

// Reasons of Events about pauses.
const (
	reasonPaused       = "Paused"
	reasonResumed      = "Resumed"
	reasonInvalidPause = "InvalidPause"
)

// maxInvalid is how much of an invalid value is quoted, in bytes.
const maxInvalid = 100

// PauseAnnotation returns the annotation that pauses an object, or all objects of a namespace, for the named
// program. Its value is true or empty, or a time such as 2026-01-02T15:04:05Z until which the pause lasts. The
// value false is like no annotation: it does not exempt an object from the pause of its namespace or controller. Any
// other value pauses, too, and a Warning Event says what is wrong.
func PauseAnnotation(program string) string { return program + ".samplecontroller.io/paused" }

// pauseKey returns the annotation that pauses objects, "" if none does.
func (s *Shared) pauseKey() string {
	if s.Program == "" {
		return ""
	}
	return PauseAnnotation(s.Program)
}

// PauseRules returns the permissions that the annotation of namespaces needs. Without them it is ignored.
func PauseRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"list", "watch"}}}
}

// errPaused is the error of a write for an object that was paused during the call. The object was read before.
var errPaused = fmt.Errorf("%w: the object was paused during this call", reconcile.ErrStale)

// pause is why an object is left alone.
type pause struct {
	reason string
	by     string    // what pauses it
	resume string    // how to end that
	until  time.Time // zero if it has no end
	// invalid is the value of the annotation if it cannot be parsed. namespace is the namespace that has it, if
	// it is not the object.
	isInvalid          bool
	invalid, namespace string
}

// message describes the pause for the condition.
func (p *pause) message() string {
	text := "Paused by " + p.by
	switch {
	case p.isInvalid:
		text += fmt.Sprintf(", although its value %q is not valid: use true, false or the end of the pause, such as "+
			"2026-01-02T15:04:05Z", truncate.To(maxInvalid, p.invalid))
	case !p.until.IsZero():
		text += " until " + p.until.UTC().Format(time.RFC3339)
	default:
		text += " until it is removed"
	}
	return text + "; to resume: " + p.resume
}

// next describes the pause for [Explanation.Next].
func (p *pause) next() string { return "nothing: p" + strings.TrimPrefix(p.message(), "P") }

// parsePause parses the value of an annotation. until is zero if the pause has no end. A value that cannot be
// parsed pauses: whoever wrote it wanted that.
func parsePause(value string, now time.Time) (paused bool, until time.Time, valid bool) {
	switch value {
	case "", "true":
		return true, time.Time{}, true
	case "false":
		return false, time.Time{}, true
	}
	until, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return true, time.Time{}, false
	}
	return now.Before(until), until, true
}

// newPause returns the pause by the value of an annotation, nil if it does not pause.
func newPause(value, reason string) *pause {
	paused, until, valid := parsePause(value, time.Now())
	switch {
	case !paused:
		return nil
	case !valid:
		return &pause{reason: reason, isInvalid: true, invalid: value}
	default:
		return &pause{reason: reason, until: until}
	}
}

// pauseOf returns why the object is to be left alone, nil if it is not. An object that is being deleted is not
// paused: its finalizers would hold it. The error is [reconcile.ErrStale] while its namespace is not yet read.
func (b *Builder[T]) pauseOf(object T) (*pause, error) {
	if object.GetDeletionTimestamp() != nil {
		return nil, nil
	}
	s := b.context.shared
	if until, paused := s.pausedUntil(b.context.name); paused {
		return &pause{reason: ReasonPausedByController, until: until, by: byController(b.context.name),
			resume: "leave " + b.context.name + " out of --paused-controllers"}, nil
	}
	if b.pauseKey == "" {
		return nil, nil
	}
	if value, ok := object.GetAnnotations()[b.pauseKey]; ok {
		if p := newPause(value, ReasonPausedByAnnotation); p != nil {
			name, in := object.GetName(), ""
			if namespace := object.GetNamespace(); namespace != "" {
				in = " -n " + namespace
			}
			p.by = "the annotation " + b.pauseKey + " of this " + b.resource.kind.Kind
			p.resume = fmt.Sprintf("kubectl annotate%s %s %s %s-", in, b.resource.name.GroupResource(), name, b.pauseKey)
			return p, nil
		}
	}
	namespaces := s.namespaces.Load()
	if b.resource.cluster || namespaces == nil {
		return nil, nil
	}
	namespace := object.GetNamespace()
	value, ok, err := namespaces.annotation(namespace)
	if err != nil || !ok {
		return nil, err
	}
	p := newPause(value, ReasonPausedByNamespace)
	if p != nil {
		p.namespace = namespace
		p.by = "the annotation " + b.pauseKey + " of namespace " + namespace
		p.resume = "kubectl annotate namespace " + namespace + " " + b.pauseKey + "-"
	}
	return p, nil
}

func byController(name string) string { return "the setting --paused-controllers for " + name }

// pausedUntil returns whether all objects of a controller are paused, and until when; zero means without end.
func (s *Shared) pausedUntil(controller string) (until time.Time, paused bool) {
	if s.PausedController == nil {
		return time.Time{}, false
	}
	until, paused = s.PausedController(controller)
	return until, paused && (until.IsZero() || time.Now().Before(until))
}

// Pauses is what of a controller is paused.
type Pauses struct {
	// Controller is whether all of its objects are, and Until when that ends; zero means without end.
	Controller bool
	Until      time.Time
	// Objects is how many objects it left alone at their last sync in this term, for whatever reason.
	Objects int
}

// PausesOf returns what of the named controller is paused.
func (s *Shared) PausesOf(controller string) Pauses {
	var p Pauses
	p.Until, p.Controller = s.pausedUntil(controller)
	if !p.Controller {
		p.Until = time.Time{}
	}
	for _, b := range s.pausableBy(controller) {
		p.Objects += b.pausedObjects()
	}
	return p
}

// String describes the pauses in one line; "" if there are none.
func (p Pauses) String() string {
	objects := ""
	switch {
	case p.Objects == 1:
		objects = "1 object is paused"
	case p.Objects > 1:
		objects = fmt.Sprintf("%d objects are paused", p.Objects)
	}
	if !p.Controller {
		return objects
	}
	text := "paused by --paused-controllers"
	if !p.Until.IsZero() {
		text += " until " + p.Until.UTC().Format(time.RFC3339)
	}
	return text + ": " + cmp.Or(objects, "no objects")
}

// pausable is what can be paused: the objects of one kind of a controller.
type pausable interface {
	pausedObjects() int
	// addPaused adds the objects that are counted by pausedObjects.
	addPaused(to sets.Set[pausedObject])
	// enqueue enqueues the objects of a namespace; empty means all.
	enqueue(namespace, trigger string)
}

// pausedObject identifies an object that a controller left alone.
type pausedObject struct {
	resource schema.GroupResource
	key      cache.ObjectName
}

// PausedObjects returns how many objects controllers left alone at their last sync. An object of several
// controllers counts once.
func (s *Shared) PausedObjects() int {
	all := sets.New[pausedObject]()
	for _, name := range s.pausableNames() {
		for _, p := range s.pausableBy(name) {
			p.addPaused(all)
		}
	}
	return all.Len()
}

// mayPause adds what of a controller can be paused.
func (s *Shared) mayPause(controller string, p pausable) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.pausable == nil {
		s.pausable = map[string][]pausable{}
	}
	s.pausable[controller] = append(s.pausable[controller], p)
}

// MayPause reports whether the named controller, which was built, has objects that can be paused.
func (s *Shared) MayPause(controller string) bool { return len(s.pausableBy(controller)) > 0 }

// pausableNames returns the names of the controllers with objects that can be paused.
func (s *Shared) pausableNames() []string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return slices.Sorted(maps.Keys(s.pausable))
}

// pausableBy returns what of a controller can be paused.
func (s *Shared) pausableBy(controller string) []pausable {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.pausable[controller]
}

// PauseChanged reconciles all objects of a controller again. Call it when the result of PausedController for it
// has changed. It is safe for concurrent use.
func (s *Shared) PauseChanged(controller string) {
	for _, p := range s.pausableBy(controller) {
		p.enqueue("", "pause changed")
	}
}

// enqueueAll enqueues the objects of a namespace for all controllers; empty means all.
func (s *Shared) enqueueAll(namespace, trigger string) {
	for _, name := range s.pausableNames() {
		for _, p := range s.pausableBy(name) {
			p.enqueue(namespace, trigger)
		}
	}
}
