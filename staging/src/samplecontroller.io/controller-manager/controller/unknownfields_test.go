// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// generator makes Pods at random.
type generator struct{ *rand.Rand }

// some returns some of the values in any order.
func some[V any](g generator, values ...V) []V {
	values = slices.Clone(values)
	g.Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] })
	return values[:g.IntN(len(values)+1)]
}

func (g generator) pod() *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	for _, key := range some(g, "app", "example.com/a~b", "a~1/0") {
		metav1.SetMetaDataLabel(&pod.ObjectMeta, key, fmt.Sprint(g.IntN(3)))
	}
	pod.Finalizers = some(g, "example.com/a", "example.com/b")
	for _, name := range some(g, "a", "b", "c") {
		pod.Spec.Containers = append(pod.Spec.Containers, g.container(name))
	}
	for _, key := range some(g, "zone", "node") {
		for _, unsatisfiable := range some(g, corev1.DoNotSchedule, corev1.ScheduleAnyway) {
			pod.Spec.TopologySpreadConstraints = append(pod.Spec.TopologySpreadConstraints,
				corev1.TopologySpreadConstraint{TopologyKey: key, WhenUnsatisfiable: unsatisfiable, MaxSkew: g.Int32N(3)})
		}
	}
	if g.IntN(2) == 0 {
		pod.Spec.SecurityContext = &corev1.PodSecurityContext{}
		if g.IntN(2) == 0 {
			pod.Spec.SecurityContext.RunAsUser = new(g.Int64())
		}
	}
	for range g.IntN(3) {
		toleration := corev1.Toleration{Key: "k", Value: fmt.Sprint(g.IntN(2)), TolerationSeconds: new(g.Int64N(2))}
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, toleration)
	}
	return pod
}

func (g generator) container(name string) corev1.Container {
	c := corev1.Container{Name: name, Image: fmt.Sprint(g.IntN(3)), Args: some(g, "-v", "<x>", "-v")}
	for _, protocol := range some(g, corev1.ProtocolTCP, corev1.ProtocolUDP, "") {
		c.Ports = append(c.Ports, corev1.ContainerPort{ContainerPort: 53, Protocol: protocol, HostPort: g.Int32N(2)})
	}
	for _, variable := range some(g, "A", "B", "C") {
		c.Env = append(c.Env, corev1.EnvVar{Name: variable, Value: fmt.Sprint(g.IntN(2))})
	}
	for _, path := range some(g, "/a", "/b") {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "v", MountPath: path, ReadOnly: g.IntN(2) == 0})
	}
	if g.IntN(2) == 0 {
		probe := corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(g.Int32N(2))}}
		c.ReadinessProbe = &corev1.Probe{ProbeHandler: probe}
	}
	return c
}

// addUnknown adds a field to each object in a value that the types do not know. Its value is where
// the object is, with the keys of elements of lists instead of their indexes. In a sparse document,
// objects of zero values have no such field, and those that the types always encode may be absent.
func (g generator) addUnknown(value any, at string, sparse bool) {
	switch value := value.(type) {
	case map[string]any:
		for name, member := range value {
			object, ok := member.(map[string]any)
			if sparse && ok && isZero(object) {
				if always := name == "status" || name == "resources"; always && g.IntN(2) == 0 {
					delete(value, name)
				}
				continue
			}
			if name != "labels" {
				g.addUnknown(member, at+"/"+name, sparse)
			}
		}
		value["unknown"] = at
	case []any:
		for _, element := range value {
			g.addUnknown(element, at+"/"+keyOf(element), sparse)
		}
	}
}

// keyOf returns what identifies an element of the lists of a Pod.
func keyOf(element any) string {
	object, ok := element.(map[string]any)
	if !ok {
		return fmt.Sprint(element)
	}
	key := ""
	for _, name := range []string{"mountPath", "containerPort", "protocol", "topologyKey", "whenUnsatisfiable"} {
		key += fmt.Sprint(object[name], ",")
	}
	if object["mountPath"] != nil {
		return key
	}
	return key + fmt.Sprint(object["name"])
}

// expectUnknown checks that each object has its unknown field if it existed before.
func expectUnknown(t *testing.T, before, after any, at string) {
	t.Helper()
	switch after := after.(type) {
	case map[string]any:
		before, ok := before.(map[string]any)
		if !ok {
			if after["unknown"] != nil {
				t.Errorf("%s is new, but has the unknown field of %v", at, after["unknown"])
			}
			return
		}
		if !reflect.DeepEqual(before["unknown"], after["unknown"]) {
			t.Errorf("the unknown field of %s is %v, want %v", at, after["unknown"], before["unknown"])
		}
		for name, member := range after {
			expectUnknown(t, before[name], member, at+"/"+name)
		}
	case []any:
		if strings.HasSuffix(at, "/tolerations") {
			return // they have no key
		}
		elements := map[string]any{}
		if before, ok := before.([]any); ok {
			for _, element := range before {
				elements[keyOf(element)] = element
			}
		}
		for _, element := range after {
			expectUnknown(t, elements[keyOf(element)], element, at+"/"+keyOf(element))
		}
	}
}

func encode(t *testing.T, value any) []byte {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func decode[V any](t *testing.T, data []byte) (value V) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		t.Fatal(err)
	}
	return value
}

// FuzzPatchKeepsUnknownFields patches a stored Pod that has a field in each object which the types
// do not know, the way that the API server does.
func FuzzPatchKeepsUnknownFields(f *testing.F) {
	for seed := range uint64(300) {
		f.Add(seed, seed%2 == 0)
	}
	f.Fuzz(func(t *testing.T, seed uint64, sparse bool) {
		g := generator{rand.New(rand.NewPCG(seed, 0))}
		before, after := g.pod(), g.pod()
		before.ResourceVersion = "7"
		stored := decode[map[string]any](t, encode(t, before))
		g.addUnknown(stored, "", sparse)
		operations, err := (&resource[*corev1.Pod]{sparse: sparse}).difference(before, after)
		if err != nil {
			t.Fatal(err)
		}
		body := encode(t, append([]operation{}, operations...))
		patch, err := jsonpatch.DecodePatch(body)
		if err != nil {
			t.Fatal(err)
		}
		result, err := patch.Apply(encode(t, stored))
		if err != nil {
			t.Fatalf("%s does not apply to %s: %v", body, encode(t, stored), err)
		}
		got := decode[*corev1.Pod](t, result)
		after.ResourceVersion = "7" // not in the difference
		if diff := cmp.Diff(encode(t, after), encode(t, got)); diff != "" {
			t.Errorf("result of %s (-want +got):\n%s", body, diff)
		}
		expectUnknown(t, stored, decode[map[string]any](t, result), "")
	})
}
