// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestFreshNamesStaleCaches(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.secretServer.err = notFound // so it is ignored
		b.configMaps()
		b.secrets()
		expect := func(when string, fresh bool) {
			b.Helper()
			switch err := b.factory.Fresh(); {
			case fresh && err != nil:
				b.Errorf("%s: %v", when, err)
			case !fresh && (err == nil || !strings.HasSuffix(err.Error(), ": configmaps")):
				b.Errorf("%s: %v, want it to name configmaps alone", when, err)
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
		time.Sleep(freshSilence)
		expect("after a short silence", true)
		time.Sleep(time.Second)
		expect("after a long silence", false)
		b.configMapServer.create("b", "1")
		synctest.Wait()
		expect("when it says something again", true)
		b.configMapServer.answer(broken)
		b.configMapServer.close()
		time.Sleep(5 * time.Second)
		expect("5 seconds after a served resource broke", false)
		if got := b.factory.Unfresh(); !slices.Equal(got, []string{"configmaps"}) {
			b.Errorf("Unfresh: %q, want configmaps alone", got)
		}
	})
}
