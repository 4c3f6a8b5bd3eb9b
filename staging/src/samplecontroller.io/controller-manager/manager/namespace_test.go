// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	fakeclient "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
)

func TestMissingNamespaceIsLogged(t *testing.T) {
	missing := apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "team")
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "", errors.New("no permission"))
	const absent, present = "Namespace to serve does not exist: create it, or correct --namespace", "Namespace to serve exists now"
	for name, test := range map[string]struct {
		answers []error // one each minute
		want    []string
	}{
		"exists":        {[]error{nil}, nil},
		"created later": {[]error{missing, missing, nil}, []string{absent, absent, present}},
		"not permitted": {[]error{forbidden}, nil},
		"unreachable":   {[]error{errors.New("connection refused"), missing, nil}, []string{absent, present}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
				ctx, cancel := context.WithTimeout(klog.NewContext(t.Context(), logger), time.Hour)
				defer cancel()
				client, answered := fakeclient.NewClientset(), 0
				client.PrependReactor("create", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
					answered++
					return true, nil, test.answers[answered-1]
				})
				logMissingNamespace(ctx, client, "team")
				if ctx.Err() != nil || answered != len(test.answers) {
					t.Errorf("%d requests, want %d; %v", answered, len(test.answers), ctx.Err())
				}
				var got []string
				for _, entry := range logger.GetSink().(ktesting.Underlier).GetBuffer().Data() {
					got = append(got, entry.Message)
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("the log (-want +got):\n%s", diff)
				}
			})
		})
	}
}
