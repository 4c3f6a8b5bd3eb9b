// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"strings"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/types"
)

// packedUID is a UID in 16 bytes instead of 36. Any UID can be packed, but only the form
// that the API server uses becomes shorter.
type packedUID string

// verbatim is the prefix of a UID that is stored unchanged. A UID whose 16 bytes begin with
// it is stored unchanged, too.
const verbatim = "\x00"

func pack(uid types.UID) packedUID {
	if parsed, err := uuid.Parse(string(uid)); err == nil && parsed.String() == string(uid) && parsed[0] != verbatim[0] {
		return packedUID(parsed[:])
	}
	if uid == "" {
		return ""
	}
	return packedUID(verbatim + string(uid))
}

func (p packedUID) unpack() types.UID {
	if p == "" {
		return ""
	}
	if uid, ok := strings.CutPrefix(string(p), verbatim); ok {
		return types.UID(uid)
	}
	return types.UID(uuid.UUID([]byte(p)).String())
}
