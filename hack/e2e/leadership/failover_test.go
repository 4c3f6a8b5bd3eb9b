// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"samplecontroller.io/sample-controller-manager/hack/cluster"
	"samplecontroller.io/sample-controller-manager/hack/e2e/framework"
)

func TestStandbyTakesOver(t *testing.T) {
	framework.FreeLease(t)
	first := framework.StartReplica(t).Ready()
	holder := framework.WaitLeader(t, "")
	second := framework.StartReplica(t).Ready() // a warm standby is ready
	namespaces := map[framework.Kind]string{}
	for _, k := range framework.Kinds {
		namespaces[k] = framework.NewNamespace(t)
		k.Create(t, namespaces[k], "a", 1)
		k.WaitReady(t, namespaces[k], "a", 1)
	}

	// Change the objects all the while, so that there is work to drain.
	ctx, stopTouching := context.WithCancel(t.Context())
	var touching sync.WaitGroup
	for k, ns := range namespaces {
		touching.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				_ = k.Touch(ctx, ns, "a", fmt.Sprint(i)) // only the load matters
			}
		})
	}
	first.Stop()
	framework.WaitLeader(t, holder)
	stopTouching()
	touching.Wait()
	for k, ns := range namespaces {
		k.Create(t, ns, "b", 1)
		k.WaitReady(t, ns, "b", 1)
		k.WaitPodsReported(t, ns, "b", 1)
	}
	second.Stop()
	for k, ns := range namespaces {
		wantOneWriterAtATime(t, k.Controller, ns)
		wantOneWriterAtATime(t, framework.Aggregator, ns)
	}
	framework.WantNoDenials(t)
}

// wantOneWriterAtATime checks that no replica of a controller wrote in a namespace
// after another had started to. Each replica has a token of its own.
func wantOneWriterAtATime(t *testing.T, controller, ns string) {
	t.Helper()
	events, err := framework.Cluster().AuditEvents(cluster.ByUserAgent(controller), cluster.InNamespace(ns))
	if err != nil {
		t.Fatal(err)
	}
	var writers []string
	for _, event := range events {
		writer := strings.Join(event.User.Extra["authentication.kubernetes.io/credential-id"], "")
		if writer == "" {
			t.Fatalf("the audit log does not tell the token of %s", cluster.Call(event))
		}
		if len(writers) == 0 || writers[len(writers)-1] != writer {
			writers = append(writers, writer)
		}
	}
	if len(writers) != 2 {
		t.Errorf("%s: the writers were, one after the other, %q: want two", controller, writers)
	}
}
