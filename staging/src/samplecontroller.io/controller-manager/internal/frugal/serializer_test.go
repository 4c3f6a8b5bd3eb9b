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
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	restwatch "k8s.io/client-go/rest/watch"
)

// event is what a watch brings.
type event struct {
	Type   watch.EventType
	Object runtime.Object
}

// standard is what a generated client decodes with.
func standard() runtime.NegotiatedSerializer {
	return serializer.NewCodecFactory(scheme.Scheme).WithoutConversion()
}

// decode returns what a client decodes of a stream, and the error that it ends with.
func decode(t testing.TB, s runtime.NegotiatedSerializer, stream io.Reader) (events []event, err error) {
	t.Helper()
	objects, serializer, framer, err := runtime.NewClientNegotiator(s, appsv1.SchemeGroupVersion).StreamDecoder(runtime.ContentTypeJSON, nil)
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
		"a bookmark":                           {`{"type":"BOOKMARK","object":{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"resourceVersion":"7"},"spec":null}}` + "\n", 1},
		"an error":                             {`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","reason":"Expired","code":410}}` + "\n", 1},
		"an error, and more":                   {`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","reason":"Expired","code":410}}` + "\n" + added + "\n", 2},
		"cut off within":                       {added + "\n" + modified[:100], 1},
		"cut off in how an event begins":       {added + "\n" + modified[:5], 1},
		"the object first":                     {`{"object":` + one + `,"type":"ADDED"}` + "\n" + modified + "\n", 2},
		"more than type and object":            {`{"type":"ADDED","object":` + one + `,"more":{"object":{}}}` + "\n" + modified + "\n", 2},
		"something between type and object":    {`{"type":"ADDED","more":"x","object":` + one + "}\n" + modified + "\n", 2},
		"no object":                            {`{"type":"ADDED"}` + "\n", 0},
		"an object of no kind":                 {`{"type":"ADDED","object":{"metadata":{}}}` + "\n", 0},
		"an object of no known kind":           {`{"type":"ADDED","object":` + strings.Replace(one, "Deployment", "Other", 1) + "}\n", 0},
		"an object of the kind of no group":    {`{"type":"ADDED","object":` + strings.Replace(one, "apps/v1", "a/b/c", 1) + "}\n", 0},
		"a kind that is no string":             {`{"type":"ADDED","object":` + strings.Replace(one, `"Deployment"`, `1`, 1) + "}\n", 0},
		"an unknown type":                      {strings.Replace(added, "ADDED", "OTHER", 1) + "\n", 0},
		"a type that is escaped":               {strings.Replace(added, "ADDED", `\u0041DDED`, 1) + "\n", 1},
		"a kind that is escaped":               {strings.Replace(added, "Deployment", `\u0044eployment`, 1) + "\n", 1},
		"the kind first":                       {strings.Replace(added, `"apiVersion":"apps/v1","kind":"Deployment"`, `"kind":"Deployment","apiVersion":"apps/v1"`, 1) + "\n", 1},
		"the kind last":                        {`{"type":"ADDED","object":{"metadata":{"name":"a"},"apiVersion":"apps/v1","kind":"Deployment"}}` + "\n", 1},
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
				got, err := decode(t, NegotiatedSerializer(scheme.Scheme), reader)
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
		got, err := decode(t, NegotiatedSerializer(scheme.Scheme), io.MultiReader(strings.NewReader(stream[:n]), iotest.ErrReader(broken)))
		if want := strings.Count(stream[:n], "\n"); len(got) != want || !errors.Is(err, broken) {
			t.Fatalf("after %d bytes %d events and %v, want %d and %v", n, len(got), err, want, broken)
		}
	}
}

// TestAnEventIsToldOnceItIsThere has nothing come after it.
func TestAnEventIsToldOnceItIsThere(t *testing.T) {
	reader, writer := io.Pipe()
	info, _ := runtime.SerializerInfoForMediaType(NegotiatedSerializer(scheme.Scheme).SupportedMediaTypes(), runtime.ContentTypeJSON)
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
		"of no version":         `{"apiVersion":"","kind":"Deployment"}`,
		"of no kind":            `{"apiVersion":"v1","kind":""}`,
		"the kind first":        `{"kind":"Deployment","apiVersion":"v1"}`,
		"something between":     `{"apiVersion":"v1","metadata":{"name":"a","kind":"b"},"kind":"Deployment"}`,
		"a kind within":         `{"apiVersion":"v1","metadata":{"apiVersion":"x","kind":"b"}}`,
		"escaped":               `{"apiVersion":"v1","kind":"\u0044eployment"}`,
		"what is no group":      `{"apiVersion":"a/b/c","kind":"Deployment"}`,
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
	standard := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, json.SerializerOptions{})
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
	for name, s := range map[string]runtime.NegotiatedSerializer{"standard": standard(), "frugal": NegotiatedSerializer(scheme.Scheme)} {
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

// object returns the JSON of a Deployment as an API server writes a custom resource, with so
// many conditions.
func object(name string, conditions int) string {
	condition := `{"message":"{\"of\":[\"what\\\\\"]}, and a \n newline","reason":"part","status":"True","type":"Available"}`
	return fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":%q,"resourceVersion":"1"},"status":{"conditions":[%s]}}`,
		name, strings.TrimSuffix(strings.Repeat(condition+",", conditions), ","))
}
