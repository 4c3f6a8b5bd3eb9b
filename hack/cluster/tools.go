// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
)

// rootModule is the module whose directory is the root of the repository.
const rootModule = "samplecontroller.io/sample-controller-manager"

// tool is one program of the cluster, built from a module under hack/tools.
type tool struct {
	name   string
	module string // directory under hack/tools
	pkg    string
	source string // the module that gives the tool its version
}

const (
	etcdSource             = "go.etcd.io/etcd/server/v3"
	kubernetesSource       = "k8s.io/kubernetes"
	kwokSource             = "sigs.k8s.io/kwok"
	sampleControllerSource = "k8s.io/sample-controller"
)

// tools are the programs that make the cluster.
var tools = []tool{
	{"etcd", "etcd", etcdSource, etcdSource},
	{"kube-apiserver", "kubernetes", kubernetesSource + "/cmd/kube-apiserver", kubernetesSource},
	{"kubectl", "kubernetes", kubernetesSource + "/cmd/kubectl", kubernetesSource},
	{"kube-controller-manager", "kubernetes", kubernetesSource + "/cmd/kube-controller-manager", kubernetesSource},
	{"kube-scheduler", "kubernetes", kubernetesSource + "/cmd/kube-scheduler", kubernetesSource},
	{"kwok", "kwok", kwokSource + "/cmd/kwok", kwokSource},
}

// peers are programs that tests run on the cluster to see how ours gets on with
// them. They are built only for those who name them, and have a cache of their
// own, so that nobody else waits for them.
var peers = []tool{
	{"sample-controller", "samplecontroller", sampleControllerSource, sampleControllerSource},
}

// SampleControllerCRD lies beside sample-controller: its CRD, as it publishes it.
const SampleControllerCRD = "sample-controller-crd.yaml"

// kwokStages lies beside kwok and tells it how Nodes and Pods live.
const kwokStages = "kwok-stages.yaml"

// companions are the files that lie beside a tool: parts of its own module that
// are not in its program.
var companions = map[string]struct {
	name  string
	parts []string
}{
	"kwok": {kwokStages, []string{
		"kustomize/stage/node/fast/node-initialize.yaml",
		"kustomize/stage/node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
		"kustomize/stage/pod/fast/pod-ready.yaml",
		"kustomize/stage/pod/fast/pod-complete.yaml",
		"kustomize/stage/pod/fast/pod-delete.yaml",
	}},
	"sample-controller": {SampleControllerCRD, []string{"artifacts/examples/crd-status-subresource.yaml"}},
}

// buildFlags and buildEnv keep the user's Go settings from changing what is
// built. GOFLAGS is set to the default rather than emptied, because an empty
// value would let the one stored by `go env -w` through.
var (
	buildFlags = []string{"-trimpath", "-buildvcs=false"}
	buildEnv   = []string{
		"CGO_ENABLED=0", "GOFLAGS=-mod=readonly", "GOWORK=off",
		"GOOS=" + runtime.GOOS, "GOARCH=" + runtime.GOARCH,
	}
)

// ldflags returns the linker flags of a tool of this version. They only make
// kubectl version and the API server's /version tell the truth: without the
// release scripts' stamps both claim v0.0.0-master.
func (t tool) ldflags(version string) string {
	flags := "-s -w"
	if t.source != kubernetesSource {
		return flags
	}
	match := majorMinor.FindStringSubmatch(version)
	if match == nil {
		return flags
	}
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		flags += fmt.Sprintf(" -X %[1]s.gitVersion=%[2]s -X %[1]s.gitMajor=%[3]s -X %[1]s.gitMinor=%[4]s -X %[1]s.gitCommit=",
			pkg, version, match[1], match[2])
	}
	return flags
}

var majorMinor = regexp.MustCompile(`^v(\d+)\.(\d+)\.`)

// cacheKey names the programs that the modules of these tools under root would
// give with this Go version and these flags.
func cacheKey(root string, set []tool) (string, error) {
	hash := sha256.New()
	fmt.Fprintln(hash, runtime.Version(), buildFlags, buildEnv)
	for _, t := range set {
		fmt.Fprintln(hash, t, t.ldflags("v1.2.3"))
		for _, name := range []string{"go.mod", "go.sum"} {
			content, err := os.ReadFile(filepath.Join(toolsModule(root, t.module), name))
			if err != nil {
				return "", fmt.Errorf("reading the pinned versions: %w", err)
			}
			fmt.Fprintln(hash, len(content))
			hash.Write(content)
		}
	}
	return hex.EncodeToString(hash.Sum(nil))[:16], nil
}

func toolsModule(root, module string) string {
	return filepath.Join(root, "hack", "tools", module)
}

// RepositoryRoot returns the nearest directory, from the working directory up,
// whose go.mod is that of the root module. The place of this source file would
// not do: a binary built with -trimpath no longer knows it.
func RepositoryRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the repository: %w", err)
	}
	isRoot := regexp.MustCompile(`(?m)^module ` + regexp.QuoteMeta(rootModule) + `$`)
	for dir := start; ; dir = filepath.Dir(dir) {
		content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("finding the repository: %w", err)
		}
		if isRoot.Match(content) {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("finding the repository: neither %s nor a directory above it holds module %s", start, rootModule)
		}
	}
}
