// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package frugal

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/watch"
	restwatch "k8s.io/client-go/rest/watch"
)

// event is what a watch brings.
type event struct {
	Type   watch.EventType
	Object runtime.Object
}

// standard is what a generated client decodes with.
func standard() runtime.NegotiatedSerializer {
	return serializer.NewCodecFactory(scheme).WithoutConversion()
}

// decode returns what a client decodes of a stream, and the error that it ends with.
func decode(t testing.TB, s runtime.NegotiatedSerializer, stream io.Reader) (events []event, err error) {
	t.Helper()
	objects, serializer, framer, err := runtime.NewClientNegotiator(s, version).StreamDecoder(runtime.ContentTypeJSON, nil)
	if err != nil {
		t.Fatal(err)
	}
	decoder := restwatch.NewDecoder(streaming.NewDecoder(framer.NewFrameReader(io.NopCloser(stream)), serializer), objects)
	for {
		eventType, object, err := decoder.Decode()
		if err != nil {
			return events, err
		}
		events = append(events, event{eventType, object})
	}
}

// TestAStreamIsDecodedAsEver holds what is decoded, and how it ends, against the standard.
func TestAStreamIsDecodedAsEver(t *testing.T) {
	one, two := object("a", 1), object("b", 2)
	added, modified := `{"type":"ADDED","object":`+one+`}`, `{"type":"MODIFIED","object":`+two+`}`
	for name, test := range map[string]struct {
		stream string
		want   int // so many events
	}{
		"nothing":                              {"", 0},
		"events as API servers write them":     {added + "\n" + modified + "\n", 2},
		"larger than any buffer":               {added + "\n" + `{"type":"MODIFIED","object":` + object("b", 3000) + "}\n" + added + "\n", 3},
		"a bookmark":                           {`{"type":"BOOKMARK","object":{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"resourceVersion":"7"},"parts":null}}` + "\n", 1},
		"an error":                             {`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","reason":"Expired","code":410}}` + "\n", 1},
		"an error, and more":                   {`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","reason":"Expired","code":410}}` + "\n" + added + "\n", 2},
		"cut off within":                       {added + "\n" + modified[:100], 1},
		"cut off in how an event begins":       {added + "\n" + modified[:5], 1},
		"the object first":                     {`{"object":` + one + `,"type":"ADDED"}` + "\n" + modified + "\n", 2},
		"more than type and object":            {`{"type":"ADDED","object":` + one + `,"more":{"object":{}}}` + "\n" + modified + "\n", 2},
		"something between type and object":    {`{"type":"ADDED","more":"x","object":` + one + "}\n" + modified + "\n", 2},
		"no object":                            {`{"type":"ADDED"}` + "\n", 0},
		"an object of no kind":                 {`{"type":"ADDED","object":{"metadata":{}}}` + "\n", 0},
		"an object of no known kind":           {`{"type":"ADDED","object":` + strings.Replace(one, "Thing", "Other", 1) + "}\n", 0},
		"an object of the kind of no group":    {`{"type":"ADDED","object":` + strings.Replace(one, "example.com/v1", "a/b/c", 1) + "}\n", 0},
		"a kind that is no string":             {`{"type":"ADDED","object":` + strings.Replace(one, `"Thing"`, `1`, 1) + "}\n", 0},
		"an unknown type":                      {strings.Replace(added, "ADDED", "OTHER", 1) + "\n", 0},
		"a type that is escaped":               {strings.Replace(added, "ADDED", `\u0041DDED`, 1) + "\n", 1},
		"a kind that is escaped":               {strings.Replace(added, "Thing", `\u0054hing`, 1) + "\n", 1},
		"the kind first":                       {strings.Replace(added, `"apiVersion":"example.com/v1","kind":"Thing"`, `"kind":"Thing","apiVersion":"example.com/v1"`, 1) + "\n", 1},
		"the kind last":                        {`{"type":"ADDED","object":{"metadata":{"name":"a"},"apiVersion":"example.com/v1","kind":"Thing"}}` + "\n", 1},
		"spaces":                               {`{ "type": "ADDED", "object": ` + one + " }\n" + modified + "\n", 2},
		"spaces that begin with a later event": {added + "\n" + `{ "type": "ADDED", "object": ` + one + " }\n" + modified + "\n", 3},
		"several lines for an event":           {"{\n\"type\":\"ADDED\",\n\"object\":" + one + "}\n" + modified + "\n", 2},
		"an empty line between":                {added + "\n\n" + modified + "\n", 2},
		"no event":                             {"null\n", 0},
		"no JSON":                              {"<html>502 Bad Gateway</html>\n", 0},
		"no JSON within":                       {`{"type":"ADDED","object":{x}}` + "\n", 0},
		"a brace too few":                      {`{"type":"ADDED","object":` + one + "\n" + modified + "\n", 0},
	} {
		t.Run(name, func(t *testing.T) {
			want, wantErr := decode(t, standard(), strings.NewReader(test.stream))
			if len(want) != test.want {
				t.Fatalf("the standard decodes %d events and ends with %v, want %d events", len(want), wantErr, test.want)
			}
			for how, reader := range map[string]io.Reader{
				"at once":       strings.NewReader(test.stream),
				"byte by byte":  iotest.OneByteReader(strings.NewReader(test.stream)),
				"with its end":  iotest.DataErrReader(strings.NewReader(test.stream)),
				"half by halfs": iotest.HalfReader(strings.NewReader(test.stream)),
			} {
				got, err := decode(t, NegotiatedSerializer(scheme), reader)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s: unexpected events (-want +got):\n%s", how, diff)
				}
				for _, end := range []error{io.EOF, io.ErrUnexpectedEOF} {
					if errors.Is(err, end) != errors.Is(wantErr, end) {
						t.Errorf("%s: ended with %v, want %v", how, err, wantErr)
					}
				}
			}
		})
	}
}

