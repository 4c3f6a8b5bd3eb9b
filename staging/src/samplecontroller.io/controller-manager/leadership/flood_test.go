// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"context"
	"strings"
	"testing"
	"time"
)

func TestAnAPIServerThatIsAwayDoesNotFloodTheLog(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiServer) {
		a := newCandidate(t, server, "a")
		a.client.beforeEach(func(context.Context, string) error { return errUnreachable })
		a.run(never(t))
		pass(time.Minute)
		if tries := a.client.count("get"); tries < 15 {
			t.Fatalf("the Lease was tried to be read %d times in a minute, too few to flood anything", tries)
		}
		log := a.log.String()
		for _, message := range []string{"Lease cannot be read", "Watch of the lease ended, opening another"} {
			if got := strings.Count(log, message); got < 2 || got > 7 {
				t.Errorf("%q is logged %d times in a minute, want the first and one each 10 s:\n%s", message, got, log)
			}
		}
		if !strings.Contains(log, "repeated=") {
			t.Errorf("no line says how many were held back:\n%s", log)
		}
		a.end(t)
	})
}
