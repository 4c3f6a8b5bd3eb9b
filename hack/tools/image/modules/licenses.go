// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package modules

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// allowed are the licences under which what we link may be: they ask for no more than
// that their text goes with the binary, as it does in the image.
var allowed = map[string]bool{
	"Apache-2.0":   true,
	"BSD-2-Clause": true,
	"BSD-3-Clause": true,
	"ISC":          true,
	"MIT":          true,
}

// leastCoverage is how many percent of a file must be the text of licences.
const leastCoverage = 75

// licensesOf returns what the files say. It is an error if they say nothing, or what is
// not allowed.
func licensesOf(files []string) ([]string, error) {
	licenses := map[string]bool{}
	var errs []error
	for _, file := range files {
		if !isLicense(filepath.Base(file)) {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		coverage := licensecheck.Scan(text)
		if coverage.Percent < leastCoverage {
			errs = append(errs, fmt.Errorf("%s is no licence that is known: only %.0f %% of it are", file, coverage.Percent))
		}
		for _, match := range coverage.Match {
			licenses[match.ID] = true
			if !allowed[match.ID] {
				errs = append(errs, fmt.Errorf("%s: %s is not among the licences that are allowed; "+
					"do without the module, or add the licence to those in hack/tools/image/modules/licenses.go if its terms are kept", file, match.ID))
			}
		}
	}
	if len(licenses) == 0 {
		errs = append(errs, errors.New("has no licence, so may not be used"))
	}
	return slices.Sorted(maps.Keys(licenses)), errors.Join(errs...)
}

// isLicense tells whether a file of that name has the text of a licence.
func isLicense(name string) bool {
	return begins(name, "LICENSE", "LICENCE", "COPYING", "UNLICENSE")
}

// isNotice tells whether a file of that name is to go with the licence.
func isNotice(name string) bool { return begins(name, "NOTICE", "PATENTS") }

func begins(name string, prefixes ...string) bool {
	name = strings.ToUpper(name)
	return !strings.HasSuffix(name, ".GO") && slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}
