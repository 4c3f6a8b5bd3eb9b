// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kstatus reads an audit log. For each status that foo-controller or
// icecream-controller wrote, it computes the status that Flux would compute, and compares it
// with the conditions: Current if and only if Ready, Failed if and only if Stalled, otherwise
// InProgress. It exits with code 1 on a difference, or if Reconciling or Stalled is present
// but not True.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// event has the fields of an audit event that judge needs.
type event struct {
	Stage, UserAgent string
	ObjectRef        struct{ Resource, Subresource string }
	ResponseStatus   struct{ Code int }
	ResponseObject   json.RawMessage
}

func main() {
	file, err := os.Open(os.Args[1])
	if err != nil {
		fatal(err)
	}
	judged, wrong := 0, 0
	for reader := bufio.NewReader(file); ; {
		line, err := reader.ReadBytes('\n')
		if err != nil {
			break // the last line may be incomplete
		}
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			fatal(err)
		}
		keeper := strings.HasSuffix(e.UserAgent, "/foo-controller") || strings.HasSuffix(e.UserAgent, "/icecream-controller")
		if !keeper || e.ObjectRef.Subresource != "status" || e.ResponseStatus.Code != 200 || e.Stage != "ResponseComplete" {
			continue
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(e.ResponseObject); err != nil {
			fatal(err)
		}
		judged++
		if problem := judge(object); problem != "" {
			wrong++
			fmt.Printf("%s %s/%s: %s: %s\n", object.GetKind(), object.GetNamespace(), object.GetName(), problem, e.ResponseObject)
		}
	}
	fmt.Printf("kstatus agrees with %d of %d statuses\n", judged-wrong, judged)
	if wrong > 0 {
		os.Exit(1)
	}
}

// judge returns the problem of a status, or "" if there is none.
func judge(object *unstructured.Unstructured) string {
	want, ready := status.InProgressStatus, false
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, c := range conditions {
		condition := c.(map[string]any)
		if condition["reason"] == "Invented" {
			return "" // a test also writes this status
		}
		isTrue := condition["status"] == "True"
		switch condition["type"] {
		case "Ready":
			if ready = true; isTrue {
				want = status.CurrentStatus
			}
		case "Reconciling", "Stalled":
			if !isTrue {
				return fmt.Sprint(condition["type"], " is present but not True")
			}
			if condition["type"] == "Stalled" {
				want = status.FailedStatus
			}
		}
	}
	if !ready {
		return "no condition Ready"
	}
	if object.GetDeletionTimestamp() != nil {
		want = status.TerminatingStatus
	}
	result, err := status.Compute(object)
	if err != nil {
		return err.Error()
	}
	if result.Status != want {
		return fmt.Sprintf("kstatus says %s (%s), the conditions say %s", result.Status, result.Message, want)
	}
	return ""
}

func fatal(err error) {
	fmt.Fprintln(os.Stderr, "kstatus:", err)
	os.Exit(1)
}
