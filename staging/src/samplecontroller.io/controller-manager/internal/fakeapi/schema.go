// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/utils/ptr"
)

// crdKind is served without a scheme: a CRD that is created serves its kind.
var crdKind = apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition")

// customSchema prunes, defaults and validates objects with the code of the API server.
type customSchema struct {
	structural *structuralschema.Structural
	validators map[string]validation.SchemaValidator // by subresource
	rules      *cel.Validator                        // may be nil
}

func newCustomSchema(v1 *apiextensionsv1.JSONSchemaProps) (*customSchema, error) {
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v1, &internal, nil); err != nil {
		return nil, err
	}
	s := &customSchema{validators: map[string]validation.SchemaValidator{}}
	var err error
	if s.structural, err = structuralschema.NewStructural(&internal); err != nil {
		return nil, err
	}
	status := internal.Properties["status"]
	for subresource, props := range map[string]*apiextensions.JSONSchemaProps{"": &internal, "status": &status} {
		if s.validators[subresource], _, err = validation.NewSchemaValidator(props); err != nil {
			return nil, err
		}
	}
	s.rules = cel.NewValidator(s.structural, true, celconfig.PerCallLimit)
	return s, nil
}

// complete prunes unknown fields and sets defaults.
func (s *customSchema) complete(o *unstructured.Unstructured) {
	pruning.Prune(o.Object, s.structural, true)
	defaulting.PruneNonNullableNullsWithoutDefaults(o.Object, s.structural)
	defaulting.Default(o.Object, s.structural)
}

// checkFields returns an error if an object has fields that the schema lacks.
func (s *customSchema) checkFields(o *unstructured.Unstructured) error {
	content := o.DeepCopy().Object
	_, _, unknown, err := objectmeta.GetObjectMetaWithOptions(content,
		objectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: true})
	if err != nil {
		return err
	}
	track := structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
	unknown = append(unknown, pruning.PruneWithOptions(content, s.structural, true, track)...)
	invalid, embedded := objectmeta.CoerceWithOptions(nil, content, s.structural, false,
		objectmeta.CoerceOptions{ReturnUnknownFieldPaths: true})
	if invalid != nil {
		return invalid
	}
	var errs []error
	for _, path := range append(unknown, embedded...) {
		errs = append(errs, fmt.Errorf("unknown field %q", path))
	}
	if len(errs) == 0 {
		return nil
	}
	return runtime.NewStrictDecodingError(errs)
}

// validate returns what is wrong with an object, or with its status. old is nil for a new object.
func (s *customSchema) validate(
	ctx context.Context, subresource string, o, old *unstructured.Unstructured,
) (errs field.ErrorList) {
	var before any
	var options []cel.Option
	if old == nil {
		errs = validation.ValidateCustomResource(nil, o.Object, s.validators[""])
	} else { // values that were invalid before may stay
		before = old.Object
		correlated := common.NewCorrelatedObject(o.Object, before, &model.Structural{Structural: s.structural})
		options = append(options, cel.WithRatcheting(correlated))
		part, oldPart, path := any(o.Object), before, (*field.Path)(nil)
		if subresource != "" {
			part, oldPart, path = o.Object[subresource], old.Object[subresource], field.NewPath(subresource)
			correlated = correlated.Key(subresource)
		}
		errs = validation.ValidateCustomResourceUpdate(path, part, oldPart, s.validators[subresource],
			validation.WithRatcheting(correlated))
	}
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s.structural, o.Object)...)
	if s.rules == nil {
		return errs
	}
	if slices.ContainsFunc(errs, func(err *field.Error) bool { return blocking.Has(err.Type) }) {
		const skipped = "some validation rules were not checked because the object was invalid; " +
			"correct the existing errors to complete validation"
		return append(errs, field.Invalid(nil, nil, skipped))
	}
	broken, _ := s.rules.Validate(ctx, nil, s.structural, o.Object, before, celconfig.RuntimeCELCostBudget, options...)
	return append(errs, broken...)
}

// blocking are the errors after which rules are not checked.
var blocking = sets.New(field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong,
	field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid)

// define serves the kind of a CRD, and sets its status.
func (s *Server) define(o *unstructured.Unstructured) error {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := fromUnstructured(o, &crd); err != nil {
		return err
	}
	for _, version := range crd.Spec.Versions {
		if !version.Served {
			continue
		}
		k := &kind{
			GroupVersionKind: schema.GroupVersion{Group: crd.Spec.Group, Version: version.Name}.WithKind(crd.Spec.Names.Kind),
			namespaced:       ptr.To(crd.Spec.Scope == apiextensionsv1.NamespaceScoped),
			status:           version.Subresources != nil && version.Subresources.Status != nil,
			generation:       true,
		}
		if version.Schema != nil && version.Schema.OpenAPIV3Schema != nil {
			var err error
			if k.schema, err = newCustomSchema(version.Schema.OpenAPIV3Schema); err != nil {
				return fmt.Errorf("the schema of version %s: %w", version.Name, err)
			}
		}
		s.serveAs(k.GroupVersion().WithResource(crd.Spec.Names.Plural), k)
	}
	// Watches may read the status of the old CRD, which o shares.
	o.Object["status"] = map[string]any{"conditions": []any{
		map[string]any{"type": "NamesAccepted", "status": "True"}, map[string]any{"type": "Established", "status": "True"},
	}}
	return nil
}

// undefine no longer serves the kind of a CRD, and forgets its objects.
func (s *Server) undefine(o *unstructured.Unstructured) {
	group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(o.Object, "spec", "names", "plural")
	for resource := range s.kinds {
		if resource.Group == group && resource.Resource == plural {
			delete(s.kinds, resource)
			delete(s.objects, resource)
		}
	}
}
