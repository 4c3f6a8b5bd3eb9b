// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// ConfigVersion and ConfigKind identify the format of the configuration file.
var ConfigVersion = schema.GroupVersion{Group: "config.samplecontroller.io", Version: "v1alpha1"}

// ConfigKind is the kind in the configuration file.
const ConfigKind = "ControllerManagerConfiguration"

// document is the content of a configuration file. It has the names of flags instead of fields of its own,
// so that a setting has one name, one check and one description, also those that controllers add.
type document struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Flags      map[string]any `json:"flags"`
}

// invalidFile are the mistakes in a configuration file.
type invalidFile struct {
	path string
	errs []error
}

// Error lists the mistakes.
func (f *invalidFile) Error() string {
	lines := []string{fmt.Sprintf("invalid configuration file %s (%d):", f.path, len(f.errs))}
	for _, err := range f.errs {
		lines = append(lines, "  "+err.Error())
	}
	return strings.Join(lines, "\n")
}

// parseFile returns the values of flags in a configuration file, and all that is wrong with it.
func parseFile(content []byte, lookup func(name string) *pflag.Flag) (settings map[string]string, errs []error) {
	d, err := decode(content)
	if err != nil {
		return nil, []error{err}
	}
	if d.APIVersion != ConfigVersion.String() || d.Kind != ConfigKind {
		errs = append(errs, fmt.Errorf("apiVersion %q and kind %q: must be %s and %s", d.APIVersion, d.Kind, ConfigVersion, ConfigKind))
	}
	settings = map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(d.Flags)) {
		text, err := textOf(d.Flags[name])
		flag := lookup(name)
		switch {
		case flag == nil:
			err = errors.New("is not a flag: see --help")
		case slices.Contains([]string{"config", "help", "version"}, name):
			err = errors.New("must be given on the command line")
		case flag.Deprecated != "":
			err = fmt.Errorf("is deprecated: %s", flag.Deprecated)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("flags.%s: %w", name, err))
			continue
		}
		settings[name] = text
	}
	return settings, errs
}

// decode decodes the only document of a configuration file.
func decode(content []byte) (d document, err error) {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	first, err := documents.Read()
	if err != nil && !errors.Is(err, io.EOF) {
		return d, err
	}
	if _, err := documents.Read(); !errors.Is(err, io.EOF) {
		return d, errors.New("has more than one document: keep one")
	}
	converted, err := yaml.YAMLToJSONStrict(first)
	if err != nil {
		return d, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(converted, &fields); err != nil {
		return d, err
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) { // the decoder below ignores case
		if !slices.Contains([]string{"apiVersion", "kind", "flags"}, name) {
			return d, fmt.Errorf("unknown field %q: must be apiVersion, kind or flags", name)
		}
	}
	decoder := json.NewDecoder(bytes.NewReader(converted))
	decoder.UseNumber() // keep the digits of the file
	return d, decoder.Decode(&d)
}

// textOf returns a value in the form of the command line.
func textOf(value any) (string, error) {
	switch value := value.(type) {
	case nil:
		return "", errors.New("has no value")
	case []any:
		return joined(value)
	case map[string]any:
		var pairs []any
		for _, key := range slices.Sorted(maps.Keys(value)) {
			text, err := scalarOf(value[key])
			if err != nil {
				return "", fmt.Errorf("%s: %w", key, err)
			}
			pairs = append(pairs, key+"="+text)
		}
		return joined(pairs)
	default:
		text, err := scalarOf(value)
		if text = strings.TrimSuffix(text, "\n"); err == nil && strings.Contains(text, "\n") {
			return "", errors.New("must be one line: write a list as a YAML list") // a flag ignores all other lines
		}
		return text, err
	}
}

func joined(items []any) (string, error) {
	var texts []string
	for _, item := range items {
		text, err := scalarOf(item)
		switch {
		case err != nil:
			return "", err
		case strings.ContainsAny(text, ",\"\n"):
			return "", fmt.Errorf("%q: an item must not contain a comma, a quotation mark or a line break", text)
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ","), nil
}

func scalarOf(value any) (string, error) {
	switch value := value.(type) {
	case string:
		return value, nil
	case json.Number, bool:
		return fmt.Sprint(value), nil
	default:
		return "", errors.New("must be a text, a number, true or false, or a list of these")
	}
}
