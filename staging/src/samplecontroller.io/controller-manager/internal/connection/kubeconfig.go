// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"errors"
	"fmt"
	"strings"

	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Load returns the client configuration of a kubeconfig. master, if set, overrides the address in
// it. If both are empty, it returns that of the cluster that the process runs in.
func Load(master, kubeconfig string) (*restclient.Config, error) {
	if master == "" && kubeconfig == "" {
		config, err := restclient.InClusterConfig()
		if errors.Is(err, restclient.ErrNotInCluster) {
			return nil, errors.New("outside of a cluster, give the path of a kubeconfig; $KUBECONFIG is not read")
		}
		return config, err
	}
	config, err := clientcmd.BuildConfigFromFlags(master, kubeconfig)
	if err != nil && strings.Contains(err.Error(), "Go value") { // and the type of that
		return nil, fmt.Errorf("%q is not a kubeconfig: want YAML or JSON with the kind Config", kubeconfig)
	}
	if clientcmd.IsEmptyConfig(err) { // which advises to set a variable that is not read
		return nil, fmt.Errorf("%q has no cluster", kubeconfig)
	}
	return config, err
}
