// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controller says what a controller is, describes controllers as data,
// and decides which of them are enabled.
//
// A [Controller] is made once and run once for each term of leadership. A
// [Descriptor] tells all about it that can be told without making it: its name
// and aliases, how it is made, its flags, what it needs. A [Registry] is the controller map
// of a program. Help texts, selection by flag and RBAC manifests come from it
// alone, without a cluster.
//
// The package knows no clients. What a constructor is given is a type parameter
// of the program's choice.
package controller
