// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"slices"
	"strconv"
	"time"

	"github.com/spf13/pflag"
)

// Int is the kind of whole numbers.
func Int() Kind[int] { return Kind[int]{Name: "int", Parse: strconv.Atoi, Format: strconv.Itoa} }

// Duration is the kind of durations.
func Duration() Kind[time.Duration] {
	return Kind[time.Duration]{Name: "duration", Parse: time.ParseDuration, Format: time.Duration.String}
}

// Strings is the kind of lists, separated by commas. A flag that is given twice has the items of both.
func Strings() Kind[[]string] {
	return Kind[[]string]{
		Name: "strings",
		Parse: func(text string) ([]string, error) {
			var list []string
			err := sliceOf(&list).Set(text)
			return list, err
		},
		Format: func(list []string) string {
			return sliceOf(&list).String()
		},
		Add: func(first, second []string) []string { return slices.Concat(first, second) },
	}
}

// sliceOf returns what pflag parses lists by.
func sliceOf(list *[]string) pflag.Value {
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	fs.StringSliceVar(list, "list", *list, "")
	return fs.Lookup("list").Value
}
