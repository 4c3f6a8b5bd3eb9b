// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kustomize builds every kustomization of the manifests, all of them together with each
// selection of components under other names and in other namespaces, and those that the pages
// in manifests show, as `kubectl apply -k` does. It checks the objects: rules.go has the rules
// for all of them, references.go those for what one says of others, promises.go what
// manifests/README.md promises and no end-to-end test can show. It asks no API server.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"

	"k8s.io/client-go/util/workqueue"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	problems, err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if len(problems) > 0 {
		fmt.Fprintln(os.Stderr, strings.Join(problems, "\n"))
		os.Exit(1)
	}
}

// run returns the problems of the manifests in the repository that contains the working
// directory.
func run(ctx context.Context) (problems []string, err error) {
	root, err := cluster.RepositoryRoot()
	if err != nil {
		return nil, err
	}
	paths, err := cluster.Binaries(ctx, os.Stderr, "kubectl")
	if err != nil {
		return nil, err
	}
	kustomizations, err := find(root)
	if err != nil {
		return nil, err
	}
	builds, errs := make([]build, len(kustomizations)), make([]error, len(kustomizations))
	workqueue.ParallelizeUntil(ctx, runtime.NumCPU(), len(kustomizations), func(i int) {
		out, err := kustomizations[i].build(ctx, paths["kubectl"], root)
		if err == nil {
			builds[i], err = decode(out)
		}
		errs[i] = err
	})
	var base build
	for i, k := range kustomizations {
		if errs[i] != nil {
			problems = append(problems, fmt.Sprintf("%s: %v", k.name, errs[i]))
			continue
		}
		fmt.Printf("%-110s %d objects\n", k.name, len(builds[i]))
		if k.name == basePath {
			base = builds[i]
		}
	}
	if base == nil {
		return append(problems, basePath+" cannot be built: skipped all other checks"), nil
	}
	for i, k := range kustomizations {
		for _, problem := range builds[i].check(k, base) {
			problems = append(problems, k.name+": "+problem)
		}
	}
	return problems, nil
}
