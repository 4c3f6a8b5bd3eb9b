// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package tolerant

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"
)

// RESTClientFor returns a tolerant client of one version of an API group, for a scheme that
// knows its types. Pass it to the New function of a generated client:
//
//	client, err := tolerant.RESTClientFor(config, v1alpha1.SchemeGroupVersion, scheme.Scheme)
//	foos := typedv1alpha1.New(client).Foos("")
//
// Do not use NewForConfig, which sets its own serializer. RESTClientFor does not change config. Its
// client always uses JSON. It returns an error if config is invalid; it sends nothing.
func RESTClientFor(config *rest.Config, version schema.GroupVersion, scheme *runtime.Scheme) (*rest.RESTClient, error) {
	config = configFor(config, version)
	config.NegotiatedSerializer = serializerFor(scheme)
	// only JSON can be repaired
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	if config.UserAgent == "" {
		config.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	return rest.RESTClientFor(config)
}

// configFor returns a copy of config for one version of an API group.
func configFor(config *rest.Config, version schema.GroupVersion) *rest.Config {
	config = rest.CopyConfig(config)
	config.GroupVersion, config.APIPath = &version, "/apis"
	if version.Group == "" {
		config.APIPath = "/api"
	}
	return config
}

// serializerFor returns serializers for the types of a scheme, without conversion.
// Their decoders return a placeholder for each object that cannot be decoded, alone or in a
// list.
func serializerFor(scheme *runtime.Scheme) runtime.NegotiatedSerializer {
	return negotiatedSerializer{serializer.NewCodecFactory(scheme).WithoutConversion()}
}

type negotiatedSerializer struct{ runtime.NegotiatedSerializer }

// DecoderToVersion implements runtime.NegotiatedSerializer.
func (s negotiatedSerializer) DecoderToVersion(d runtime.Decoder, version runtime.GroupVersioner) runtime.Decoder {
	return decoder{s.NegotiatedSerializer.DecoderToVersion(d, version)}
}

type decoder struct{ runtime.Decoder }

// Decode implements runtime.Decoder.
func (d decoder) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object,
	*schema.GroupVersionKind, error) {
	obj, kind, err := d.Decoder.Decode(data, defaults, into)
	if err == nil {
		return obj, kind, nil
	}
	if repaired := d.repair(data, kind, err); repaired != nil {
		if into != nil {
			// The failed attempt may have set some fields.
			_ = runtime.SetZeroValue(into) // fails only for a non-pointer
		}
		if obj, kind, err := d.Decoder.Decode(repaired, defaults, into); err == nil {
			return obj, kind, nil
		}
	}
	return obj, kind, err
}

// document is the JSON of an object or a list.
type document struct {
	APIVersion string          `json:"apiVersion,omitempty"`
	Kind       string          `json:"kind,omitempty"`
	Metadata   json.RawMessage `json:"metadata,omitempty"`
	Items      json.RawMessage `json:"items,omitempty"`
}

// repair returns the data with a placeholder for each undecodable object. It returns nil if
// cause, the error of decoding the data, has another origin.
func (d decoder) repair(data []byte, kind *schema.GroupVersionKind, cause error) []byte {
	var doc document
	if utiljson.Unmarshal(data, &doc) != nil {
		return nil
	}
	if object := doc.placeholder(cause, ""); object != nil {
		return object
	}
	if doc.Items == nil {
		return nil
	}
	var items []json.RawMessage
	if utiljson.Unmarshal(doc.Items, &items) != nil {
		return nil
	}
	// Items are at fault only if the list decodes without them. Decoding each item in a list
	// of its own needs no guess about its type.
	if d.try(doc.with(), kind) != nil {
		return nil
	}
	for i, item := range items {
		if err := d.try(doc.with(item), kind); err != nil {
			var object document
			if utiljson.Unmarshal(item, &object) != nil {
				return nil
			}
			if items[i] = object.placeholder(err, "items."); items[i] == nil {
				return nil
			}
		}
	}
	return doc.with(items...)
}

// try returns the error of decoding the data.
func (d decoder) try(data []byte, kind *schema.GroupVersionKind) error {
	_, _, err := d.Decoder.Decode(data, kind, nil)
	return err
}

// with returns the list with the given items.
func (d document) with(items ...json.RawMessage) []byte {
	d.Items = marshal(items)
	return marshal(d)
}

// marshal returns nil on errors. Its input was unmarshaled before, so there should be none,
// but stored data must never crash the process.
func marshal(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return data
}