// TestABrokenConnectionIsTold breaks it at each byte of the stream.
func TestABrokenConnectionIsTold(t *testing.T) {
	stream := strings.Repeat(`{"type":"ADDED","object":`+object("a", 1)+"}\n", 2)
	broken := errors.New("connection reset by peer")
	for n := range len(stream) + 1 {
		got, err := decode(t, NegotiatedSerializer(scheme), io.MultiReader(strings.NewReader(stream[:n]), iotest.ErrReader(broken)))
		if want := strings.Count(stream[:n], "\n"); len(got) != want || !errors.Is(err, broken) {
			t.Fatalf("after %d bytes %d events and %v, want %d and %v", n, len(got), err, want, broken)
		}
	}
}

// TestAnEventIsToldOnceItIsThere has nothing come after it.
func TestAnEventIsToldOnceItIsThere(t *testing.T) {
	reader, writer := io.Pipe()
	info, _ := runtime.SerializerInfoForMediaType(NegotiatedSerializer(scheme).SupportedMediaTypes(), runtime.ContentTypeJSON)
	frames := info.StreamSerializer.Framer.NewFrameReader(reader)
	for range 3 {
		want := `{"type":"ADDED","object":` + object("a", 1) + "}\n"
		go func() { _, _ = io.WriteString(writer, want) }()
		buffer := make([]byte, 2*len(want))
		n, err := frames.Read(buffer)
		if got := string(buffer[:n]); got != want || err != nil {
			t.Fatalf("Read() = %q, %v, want %q", got, err, want)
		}
	}
	if err := frames.Close(); err != nil {
		t.Error(err)
	}
	if _, err := writer.Write([]byte("x")); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("writing = %v, want the stream closed", err)
	}
}

