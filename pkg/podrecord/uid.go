// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package podrecord

import (
	"strings"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/types"
)

// packedUID is a UID in the 16 bytes that it says in 36. Any UID can be packed, but
// only those that the API server gives become shorter.
type packedUID string

// verbatim is what a UID that is kept as it is begins with. One whose 16 bytes would
// begin so is kept as it is.
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
