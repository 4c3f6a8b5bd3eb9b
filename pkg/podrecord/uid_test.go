// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package podrecord

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestAUIDComesOutAsItWentIn(t *testing.T) {
	packed := map[packedUID]types.UID{}
	for uid, size := range map[types.UID]int{
		"":                                       0,
		"26e64afa-ac87-447c-804d-8f459bf0cc12":   16,
		"00e64afa-ac87-447c-804d-8f459bf0cc12":   37, // would begin as what is kept as it is
		"26E64AFA-AC87-447C-804D-8F459BF0CC12":   37, // would come out in lower case
		"{26e64afa-ac87-447c-804d-8f459bf0cc12}": 39,
		"26e64afaac87447c804d8f459bf0cc12":       33,
		"uid-of-15-chars":                        16,
		"uid-of-16-charss":                       17,
		"x":                                      2,
	} {
		p := pack(uid)
		if got := p.unpack(); got != uid {
			t.Errorf("%q comes out as %q", uid, got)
		}
		if len(p) != size {
			t.Errorf("%q takes %d bytes, want %d", uid, len(p), size)
		}
		if other, taken := packed[p]; taken {
			t.Errorf("%q and %q become the same", uid, other)
		}
		packed[p] = uid
	}
}
