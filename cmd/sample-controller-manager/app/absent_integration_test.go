// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	apptesting "samplecontroller.io/sample-controller-manager/cmd/sample-controller-manager/app/testing"
	"samplecontroller.io/sample-controller-manager/hack/cluster"
	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
)

// logged is a test that records its log.
type logged struct {
	testing.TB
	mutex sync.Mutex
	lines []string
}

func (l *logged) Log(args ...any) {
	l.Helper()
	l.TB.Log(args...)
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.lines = append(l.lines, fmt.Sprint(args...))
}

// about returns the lines that contain all of the texts.
func (l *logged) about(texts ...string) []string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return slices.DeleteFunc(slices.Clone(l.lines), func(line string) bool {
		return slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line, text) })
	})
}

// wantLines checks the number of lines with the message about the kind.
func (l *logged) wantLines(k kind, message string, want int) {
	l.Helper()
	if got := l.about(message, k.CRD()); len(got) != want {
		l.Errorf("%q was logged %d times about %s, want %d: %q", message, len(got), k.Resource, want, got)
	}
}

// startLogged is like startDaemon, but does not wait, and records the log.
func startLogged(t *testing.T, flags ...string) (*apptesting.Server, *logged) {
	t.Helper()
	kubeconfig, err := shared.Cluster().ServiceAccountKubeconfig(t.Context(), namespace, namespace)
	if err != nil {
		t.Fatal(err)
	}
	log := &logged{TB: t}
	return apptesting.Start(log, append(daemonFlags(kubeconfig), flags...)...), log
}

// waitReadyz waits until the check of the informers returns this code with all of the
// texts.
func waitReadyz(t *testing.T, server *apptesting.Server, want int, texts ...string) {
	t.Helper()
	caller := "" // anonymous callers get the code, but not the reason
	if len(texts) > 0 {
		caller = token(t, newNamespace(t), clusterRole(t, everything))
	}
	clustertest.WaitUntil(t, fmt.Sprintf("informer-sync answers %d %q", want, texts), func(ctx context.Context) error {
		code, body, err := server.Get(ctx, "/readyz/informer-sync", caller)
		if err == nil && (code != want || slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(body, text) })) {
			err = fmt.Errorf("%d %s", code, body)
		}
		return err
	})
}

// install installs the CRD, and returns the time when it was established, to the second.
func (k kind) install(t *testing.T) time.Time {
	t.Helper()
	if err := shared.Cluster().Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	at := kubectl(t, "get", "crd", k.CRD(), "-o", `jsonpath={.status.conditions[?(@.type=="Established")].lastTransitionTime}`)
	established, err := time.Parse(time.RFC3339, at)
	if err != nil {
		t.Fatal(err)
	}
	return established
}

// uninstall deletes the CRD with its objects, and returns the time when it was gone.
func (k kind) uninstall(t *testing.T) {
	t.Helper()
	if err := shared.Cluster().DeleteCRD(context.WithoutCancel(t.Context()), k.CRD()); err != nil {
		t.Fatal(err)
	}
}

// serveNew creates an object as soon as the API server accepts it, waits until it is Ready,
// and logs how long after since that was.
func (k kind) serveNew(t *testing.T, ns, name string, since time.Time) {
	t.Helper()
	clustertest.WaitUntil(t, fmt.Sprintf("%s %s is accepted", k.Kind, name), func(ctx context.Context) error {
		_, err := k.TryStore(ctx, ns, k.New(name, 1))
		return err
	})
	created := time.Now()
	k.waitCondition(t, ns, name, "Reconciling", "Progressing")
	events := shared.Audit(t, cluster.ByUserAgent(k.Controller), func(event auditv1.Event) bool {
		return event.ObjectRef != nil && event.ObjectRef.Resource == "deployments" && event.Verb == "create" && event.ObjectRef.Name == name
	})
	if len(events) == 0 {
		t.Fatalf("no request of the Deployment of %s", name)
	}
	after := func(t time.Time) time.Duration { return t.Sub(since).Round(time.Millisecond) }
	t.Logf("%s: accepted %v after the API, first write %v, Deployment %v", name, after(created),
		after(events[0].RequestReceivedTimestamp.Time), after(events[len(events)-1].RequestReceivedTimestamp.Time))
}

func TestCRDComesAndGoes(t *testing.T) {
	ownCluster(t)
	ns := newNamespace(t)
	icecreams.uninstall(t)

	server, log := startLogged(t)
	waitReadyz(t, server, 200)
	foos.Create(t, ns, "first", 1)
	foos.waitCondition(t, ns, "first", "Reconciling", "Progressing")
	log.wantLines(icecreams, "Waiting for API", 1)

	icecreams.serveNew(t, ns, "installed", icecreams.install(t))
	log.wantLines(icecreams, "API is served", 1)

	icecreams.uninstall(t)
	clustertest.WaitUntil(t, "the missing API is logged", func(context.Context) error {
		if len(log.about("Waiting for API", icecreams.CRD())) < 2 {
			return fmt.Errorf("logged once")
		}
		return nil
	})
	foos.Create(t, ns, "second", 1)
	foos.waitCondition(t, ns, "second", "Reconciling", "Progressing")
	waitReadyz(t, server, 200)
	time.Sleep(5 * time.Second) // lists fail during this time
	icecreams.serveNew(t, ns, "slowly", icecreams.install(t))
	log.wantLines(icecreams, "API is served", 2)

	// At once: whether the daemon notices the absence depends on timing.
	for i := range 3 {
		icecreams.uninstall(t)
		icecreams.serveNew(t, ns, fmt.Sprintf("quickly-%d", i), icecreams.install(t))
	}
	for _, message := range []string{"Waiting for API", "API is served"} {
		if got := log.about(message, icecreams.CRD()); len(got) > 5 {
			t.Errorf("%q was logged %d times in 5 outages", message, len(got))
		}
	}
	if failed := log.about("Reading failed"); len(failed) > 0 {
		t.Errorf("logged: %q", failed)
	}
	waitReadyz(t, server, 200)
}

func TestMissingReadPermissionStopsOnlyItsController(t *testing.T) {
	ownCluster(t)
	ns := newNamespace(t)
	grant := revoke(t, icecreams.toRead()...)

	server, log := startLogged(t)
	waitReadyz(t, server, 500, "not permitted to watch "+icecreams.CRD())
	foos.Create(t, ns, "first", 1)
	foos.waitCondition(t, ns, "first", "Reconciling", "Progressing")
	log.wantLines(icecreams, "Not permitted to read", 1)
	granted := grant()
	waitReadyz(t, server, 200)
	icecreams.serveNew(t, ns, "granted", granted)

	// An open watch continues until something else ends it.
	grant = revoke(t, icecreams.toRead()...)
	tighten := icecreams.loosen(t, ns)
	defer tighten()
	clustertest.WaitUntil(t, "the missing permission is logged", func(context.Context) error {
		if len(log.about("Not permitted to read", icecreams.CRD())) < 2 {
			return fmt.Errorf("logged once")
		}
		return nil
	})
	waitReadyz(t, server, 200) // it has synced
	icecreams.Create(t, ns, "meanwhile", 1)
	granted = grant()
	icecreams.serveNew(t, ns, "again", granted)
	icecreams.waitCondition(t, ns, "meanwhile", "Reconciling", "Progressing")
	log.wantLines(icecreams, "API is served", 2)
}
