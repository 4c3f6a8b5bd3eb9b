// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"io"
	"strings"
	"testing"
)

// TestCauseOfFailedForwardingIsShown: what follows from the cause is logged before or after it.
func TestCauseOfFailedForwardingIsShown(t *testing.T) {
	cause := errors.New("connection refused")
	for name, logged := range map[string][]error{
		"cause first": {cause, io.EOF},
		"cause last":  {io.EOF, cause},
	} {
		f := &failure{}
		for _, err := range logged {
			f.Error(err, "forwarding")
		}
		if err := f.explain(io.ErrUnexpectedEOF); !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), "forwarding: connection refused") {
			t.Errorf("%s: %v", name, err)
		}
	}
	f := &failure{}
	if err := f.explain(io.EOF); err != io.EOF {
		t.Errorf("without a known cause: %v", err)
	}
	f.Error(cause, "forwarding")
	if err := f.explain(nil); err != nil {
		t.Errorf("without a failure: %v", err)
	}
}