func TestInterpret(t *testing.T) {
	for name, data := range map[string]string{
		"an object":             object("a", 1),
		"of the core group":     `{"apiVersion":"v1","kind":"Pod"}`,
		"of no version":         `{"apiVersion":"","kind":"Thing"}`,
		"of no kind":            `{"apiVersion":"v1","kind":""}`,
		"the kind first":        `{"kind":"Thing","apiVersion":"v1"}`,
		"something between":     `{"apiVersion":"v1","metadata":{"name":"a","kind":"b"},"kind":"Thing"}`,
		"a kind within":         `{"apiVersion":"v1","metadata":{"apiVersion":"x","kind":"b"}}`,
		"escaped":               `{"apiVersion":"v1","kind":"\u0054hing"}`,
		"what is no group":      `{"apiVersion":"a/b/c","kind":"Thing"}`,
		"a kind without an end": `{"apiVersion":"v1","kind":"Thing`,
		"not UTF-8":             "{\"apiVersion\":\"v1\",\"kind\":\"\xff\"}",
		"nothing":               ``,
		"null":                  `null`,
		"an array":              `["apiVersion"]`,
	} {
		t.Run(name, func(t *testing.T) {
			want, wantErr := json.SimpleMetaFactory{}.Interpret([]byte(data))
			got, err := kinds{}.Interpret([]byte(data))
			if diff := cmp.Diff(want, got); diff != "" || (err == nil) != (wantErr == nil) {
				t.Errorf("Interpret() = %v, %v, want %v, %v", got, err, want, wantErr)
			}
		})
	}
}

// FuzzEvent holds what is decoded of an event against the standard. Of the objects nothing
// is known: they need not be any.
func FuzzEvent(f *testing.F) {
	f.Add("ADDED", object("a", 1), "")
	f.Add("ADDED", `{}`, `,"more":1`)
	f.Add("ADDED", `{}}{`, "")
	f.Add(`A","object":{},"x":"`, `""`, "")
	f.Add(`\u0041`, ` 1 `, " ")
	standard := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{})
	f.Fuzz(func(t *testing.T, eventType, object, more string) {
		frame := fmt.Sprintf(`{"type":"%s","object":%s%s}`+"\n", eventType, object, more)
		if strings.Contains(object+more, `"type"`) || strings.Contains(object+more, `"object"`) {
			t.Skip("of two fields of a name the last counts, which no API server writes")
		}
		var want, got metav1.WatchEvent
		_, _, wantErr := standard.Decode([]byte(frame), nil, &want)
		_, _, err := events{standard}.Decode([]byte(frame), nil, &got)
		if wantErr != nil {
			want = metav1.WatchEvent{}
		}
		if err != nil {
			got = metav1.WatchEvent{}
		}
		if diff := cmp.Diff(want, got); diff != "" || (err == nil) != (wantErr == nil) {
			t.Errorf("%q: error %v, want %v; (-want +got):\n%s", frame, err, wantErr, diff)
		}
	})
}

// BenchmarkWatch is what an event of a custom resource of the size of a Foo costs.
func BenchmarkWatch(b *testing.B) {
	stream := strings.Repeat(`{"type":"MODIFIED","object":`+object("a", 15)+"}\n", 1000)
	for name, s := range map[string]runtime.NegotiatedSerializer{"standard": standard(), "frugal": NegotiatedSerializer(scheme)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(stream) / 1000))
			for n := 0; n < b.N; n += 1000 {
				if _, err := decode(b, s, strings.NewReader(stream)); !errors.Is(err, io.EOF) {
					b.Fatal(err)
				}
			}
		})
	}
}

// Thing is an object of the tests.
type Thing struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Parts []Part `json:"parts"`
}

// Part is as large as a condition.
type Part struct {
	Name, Message string
	Size          int32
}

// DeepCopyObject implements runtime.Object.
func (t *Thing) DeepCopyObject() runtime.Object {
	c := &Thing{TypeMeta: t.TypeMeta, Parts: append([]Part(nil), t.Parts...)}
	t.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	return c
}

// object returns the JSON of a Thing as an API server writes it, with so many parts.
func object(name string, parts int) string {
	part := `{"Message":"{\"of\":[\"what\\\\\"]}, and a \n newline","Name":"part","Size":1}`
	return fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":%q,"resourceVersion":"1"},"parts":[%s]}`,
		name, strings.TrimSuffix(strings.Repeat(part+",", parts), ","))
}

var (
	version = schema.GroupVersion{Group: "example.com", Version: "v1"}
	scheme  = runtime.NewScheme()
)

func init() {
	scheme.AddKnownTypes(version, &Thing{})
	metav1.AddToGroupVersion(scheme, version)
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
}
