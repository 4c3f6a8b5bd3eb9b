// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// DaemonKubeconfig writes a kubeconfig of the daemon with changed credentials, and returns
// its path. At first, the credentials are the file of a token.
func DaemonKubeconfig(t *testing.T, change func(credentials *clientcmdapi.AuthInfo)) (path string) {
	t.Helper()
	path, err := Cluster().ServiceAccountKubeconfig(t.Context(), DaemonName, DaemonName)
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	change(config.AuthInfos[DaemonName])
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}
