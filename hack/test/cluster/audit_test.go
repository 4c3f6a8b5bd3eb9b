// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// TestAuditEventsWaitForAnswers covers a request whose effect may be visible before its
// answer.
func TestAuditEventsWaitForAnswers(t *testing.T) {
	c := &Cluster{AuditLog: filepath.Join(t.TempDir(), "audit.log")}
	now := metav1.NowMicro()
	add := func(id types.UID, stage auditv1.Stage, verb string) {
		t.Helper()
		line, err := json.Marshal(auditv1.Event{AuditID: id, Stage: stage, Verb: verb, RequestURI: "/" + string(id),
			RequestReceivedTimestamp: now})
		if err != nil {
			t.Fatal(err)
		}
		file, err := os.OpenFile(c.AuditLog, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if _, err := file.Write(append(line, '\n')); err != nil {
			t.Fatal(err)
		}
	}
	add("first", auditv1.StageRequestReceived, "patch")
	add("watch", auditv1.StageRequestReceived, "watch")
	add("watch", auditv1.StageResponseStarted, "watch")
	add("panic", auditv1.StageRequestReceived, "get")
	add("panic", auditv1.StagePanic, "get")
	add("other", auditv1.StageRequestReceived, "create")
	add("other", auditv1.StageResponseComplete, "create")
	if events, err := c.audit.answered(c.AuditLog, 0); err != nil || len(events) != 1 {
		t.Fatalf("%d events without a wait, %v, want the answered one", len(events), err)
	}

	watches, err := c.AuditWatches()
	if err != nil || len(watches) != 1 || watches[0].AuditID != "watch" {
		t.Errorf("watches: %v, %v, want the opened one", watches, err)
	}

	var calls []string
	done := make(chan error)
	go func() {
		events, err := c.AuditEvents()
		for _, event := range events {
			calls = append(calls, Call(event))
		}
		done <- err
	}()
	select {
	case err := <-done:
		t.Fatalf("did not wait for an answer: %v", err)
	case <-time.After(10 * answerPoll):
	}
	add("first", auditv1.StageResponseComplete, "patch")
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if len(calls) != 2 || calls[0] != "create /other" || calls[1] != "patch /first" {
		t.Errorf("calls = %q, want both answered calls, in this order", calls)
	}
}
