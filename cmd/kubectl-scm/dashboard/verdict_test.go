// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"samplecontroller.io/controller-manager/debug"
	"samplecontroller.io/controller-manager/reconcile"
)

func TestVerdict(t *testing.T) {
	refused := &url.Error{Op: "Get", URL: "https://127.0.0.1:6443", Err: errDown}
	forbidden := errors.New("listing foos: 403: may not list foos in all namespaces")
	for name, test := range map[string]struct {
		change            func(*fake)
		where, text, next string // empty if all is well
	}{
		"all is well": {},
		"API server down": {change: func(f *fake) {
			f.failures["lead"] = refused
		}, where: inCluster, text: "the API server does not answer", next: "kubectl get --raw /readyz"},
		"credentials": {change: func(f *fake) {
			f.failures["lead"] = fmt.Errorf("a: %w", apierrors.NewUnauthorized("b"))
		}, where: inPermissions, text: "does not accept your credentials", next: "--context"},
		"no right for the Lease": {change: func(f *fake) {
			f.failures["lead"] = errors.New("403: may not get leases in ns; you need the Role r")
		}, where: inPermissions, text: "you may not read the Lease", next: "you need the Role r"},
		"no Lease": {change: func(f *fake) {
			f.failures["lead"] = errors.New("nobody leads: Lease a/b not found; check --daemon-namespace")
		}, where: inDaemon, text: "nobody leads: Lease a/b not found", next: "check --daemon-namespace"},
		"no holder": {change: func(f *fake) {
			f.lead.Holder = ""
		}, where: inDaemon, text: "nobody leads", next: "replicas"},
		"expired": {change: func(f *fake) {
			f.lead.Duration = 0
		}, where: inDaemon, text: "pod-a does not renew the Lease any more", next: "replicas"},
		"leader does not answer": {change: func(f *fake) {
			f.failures["report"] = errDown
		}, where: inDaemon, text: "does not answer: dial tcp", next: "kubectl scm logs"},
		"no right for the leader": {change: func(f *fake) {
			f.failures["dial"] = errors.New("403: may not create pods/portforward in ns; ask")
		}, where: inPermissions, text: "you may not ask the leader", next: "ask"},
		"no right for objects": {change: func(f *fake) {
			f.failures["watch"] = forbidden
		}, where: inPermissions, text: "you may not read foos", next: "ask for the permission"},
		"configuration": {change: func(f *fake) {
			f.report.ConfigRefused = "flags.v: has no value"
		}, where: inDaemon, text: "the configuration file is refused: flags.v: has no value", next: "correct the file; restart the daemon only if the reason says so"},
		"Degraded": {change: func(f *fake) {
			f.report.Controllers[0].State = "Degraded"
		}, where: inDaemon, text: "foo-controller is Degraded", next: "see its page"},
		"unhealthy": {change: func(f *fake) {
			f.report.Controllers[0].Unhealthy = "why"
		}, where: inDaemon, text: "foo-controller is unhealthy: why", next: "see its page"},
		"not served": {change: func(f *fake) {
			f.report.Resources = []debug.Resource{{Name: "icecreams.controller.nicoleh.io", Reason: "no CRD"}}
		}, where: inCluster, text: "cannot read icecreams.controller.nicoleh.io: no CRD", next: "install"},
		"unready replica": {change: func(f *fake) {
			f.pods[0].Ready = false
		}, where: inDaemon, text: "1 of 1 replicas are not ready", next: "replicas"},
		"Stalled object": {change: func(f *fake) {
			f.objects = append(f.objects, stalled("young", time.Now()), stalled("old", time.Now().Add(-time.Hour)))
		}, where: inObjects, text: "2 objects are Stalled; the longest: Foo shop/old is Stalled: WriteDenied", next: "do what the message says"},
		"Stalled object, daemon down": {change: func(f *fake) {
			f.objects, f.lead.Holder = append(f.objects, stalled("old", time.Now())), ""
		}, where: inDaemon, text: "nobody leads", next: "replicas"},
		"failing object": {change: func(f *fake) {
			f.report.Controllers[0].Queues[0].Delayed.First = []reconcile.Entry{{Key: "shop/a", Retries: 4, Error: "timeout"}}
		}, where: inObjects, text: "foo-controller fails for shop/a: timeout", next: "wait"},
		"conflict": {change: func(f *fake) {
			f.report.Controllers[0].Queues[0].Delayed.First = []reconcile.Entry{{Key: "shop/a", Retries: 3, Error: "conflict"}}
		}},
		"Reconciling object": {change: func(f *fake) { f.objects[0].Condition = "Reconciling" }},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			if test.change != nil {
				test.change(f)
			}
			s := read(t, f)
			v := newVerdict(s.d.snapshot())
			if word := map[bool]string{true: "good", false: "bad"}[test.where == ""]; v.Word() != word {
				t.Fatalf("the verdict is %s, want %s: %+v", v.Word(), word, v)
			}
			if test.where == "" {
				return
			}
			p := v.Problems[0]
			if p.Where != test.where || !strings.Contains(p.Text, test.text) || !strings.Contains(p.Next, test.next) {
				t.Errorf("the first problem is %+v", p)
			}
			if body := pageOf(t, s, ""); !strings.Contains(body, "</span>"+test.where+":</strong>") {
				t.Errorf("the page does not say %s first:\n%s", test.where, body)
			}
		})
	}
	v := newVerdict(New(newFake(), Options{}).snapshot())
	if v.Word() != "unknown" {
		t.Errorf("before anything was read, the verdict is %s: %+v", v.Word(), v)
	}
}
