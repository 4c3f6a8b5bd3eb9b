// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package tolerant

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// Thing is the object type of these tests.
type Thing struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec ThingSpec `json:"spec"`

	// Items make it look like a list.
	Items []ThingPart `json:"items,omitempty"`
}

// ThingSpec has fields of several types, each with its own decode error.
type ThingSpec struct {
	Name     string            `json:"name"`
	Replicas *int32            `json:"replicas,omitempty"`
	Since    *metav1.Time      `json:"since,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`
	Parts    []ThingPart       `json:"parts,omitempty"`
}

type ThingPart struct {
	Size int32 `json:"size"`
}

// ThingList is a list of Things.
type ThingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []Thing `json:"items"`
}

func (t *Thing) DeepCopyObject() runtime.Object {
	c := &Thing{TypeMeta: t.TypeMeta, Spec: t.Spec}
	t.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	return c
}

func (l *ThingList) DeepCopyObject() runtime.Object {
	c := &ThingList{TypeMeta: l.TypeMeta, ListMeta: l.ListMeta}
	for i := range l.Items {
		c.Items = append(c.Items, *l.Items[i].DeepCopyObject().(*Thing))
	}
	return c
}

var (
	version = schema.GroupVersion{Group: "example.com", Version: "v1"}
	scheme  = runtime.NewScheme()
)

func init() {
	scheme.AddKnownTypes(version, &Thing{}, &ThingList{})
	metav1.AddToGroupVersion(scheme, version)
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
}

// jsonDecoder returns the decoder of a client for JSON.
func jsonDecoder(s runtime.NegotiatedSerializer) runtime.Decoder {
	info, _ := runtime.SerializerInfoForMediaType(s.SupportedMediaTypes(), runtime.ContentTypeJSON)
	return s.DecoderToVersion(info.Serializer, nil)
}

func strictDecoder() runtime.Decoder {
	return jsonDecoder(serializer.NewCodecFactory(scheme).WithoutConversion())
}

func tolerantDecoder() runtime.Decoder {
	return jsonDecoder(serializerFor(scheme))
}

const (
	goodSpec = `{"name":"good","replicas":3,"since":"2026-01-01T00:00:00Z","labels":{"a":"b"},"parts":[{"size":1},{"size":2}]}`
	badSpec  = `{"name":["bad"],"replicas":3}`
)

// thing returns the JSON of a Thing as an API server serves it.
func thing(name, resourceVersion, spec string) string {
	return fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":%q,"namespace":"default","uid":"uid-%s","resourceVersion":%q,"generation":2,"labels":{"l":"1"},"annotations":{"a":"1"}},"spec":%s}`,
		name, name, resourceVersion, spec)
}

// list returns the JSON of a list as an API server serves it.
func list(items ...string) string {
	return `{"apiVersion":"example.com/v1","kind":"ThingList","metadata":{"resourceVersion":"100","remainingItemCount":7},"items":[` + strings.Join(items, ",") + `]}`
}

// decoded returns the Thing for the JSON from thing, if its spec is goodSpec.
func decoded(name, resourceVersion string) *Thing {
	t := placeholderFor(name, resourceVersion, "")
	delete(t.Annotations, AnnotationDecodeError)
	t.Spec = ThingSpec{
		Name:     "good",
		Replicas: ptr.To[int32](3),
		Since:    ptr.To(metav1.Unix(1767225600, 0)),
		Labels:   map[string]string{"a": "b"},
		Parts:    []ThingPart{{Size: 1}, {Size: 2}},
	}
	return t
}

// placeholderFor returns the placeholder for the JSON from thing.
func placeholderFor(name, resourceVersion, message string) *Thing {
	return &Thing{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: "default", UID: types.UID("uid-" + name), ResourceVersion: resourceVersion, Generation: 2,
		Labels:      map[string]string{"l": "1"},
		Annotations: map[string]string{"a": "1", AnnotationDecodeError: message},
	}}
}

// decodedList returns the list for the JSON from list.
func decodedList(items ...*Thing) *ThingList {
	l := &ThingList{ListMeta: metav1.ListMeta{ResourceVersion: "100", RemainingItemCount: ptr.To[int64](7)}, Items: []Thing{}}
	for _, item := range items {
		item.TypeMeta = metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Thing"} // as in any decoded list
		l.Items = append(l.Items, *item)
	}
	return l
}
