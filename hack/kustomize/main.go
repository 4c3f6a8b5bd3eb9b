// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kustomize builds every kustomization of the manifests, the base with each
// selection of components, and those that manifests/README.md shows, as `kubectl apply -k`
// does. It checks the objects: rules.go has the rules for all of them, promises.go what
// manifests/README.md promises and no end-to-end test can show. It asks no API server.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"samplecontroller.io/sample-controller-manager/hack/cluster"
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

// run returns what is wrong with the manifests of the repository that the working
// directory is in.
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
	builds := map[string]build{}
	for _, k := range kustomizations {
		out, err := k.build(ctx, paths["kubectl"], root)
		var b build
		if err == nil {
			b, err = decode(out)
		}
		if err != nil {
			problems = append(problems, fmt.Sprintf("%s: %v", k.name, err))
			continue
		}
		builds[k.name] = b
		fmt.Printf("%-70s %d objects\n", k.name, len(b))
	}
	base, ok := builds[basePath]
	if !ok {
		return append(problems, basePath+" cannot be built: nothing else is checked"), nil
	}
	for _, k := range kustomizations {
		for _, problem := range builds[k.name].check(base) {
			problems = append(problems, k.name+": "+problem)
		}
	}
	return problems, nil
}
