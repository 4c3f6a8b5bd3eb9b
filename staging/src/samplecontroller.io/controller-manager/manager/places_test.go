// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"

	"samplecontroller.io/controller-manager/internal/options"
)

// places are files that command lines refer to.
type places struct {
	directory string
}

func newPlaces(t testing.TB) places {
	t.Helper()
	resetLog(t)
	klog.SetLogger(logr.Discard()) // the libraries warn about many odd values
	p := places{t.TempDir()}
	kubeconfig := clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"test": {Server: "https://127.0.0.1:1"}},
		Contexts:       map[string]*clientcmdapi.Context{"test": {Cluster: "test"}},
		CurrentContext: "test",
	}
	if err := clientcmd.WriteToFile(kubeconfig, p.file("kubeconfig")); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p places) file(name string) string { return filepath.Join(p.directory, name) }

// base returns the flags that all command lines start with.
func (p places) base() []string {
	return []string{"--kubeconfig=" + p.file("kubeconfig"), "--secure-port=0"}
}

// endless reports whether one of the kubeconfigs may be endless, such as a device.
func endless(o *options.Options) bool {
	for _, file := range []string{o.Client.Connection.Kubeconfig, o.Server.Authentication.RemoteKubeConfigFile,
		o.Server.Authorization.RemoteKubeConfigFile} {
		if info, err := os.Stat(file); err == nil && !info.IsDir() && !info.Mode().IsRegular() {
			return true
		}
	}
	return false
}

// listener pretends to listen on port 10261 without opening it.
type listener struct{ net.Listener }

func (listener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 10261} }
func (listener) Close() error   { return nil }
