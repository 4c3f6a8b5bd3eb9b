# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# shellcheck shell=bash
# Sets how Go compiles everything that is not released. The programs of a local cluster, the
# daemon, the tests and the checks share most packages. With the same settings, also in
# hack/test/cluster/sets.go, these are compiled once.

# no_method_lookup excludes a feature of gRPC that links html/template, which looks up methods by
# name at run time. The linker would then keep every exported method of every type, which makes
# the daemon's binary and its resident memory half as large again.
readonly no_method_lookup=-tags=grpcnotrace

# With -trimpath, all clones share the build cache. Leaving out debug information saves an eighth
# of the time. Only the race detector needs cgo.
export GOFLAGS="${GOFLAGS:-} -trimpath -gcflags=all=-dwarf=false ${no_method_lookup}"
export CGO_ENABLED=0
