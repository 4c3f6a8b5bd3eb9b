// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// programSet is the result of one `go build`: programs whose module is under hack/tools. A set
// is built when one of its programs is needed.
type programSet struct {
	name     string // for people
	module   string // directory under hack/tools
	packages []string
	tags     string
	duration string // of the first build, on two idle cores
	programs []string
	// source is the module whose version is the version of the set.
	source string
	// version overrides the version of source in go.mod. The build then pins the other modules
	// as source does.
	version string
}

const (
	kubernetesSource       = "k8s.io/kubernetes"
	sampleControllerSource = "k8s.io/sample-controller"
	prometheusSource       = "github.com/prometheus/prometheus"
)

// kubernetesPrograms are the programs that another version of the control plane replaces.
var kubernetesPrograms = []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"}

// kwokStages prints kwok's rules for how Nodes and Pods progress.
const kwokStages = "kwok-stages"

var (
	// controlPlane is one program under many names: see hack/tools/controlplane.
	controlPlane = programSet{
		name: "the control plane", module: "controlplane", packages: []string{"."}, duration: "4 minutes",
		tags:     "grpcnotrace", // as in hack/lib/flags.sh
		programs: append([]string{"etcd", "kwok", kwokStages}, kubernetesPrograms...),
		source:   kubernetesSource,
	}
	// sampleController and prometheus are built only for tests that need them.
	sampleController = programSet{
		name: "sample-controller", module: "samplecontroller", packages: []string{sampleControllerSource}, duration: "a minute",
		programs: []string{"sample-controller"}, source: sampleControllerSource,
	}
	prometheus = programSet{
		name: "Prometheus", module: "prometheus", duration: "3 minutes",
		packages: []string{prometheusSource + "/cmd/prometheus", prometheusSource + "/cmd/promtool"},
		tags:     "remove_all_sd", // cloud service discovery is most of the code
		programs: []string{"prometheus", "promtool"}, source: prometheusSource,
	}
)

// versionVariable is the environment variable for the minor version of the control plane, for
// example 1.36.
const versionVariable = "KUBERNETES"

// olderKubernetes are the versions that [versionVariable] can select besides the one in
// hack/tools/controlplane/go.mod: one patch release of each minor version. v1.32 is too old: if a
// stored object breaks one of the CRDs' CEL rules, it rejects also the status that says so.
var olderKubernetes = []string{"v1.36.4", "v1.35.4", "v1.34.4", "v1.33.13"}

// Minors returns the minor versions of Kubernetes that the environment variable KUBERNETES can
// select, newest first.
func Minors() ([]string, error) {
	root, err := RepositoryRoot()
	if err != nil {
		return nil, err
	}
	current, err := pinnedVersion(root, controlPlane)
	if err != nil {
		return nil, err
	}
	var minors []string
	for _, version := range append([]string{current}, olderKubernetes...) {
		minors = append(minors, strings.TrimPrefix(version[:strings.LastIndex(version, ".")], "v"))
	}
	return minors, nil
}

// sets returns all sets. If two have the same program, the preferred one comes first.
func sets(root, minor string) ([]programSet, error) {
	all := []programSet{controlPlane, sampleController, prometheus}
	current, err := pinnedVersion(root, controlPlane)
	if err != nil || minor == "" || strings.HasPrefix(current, "v"+minor+".") {
		return all, err
	}
	i := slices.IndexFunc(olderKubernetes, func(version string) bool { return strings.HasPrefix(version, "v"+minor+".") })
	if i < 0 {
		return nil, fmt.Errorf("invalid %s=%s: must be a minor version of one of %s, %s",
			versionVariable, minor, current, strings.Join(olderKubernetes, ", "))
	}
	older := controlPlane
	older.name, older.version = "Kubernetes "+olderKubernetes[i], olderKubernetes[i]
	older.tags, older.programs = "kubernetes_only", kubernetesPrograms
	return append([]programSet{older}, all...), nil
}

// pinnedVersion returns the version of the set's source.
func pinnedVersion(root string, set programSet) (string, error) {
	if set.version != "" {
		return set.version, nil
	}
	content, err := os.ReadFile(filepath.Join(moduleDir(root, set), "go.mod"))
	if err != nil {
		return "", fmt.Errorf("reading the pinned versions: %w", err)
	}
	match := regexp.MustCompile(`(?m)^(?:require)?\s+` + regexp.QuoteMeta(set.source) + ` (v\S+)`).FindSubmatch(content)
	if match == nil {
		return "", fmt.Errorf("%s/go.mod does not require %s", moduleDir(root, set), set.source)
	}
	return string(match[1]), nil
}

func moduleDir(root string, set programSet) string {
	return filepath.Join(root, "hack", "tools", set.module)
}

// buildFlags and buildEnv keep the user's Go settings from changing the build. GOFLAGS is set
// to the default rather than empty, because an empty value would let the value of `go env -w`
// through. The flags are those of hack/lib/flags.sh. Garbage collections would take a fifth of a
// compiler's time.
var (
	buildFlags = []string{"-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false"}
	buildEnv   = []string{
		"CGO_ENABLED=0", "GOFLAGS=-mod=readonly", "GOWORK=off", "GOGC=off", "GOMEMLIMIT=2GiB",
		"GOOS=" + runtime.GOOS, "GOARCH=" + runtime.GOARCH,
	}
)

// ldflags stamps the version for `kubectl version` and the API server's /version. Without the
// stamps of the release scripts, both report v0.0.0-master.
func (s programSet) ldflags(version string) string {
	flags := "-s -w"
	match := regexp.MustCompile(`^v(\d+)\.(\d+)\.`).FindStringSubmatch(version)
	if s.source != kubernetesSource || match == nil {
		return flags
	}
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		flags += fmt.Sprintf(" -X %[1]s.gitVersion=%[2]s -X %[1]s.gitMajor=%[3]s -X %[1]s.gitMinor=%[4]s -X %[1]s.gitCommit=",
			pkg, version, match[1], match[2])
	}
	return flags
}

// cacheKey identifies the build of the set's module under root, with this Go version and these
// flags.
func cacheKey(root string, set programSet) (string, error) {
	hash := sha256.New()
	fmt.Fprintln(hash, runtime.Version(), buildFlags, buildEnv, set, set.ldflags("v1.2.3"))
	files, err := filepath.Glob(filepath.Join(moduleDir(root, set), "*"))
	if err != nil || len(files) == 0 {
		return "", fmt.Errorf("%s has no module (%v)", moduleDir(root, set), err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("reading the pinned versions: %w", err)
		}
		fmt.Fprintln(hash, filepath.Base(file), len(content))
		hash.Write(content)
	}
	return set.module + "-" + hex.EncodeToString(hash.Sum(nil))[:16], nil
}
