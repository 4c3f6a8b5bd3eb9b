// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"net/http"
	"strings"
	"sync"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// levels records the priority levels of requests, which the API server reports to everybody.
// It is safe for concurrent use.
type levels struct {
	mutex         sync.Mutex
	lease, others string // UIDs
}

// wrap records the level of each request for a resource.
func (l *levels) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		l.mutex.Lock()
		defer l.mutex.Unlock()
		level := response.Header.Get(flowcontrolv1.ResponseHeaderMatchedPriorityLevelConfigurationUID)
		switch {
		case strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews"):
			l.others = level
		case strings.Contains(r.URL.Path, "/leases"):
			l.lease = level
		}
		return response, nil
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// comparePriorityLevels checks that other requests cannot delay those for the Lease. The
// reviews of permissions stand for other requests.
func (c *checker) comparePriorityLevels(ctx context.Context) {
	const check = "priority and fairness"
	lease, others := c.levels.lease, c.levels.others
	switch {
	case lease == "" || others == "":
		c.report.add(check, SKIP, "the API server does not report priority levels")
	case lease != others:
		c.report.add(check, OK, "requests for the Lease have another priority level than others")
	case c.exempt(ctx, lease):
		c.report.add(check, OK, "all requests with these credentials are exempt")
	default:
		c.report.todo(c.Install.PriorityLevel)
		c.report.add(check, WARN, "requests for the Lease share the priority level of other requests, which can delay renewals")
	}
}

// exempt returns whether a priority level is known to have no limits.
func (c *checker) exempt(ctx context.Context, uid string) bool {
	// Usually this is not granted, and a denied request would be noted in the audit log.
	if review(ctx, c.client, Permission{Verb: "list", Group: flowcontrolv1.GroupName, Resource: "prioritylevelconfigurations"}) != "" {
		return false
	}
	list, err := c.client.FlowcontrolV1().PriorityLevelConfigurations().List(ctx, metav1.ListOptions{})
	if err != nil {
		return false
	}
	for _, level := range list.Items {
		if string(level.UID) == uid {
			return level.Spec.Type == flowcontrolv1.PriorityLevelEnablementExempt
		}
	}
	return false
}
