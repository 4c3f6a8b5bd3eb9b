// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package caches

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/util/workqueue"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// dropped are the resources whose watches are ended.
var dropped = []string{"foos", "deployments"}

// TestDroppedWatchesLoseNothing ends the watches that Foos depend on while Foos are created
// and scaled, Deployments drift, and other objects change all the time. Every needed write
// must be made exactly once.
func TestDroppedWatchesLoseNothing(t *testing.T) {
	for _, how := range []struct {
		name   string
		drop   func(t *testing.T, ns string)
		goesOn bool // the watch continues where it ended; else the daemon must list again
	}{
		{"API server with a slow reader", dropByLoad, true},
		{"API server with no watch history", dropByRestart, false},
	} {
		t.Run(how.name, func(t *testing.T) {
			if how.goesOn {
				clustertest.Long(t)
			}
			ns := framework.NewNamespace(t)
			proxy := startUnread(t)
			framework.StartDaemon(t, "--kubeconfig="+proxy.Kubeconfig(t, framework.DaemonName, framework.DaemonName),
				"--controllers="+framework.Foos.Controller,
				"--leader-elect=false") // so that only watches can enqueue
			for i := range changesOfDrop {
				for _, when := range []string{"early", "late"} {
					framework.Foos.Create(t, ns, fmt.Sprintf("scaled-%s-%d", when, i), 1)
					framework.Foos.Create(t, ns, fmt.Sprintf("drifted-%s-%d", when, i), 1)
				}
				framework.Foos.Create(t, ns, bulk(i), 1)
			}
			waitAllWritten(t, ns, 5*changesOfDrop)
			keepTouching(t, framework.Foos, ns, []string{bulk(0), bulk(1), bulk(2), bulk(3), bulk(4)})

			began := time.Now()
			read := proxy.leaveUnread()
			changeBy(t, ns, "early")
			how.drop(t, ns)
			changeBy(t, ns, "late")
			writes := writesFor(t, ns, began)
			// On a slow machine, the daemon may find out that the watches are silent.
			unnoticed := time.Since(began) < silenceNoticed
			if unnoticed && len(writes) > 0 {
				t.Fatalf("writes without watch events: %v", writes)
			}
			read()
			waitAllWritten(t, ns, 7*changesOfDrop)
			lasted := time.Since(began)

			time.Sleep(2 * time.Second) // no more writes may follow
			if diff := cmp.Diff(writesOfDrop(), writesFor(t, ns, began)); diff != "" {
				t.Errorf("unexpected writes (-want +got):\n%s", diff)
			}
			if !unnoticed {
				t.Logf("the watches were silent for too long: they are listed again")
				return
			}
			wantWatched(t, began, how.goesOn, lasted < eventsKept)
		})
	}
}

// changesOfDrop is the number of objects per change.
const changesOfDrop = 10

// bulk is the name of a Foo and of its Deployment that get irrelevant changes.
func bulk(i int) string { return fmt.Sprintf("bulk-%d", i) }

