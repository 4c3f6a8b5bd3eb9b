// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"errors"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/yaml"
)

// customResources is a configuration of kube-state-metrics, as far as ours goes.
type customResources struct {
	Kind string `json:"kind"`
	Spec struct {
		Resources []struct {
			GroupVersionKind struct {
				Group   string `json:"group"`
				Version string `json:"version"`
				Kind    string `json:"kind"`
			} `json:"groupVersionKind"`
			MetricNamePrefix string              `json:"metricNamePrefix"`
			ErrorLogV        int                 `json:"errorLogV"`
			LabelsFromPath   map[string][]string `json:"labelsFromPath"`
			Metrics          []struct {
				Name string `json:"name"`
				Help string `json:"help"`
				Each struct {
					Type  string `json:"type"`
					Gauge struct {
						Path           []string            `json:"path"`
						LabelsFromPath map[string][]string `json:"labelsFromPath"`
						ValueFrom      []string            `json:"valueFrom"`
					} `json:"gauge"`
				} `json:"each"`
			} `json:"metrics"`
		} `json:"resources"`
	} `json:"spec"`
}

// customResourcesOf returns the configuration of kube-state-metrics.
func customResourcesOf(t *testing.T) (config customResources) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(read(t, "manifests", "monitoring", "kube-state-metrics.yaml")), &config); err != nil {
		t.Fatal(err)
	}
	return config
}

// TestStalledTableShowsEachKind checks that the table of the dashboard selects a series of each
// kind, by labels that the configuration gives it.
func TestStalledTableShowsEachKind(t *testing.T) {
	query, err := dashboard(t).Query("Stalled objects")
	if err != nil {
		t.Fatal(err)
	}
	unknown := sets.New(Selectors(query.Expr)...)
	for _, r := range customResourcesOf(t).Spec.Resources {
		for _, m := range r.Metrics {
			if m.Name != "status_condition" {
				continue
			}
			selector := r.MetricNamePrefix + `_status_condition{condition="Stalled"}`
			if !strings.Contains(query.Expr, `label_replace(`+selector+` == 1, "kind", "`+r.GroupVersionKind.Kind+`"`) {
				t.Errorf("%s does not show the kind %s", query.Expr, r.GroupVersionKind.Kind)
			}
			labels := sets.KeySet(r.LabelsFromPath).Union(sets.KeySet(m.Each.Gauge.LabelsFromPath))
			if labels.HasAll("namespace", "name", "condition", "reason") {
				unknown.Delete(selector)
			}
		}
	}
	if unknown.Len() > 0 {
		t.Errorf("these series, or labels that the table shows, are not configured: %v", sets.List(unknown))
	}
}

// TestKubeStateMetricsPathsExist looks for each path of the configuration of kube-state-metrics
// in the schemas of the CRDs, and for each kind in the configuration.
func TestKubeStateMetricsPathsExist(t *testing.T) {
	config := customResourcesOf(t)
	if config.Kind != "CustomResourceStateMetrics" {
		t.Errorf("the kind is %s", config.Kind)
	}
	configured := sets.New[string]()
	for _, r := range config.Spec.Resources {
		crd := crdOf(t, r.GroupVersionKind.Group)
		configured.Insert(crd)
		schema := schemaOf(t, crd, r.GroupVersionKind.Kind, r.GroupVersionKind.Version)
		for name, path := range r.LabelsFromPath {
			if path[0] != "metadata" {
				t.Errorf("%s: label %s is not from metadata, but from %v", r.MetricNamePrefix, name, path)
			}
		}
		for _, m := range r.Metrics {
			name := r.MetricNamePrefix + "_" + m.Name
			field, err := lookUp(schema, m.Each.Gauge.Path)
			if err != nil || m.Each.Type != "Gauge" || m.Help == "" {
				t.Errorf("%s: type %q, help %q, path %v: %v", name, m.Each.Type, m.Help, m.Each.Gauge.Path, err)
				continue
			}
			if field.Items != nil {
				field = *field.Items.Schema
			}
			for label, path := range m.Each.Gauge.LabelsFromPath {
				if _, err := lookUp(field, path); err != nil {
					t.Errorf("%s: label %s: path %v: %v", name, label, path, err)
				}
			}
			value, err := lookUp(field, m.Each.Gauge.ValueFrom)
			if err != nil || value.Type != "integer" && !slices.ContainsFunc(value.Enum,
				func(v apiextensionsv1.JSON) bool { return string(v.Raw) == `"True"` }) {
				t.Errorf("%s: path %v: %q, which has no numeric value: %v", name, m.Each.Gauge.ValueFrom, value.Type, err)
			}
		}
	}
	for _, file := range crdFiles(t) {
		if !configured.Has(file) {
			t.Errorf("%s is not configured", file)
		}
	}
}

// crdFiles returns the names of the files with CRDs.
func crdFiles(t *testing.T) []string {
	t.Helper()
	var kustomization struct{ Resources []string }
	if err := yaml.Unmarshal([]byte(read(t, "manifests", "crds", "kustomization.yaml")), &kustomization); err != nil ||
		len(kustomization.Resources) == 0 {
		t.Fatalf("resources of manifests/crds: %v, %v", kustomization.Resources, err)
	}
	isCRD := func(file string) bool { return strings.Contains(file, "_") } // <group>_<plural>.yaml
	return slices.DeleteFunc(kustomization.Resources, func(file string) bool { return !isCRD(file) })
}

// crdOf returns the name of the file with the CRD of an API group.
func crdOf(t *testing.T, group string) string {
	t.Helper()
	files := crdFiles(t)
	i := slices.IndexFunc(files, func(file string) bool { return strings.HasPrefix(file, group+"_") })
	if i < 0 {
		t.Fatalf("no CRD of group %s in %v", group, files)
	}
	return files[i]
}

// schemaOf returns the schema of a version of a kind.
func schemaOf(t *testing.T, file, kind, version string) apiextensionsv1.JSONSchemaProps {
	t.Helper()
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal([]byte(read(t, "manifests", "crds", file)), &crd); err != nil {
		t.Fatal(err)
	}
	for _, v := range crd.Spec.Versions {
		if v.Name == version && crd.Spec.Names.Kind == kind {
			return *v.Schema.OpenAPIV3Schema
		}
	}
	t.Fatalf("%s has no version %s of %s", file, version, kind)
	return apiextensionsv1.JSONSchemaProps{}
}

// lookUp returns the field of a schema at a path. The fields of metadata are in no schema.
func lookUp(schema apiextensionsv1.JSONSchemaProps, path []string) (apiextensionsv1.JSONSchemaProps, error) {
	if slices.Equal(path, []string{"metadata", "generation"}) {
		return apiextensionsv1.JSONSchemaProps{Type: "integer"}, nil
	}
	for _, name := range path {
		field, ok := schema.Properties[name]
		if !ok {
			return schema, errors.New("no field " + name)
		}
		schema = field
	}
	return schema, nil
}
