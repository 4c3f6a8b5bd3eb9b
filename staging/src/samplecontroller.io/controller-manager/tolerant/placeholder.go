// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package tolerant

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// AnnotationDecodeError is the annotation that marks a placeholder. Its value is why the
// object could not be decoded. It exists in memory only: the key contains a space, so no API
// server accepts it. No user can mark an object as undecodable, and no controller can write
// back a placeholder by mistake.
const AnnotationDecodeError = "tolerant.samplecontroller.io/decode error"

// maxMessage is the maximum length of the annotation in bytes, because an error may quote
// stored data.
const maxMessage = 512

// DecodeError returns why an object could not be decoded. It returns nil if the object is
// not a placeholder.
func DecodeError(obj metav1.Object) error {
	if message, ok := obj.GetAnnotations()[AnnotationDecodeError]; ok {
		return errors.New(message)
	}
	return nil
}

// placeholder returns the JSON of the object's placeholder, or nil if the document is not an
// object. cause is the error of decoding the object at the given path.
func (d document) placeholder(cause error, path string) []byte {
	var metadata metav1.ObjectMeta
	_ = utiljson.Unmarshal(d.Metadata, &metadata) // without the fields of another type
	if metadata.Name == "" || metadata.ResourceVersion == "" {
		return nil
	}
	metav1.SetMetaDataAnnotation(&metadata, AnnotationDecodeError, describe(cause, path))
	return marshal(document{APIVersion: d.APIVersion, Kind: d.Kind, Metadata: marshal(metadata)})
}

// describe returns the message of an error for users who fix the object. It does not depend
// on whether the object was in a list.
func describe(err error, path string) string {
	message := err.Error()
	if mismatch := (*json.UnmarshalTypeError)(nil); errors.As(err, &mismatch) && mismatch.Field != "" {
		field := strings.TrimPrefix(mismatch.Field, path)
		message = fmt.Sprintf("%s: %s where %s is expected", field, mismatch.Value, mismatch.Type)
	}
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage-len("...")], "") + "..."
	}
	return message
}
