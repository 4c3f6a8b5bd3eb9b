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
	base, err := kustomization{name: basePath}.objects(ctx, paths["kubectl"], root)
	if err != nil {
		return nil, err
	}
	lines, found := make([]string, len(kustomizations)), make([][]string, len(kustomizations))
	workqueue.ParallelizeUntil(ctx, runtime.NumCPU(), len(kustomizations), func(i int) {
		k := kustomizations[i]
		b, err := k.objects(ctx, paths["kubectl"], root)
		if err != nil {
			found[i] = []string{err.Error()}
			return
		}
		lines[i], found[i] = fmt.Sprintf("%-110s %d objects\n", k.name, len(b)), b.check(k, base)
	})
	for i, k := range kustomizations {
		fmt.Print(lines[i])
		for _, problem := range found[i] {
			problems = append(problems, k.name+": "+problem)
		}
	}
	return problems, nil
}