// changeBy makes some changes of each kind.
func changeBy(t *testing.T, ns, when string) {
	t.Helper()
	for i := range changesOfDrop {
		framework.Foos.Create(t, ns, fmt.Sprintf("made-%s-%d", when, i), 1)
		if err := framework.Foos.TryPatch(t.Context(), ns, fmt.Sprintf("scaled-%s-%d", when, i), `{"spec":{"replicas":2}}`); err != nil {
			t.Fatal(err)
		}
		drifted, drift := fmt.Sprintf("drifted-%s-%d", when, i), []byte(`{"spec":{"replicas":5}}`)
		if _, err := framework.Kube().AppsV1().Deployments(ns).Patch(t.Context(), drifted, types.MergePatchType, drift,
			metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// writesOfDrop returns the writes that all these changes need.
func writesOfDrop() map[string]int {
	want := map[string]int{}
	for i := range changesOfDrop {
		for _, when := range []string{"early", "late"} {
			want[fmt.Sprintf("create deployments made-%s-%d: 201", when, i)] = 1
			want[fmt.Sprintf("patch foos/status made-%s-%d: 200", when, i)] = 1
			want[fmt.Sprintf("patch deployments scaled-%s-%d: 200", when, i)] = 1
			want[fmt.Sprintf("patch foos/status scaled-%s-%d: 200", when, i)] = 1
			want[fmt.Sprintf("patch deployments drifted-%s-%d: 200", when, i)] = 1
		}
	}
	return want
}

// writesFor returns the controller's writes since then, with their results. Conflicts are
// left out: on a busy machine a watch may be more than 30 seconds behind. The controller
// does not wait longer, and its next write conflicts.
func writesFor(t *testing.T, ns string, since time.Time) map[string]int {
	t.Helper()
	events := framework.Audit(t, cluster.ByUserAgent(framework.Foos.Controller), cluster.InNamespace(ns),
		framework.IsWrite, func(event auditv1.Event) bool {
			return event.RequestReceivedTimestamp.After(since)
		})
	writes := map[string]int{}
	for _, event := range events {
		if event.ResponseStatus.Code == http.StatusConflict {
			continue
		}
		writes[fmt.Sprintf("%s %s: %d", cluster.Call(event), event.ObjectRef.Name, event.ResponseStatus.Code)]++
	}
	return writes
}

// waitAllWritten waits until there are this many Foos, each with its Deployment and an
// up-to-date status. It waits long: TCP may pause a connection that was not read for a
// minute for two more minutes.
func waitAllWritten(t *testing.T, ns string, count int) {
	t.Helper()
	clustertest.WaitWithin(t, 10*time.Minute, fmt.Sprintf("%d Foos are up to date", count), func(ctx context.Context) error {
		all, err := framework.Sample().SamplecontrollerV1alpha1().Foos(ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		deployments, err := framework.Kube().AppsV1().Deployments(ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if len(all.Items) != count || len(deployments.Items) != count {
			return fmt.Errorf("there are %d Foos and %d Deployments", len(all.Items), len(deployments.Items))
		}
		replicas := map[string]int32{}
		for _, d := range deployments.Items {
			replicas[d.Name] = *d.Spec.Replicas
		}
		for _, foo := range all.Items {
			if *foo.Spec.Replicas != replicas[foo.Name] || foo.Status.ObservedGeneration != foo.Generation ||
				!meta.IsStatusConditionTrue(foo.Status.Conditions, "Reconciling") {
				return fmt.Errorf("%s asks for %d replicas in generation %d, its Deployment has %d, its status is %+v", foo.Name, *foo.Spec.Replicas, foo.Generation, replicas[foo.Name], foo.Status)
			}
		}
		return nil
	})
}

// silenceNoticed is slightly less than the time after which the daemon replaces a silent watch.
const silenceNoticed = 3*time.Minute - 10*time.Second

// eventsKept is slightly less than the time for which an API server keeps the events of a
// watch: DefaultEventFreshDuration in k8s.io/apiserver/pkg/storage/cacher.
const eventsKept = time.Minute

// wantWatched checks that the ended watches were resumed, and whether that needed a new
// list. A resumed watch may later start again with a list, but not if it was read in time.
func wantWatched(t *testing.T, since time.Time, goesOn, inTime bool) {
	t.Helper()
	own := func(event auditv1.Event) bool {
		return strings.HasPrefix(event.UserAgent, "sample-controller-manager/") && event.RequestReceivedTimestamp.After(since)
	}
	watches, err := framework.Cluster().AuditWatches(own)
	if err != nil {
		t.Fatal(err)
	}
	// API servers without streaming lists get a list request.
	lists := framework.Audit(t, own, func(event auditv1.Event) bool { return event.Verb == "list" })
	all := 0
	for _, resource := range dropped {
		resumed, listed := 0, 0
		for _, event := range slices.Concat(watches, lists) {
			if event.ObjectRef.Resource != resource {
				continue
			}
			uri, err := url.ParseRequestURI(event.RequestURI)
			if err != nil {
				t.Fatal(err)
			}
			if uri.Query().Get("limit") == "1" {
				continue // asks how far the API server is, before a watch is resumed
			}
			if event.Verb == "list" || uri.Query().Get("sendInitialEvents") == "true" {
				listed++
			} else {
				resumed++
			}
		}
		if goesOn && (resumed == 0 || listed > 0 && inTime) {
			t.Errorf("watch of %s: resumed %d times, listed again %d times; read in time: %v", resource, resumed, listed, inTime)
		}
		all += listed
		t.Logf("watch of %s: resumed %d times, listed again %d times; read in time: %v", resource, resumed, listed, inTime)
	}
	// With Kubernetes 1.33, a watch of Deployments is resumed from etcd.
	if !goesOn && all == 0 {
		t.Error("nothing was listed again, although the API server has no watch history")
	}
}

// dropByLoad changes large objects as fast as it can until the API server ends the watches
// that it cannot send events to.
func dropByLoad(t *testing.T, ns string) {
	t.Helper()
	before := closedWatches(t)
	changes := 0
	change := func(ctx context.Context, ballast string) error {
		patch := fmt.Sprintf(`{"metadata":{"annotations":{"ballast":%s}}}`, ballast)
		errs := make([]error, changesOfDrop)
		workqueue.ParallelizeUntil(ctx, 16, changesOfDrop, func(i int) {
			_, err := framework.Kube().AppsV1().Deployments(ns).Patch(ctx, bulk(i), types.MergePatchType, []byte(patch),
				metav1.PatchOptions{})
			errs[i] = errors.Join(err, framework.Foos.TryPatch(ctx, ns, bulk(i), patch))
		})
		return errors.Join(errs...)
	}
	clustertest.WaitUntil(t, "the API server ends watches that are not read", func(ctx context.Context) error {
		// Random, because Kubernetes 1.37 and later compress watches.
		if err := change(ctx, strconv.Quote(rand.String(200_000))); err != nil {
			return err
		}
		changes += changesOfDrop
		now := closedWatches(t)
		for _, resource := range dropped {
			if now[resource] == before[resource] {
				return fmt.Errorf("not the watch of %s, after %d changes", resource, changes)
			}
		}
		return nil
	})
	// The Foos change all the time: without the ballast, these events are small.
	if err := change(t.Context(), "null"); err != nil {
		t.Fatal(err)
	}
	t.Logf("watches ended after %d changes of Foos, and as many of Deployments, of 200 kB", changes)
}

// dropByRestart restarts the API server, which then has no watch events from before.
func dropByRestart(t *testing.T, _ string) {
	t.Helper()
	if err := framework.Cluster().RestartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// closedWatch matches a line of the API server's metrics.
var closedWatch = regexp.MustCompile(`(?m)^apiserver_terminated_watchers_total\{group="[^"]*",resource="([a-z]+)[^"]*"\} (\S+)$`)

// closedWatches returns how many watches of each resource the API server has ended because
// they were read too slowly, from its metrics.
func closedWatches(t *testing.T) map[string]string {
	t.Helper()
	metrics, err := framework.Kube().Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	closed := map[string]string{}
	for _, match := range closedWatch.FindAllStringSubmatch(string(metrics), -1) {
		closed[match[1]] = match[2]
	}
	return closed
}

// unread is a proxy to the API server that can stop reading watches.
type unread struct {
	*clustertest.Proxy
	reading atomic.Pointer[chan struct{}] // closed while watches are read
}

// leaveUnread stops reading watches until read is called.
func (u *unread) leaveUnread() (read func()) {
	reading := make(chan struct{})
	u.reading.Store(&reading)
	return func() { close(reading) }
}

func startUnread(t *testing.T) *unread {
	t.Helper()
	u := &unread{}
	u.leaveUnread()()
	u.Proxy = clustertest.StartProxy(t, framework.Cluster(), func(next http.Handler) http.Handler { return next },
		func(response *http.Response) error {
			r := response.Request
			resource := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
			if r.URL.Query().Get("watch") == "true" && slices.Contains(dropped, resource) {
				response.Body = &unreadBody{response.Body, r.Context(), u}
			}
			return nil
		})
	return u
}

// unreadBody is the body of a watch response. Unread data fills the buffers of the network,
// then those of the API server.
type unreadBody struct {
	io.ReadCloser
	ctx   context.Context // of the request: the client may close it
	proxy *unread
}

func (b *unreadBody) Read(buffer []byte) (int, error) {
	n, err := b.ReadCloser.Read(buffer) // this read may have started before
	select {
	case <-*b.proxy.reading.Load():
		return n, err
	case <-b.ctx.Done():
		return 0, b.ctx.Err()
	}
}
