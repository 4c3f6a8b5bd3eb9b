// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package frugal decodes the JSON of an API server with fewer looks at each byte.
//
// From the connection to the object, client-go goes ten times over an event of a watch: to
// find where it ends, to look for a kind that it does not have, to take the object out of
// it, to look for the object's kind, each of them twice, and to check and decode the object.
// What API servers write needs four of these: an event is a line, it begins with its type,
// the object is all the rest, and begins with its kind. What is not exactly so is decoded as
// ever. Nothing that is decoded differs.
package frugal

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
)

// NegotiatedSerializer returns serializers for the types of a scheme, which convert nothing.
// Those for other formats than JSON are as ever.
func NegotiatedSerializer(scheme *runtime.Scheme) runtime.NegotiatedSerializer {
	standard := serializer.NewCodecFactory(scheme).WithoutConversion()
	n := negotiatedSerializer{NegotiatedSerializer: standard}
	for _, info := range standard.SupportedMediaTypes() {
		if info.MediaType == runtime.ContentTypeJSON {
			info.StreamSerializer = &runtime.StreamSerializerInfo{
				EncodesAsText: info.StreamSerializer.EncodesAsText,
				Serializer:    events{info.StreamSerializer.Serializer},
				Framer:        framer{info.StreamSerializer.Framer},
			}
			info.Serializer = json.NewSerializerWithOptions(kinds{}, scheme, scheme, json.SerializerOptions{})
		}
		n.mediaTypes = append(n.mediaTypes, info)
	}
	return n
}

type negotiatedSerializer struct {
	runtime.NegotiatedSerializer
	mediaTypes []runtime.SerializerInfo
}

// SupportedMediaTypes implements runtime.NegotiatedSerializer.
func (n negotiatedSerializer) SupportedMediaTypes() []runtime.SerializerInfo { return n.mediaTypes }
