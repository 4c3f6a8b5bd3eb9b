// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestPackedUIDRoundTrip(t *testing.T) {
	packed := map[packedUID]types.UID{}
	for uid, size := range map[types.UID]int{
		"":                                       0,
		"26e64afa-ac87-447c-804d-8f459bf0cc12":   16,
		"00e64afa-ac87-447c-804d-8f459bf0cc12":   37, // its bytes would begin with the prefix of verbatim UIDs
		"26E64AFA-AC87-447C-804D-8F459BF0CC12":   37, // would be returned in lower case
		"{26e64afa-ac87-447c-804d-8f459bf0cc12}": 39,
		"26e64afaac87447c804d8f459bf0cc12":       33,
		"uid-of-15-chars":                        16,
		"uid-of-16-charss":                       17,
		"x":                                      2,
	} {
		p := pack(uid)
		if got := p.unpack(); got != uid {
			t.Errorf("%q is unpacked as %q", uid, got)
		}
		if len(p) != size {
			t.Errorf("%q takes %d bytes, want %d", uid, len(p), size)
		}
		if other, taken := packed[p]; taken {
			t.Errorf("%q and %q are packed into the same value", uid, other)
		}
		packed[p] = uid
	}
}
