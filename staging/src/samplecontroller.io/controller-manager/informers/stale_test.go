// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestStaleNamesCachesThatDoNotFollow(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.secretServer.err = notFound // so it is ignored
		b.configMaps()
		b.secrets()
		expect := func(when string, fresh bool) {
			b.Helper()
			if got := b.factory.Stale(); fresh != (len(got) == 0) || !fresh && !slices.Equal(got, []string{"configmaps"}) {
				b.Errorf("%s: %q, want configmaps alone unless it is fresh: %t", when, got, fresh)
			}
		}
		b.configMapServer.answer(forbidden)
		b.factory.Start(b.ctx)
		synctest.Wait()
		expect("while it must not be read", false)
		b.configMapServer.answer(nil)
		time.Sleep(time.Minute)
		expect("once it is served", true)
		b.configMapServer.create("a", "1")
		time.Sleep(maxSilence - time.Second)
		expect("after a short silence", true)
		time.Sleep(2 * time.Second)
		expect("after a long silence", false)
		b.configMapServer.create("b", "1")
		synctest.Wait()
		expect("when it says something again", true)
		b.configMapServer.answer(broken)
		b.configMapServer.close()
		time.Sleep(5 * time.Second)
		expect("5 seconds after a served resource broke", false)
	})
}
