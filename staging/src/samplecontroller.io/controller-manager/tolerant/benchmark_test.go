// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package tolerant

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
)

// BenchmarkDecode compares the decoder of a generated client with a tolerant one.
func BenchmarkDecode(b *testing.B) {
	const n = 500
	good := make([]string, n)
	for i := range good {
		good[i] = thing(fmt.Sprintf("thing-%d", i), fmt.Sprint(i), goodSpec)
	}
	bad := append([]string(nil), good...)
	bad[n/2] = thing("bad", "1", badSpec)

	for _, data := range []struct {
		name, json string
		decodable  bool
	}{
		{"object", good[0], true},
		{"list", list(good...), true},
		{"bad-object", bad[n/2], false},
		{"list-with-one-bad", list(bad...), false},
	} {
		for name, decoder := range map[string]runtime.Decoder{"strict": strictDecoder(), "tolerant": tolerantDecoder()} {
			if name == "strict" && !data.decodable {
				continue
			}
			b.Run(data.name+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(len(data.json)))
				for b.Loop() {
					if _, err := runtime.Decode(decoder, []byte(data.json)); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
